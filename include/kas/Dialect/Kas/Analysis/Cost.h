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
template <typename Number>
struct BasicCost {
  /// Multiply-adds: points of the iteration space, times the number of tensors
  /// multiplied at a point less one. Without weights the additions (or
  /// comparisons) of a reduction are counted instead, one per point; a view
  /// without weights and reductions has none. Points that an unfold clips
  /// count. With stages the sum over them.
  Number macs = {};
  /// Floating-point operations: 2 per multiply-add.
  Number flops = {};
  /// Elements of all weights.
  Number parameters = {};
  /// Bytes of data, weights and output in f32, each element moved once.
  Number bytes = {};
};

using SymbolicCost = BasicCost<SizePolynomial>;
using Cost = BasicCost<int64_t>;

/// The cost of `op` as one loop nest over its outputs and reductions, over the
/// symbols of `op.getSymbolSet()`: which stages are best depends on numbers.
/// Nothing when a constant or an exponent does
/// not fit.
std::optional<SymbolicCost> getSymbolicCost(OperatorOp op);

/// The cost of `op` at `binding`, its arithmetic that of its best stages
/// (kas/Solver/StagePlan.h), since that is what runs. Fails, with a diagnostic
/// made by `emitError`, when the binding is not legal or a number does not fit
/// 63 bits.
mlir::FailureOr<Cost> getCost(OperatorOp op, const Binding &binding,
                              EmitErrorFn emitError);

/// The cost of the operator that `apply` applies, at the binding it infers.
mlir::FailureOr<Cost> getCost(ApplyOp apply);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_COST_H
