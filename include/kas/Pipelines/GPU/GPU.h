//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the pipelines for all kinds of GPUs share.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_GPU_GPU_H
#define KAS_PIPELINES_GPU_GPU_H

#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Codegen/GPU/Strategy/Options.h"
#include "mlir/Pass/PassManager.h"

namespace kas {

/// What both strategies share.
struct GPUFrontOptions {
  /// See `getGPUDevice`; empty: the one that the module names, else sm_90.
  std::string device = {};
  /// Take the place of the device's limits, if not 0.
  int64_t maxThreads = 0, sharedBytes = 0;
  /// Of operators that can be computed so.
  codegen::GPUStrategyChoice strategy = codegen::GPUStrategyChoice::Auto;
  /// What factors of products may be rounded to, for tensor cores.
  GPUPrecision precision = GPUPrecision::F32;
  /// What tensors of f32 are kept in. Kernels compute in f32.
  codegen::GPUElements elements = codegen::GPUElements::F32;
  /// What may compute kernels of NVIDIA's GPUs.
  codegen::GPULibraries libraries = codegen::GPULibraries::None;
  /// On NVIDIA's GPUs.
  codegen::GPULayout layout = codegen::GPULayout::Auto;
  /// Prove that the stages of operators compute them.
  bool verifyLowering = false;
};

/// Functions on tensors to functions in which each operation that computes is a
/// kernel, a concrete `kas.apply` or a `linalg.generic`, on tensors of
/// `options.elements`, with weights as `options.device` reads them best. The
/// first part of `buildGPUFrontHalf`, which leaves its result as it is, but for
/// copies, which it makes anew; schedules are set on those operations.
void buildGPUKernelFormation(mlir::OpPassManager &manager,
                             const GPUFrontOptions &options = {});

/// Operators on tensors to functions on buffers that launch kernels.
void buildGPUFrontHalf(mlir::OpPassManager &manager,
                       const GPUFrontOptions &options = {});

/// Registers the passes and pipelines.
void registerGPUPipelines();

/// Registers every dialect and extension that the pipelines read or make.
void registerGPUPipelineDialects(mlir::DialectRegistry &registry);

} // namespace kas

#endif // KAS_PIPELINES_GPU_GPU_H
