//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All schedules of a kernel that the cost model considers: what a tuner may
// choose from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_STRATEGY_SCHEDULESPACE_H
#define KAS_CODEGEN_GPU_STRATEGY_SCHEDULESPACE_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/IR/Operation.h"

namespace kas::codegen {

/// The schedules of `op`, a concrete `kas.apply` or a `linalg.generic` after
/// `-kas-gpu-form-kernels`, that suit `device`, with factors of products that
/// may be rounded to `precision`: each once, of all strategies, in the order of
/// the cost model's candidates; at least one. An error says why there is
/// nothing to choose.
llvm::Expected<ScheduleSpace>
getGPUScheduleSpace(mlir::Operation *op, GPUDeviceAttr device,
                    GPUPrecision precision = GPUPrecision::F32);

/// The cheapest schedule of an operator on `device` according to the cost
/// model; of `strategy` where the operator can be computed so. Factors of
/// products may be rounded to `precision`. Always suits.
GPUScheduleAttr
chooseGPUSchedule(const Coordinates &coordinates, GPUDeviceAttr device,
                  std::optional<GPUStrategy> strategy = std::nullopt,
                  GPUPrecision precision = GPUPrecision::F32);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_STRATEGY_SCHEDULESPACE_H
