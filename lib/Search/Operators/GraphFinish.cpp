//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The end of an operator: assigning coordinates to the dimensions of the input
// (rule F1), and the costs of what is finished.
//
// Finishing is a move of its own, since a state may be finished in several ways
// or in none.
//
//===----------------------------------------------------------------------===//

#include "FlatGraph.h"
#include "GraphProperties.h"
#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// FlatGraph
//===----------------------------------------------------------------------===//

/// Nodes in the order of first use by the data, the weights and what is
/// expanded.
FlatGraph::FlatGraph(const GraphSpace &space, const GraphStateData &state) {
  for (const LiveCoord &coord : state.getLive())
    data.push_back(add(space, coord.expr));
  for (unsigned index = 0; index < state.numWeights; ++index) {
    llvm::SmallVector<unsigned, 8> &weight = weights.emplace_back();
    for (ExprId coord : space.getWeight(state.weights[index]))
      weight.push_back(add(space, coord));
  }
  for (unsigned index = 0; index < state.numExpanded; ++index)
    expanded.push_back(add(space, state.expanded[index]));
}

/// Operands first: they are added before the node itself.
unsigned FlatGraph::add(const GraphSpace &space, ExprId id) {
  for (auto [index, node] : llvm::enumerate(nodes))
    if (node.expr == id)
      return index;
  Node node{id, 0, 0};
  const Expr &expr = space.getExpr(id);
  if (expr.kind != CoordKind::Output && expr.kind != CoordKind::Reduce) {
    node.first = add(space, expr.first);
    if (expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold)
      node.second = add(space, expr.second);
  }
  nodes.push_back(node);
  return nodes.size() - 1;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

namespace {
/// The assignments of coordinates to equal input dimensions with which all
/// properties hold, one by one. Backtracking over the input dimensions; each
/// takes a live coordinate of its size that no other one took.
class Matcher {
public:
  Matcher(const GraphSpace &space, const GraphStateData &state,
          llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit)
      : space(space), state(state), live(state.getLive()), visit(visit) {
    // An order that does not depend on the path. The order of live coordinates
    // depends on the moves.
    for (unsigned index = 0; index < live.size(); ++index)
      order.push_back(index);
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return getRank(live[a].expr) < getRank(live[b].expr);
    });
  }

  /// Returns true when `visit` wants no more.
  bool match(unsigned target) {
    if (target == space.targets.size()) {
      // Properties depend on the assignment, for example which axis has the
      // window.
      if (space.properties && !space.properties->hold(state, chosen))
        return false;
      isFound = true;
      return visit(chosen);
    }
    for (unsigned index : order) {
      // T3: a stride has gone into an unfold.
      if (live[index].size != space.targets[target] ||
          (live[index].flags & LiveCoord::Strided) ||
          llvm::is_contained(chosen, index))
        continue;
      chosen.push_back(index);
      if (match(target + 1))
        return true;
      chosen.pop_back();
      // With interchangeable axes one assignment is enough: the first, or the
      // first with all properties.
      if (space.problem->limits.swapAxes && (isFound || !space.properties))
        return false;
    }
    return false;
  }

private:
  /// The first output below comes first. An output before a reduction; then by
  /// hash.
  std::pair<unsigned, uint64_t> getRank(ExprId id) const {
    ExprId leaf = id;
    while (space.getExpr(leaf).kind != CoordKind::Output &&
           space.getExpr(leaf).kind != CoordKind::Reduce)
      leaf = space.getExpr(leaf).first;
    const Expr &expr = space.getExpr(leaf);
    return {expr.kind == CoordKind::Output ? expr.first : ~0u,
            space.getHash(id)};
  }

  const GraphSpace &space;
  const GraphStateData &state;
  llvm::ArrayRef<LiveCoord> live;
  llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit;
  llvm::SmallVector<unsigned, 8> order, chosen;
  /// An assignment with all properties.
  bool isFound = false;
};
} // namespace

/// F1: as many live coordinates as input dimensions, with the same sizes.
void kas::search::forEachMatch(
    const GraphSpace &space, const GraphStateData &state,
    llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit) {
  // F1.
  if (state.numLive == space.targets.size())
    Matcher(space, state, visit).match(0);
}

