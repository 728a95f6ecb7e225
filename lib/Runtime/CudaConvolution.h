//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions by cuDNN, in the stream of a device, in place of kernels that
// compute the same.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDACONVOLUTION_H
#define LIB_RUNTIME_CUDACONVOLUTION_H

#include "Cudnn.h"
#include "KernelLibrary.h"

namespace kas::rt {

class Cudnn final : public KernelLibrary {
public:
  explicit Cudnn(CudaDevice &device);

  // The names are the library's.
  // NOLINTBEGIN(readability-identifier-naming)
#define KAS_DECLARE(result, name, parameters)                                  \
  result(*name) parameters = nullptr;
  KAS_CUDNN_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE
  // NOLINTEND(readability-identifier-naming)

  CudnnHandle handle = nullptr;

private:
  Status loadFunctions() override;
  Version getVersion() const override;
  Status createHandle() override;
  Status destroyHandle() override;
};

/// One convolution.
class CudaConvolution final : public LibraryCall {
public:
  CudaConvolution(Cudnn &library, const KasRtConvolution &convolution)
      : LibraryCall(library), library(library), convolution(convolution) {}
  ~CudaConvolution() override;

  Status launch(const std::vector<CUdeviceptr> &arguments,
                CUstream stream) override;

private:
  Status describe() override;
  Status makeTensors();
  Status makeTensor(CudnnTensor &tensor, const uint64_t (&sizes)[4]);
  Status makeFilter();
  Status makeWindow();
  Status makeActivation();
  Status choose();
  /// Whether it can be computed so in the workspace.
  Status take(const CudnnChoice &choice);

  Cudnn &library;
  KasRtConvolution convolution;
  /// In the library's words: `y = f(x * w + z + bias)`; `z` is like `y`.
  CudnnTensor x = nullptr, y = nullptr, bias = nullptr;
  CudnnFilter w = nullptr;
  CudnnConvolution window = nullptr;
  CudnnActivation activation = nullptr;
  int algorithm = 0;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDACONVOLUTION_H
