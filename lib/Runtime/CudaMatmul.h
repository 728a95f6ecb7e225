//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products by cuBLASLt, in the stream of a device, in place of kernels
// that compute the same.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDAMATMUL_H
#define LIB_RUNTIME_CUDAMATMUL_H

#include "CublasLt.h"
#include "KernelLibrary.h"

namespace kas::rt {

class CublasLt final : public KernelLibrary {
public:
  explicit CublasLt(CudaDevice &device);

  // The names are the library's.
  // NOLINTBEGIN(readability-identifier-naming)
#define KAS_DECLARE(result, name, parameters)                                  \
  result(*name) parameters = nullptr;
  KAS_CUBLASLT_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE
  // NOLINTEND(readability-identifier-naming)

  CublasHandle handle = nullptr;

private:
  Status loadFunctions() override;
  Version getVersion() const override;
  Status createHandle() override;
  Status destroyHandle() override;
};

/// One product.
class CudaMatmul final : public LibraryCall {
public:
  CudaMatmul(CublasLt &library, const KasRtMatmul &product)
      : LibraryCall(library), library(library), product(product) {}
  ~CudaMatmul() override;

  Status launch(const std::vector<CUdeviceptr> &arguments,
                CUstream stream) override;

private:
  Status describe() override;
  Status makeDescription();
  Status makeLayouts();
  Status makeLayout(CublasLayout &layout, KasRtElement type, uint64_t rows,
                    uint64_t columns, uint64_t leading, uint64_t batchStride);
  Status choose();
  Status setPreferences(CublasPreference preference);
  Status setBias(CUdeviceptr address);

  CublasLt &library;
  KasRtMatmul product;
  CublasMatmulDesc description = nullptr;
  /// In the library's order: `d = a b + c` with columns of neighbours, which is
  /// the transposed product of ours. `c` has the layout of `d`.
  CublasLayout a = nullptr, b = nullptr, d = nullptr;
  CublasChoice choice = {};
};

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDAMATMUL_H
