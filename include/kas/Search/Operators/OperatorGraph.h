//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator as plain data, as the search makes it; its cost, and the
// `kas.operator` of it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_OPERATORGRAPH_H
#define KAS_SEARCH_OPERATORS_OPERATORGRAPH_H

#include "kas/Schedule/StagePlan.h"
#include "kas/Search/Core/State.h"
#include "kas/Search/Operators/SearchProblem.h"
#include "mlir/IR/Builders.h"

namespace kas::search {

/// What makes a coordinate. The two results of a merge are two nodes; a share
/// is none: a node may be used by any number of weights and at most once
/// otherwise.
enum class CoordKind : uint8_t {
  Output,
  Reduce,
  MergeQuotient,
  MergeRemainder,
  Split,
  Shift,
  Unfold,
  Stride
};

/// A coordinate of an `OperatorGraph`.
struct GraphCoord {
  CoordKind kind = CoordKind::Output;
  Size size;
  /// The nodes it is made of, where it is made of any.
  unsigned first = 0, second = 0;
  /// Shift: the amount. Output: which one.
  int64_t amount = 0;
  /// Merge: the block. Stride: the factor.
  Size parameter;
  /// Unfold: the window looks back only.
  bool isCausal = false;

  /// Unfold: how far before its base the window begins, of `window` points.
  int64_t getLow(int64_t window) const {
    return isCausal ? window - 1 : window / 2;
  }
};

/// Costs of an operator, summed over the bindings times their multiplicities.
struct GraphCost {
  /// Two per multiply-add of the best stages at each binding (`planStages`)
  /// when what depends on weights alone was computed before, as the operator
  /// runs. A view costs nothing. Exact below 2^53.
  uint64_t flops = 0;
  /// Elements of all weights; each layer has its own.
  uint64_t params = 0;
};

/// A complete operator of a search problem.
struct OperatorGraph final : Solution {
  /// All outputs, all reductions, then the rest; operands come first.
  llvm::SmallVector<GraphCoord, 16> coords;
  /// Indices into `coords`.
  llvm::SmallVector<unsigned, 6> data;
  llvm::SmallVector<llvm::SmallVector<unsigned, 6>, 2> weights;
  /// By weight: its place among those that the best stages take in turn, from
  /// the data to the output. Shares are built in this order, so that stages can
  /// be cut between them.
  llvm::SmallVector<unsigned, 2> stageOfWeights;
  llvm::SmallVector<unsigned, 1> expanded;
  GraphCost cost;
  /// The same for graphs that differ only in the order of weights, of their
  /// dimensions, of equal reductions, or of the factors of an unordered input
  /// dimension.
  uint64_t hash = 0;

  uint64_t key() const override { return hash; }
  /// Logarithms of the costs, how often each kind of coordinate occurs, and for
  /// up to four weights the number of coordinates and how many of them hold an
  /// output.
  void getFeatures(llvm::SmallVectorImpl<double> &features) const override;
};

/// What databases say under `flops_of` that hold such costs; others count the
/// weights one by one.
inline constexpr llvm::StringLiteral flopsOfPreparedWeights =
    "prepared weights";

/// What the planner of stages needs of `graph` at `binding`.
schedule::StageGraph getStageGraph(const OperatorGraph &graph,
                                   const Binding &binding);

/// The floating-point operations of `graph` for a purpose, summed over the
/// bindings times their multiplicities; nothing when they do not fit 63 bits.
std::optional<uint64_t> getFlops(const SearchProblem &problem,
                                 const OperatorGraph &graph,
                                 schedule::StageCost cost);

/// Builds `graph`, a solution of `problem`, as `kas.operator @name` with all
/// symbols of the problem.
OperatorOp buildOperator(mlir::OpBuilder &builder, mlir::Location location,
                         llvm::StringRef name, const SearchProblem &problem,
                         const OperatorGraph &graph);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_OPERATORGRAPH_H
