//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schedules that are chosen for kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_SCHEDULECHOICE_H
#define LIB_CODEGEN_GPU_STRATEGY_SCHEDULECHOICE_H

#include "ContractionProblem.h"

namespace kas::codegen {

/// A schedule, and the cycles that the cost model expects of it, those of the
/// launch included.
struct ScheduleChoice {
  GPUScheduleAttr schedule;
  double cycles;
};

/// Of a kernel on inputs of `inputType`.
ScheduleChoice chooseSchedule(const GPUKernelProblem &problem,
                              mlir::Type inputType, GPUDeviceAttr device,
                              std::optional<GPUStrategy> strategy,
                              GPUPrecision precision);

/// As a contraction, or point by point, which has no model and takes 0 cycles.
ScheduleChoice chooseSchedule(mlir::linalg::GenericOp op, GPUDeviceAttr device,
                              std::optional<GPUStrategy> strategy,
                              GPUPrecision precision);

/// Those of functions on buffers are left alone, and so are those that make no
/// kernel.
bool hasTensorsOfStaticShape(mlir::linalg::GenericOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_SCHEDULECHOICE_H
