//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether the input's shape can still be reached from a state within its
// limits.
//
// Turns a state into the items and the budget that the shape distance works on.
// What an item may still become is stated by flags; they must never be stricter
// than the rules of moves (GraphRules.cpp), or operators would be lost.
//
//===----------------------------------------------------------------------===//

#include "GraphProperties.h"
#include "GraphRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Flags say what may be done with the coordinate, by the same conditions as
/// the moves.
ShapeItem kas::search::getShapeItem(const GraphSpace &space,
                                    const LiveCoord &coord) {
  const SpaceLimits &limits = space.problem->limits;
  ShapeItem item{coord.size, 0, 0, 0};
  if (coord.flags & LiveCoord::HasOutput)
    item.flags |= ShapeItem::HasOutput;
  if (coord.flags & LiveCoord::Strided)
    item.flags |= ShapeItem::Strided;
  if (coord.kind == CoordKind::Reduce) {
    item.flags |= ShapeItem::IsReduce;
    item.weights = coord.weights;
  }
  // A stride of the signature changes which positions are seen.
  bool isStridable = limits.stride > 0 && isOutputPart(coord) &&
                     !(coord.flags & LiveCoord::Unordered);
  if (needsSight(space, coord) &&
      !(isStridable && (coord.flags & LiveCoord::HasWindow)) &&
      !space.properties->canSee(coord)) {
    item.flags |= ShapeItem::Unseeing;
    if (coord.flags & LiveCoord::HasReduction)
      item.flags |= ShapeItem::SeeingMerged;
  }
  // O3: no step may be made on it any more.
  if (coord.height >= limits.chain) {
    item.flags |= ShapeItem::Frozen;
    if (coord.kind == CoordKind::Reduce && !coord.weights)
      item.flags |= ShapeItem::Unweighted;
    return item;
  }
  const SizeInfo &info = space.sizes[coord.size];
  if (limits.unfold > 0 && isUnfoldable(coord))
    item.flags |= ShapeItem::Unfoldable;
  switch (coord.kind) {
  case CoordKind::Reduce:
    if (info.isShareable && !limits.linearPath && // Q5
        info.max >= limits.rankMin && info.max <= limits.rankMax)
      item.flags |=
          coord.weights ? ShapeItem::Droppable : ShapeItem::DroppableLater;
    if (!coord.weights)
      item.flags |= ShapeItem::Unweighted;
    break;
  // Halves and outputs have the same moves.
  case CoordKind::Output:
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    if (info.isShareable && isWithinPositions(space, coord))
      item.flags |= ShapeItem::Droppable;
    if (!coord.weights && limits.expand > 0)
      item.flags |= ShapeItem::Expandable;
    if (isStridable)
      item.flags |= ShapeItem::Stridable;
    // Unfolds of others may be merged, too.
    item.flags |= limits.unfold > 0 || (!coord.weights &&
                                        coord.kind != CoordKind::MergeQuotient)
                      ? ShapeItem::Mergeable
                      : ShapeItem::ShiftMergeable;
    break;
  case CoordKind::Stride:
    item.flags |= ShapeItem::Mergeable;
    break;
  case CoordKind::Unfold:
    item.flags |= limits.unfold > 1 || !coord.weights
                      ? ShapeItem::Mergeable
                      : ShapeItem::ShiftMergeable;
    break;
  case CoordKind::Split:
    item.flags |= ShapeItem::ShiftMergeable;
    break;
  case CoordKind::Shift:
    item.flags |= ShapeItem::MergeableBySmall;
    break;
  }
  return item;
}

/// A weight can still come: some coordinate that one may be indexed by is not
/// stale, or can be made. All contractions come before all views that commute
/// with them, so a view makes everything stale but its result. With merges
/// left, new coordinates can come that nothing has made stale.
static bool isContractionLeft(const GraphSpace &space,
                              const GraphStateData &state,
                              const ShapeBudget &budget) {
  if (!space.options.useOrdering || budget.merge > 0)
    return true;
  return llvm::any_of(state.getLive(), [&](const LiveCoord &coord) {
    return (isShareable(space, coord) && coord.sinceShared < firstViewKey) ||
           (budget.unfold > 0 && isShareableBase(space, coord));
  });
}

/// See `ShapeBudget::needsMadeWindow`; true only while the conditions of the
/// budget hold.
bool kas::search::needsMadeWindow(const GraphSpace &space,
                                  const ShapeBudget &budget) {
  return space.options.useOrdering && space.distance.requiresWindows() &&
         budget.weights == 0 && budget.merge == 0;
}

/// By its size.
static bool canBeWindow(const GraphSpace &space, const LiveCoord &coord) {
  const SizeInfo &info = space.sizes[coord.size];
  return info.isOdd && info.max <= space.problem->limits.window;
}

/// As its base or as its window.
bool kas::search::canBeInUnfold(const GraphSpace &space,
                                const LiveCoord &coord) {
  return isUnfoldable(coord) || canBeWindow(space, coord);
}

/// By being shifted: then it has an output below.
bool kas::search::canBecomeWindow(const GraphSpace &space,
                                  const LiveCoord &coord) {
  return (coord.flags & LiveCoord::HasOutput) && canBeWindow(space, coord);
}

