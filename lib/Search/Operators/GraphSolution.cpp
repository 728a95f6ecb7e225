//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies a finished state into an `OperatorGraph`.
//
// The order of everything that is written is fixed by contents, not by the
// order of moves, so that one operator has one text.
//
//===----------------------------------------------------------------------===//

#include "FlatGraph.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace kas;
using namespace kas::search;

namespace {
/// Copies the expressions of a finished state into an `OperatorGraph`: outputs,
/// reductions, then the rest, operands first.
class GraphWriter {
public:
  GraphWriter(const GraphSpace &space, const GraphStateData &state)
      : space(space), state(state), flat(space, state),
        indices(flat.nodes.size(), ~0u),
        graph(std::make_shared<OperatorGraph>()) {}

  /// `order` are the weights of the state from the data to the output.
  /// Coordinates are written in the order that `OperatorGraph` promises.
  std::shared_ptr<OperatorGraph> write(const GraphCost &cost,
                                       llvm::ArrayRef<unsigned> order) {
    graph->cost = cost;
    writeOutputs();
    writeReductions();
    for (unsigned index = 0; index < flat.nodes.size(); ++index)
      if (indices[index] == ~0u)
        writeNode(index);
    // The batch takes part in no move: output dimension 0 is input dimension 0.
    if (space.firstOutput)
      graph->data.push_back(0);
    for (unsigned index : flat.data)
      graph->data.push_back(indices[index]);
    // Sorted by their coordinates; each remembers its stage, as `order` has it.
    llvm::SmallVector<std::pair<llvm::SmallVector<unsigned, 6>, unsigned>, 4>
        weights;
    for (auto [number, weight] : llvm::enumerate(flat.weights)) {
      unsigned stage = llvm::find(order, number) - order.begin();
      weights.emplace_back(writeWeight(weight), stage);
    }
    llvm::sort(weights);
    for (auto &[weight, stage] : weights) {
      graph->weights.push_back(weight);
      graph->stageOfWeights.push_back(stage);
    }
    for (unsigned index : flat.expanded)
      graph->expanded.push_back(indices[index]);
    llvm::sort(graph->expanded);
    // Computed when the state was finished.
    graph->hash = state.finalKey;
    return graph;
  }

private:
  /// All outputs of the signature, also those that nothing uses and the batch.
  void writeOutputs() {
    for (auto [number, output] : llvm::enumerate(space.problem->outputs)) {
      GraphCoord coord;
      coord.size = output.size;
      coord.amount = static_cast<int64_t>(number);
      graph->coords.push_back(coord);
    }
    for (auto [index, node] : llvm::enumerate(flat.nodes)) {
      const Expr &expr = space.getExpr(node.expr);
      if (expr.kind == CoordKind::Output)
        indices[index] = expr.first;
    }
  }

  /// In the order of their sizes. Reductions of equal size by their number.
  void writeReductions() {
    llvm::SmallVector<unsigned, 8> reductions;
    for (auto [index, node] : llvm::enumerate(flat.nodes))
      if (space.getExpr(node.expr).kind == CoordKind::Reduce)
        reductions.push_back(index);
    llvm::sort(reductions, [&](unsigned a, unsigned b) {
      const Expr &x = space.getExpr(flat.nodes[a].expr);
      const Expr &y = space.getExpr(flat.nodes[b].expr);
      return std::tie(space.sizes[x.size].size, x.first) <
             std::tie(space.sizes[y.size].size, y.first);
    });
    for (unsigned index : reductions)
      writeNode(index);
    if (space.problem->limits.cyclic)
      for (auto [index, node] : llvm::enumerate(flat.nodes))
        if (space.getExpr(node.expr).kind == CoordKind::Unfold)
          zeros[index] = add(CoordKind::Reduce, Size());
  }

