//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategy from operators to NVIDIA's GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_GPU_NVVM_H
#define KAS_PIPELINES_GPU_NVVM_H

#include "kas/Codegen/GPU/GPU.h"
#include "kas/Pipelines/GPU/GPU.h"

namespace kas {

struct NVVMPipelineOptions {
  /// Its device is that of `chip` if it names none.
  GPUFrontOptions front = {};
  /// What to compile for, such as sm_80, sm_90, sm_90a.
  std::string chip = "sm_90";
  /// Such as `+ptx80`; empty: a version of PTX that has all of the chip.
  std::string features = {};
  /// PTX, cubin or fatbin.
  codegen::GPUFormat format = codegen::GPUFormat::PTX;
  /// The CUDA toolkit for formats other than PTX; empty: see
  /// `findCUDAToolkit`.
  std::string toolkit = {};
};

/// Functions on tensors to functions on buffers that launch kernels of a
/// `gpu.binary`; the module has the manifest. Kernels take plain pointers to
/// buffers that begin at multiples of 16 bytes. Registered as
/// `-kas-nvvm-pipeline`.
void buildNVVMPipeline(mlir::OpPassManager &manager,
                       const NVVMPipelineOptions &options = {});

} // namespace kas

#endif // KAS_PIPELINES_GPU_NVVM_H
