//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the two passes that pack contractions have in common.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_PIPELINES_PACKOPERATIONS_H
#define KAS_LIB_PIPELINES_PACKOPERATIONS_H

#include "kas/Pipelines/Schedule.h"
#include "kas/Runtime/Target.h"
#include "mlir/IR/Operation.h"

namespace kas {

/// The target of the module; vectors of `vectorBits` if there are any.
Target getContractionTarget(mlir::Operation *op, int64_t vectorBits);

/// The schedule that `op` says itself, or null.
ScheduleAttr getSchedule(mlir::Operation *op);

/// Says why `op`, or the operator `name` that it applies, takes another road.
/// One that has a schedule must not.
void remarkNotPacked(mlir::Operation *op, llvm::StringRef name,
                     const llvm::Twine &reason);

} // namespace kas

#endif // KAS_LIB_PIPELINES_PACKOPERATIONS_H
