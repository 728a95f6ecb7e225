//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatGraph.h"
#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

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
/// The assignments of coordinates to equal input dimensions, one by one.
class Matcher {
public:
  Matcher(const GraphSpace &space, const GraphStateData &state,
          llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit)
      : space(space), live(state.getLive()), visit(visit) {
    // An order that does not depend on the path.
    for (unsigned index = 0; index < live.size(); ++index)
      order.push_back(index);
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return getRank(live[a].expr) < getRank(live[b].expr);
    });
  }

  bool match(unsigned target) {
    if (target == space.targets.size())
      return visit(chosen);
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
      if (space.problem->limits.swapAxes)
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
  llvm::ArrayRef<LiveCoord> live;
  llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit;
  llvm::SmallVector<unsigned, 8> order, chosen;
};
} // namespace

void kas::forEachMatch(
    const GraphSpace &space, const GraphStateData &state,
    llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit) {
  // F1.
  if (state.numLive == space.targets.size())
    Matcher(space, state, visit).match(0);
}

bool kas::isFinishable(GraphSpace &space, const GraphStateData &state) {
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
         (!budget.maxParams || state.params <= *budget.maxParams);
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

std::optional<GraphCost> kas::computeCost(GraphSpace &space,
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

double kas::getFlops(GraphSpace &space, const GraphStateData &state) {
  GraphSpace::KnownFlops &known = space.getKnownFlops(getCostKey(space, state));
  if (known.value < 0)
    known.value = describeCost(space, FlatGraph(space, state)).computeFlops();
  return known.value;
}

bool kas::canMeetBudget(GraphSpace &space, const GraphStateData &state) {
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

//===----------------------------------------------------------------------===//
// Final keys
//===----------------------------------------------------------------------===//

namespace {
/// The least hash of an operator over all ways to number equal reductions (O4),
/// and equal outputs where axes may be swapped (O5).
class FinalKey {
public:
  FinalKey(const GraphSpace &space, const GraphStateData &state)
      : space(space), graph(space, state), hashes(graph.nodes.size()),
        labels(graph.nodes.size()) {
    findGroups();
    findAtoms();
    for (unsigned index : graph.data) {
      llvm::SmallVector<unsigned, 6> &factors = dimensions.emplace_back();
      unsigned dimension = space.firstOutput + dimensions.size() - 1;
      if (space.problem->inputs[dimension].isUnordered)
        addFactors(index, factors);
      else
        factors.push_back(index);
    }
  }

  uint64_t compute() {
    permute(0);
    return least;
  }

private:
  /// Leaves that may be renamed into each other, by shape.
  void findGroups() {
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      const Expr &expr = space.getExpr(node.expr);
      bool isOutput = expr.kind == CoordKind::Output;
      if (!isOutput && expr.kind != CoordKind::Reduce)
        continue;
      labels[index] = expr.first;
      if (isOutput && !space.isSwappable(expr))
        continue;
      auto *group = llvm::find_if(groups, [&](llvm::ArrayRef<unsigned> other) {
        return space.getShapeHash(graph.nodes[other.front()].expr) ==
               space.getShapeHash(node.expr);
      });
      if (group == groups.end())
        group = &groups.emplace_back();
      group->push_back(index);
    }
  }

  /// W8: weights by their atoms; what follows from those of one weight may as
  /// well be taken by it as dropped.
  void findAtoms() {
    for (llvm::ArrayRef<unsigned> weight : graph.weights) {
      llvm::SmallVector<ExprId, 8> coords;
      for (unsigned index : weight)
        coords.push_back(graph.nodes[index].expr);
      llvm::SmallVector<unsigned, 8> &atoms = weights.emplace_back();
      for (ExprId id : getWeightAtoms(space, coords))
        atoms.push_back(find(id));
    }
    for (unsigned index : graph.expanded)
      if (llvm::none_of(weights, [&](llvm::ArrayRef<unsigned> atoms) {
            return followsFrom(index, atoms);
          }))
        expanded.push_back(index);
  }

  bool followsFrom(unsigned index, llvm::ArrayRef<unsigned> atoms) const {
    const FlatGraph::Node &node = graph.nodes[index];
    const Expr &expr = space.getExpr(node.expr);
    if (llvm::is_contained(atoms, index))
      return true;
    if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce)
      return false;
    bool isBinary =
        expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold;
    return followsFrom(node.first, atoms) &&
           (!isBinary || followsFrom(node.second, atoms));
  }

  void addFactors(unsigned index, llvm::SmallVectorImpl<unsigned> &factors) {
    if (space.getExpr(graph.nodes[index].expr).kind != CoordKind::Split) {
      factors.push_back(index);
      return;
    }
    addFactors(graph.nodes[index].first, factors);
    addFactors(graph.nodes[index].second, factors);
  }

  void permute(unsigned group) {
    if (group == groups.size()) {
      least = std::min(least, computeOnce());
      return;
    }
    llvm::SmallVector<unsigned, 6> order;
    for (unsigned index : groups[group])
      order.push_back(space.getExpr(graph.nodes[index].expr).first);
    llvm::sort(order);
    do {
      for (auto [index, label] : llvm::zip_equal(groups[group], order))
        labels[index] = label;
      permute(group + 1);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  unsigned find(ExprId id) const {
    return llvm::find_if(
               graph.nodes,
               [&](const FlatGraph::Node &node) { return node.expr == id; }) -
           graph.nodes.begin();
  }

  /// H5: with an outer reduction whose weights have the inner coordinate as
  /// well, carrying into it only renames its points: the inner one may be
  /// shifted instead.
  bool isCarryVoid(const Expr &split) const {
    if (split.kind != CoordKind::Split ||
        space.getExpr(split.first).kind != CoordKind::Reduce)
      return false;
    unsigned reduce = find(split.first), inner = find(split.second);
    return llvm::all_of(weights, [&](llvm::ArrayRef<unsigned> atoms) {
      return !llvm::is_contained(atoms, reduce) || followsFrom(inner, atoms);
    });
  }

  uint64_t hashShift(uint64_t base, SizeId size, uint32_t isBackward) const {
    uint64_t hash = combineHash(static_cast<uint64_t>(CoordKind::Shift),
                                space.sizes[size].hash);
    return combineHash(combineHash(hash, base), isBackward);
  }

  /// H5.
  std::optional<uint64_t> hashVoidCarry(const Expr &shift) const {
    const Expr &split = space.getExpr(shift.first);
    if (shift.kind != CoordKind::Shift || !isCarryVoid(split))
      return std::nullopt;
    uint64_t hash = combineHash(static_cast<uint64_t>(CoordKind::Split),
                                space.sizes[split.size].hash);
    hash = combineHash(hash, hashes[find(split.first)]);
    return combineHash(hash, hashShift(hashes[find(split.second)],
                                       space.getExpr(split.second).size,
                                       shift.second));
  }

  /// The halves of the shift of a split of a and b, merged by b's size: a plus
  /// the carry of b, and the shift of b (M9). Carries add up in any order
  /// (M10).
  std::optional<uint64_t> hashCarry(ExprId id) const {
    const Expr &expr = space.getExpr(id);
    if (std::optional<ExprId> inner = getShiftedRemainder(space, id))
      return hashShift(hashes[find(*inner)], expr.size,
                       space.getExpr(expr.first).second);
    uint64_t sum = 0;
    ExprId base = id;
    while (const Expr *split = getCarriedSplit(space, base)) {
      uint32_t isBackward = space.getExpr(space.getExpr(base).first).second;
      if (!isCarryVoid(*split))
        sum += mixBits(combineHash(hashes[find(split->second)], isBackward));
      base = split->first;
    }
    if (base == id)
      return std::nullopt;
    uint64_t hash = hashes[find(base)];
    return sum == 0 ? hash
                    : combineHash(combineHash(hash, sum),
                                  static_cast<uint64_t>(expr.kind));
  }

  /// H6: when the quotient of a merge of a shift is dropped, the remainder may
  /// as well be shifted.
  std::optional<uint64_t> hashShiftedHalf(const Expr &half) const {
    if ((half.kind != CoordKind::MergeQuotient &&
         half.kind != CoordKind::MergeRemainder) ||
        space.getExpr(half.first).kind != CoordKind::Shift ||
        llvm::none_of(graph.expanded, [&](unsigned index) {
          const Expr &dropped = space.getExpr(graph.nodes[index].expr);
          return dropped.kind == CoordKind::MergeQuotient &&
                 dropped.first == half.first && dropped.second == half.second;
        }))
      return std::nullopt;
    const Expr &shift = space.getExpr(half.first);
    uint64_t hash = combineHash(static_cast<uint64_t>(half.kind),
                                space.sizes[half.size].hash);
    hash = combineHash(hash, hashes[find(shift.first)]);
    hash = combineHash(hash, space.sizes[half.second].hash);
    return half.kind == CoordKind::MergeQuotient
               ? hash
               : hashShift(hash, half.size, shift.second);
  }

  /// S8: halves of one merge side by side are the whole, whatever weights there
  /// are.
  std::optional<ExprId> joinHalves(ExprId outer, ExprId inner) const {
    const Expr &x = space.getExpr(outer), &y = space.getExpr(inner);
    if (x.kind == CoordKind::MergeQuotient &&
        y.kind == CoordKind::MergeRemainder && x.first == y.first &&
        x.second == y.second)
      return x.first;
    return std::nullopt;
  }
  std::optional<uint64_t> hashJoined(const Expr &split) const {
    if (split.kind != CoordKind::Split)
      return std::nullopt;
    if (std::optional<ExprId> whole = joinHalves(split.first, split.second))
      return hashes[find(*whole)];
    const Expr &inner = space.getExpr(split.second);
    if (inner.kind != CoordKind::Split)
      return std::nullopt;
    std::optional<ExprId> whole = joinHalves(split.first, inner.first);
    if (!whole)
      return std::nullopt;
    uint64_t hash = combineHash(static_cast<uint64_t>(CoordKind::Split),
                                space.sizes[split.size].hash);
    hash = combineHash(hash, hashes[find(*whole)]);
    return combineHash(hash, hashes[find(inner.second)]);
  }

  /// W9: a weight that is indexed by the remainder of a shift is a rotated one.
  uint64_t hashAtom(unsigned index) const {
    const Expr &expr = space.getExpr(graph.nodes[index].expr);
    if (expr.kind != CoordKind::MergeRemainder ||
        space.getExpr(expr.first).kind != CoordKind::Shift)
      return hashes[index];
    uint64_t hash = combineHash(static_cast<uint64_t>(expr.kind),
                                space.sizes[expr.size].hash);
    hash = combineHash(hash, hashes[find(space.getExpr(expr.first).first)]);
    return combineHash(hash, space.sizes[expr.second].hash);
  }

  uint64_t hashNode(unsigned index) const {
    const FlatGraph::Node &node = graph.nodes[index];
    const Expr &expr = space.getExpr(node.expr);
    for (std::optional<uint64_t> hash :
         {hashJoined(expr), hashVoidCarry(expr), hashCarry(node.expr),
          hashShiftedHalf(expr)})
      if (hash)
        return *hash;
    uint64_t hash = combineHash(static_cast<uint64_t>(expr.kind),
                                space.sizes[expr.size].hash);
    switch (expr.kind) {
    case CoordKind::Output:
    case CoordKind::Reduce:
      return combineHash(hash, labels[index]);
    case CoordKind::Split:
    case CoordKind::Unfold:
      hash = combineHash(hash, hashes[node.first]);
      return combineHash(hash, hashes[node.second]);
    case CoordKind::Shift:
      hash = combineHash(hash, hashes[node.first]);
      return combineHash(hash, expr.second);
    default:
      hash = combineHash(hash, hashes[node.first]);
      return combineHash(hash, space.sizes[expr.second].hash);
    }
  }

  uint64_t hashSet(llvm::ArrayRef<unsigned> set) const {
    uint64_t sum = set.size();
    for (unsigned index : set)
      sum += mixBits(hashes[index]);
    return mixBits(sum);
  }

  uint64_t hashWeight(llvm::ArrayRef<unsigned> atoms) const {
    uint64_t sum = atoms.size();
    for (unsigned index : atoms)
      sum += mixBits(hashAtom(index));
    return mixBits(sum);
  }

  uint64_t computeOnce() {
    for (unsigned index = 0; index < hashes.size(); ++index)
      hashes[index] = hashNode(index);
    uint64_t hash = 0, swapped = 0;
    for (auto [position, factors] : llvm::enumerate(dimensions)) {
      const Dimension &input =
          space.problem->inputs[space.firstOutput + position];
      uint64_t dimension = combineHash(
          space.sizes[space.targets[position]].hash, hashSet(factors));
      if (space.problem->limits.swapAxes && !input.isUnordered)
        swapped += mixBits(dimension);
      else
        hash = combineHash(hash, dimension);
    }
    hash = combineHash(hash, swapped);
    uint64_t sum = graph.weights.size();
    for (llvm::ArrayRef<unsigned> weight : weights)
      sum += mixBits(hashWeight(weight));
    return combineHash(combineHash(hash, sum), hashSet(expanded));
  }

  const GraphSpace &space;
  FlatGraph graph;
  llvm::SmallVector<llvm::SmallVector<unsigned, 6>, 4> groups, dimensions;
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>, 4> weights;
  llvm::SmallVector<unsigned, 4> expanded;
  llvm::SmallVector<uint64_t, 24> hashes;
  llvm::SmallVector<uint32_t, 24> labels;
  uint64_t least = ~uint64_t(0);
};
} // namespace

uint64_t kas::computeFinalKey(const GraphSpace &space,
                              const GraphStateData &state) {
  return FinalKey(space, state).compute();
}
