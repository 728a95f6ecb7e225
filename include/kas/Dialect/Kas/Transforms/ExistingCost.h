//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of an operator without products with padding: what the rate of
// a measured time is made of.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_EXISTINGCOST_H
#define KAS_DIALECT_KAS_TRANSFORMS_EXISTINGCOST_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Schedule/StagePlan.h"

namespace kas {

/// The multiply-adds of the stages in `plan` that do not depend on weights
/// alone, at the points that exist: where all indices of data and weights are
/// inside of their tensors. `op` is concrete, `plan` one of its plans. Programs
/// need not compute others, so times are divided by this number; it is at most
/// what `Cost::macs` counts when `plan` is the one with the fewest.
int64_t countExistingMacs(OperatorOp op, const schedule::StagePlan &plan);

/// The same for the plan with the fewest multiply-adds when weights are
/// prepared (`StageCost::Prepared`), of `op` at `binding`. Fails, with a
/// diagnostic made by `emitError`, when the binding is not legal.
mlir::FailureOr<int64_t> getExistingMacs(OperatorOp op, const Binding &binding,
                                         EmitErrorFn emitError);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_EXISTINGCOST_H
