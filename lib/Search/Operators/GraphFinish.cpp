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
/// properties hold, one by one.
class Matcher {
public:
  Matcher(const GraphSpace &space, const GraphStateData &state,
          llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit)
      : space(space), state(state), live(state.getLive()), visit(visit) {
    // An order that does not depend on the path.
    for (unsigned index = 0; index < live.size(); ++index)
      order.push_back(index);
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return getRank(live[a].expr) < getRank(live[b].expr);
    });
  }

  bool match(unsigned target) {
    if (target == space.targets.size()) {
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
      if (space.problem->limits.swapAxes && (isFound || !space.properties))
        return false;
    }
    return false;
  }

private:
  /// The first output below comes first.
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

void kas::search::forEachMatch(
    const GraphSpace &space, const GraphStateData &state,
    llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit) {
  // F1.
  if (state.numLive == space.targets.size())
    Matcher(space, state, visit).match(0);
}

bool kas::search::isFinishable(GraphSpace &space, const GraphStateData &state) {
  const SearchProblem &problem = *space.problem;
  if (state.numWeights == 0 && problem.limits.weights > 0) // F2
    return false;
  double pooled = state.pooled; // P1
  for (const LiveCoord &coord : state.getLive())
    if (coord.kind == CoordKind::Reduce && !coord.weights)
      pooled *= static_cast<double>(space.sizes[coord.size].max);
  if (pooled > static_cast<double>(problem.limits.pooling) && pooled > 1)
    return false;
  const SearchBudget &budget = problem.budget; // F3
  double flops = getFlops(space, state);
  constexpr double most = 0x1p63;
  return flops < most && state.params < most &&
         (!budget.minFlops || flops >= *budget.minFlops) &&
         (!budget.maxFlops || flops <= *budget.maxFlops) &&
         (!budget.maxParams || state.params <= *budget.maxParams) &&
         !hasFullWindows(space, state); // W17
}

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

std::optional<GraphCost> kas::search::computeCost(GraphSpace &space,
                                                  const GraphStateData &state) {
  return describeCost(space, FlatGraph(space, state)).compute();
}

/// What the FLOPs depend on: the weights, and what the data is made of but for
/// splits, shifts and strides.
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

double kas::search::getFlops(GraphSpace &space, const GraphStateData &state) {
  GraphSpace::KnownFlops &known = space.getKnownFlops(getCostKey(space, state));
  if (known.value < 0)
    known.value = describeCost(space, FlatGraph(space, state)).computeFlops();
  return known.value;
}

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
  uint64_t salt = 1 + hasUnfold + 2 * hasExpand;
  GraphSpace::KnownFlops &known =
      space.getKnownFlops(mixBits(getCostKey(space, state) + salt));
  if (known.value < 0) {
    FlatGraph graph(space, state);
    uint64_t removable = 0;
    for (auto [coord, index] : llvm::zip_equal(state.getLive(), graph.data)) {
      const SizeInfo &info = space.sizes[coord.size];
      bool isWindow = hasUnfold && info.isOdd && info.max <= limits.window;
      if (isWindow || hasExpand)
        removable |= uint64_t(1) << index;
    }
    known.value = describeCost(space, graph).computeLeastFlops(removable);
  }
  return known.value <= *budget.maxFlops;
}
