//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roads from operators to NVVM and SPIR-V, and their common first half.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GPU_GPU_H
#define KAS_GPU_GPU_H

#include "kas/GPU/Schedule.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace kas {

/// The name of the module with all kernels.
constexpr llvm::StringLiteral kernelModuleName = "kernels";

/// Sets the device of `module` and a schedule on each `kas.apply` that has
/// none. Reports operators that are not concrete.
mlir::LogicalResult scheduleForGPU(mlir::ModuleOp module, GPUDeviceAttr device,
                                   std::optional<GPURoad> road = std::nullopt,
                                   GPUPrecision precision = GPUPrecision::F32);

/// How many kernels and launches `outlineKernels` made.
struct OutlinedKernels {
  int64_t kernels = 0, launches = 0;
};

/// Makes kernels of all scheduled `kas.apply`s; see `-kas-gpu-outline`. Reports
/// schedules that do not suit and limits of the device that are exceeded.
mlir::FailureOr<OutlinedKernels> outlineKernels(mlir::ModuleOp module);

/// What both roads share.
struct GPUFrontOptions {
  /// See `getGPUDevice`; empty: the one that the module names, else sm_90.
  std::string device = {};
  /// Take the place of the device's limits, if not 0.
  int64_t maxThreads = 0, sharedBytes = 0;
  /// `direct`, `staged` or `tensor_core`, for operators that can be computed
  /// so; empty: the cheapest one.
  std::string road = {};
  /// What factors of products may be rounded to: `f32`, or `tf32`, `f16` or
  /// `bf16` for tensor cores.
  std::string precision = "f32";
  /// What tensors of f32 are kept in: `f32`, `f16` or `bf16`. Kernels compute
  /// in f32.
  std::string elements = "f32";
};

/// Functions on tensors to functions in which each operation that computes is a
/// kernel, a concrete `kas.apply` or a `linalg.generic`, on tensors of
/// `elements`. The first part of `buildGPUFrontHalf`, which leaves its result
/// as it is, but for copies, which it makes anew; schedules are set on those
/// operations.
void buildGPUKernelFormation(mlir::OpPassManager &manager,
                             llvm::StringRef elements = "f32");

/// Operators on tensors to functions on buffers that launch kernels.
void buildGPUFrontHalf(mlir::OpPassManager &manager,
                       const GPUFrontOptions &options = {});

/// Registers the passes and pipelines.
void registerGPUPipelines();

/// Registers every dialect and extension that the pipelines read or make.
void registerGPUPipelineDialects(mlir::DialectRegistry &registry);

} // namespace kas

#endif // KAS_GPU_GPU_H