/// Cheap conditions first; the FLOPs are the expensive part.
bool kas::search::isFinishable(GraphSpace &space, const GraphStateData &state) {
  const SearchProblem &problem = *space.problem;
  if (state.numWeights == 0 && problem.limits.weights > 0) // F2
    return false;
  // Joined reductions are counted already, live ones are not.
  double pooled = state.pooled; // P1
  for (const LiveCoord &coord : state.getLive())
    if (coord.kind == CoordKind::Reduce && !coord.weights)
      pooled *= static_cast<double>(space.sizes[coord.size].max);
  if (pooled > static_cast<double>(problem.limits.pooling) && pooled > 1)
    return false;
  const SearchBudget &budget = problem.budget; // F3
  double flops = getFlops(space, state);
  // Costs must fit 63 bits.
  constexpr double most = 0x1p63;
  return flops < most && state.params < most &&
         (!budget.minFlops || flops >= *budget.minFlops) &&
         (!budget.maxFlops || flops <= *budget.maxFlops) &&
         (!budget.maxParams || state.params <= *budget.maxParams) &&
         !hasFullWindows(space, state); // W17
}

/// Fills the buffers of `space.cost` with the graph; the result is valid until
/// the next call.
static StagedCost &describeCost(GraphSpace &space, const FlatGraph &graph) {
  StagedCost &cost = space.cost;
  cost.clear();
  for (const FlatGraph::Node &node : graph.nodes) {
    const Expr &expr = space.getExpr(node.expr);
    cost.nodes.push_back({expr.kind, expr.size, node.first, node.second});
  }
  cost.data.assign(graph.data.begin(), graph.data.end());
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    cost.weights.emplace_back(weight);
  return cost;
}

/// Nothing if a cost does not fit.
std::optional<GraphCost> kas::search::computeCost(GraphSpace &space,
                                                  const GraphStateData &state) {
  return describeCost(space, FlatGraph(space, state)).compute();
}

/// What the FLOPs depend on: the weights, and what the data is made of but for
/// splits, shifts and strides. Sums over coordinates, as their order does not
/// matter.
static uint64_t getCostKey(const GraphSpace &space,
                           const GraphStateData &state) {
  uint64_t hash = 0;
  for (const LiveCoord &coord : state.getLive())
    hash += space.getCostHash(coord.expr);
  hash = mixBits(hash);
  for (unsigned index = 0; index < state.numWeights; ++index)
    hash += mixBits(space.getWeightHash(state.weights[index]));
  return mixBits(hash);
}

/// Kept in a direct-mapped cache, as many states have the same contractions.
double kas::search::getFlops(GraphSpace &space, const GraphStateData &state) {
  GraphSpace::KnownFlops &known = space.getKnownFlops(getCostKey(space, state));
  if (known.value < 0)
    known.value = describeCost(space, FlatGraph(space, state)).computeFlops();
  return known.value;
}

/// Views do not add FLOPs, so after the last weight the FLOPs can only fall:
/// `most` is an upper bound. For the lower one, the least FLOPs that removing
/// coordinates can lead to are computed.
bool kas::search::canMeetBudget(GraphSpace &space,
                                const GraphStateData &state) {
  const SearchBudget &budget = space.problem->budget;
  if (!space.options.useBudget || (!budget.minFlops && !budget.maxFlops))
    return true;
  double most = getFlops(space, state);
  if (budget.minFlops && most < *budget.minFlops)
    return false;
  if (!budget.maxFlops || most <= *budget.maxFlops)
    return true;
  // Windows and what is expanded vanish.
  const SpaceLimits &limits = space.problem->limits;
  bool hasUnfold = limits.unfold > state.counts[UnfoldMove];
  bool hasExpand = limits.expand > state.counts[ExpandMove];
  // The least FLOPs depend on what may be removed, so it is part of the key.
  uint64_t salt = 1 + hasUnfold + 2 * hasExpand;
  GraphSpace::KnownFlops &known =
      space.getKnownFlops(mixBits(getCostKey(space, state) + salt));
  if (known.value < 0) {
    FlatGraph graph(space, state);
    uint64_t removable = 0;
    for (auto [coord, index] : llvm::zip_equal(state.getLive(), graph.data)) {
      const SizeInfo &info = space.sizes[coord.size];
      // A coordinate that may become a window is joined with its base.
      bool isWindow = hasUnfold && info.isOdd && info.max <= limits.window;
      if (isWindow || hasExpand)
        removable |= uint64_t(1) << index;
    }
    known.value = describeCost(space, graph).computeLeastFlops(removable);
  }
  return known.value <= *budget.maxFlops;
}
