//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reduction factoring: one operator as a chain of operators, so that work is
// not repeated. Source: Syno, section 7 (materialized reduction).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_RFACTOR_H
#define KAS_DIALECT_KAS_TRANSFORMS_RFACTOR_H

#include "kas/Dialect/Kas/Analysis/Stages.h"
#include "mlir/IR/Builders.h"

namespace kas {

/// The best stages of a concrete operator; a single one when it cannot be
/// factored or nothing is gained.
schedule::StagePlan planStages(OperatorOp op,
                               const schedule::StagePlanOptions &options = {});

/// Makes one concrete operator per stage of `plan`, in its order, at the
/// builder's insertion point, named `<op>_stage0` and so on. The first operand
/// of a stage is the data of its operator, the others are its weights. Zero
/// padding stays exact: a stage stores zeros where all
/// of its points are clipped.
llvm::SmallVector<OperatorOp> buildStages(mlir::OpBuilder &builder,
                                          OperatorOp op,
                                          const schedule::StagePlan &plan);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_RFACTOR_H
