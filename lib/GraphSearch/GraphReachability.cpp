//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphStateImpl.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

std::optional<GraphCost> GraphState::getCost() const {
  const SearchProblem &problem = *space->problem;
  auto getSize = [&](ExprId id) {
    return space->sizes[space->getExpr(id).size].size;
  };
  llvm::SmallVector<Size, 6> loops(llvm::map_range(reductions, getSize));
  llvm::SmallVector<llvm::SmallVector<Size, 6>, 2> weightSizes;
  for (uint32_t weight : weights)
    weightSizes.emplace_back(
        llvm::map_range(space->getWeight(weight), getSize));
  return kas::getCost(problem, loops, weightSizes);
}

bool GraphState::isWithinBudget() const {
  const SearchBudget &budget = space->problem->budget;
  std::optional<GraphCost> cost = getCost();
  return cost && (!budget.maxFlops || cost->flops <= *budget.maxFlops) &&
         (!budget.maxParams || cost->params <= *budget.maxParams);
}

ShapeItem GraphState::getItem(const LiveCoord &coord) const {
  CoordKind kind = space->getExpr(coord.expr).kind;
  ShapeItem item{coord.size, 0};
  bool isReduction = kind == CoordKind::Reduce;
  bool isAllowed = space->sizes[coord.size].isAllowed;
  if (isAtom(coord)) {
    if (isAllowed && (!isReduction || space->sizes[coord.size].max <= maxRank))
      item.flags |= isReduction && !coord.weights ? ShapeItem::DroppableLater
                                                  : ShapeItem::Droppable;
    if (isReduction && !coord.weights)
      item.flags |= ShapeItem::Unweighted;
    if (!isReduction && !coord.weights)
      item.flags |= ShapeItem::Expandable;
    if ((kind == CoordKind::Output || kind == CoordKind::MergeRemainder) &&
        !coord.weights)
      item.flags |= ShapeItem::Mergeable;
  }
  if (!(coord.flags & LiveCoord::Position))
    item.flags |= ShapeItem::Window;
  return item;
}

bool GraphState::isReachable() const {
  if (!space->options.useDistance)
    return true;
  const StepLimits &limits = space->problem->limits;
  auto rest = [&](unsigned limit, GraphMove move) -> uint8_t {
    return limit - counts[move];
  };
  ShapeBudget budget;
  budget.split = rest(limits.split, SplitMove);
  budget.merge = rest(limits.merge, MergeMove);
  budget.expand = rest(limits.expand, ExpandMove);
  budget.unfold = rest(limits.unfold, UnfoldMove);
  budget.stride = rest(limits.stride, StrideMove);
  budget.weights =
      rest(std::min(limits.weights, GraphSpace::maxWeights), ContractMove);
  budget.needsWeight = weights.empty() && limits.weights > 0;
  llvm::SmallVector<ShapeItem, GraphSpace::maxLive> items;
  for (const LiveCoord &coord : live)
    items.push_back(getItem(coord));
  return space->distance.isWithin(items, budget, limits.depth - steps);
}

bool GraphState::isReachableByReductions() const {
  if (!space->options.useDistance)
    return true;
  uint64_t hash = reductions.size();
  for (ExprId reduction : reductions)
    hash = combineHash(hash, space->getHash(reduction));
  hash >>= 1; // DenseMap reserves the two largest keys.
  if (auto known = space->areReductionsAlive.find(hash);
      known != space->areReductionsAlive.end())
    return known->second;
  // Each further reduction is checked in turn by `nextMove`.
  bool isAlive = isReachable() || nextMove(ReduceMove, std::nullopt);
  space->areReductionsAlive[hash] = isAlive;
  return isAlive;
}

std::optional<llvm::SmallVector<ExprId, 6>> GraphState::matchInputs() const {
  if (live.size() != space->targets.size())
    return std::nullopt;
  // Among equal dimensions, the one with the first outputs comes first.
  llvm::SmallVector<ExprId, 8> rest;
  for (const LiveCoord &coord : live)
    rest.push_back(coord.expr);
  auto getFirstOutput = [&](ExprId id) {
    while (space->getExpr(id).kind != CoordKind::Output &&
           space->getExpr(id).kind != CoordKind::Reduce)
      id = space->getExpr(id).first;
    const Expr &expr = space->getExpr(id);
    return expr.kind == CoordKind::Output ? expr.first : ~0u;
  };
  llvm::sort(rest, [&](ExprId a, ExprId b) {
    return std::tuple(getFirstOutput(a), space->getHash(a)) <
           std::tuple(getFirstOutput(b), space->getHash(b));
  });
  llvm::SmallVector<ExprId, 6> data;
  for (SizeId target : space->targets) {
    auto *match = llvm::find_if(
        rest, [&](ExprId id) { return space->getExpr(id).size == target; });
    if (match == rest.end())
      return std::nullopt;
    data.push_back(*match);
    rest.erase(match);
  }
  return data;
}
