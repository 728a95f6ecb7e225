//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategies from operators to NVVM and SPIR-V, and their common first
// half.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_GPU_H
#define KAS_CODEGEN_GPU_GPU_H

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace kas::codegen {

/// The name of the module with all kernels.
constexpr llvm::StringLiteral kernelModuleName = "kernels";

/// Sets the device of `module` and a schedule on each `kas.apply` that has
/// none, and on what `libraries` may compute what they need to know. Reports
/// operators that are not concrete.
mlir::LogicalResult
scheduleForGPU(mlir::ModuleOp module, GPUDeviceAttr device,
               std::optional<GPUStrategy> strategy = std::nullopt,
               GPUPrecision precision = GPUPrecision::F32,
               GPULibraries libraries = GPULibraries::None);

/// How many kernels and launches `outlineKernels` made.
struct OutlinedKernels {
  int64_t kernels = 0, launches = 0;
};

/// Makes kernels of all scheduled `kas.apply`s; see `-kas-gpu-outline`. Reports
/// schedules that do not suit and limits of the device that are exceeded.
mlir::FailureOr<OutlinedKernels> outlineKernels(mlir::ModuleOp module);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_GPU_H
