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

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Solver/StagePlan.h"
#include "mlir/IR/Builders.h"

namespace kas {

/// The graph of a concrete operator for the planner, with what its positions
/// stand for.
struct OperatorStageGraph {
  StageGraph graph;
  llvm::SmallVector<mlir::Value> coordinates;
  /// Without the reductions.
  llvm::SmallVector<mlir::Operation *> primitives;
  llvm::SmallVector<ReduceOp> reductions;
};
OperatorStageGraph makeStageGraph(OperatorOp op);

/// Whether stages of `op` compute the same: every reduction is linear. (A `max`
/// does not commute with the sums and products of other stages.)
bool canFactor(OperatorOp op);

/// The best stages of a concrete operator; a single one when it cannot be
/// factored or nothing is gained.
StagePlan planStages(OperatorOp op, const StagePlanOptions &options = {});

/// The multiply-adds of the best stages of a concrete operator: what is
/// computed, where `getCost` counts one loop nest.
int64_t getStagedMacs(OperatorOp op);

/// The same for the operator that `apply` applies, at the binding it infers.
/// Fails, with a diagnostic, when there is no operator or it does not fit.
mlir::FailureOr<int64_t> getStagedMacs(ApplyOp apply);

/// Makes one concrete operator per stage of `plan`, from the data to the
/// output, at the builder's insertion point, named `<op>_stage0` and so on.
/// Each takes the result of the one before as its data, and its own weights in
/// the order of `op`. Zero padding stays exact: a stage stores zeros where all
/// of its points are clipped.
llvm::SmallVector<OperatorOp> buildStages(mlir::OpBuilder &builder,
                                          OperatorOp op, const StagePlan &plan);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_RFACTOR_H
