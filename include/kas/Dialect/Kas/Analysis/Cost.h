//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an operator costs: arithmetic, parameters and memory traffic, as sums of
// monomials of its symbols and as numbers at a binding.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_COST_H
#define KAS_DIALECT_KAS_ANALYSIS_COST_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Support/SizePolynomial.h"

namespace kas {

/// The cost of one evaluation. `Number` is a `SizePolynomial` or an `int64_t`.
///
/// Multiply-adds of a stage (kas/Schedule/StagePlan.h): points of its iteration
/// space, times the number of tensors multiplied at a point less one. Of a sum
/// of one tensor the additions (or comparisons) are counted instead, one per
/// point; a view has none. Points that an unfold clips count. A multiply-add is
/// 2 floating-point operations.
template <typename Number>
struct BasicCost {
  /// The fewest multiply-adds when all that depends on weights alone was
  /// computed before, as for inference.
  Number macs = {};
  /// Floating-point operations of `macs`.
  Number flops = {};
  /// The fewest when weights arrive with each evaluation.
  Number flopsUnprepared = {};
  /// The fewest of an evaluation with new weights, the gradient of the data and
  /// those of all weights.
  Number trainingFlops = {};
  /// Elements of all weights.
  Number parameters = {};
  /// Bytes of data, weights and output in f32, each element moved once.
  Number bytes = {};
};

using SymbolicCost = BasicCost<SizePolynomial>;
using Cost = BasicCost<int64_t>;

/// The cost of `op` as one loop nest over its outputs and reductions, over the
/// symbols of `op.getSymbolSet()`: which stages are best depends on numbers.
/// What only weights have is prepared. Nothing when a constant or an exponent
/// does not fit.
std::optional<SymbolicCost> getSymbolicCost(OperatorOp op);

/// The cost of `op` at `binding`, its arithmetic that of its best stages for
/// each purpose, since that is what runs. Fails, with a diagnostic
/// made by `emitError`, when the binding is not legal or a number does not fit
/// 63 bits.
mlir::FailureOr<Cost> getCost(OperatorOp op, const Binding &binding,
                              EmitErrorFn emitError);

/// The cost of the operator that `apply` applies, at the binding it infers.
mlir::FailureOr<Cost> getCost(ApplyOp apply);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_COST_H
