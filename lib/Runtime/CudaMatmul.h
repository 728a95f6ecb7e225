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
#include "Library.h"
#include <string>
#include <vector>

namespace kas::rt {

struct CudaDevice;

/// cuBLASLt, as one device uses it: opened by name when the first product is
/// requested. Where that fails it fails once, with the same text each time.
struct CublasLt {
  explicit CublasLt(CudaDevice &device) : device(device) {}
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;

  /// Opens the library and makes the handle and the workspace, in the device's
  /// context.
  Status open();
  /// Gives them back, in the device's context.
  Status close();
  /// Success, or the error of a call of the library.
  static Status check(CublasStatus result, const char *what);

  // The names are the library's.
  // NOLINTBEGIN(readability-identifier-naming)
#define KAS_DECLARE(result, name, parameters)                                  \
  result(*name) parameters = nullptr;
  KAS_CUBLASLT_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE
  // NOLINTEND(readability-identifier-naming)

  /// Products run one after another in one stream, so they share it. 32 MiB
  /// is what NVIDIA recommends for Hopper.
  static constexpr size_t workspaceBytes = size_t(32) << 20;
  CUdeviceptr workspace = 0;
  CublasHandle handle = nullptr;
  /// `cuBLASLt 12.1.3`, once it is open.
  std::string label;

private:
  Status load();
  Status loadFunctions();

  CudaDevice &device;
  Library library;
  bool isTried = false;
  Status outcome;
};

/// One product, with all that the library must know of it but the addresses.
class CudaMatmul {
public:
  CudaMatmul(CublasLt &library, const KasRtMatmul &product)
      : library(library), product(product) {}
  CudaMatmul(const CudaMatmul &) = delete;
  CudaMatmul &operator=(const CudaMatmul &) = delete;
  ~CudaMatmul();

  /// Makes the descriptions and asks for the library's best kernel.
  Status prepare();
  /// Starts the product in `stream`.
  Status launch(const std::vector<CUdeviceptr> &arguments, CUstream stream);

  const KasRtMatmul &getProduct() const { return product; }

private:
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