/// Steps that are left of each kind, each at most 100, since the distance keeps
/// them in bytes.
ShapeBudget kas::search::getShapeBudget(const GraphSpace &space,
                                        const GraphStateData &state) {
  const SpaceLimits &limits = space.problem->limits;
  auto rest = [&](unsigned limit, GraphMove move) -> uint8_t {
    return std::min(limit, 100u) -
           std::min<unsigned>(limit, state.counts[move]);
  };
  ShapeBudget budget;
  budget.split = rest(limits.split, SplitMove);
  budget.merge = rest(limits.merge, MergeMove);
  budget.shift = rest(limits.shift, ShiftMove);
  budget.expand =
      rest(std::min(limits.expand, GraphSpace::maxWeights), ExpandMove);
  budget.unfold = rest(limits.unfold, UnfoldMove);
  budget.stride = rest(limits.stride, StrideMove);
  budget.needsWeight = state.numWeights == 0 && limits.weights > 0;
  // Weights that cannot come any more, for the order of moves, are not left.
  budget.weights =
      isContractionLeft(space, state, budget)
          ? rest(std::min(limits.weights, GraphSpace::maxWeights), ContractMove)
          : 0;
  budget.needsMadeWindow =
      needsMadeWindow(space, budget) &&
      llvm::none_of(state.getLive(), [&](const LiveCoord &coord) {
        return canBecomeWindow(space, coord) ||
               (coord.sinceShared < lastUnfoldKey &&
                canBeInUnfold(space, coord));
      });
  return budget;
}

/// The distance to the input within the steps that are left.
bool kas::search::isReachable(GraphSpace &space, const GraphStateData &state) {
  if (!space.options.useDistance)
    return true;
  llvm::SmallVector<ShapeItem, GraphSpace::maxLive> items;
  for (const LiveCoord &coord : state.getLive())
    items.push_back(getShapeItem(space, coord));
  return space.distance.isWithin(items, getShapeBudget(space, state),
                                 static_cast<int>(space.problem->limits.depth) -
                                     state.steps);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Whether any more of them may help. One question for all sets of further
/// reductions, instead of one for each.
static bool canReachByReductions(GraphSpace &space,
                                 const GraphStateData &state) {
  const SpaceLimits &limits = space.problem->limits;
  llvm::SmallVector<ShapeItem, GraphSpace::maxLive> items;
  for (const LiveCoord &coord : state.getLive())
    items.push_back(getShapeItem(space, coord));
  return space.distance.isWithinReductions(
      items, getShapeBudget(space, state),
      static_cast<int>(limits.depth) - state.steps,
      limits.reduce - state.counts[ReduceMove]);
}

/// Only states with reductions alone are queried, and their number is small, so
/// answers are kept by multiset.
bool kas::search::isReachableByReductions(GraphSpace &space,
                                          const GraphStateData &state) {
  if (!space.options.useDistance)
    return true;
  uint64_t hash = 0;
  for (const LiveCoord &coord : state.getLive())
    hash += mixBits(space.getHash(coord.expr));
  hash = mixBits(hash);
  if (const int8_t *known = space.areReductionsAlive.find(hash))
    return *known;
  bool isAlive = isReachable(space, state);
  // A bound first, then a search through the next reductions.
  if (!isAlive && state.counts[ReduceMove] < space.problem->limits.reduce &&
      canReachByReductions(space, state))
    forEachReduce(space, state, 0, [&](uint32_t) { return isAlive = true; });
  space.areReductionsAlive[hash] = isAlive;
  return isAlive;
}

/// R2: all reductions together have few points for each element of the input.
/// Under every binding.
static bool isWithinPoints(const GraphSpace &space, const GraphStateData &state,
                           SizeId size) {
  for (size_t binding = 0; binding < space.maxReducePoints.size(); ++binding) {
    auto points = static_cast<double>(space.sizes[size].values[binding]);
    for (const LiveCoord &coord : state.getLive())
      if (coord.kind == CoordKind::Reduce)
        points *= static_cast<double>(space.sizes[coord.size].values[binding]);
    if (points > space.maxReducePoints[binding])
      return false;
  }
  return true;
}

/// `begin` is an index into the sizes that reductions may have; so is the code.
void kas::search::forEachReduce(GraphSpace &space, const GraphStateData &state,
                                uint32_t begin,
                                llvm::function_ref<bool(uint32_t)> visit) {
  const SpaceLimits &limits = space.problem->limits;
  // Only while nothing but reductions was made.
  if (state.isFinished || state.steps != state.counts[ReduceMove] ||
      state.steps >= limits.depth ||
      state.counts[ReduceMove] >= limits.reduce ||
      state.numLive >= GraphSpace::maxLive)
    return;
  // R1: in ascending order. Equal sizes may repeat.
  for (uint32_t index = std::max(begin, state.lastReduce);
       index < space.reduceSizes.size(); ++index) {
    SizeId size = space.reduceSizes[index];
    Powers usage = state.usage + space.sizes[size].usage;
    if (!space.sizes.isWithinOccurrences(usage) ||
        !isWithinPoints(space, state, size))
      continue;
    GraphStateData child;
    child.assign(state);
    // Made to see whether anything can follow.
    applyMove(space, child, ReduceMove, index, 0);
    if (isReachableByReductions(space, child) && visit(index))
      return;
  }
}
