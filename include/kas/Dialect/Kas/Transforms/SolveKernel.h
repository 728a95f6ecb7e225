//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels as problems of the solvers, and their solutions written back: the
// passes kas-solve-shapes and kas-solve-budget, as functions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_SOLVEKERNEL_H
#define KAS_DIALECT_KAS_TRANSFORMS_SOLVEKERNEL_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Solver/Budget.h"
#include "kas/Solver/ShapeMatch.h"

namespace kas {

/// Puts values (over the symbols of `kernel`) for variables, which are declared
/// no more. Fails, and leaves the kernel as it is, when a size then does not
/// fit or the kernel is not legal.
llvm::LogicalResult
substitute(KernelOp kernel, llvm::ArrayRef<solver::Substitution> substitutions);

/// Which values let a broadcast or the output of `kernel` match, with the whole
/// kernel in view. The kernel must be verified and not solved.
solver::ShapeMatchProblem getMatchProblem(KernelOp kernel, DagBroadcastOp op);
solver::ShapeMatchProblem getMatchProblem(KernelOp kernel, DagOutputOp op);

struct SolveShapesOptions {
  /// Which match of each op is tried first, of those in order; `choice` on an
  /// op goes before, and then no other is tried.
  unsigned choice = 0;
};

/// Substitutes variables until no broadcast has one in the denominator of its
/// ratio and the output has as many elements as the result. A choice after
/// which a later op has no match is undone. Reports the op without a match and
/// leaves the kernel as it is when there is no way.
llvm::LogicalResult solveShapes(KernelOp kernel,
                                const SolveShapesOptions &options = {});

/// Emits a remark with all matches on every op that `solveShapes` would solve
/// first.
void listShapeMatches(KernelOp kernel);

struct SolveBudgetOptions {
  /// The heuristic of the Canvas paper instead of the exact solver.
  bool likeCanvas = false;
  /// At every layer, no tensor of so many samples may have more elements.
  int64_t batch = 1;
  int64_t maxElements = INT32_MAX;
  /// See `BudgetOptions::spread`.
  int64_t spread = 0;
  /// A symbol that divides others: it gets the value, one for all layers, of
  /// `groupCandidates` with which the kernel uses most of the budget (of equal
  /// ones the least). Empty: symbols stay as they are bound.
  std::string groups = {};
};

/// The costs of `kernel` in the order FLOPs, parameters. Reports a kernel
/// without bindings or upper budget and whatever is outside of the solver's
/// class.
llvm::FailureOr<solver::BudgetProblem>
getBudgetProblem(KernelOp kernel, const SolveBudgetOptions &options = {});

/// Gives the variables values in the bindings of `kernel`, and the kernel its
/// `solution`. Reports the conflict and leaves the kernel as it is when there
/// are none.
llvm::LogicalResult solveBudget(KernelOp kernel,
                                const SolveBudgetOptions &options = {});

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_SOLVEKERNEL_H