  unsigned add(CoordKind kind, const Size &size, unsigned first = 0,
               unsigned second = 0, const Size &parameter = Size()) {
    GraphCoord &coord = graph->coords.emplace_back();
    coord.kind = kind;
    coord.size = size;
    coord.first = first;
    coord.second = second;
    coord.parameter = parameter;
    return graph->coords.size() - 1;
  }

  /// U7: an unfold in the second of three copies of its base; which copy a
  /// point is in is dropped.
  void writeCyclicUnfold(unsigned index) {
    const FlatGraph::Node &node = flat.nodes[index];
    Size size = space.sizes[space.getExpr(node.expr).size].size;
    Size three = *Size::constant(3), copies = *size.multiply(three);
    unsigned first = add(CoordKind::Stride, three, zeros.at(index), 0, three);
    unsigned second = add(CoordKind::Shift, three, first);
    graph->coords[second].amount = 1;
    unsigned base = add(CoordKind::Split, copies, second, indices[node.first]);
    unsigned window =
        add(CoordKind::Unfold, copies, base, indices[node.second]);
    graph->expanded.push_back(
        add(CoordKind::MergeQuotient, three, window, 0, size));
    indices[index] = add(CoordKind::MergeRemainder, size, window, 0, size);
  }

  /// Operands have their indices already.
  void writeNode(unsigned index) {
    const FlatGraph::Node &node = flat.nodes[index];
    const Expr &expr = space.getExpr(node.expr);
    if (expr.kind == CoordKind::Unfold && space.problem->limits.cyclic)
      return writeCyclicUnfold(index);
    GraphCoord coord;
    coord.kind = expr.kind;
    coord.size = space.sizes[expr.size].size;
    switch (expr.kind) {
    case CoordKind::Output:
    case CoordKind::Reduce:
      break;
    case CoordKind::Split:
    case CoordKind::Unfold:
      coord.first = indices[node.first];
      coord.second = indices[node.second];
      // U5.
      coord.isCausal =
          expr.kind == CoordKind::Unfold && space.problem->limits.lookBack;
      break;
    case CoordKind::MergeQuotient:
    case CoordKind::MergeRemainder:
    case CoordKind::Stride:
      coord.first = indices[node.first];
      coord.parameter = space.sizes[expr.second].size;
      break;
    case CoordKind::Shift:
      coord.first = indices[node.first];
      // The second operand says whether the shift is by -1.
      coord.amount = expr.second ? -1 : 1;
      break;
    }
    indices[index] = graph->coords.size();
    graph->coords.push_back(coord);
  }

  /// Weights list outputs and their halves first, then reductions. By the first
  /// leaf below, then by kind.
  llvm::SmallVector<unsigned, 6> writeWeight(llvm::ArrayRef<unsigned> coords) {
    llvm::SmallVector<unsigned, 6> weight;
    for (unsigned index : coords)
      weight.push_back(indices[index]);
    auto rank = [&](unsigned index) {
      unsigned leaf = index;
      while (graph->coords[leaf].kind != CoordKind::Output &&
             graph->coords[leaf].kind != CoordKind::Reduce)
        leaf = graph->coords[leaf].first;
      // Leaves come first, the outputs before the reductions.
      return std::tuple(leaf, graph->coords[index].kind, index);
    };
    llvm::sort(weight,
               [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
    return weight;
  }

  const GraphSpace &space;
  const GraphStateData &state;
  FlatGraph flat;
  /// By node: its place in the operator.
  llvm::SmallVector<unsigned, 24> indices;
  /// By node of a window that wraps around: a reduction of one point.
  std::map<unsigned, unsigned> zeros;
  std::shared_ptr<OperatorGraph> graph;
};
} // namespace

/// Made on demand: a rollout may pass many terminal states.
std::shared_ptr<const Solution> GraphState::getSolution() const {
  assert(data.isFinished && "only a terminal state has a solution");
  std::optional<GraphCost> cost = computeCost(*space, data);
  assert(cost && "it was within the budget");
  return GraphWriter(*space, data).write(*cost, space->cost.getWeightOrder());
}
