//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph of an operator for the planner of stages (rfactor).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_STAGES_H
#define KAS_DIALECT_KAS_ANALYSIS_STAGES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Schedule/StagePlan.h"

namespace kas {

/// The graph of an operator for the planner, with what its positions stand for.
/// A coordinate and what `kas.share` makes of it are one: which tensor has
/// which of them is for the stages to choose.
struct OperatorStageGraph {
  schedule::StageGraph graph;
  llvm::SmallVector<mlir::Value> coordinates;
  /// Without the reductions and shares.
  llvm::SmallVector<mlir::Operation *> primitives;
  llvm::SmallVector<ReduceOp> reductions;
};

/// The graph of `op` at `binding`, a legal one (`verifyBinding`); empty for a
/// concrete operator.
OperatorStageGraph makeStageGraph(OperatorOp op, const Binding &binding = {});

/// The coordinate that shares made `coordinate` of.
mlir::Value getShared(mlir::Value coordinate);

/// Whether stages of `op` compute the same: every reduction is linear. (A `max`
/// does not commute with the sums and products of other stages.)
bool canFactor(OperatorOp op);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_STAGES_H
