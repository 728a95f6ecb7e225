//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The depth-first search of ShapeDistance: which factors of the input's
// dimensions each item becomes.
//
// A state of the search is the number of items that have been assigned and
// `Counts`, the sums over them; the input dimensions are kept as what they
// lack. `isOver` cuts off whatever needs more steps than are left.
//
//===----------------------------------------------------------------------===//

#include "ShapePartition.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Suffix sums over the items make the bounds of `isOver` cheap.
ShapePartition::ShapePartition(ShapeDistance &distance,
                               llvm::ArrayRef<ShapeItem> items,
                               const ShapeBudget &budget, int limit,
                               bool hasViews, unsigned numReductions)
    : distance(distance), limits(distance.problem.limits), items(items),
      budget(budget), limit(limit), hasViews(hasViews),
      numReductions(numReductions), numTargets(distance.targets.size()),
      mask(distance.sizes.getPrimaryMask()) {
  for (unsigned target = 0; target < numTargets; ++target) {
    lacking[target] = distance.sizes[distance.targets[target]].powers;
    lackingInAll = lackingInAll + (lacking[target] & mask);
  }
  uint16_t droppable = getDroppable(budget);
  for (size_t index = items.size(); index-- > 0;) {
    available[index] = available[index + 1] +
                       (distance.sizes[items[index].size].powers & mask);
    fixed[index] = fixed[index + 1] + !(items[index].flags & droppable);
    late[index] = late[index + 1] + isLate(items[index], droppable);
  }
  // Reductions to come may bring their symbols.
  if (numReductions > 0)
    merged = distance.reductionPowers;
  if (hasViews)
    findUnseen();
}

/// Fills `unseen`. A dimension whose symbols no seeing item has.
void ShapePartition::findUnseen() {
  for (unsigned target = 0; target < numTargets; ++target) {
    if (!distance.areWindowed[target])
      continue;
    Powers seen = merged;
    for (const ShapeItem &item : items)
      if (!(item.flags & ShapeItem::Unseeing) ||
          (item.flags & ShapeItem::SeeingMerged))
        seen = seen + (distance.sizes[item.size].powers & mask);
    // A symbol of the dimension that nothing which sees can give.
    for (unsigned i = 0; i < distance.sizes.getNumPowers(); ++i)
      if (mask.get(i) && lacking[target].get(i) > 0 && seen.get(i) == 0)
        unseen |= 1 << target;
  }
}

/// Steps at least, when the items from `index` on are left: each one that
/// nothing drops is kept or merged; and each window that is lacking is kept,
/// beside a factor of each dimension of the input. The bound is on the number
/// of steps from here to the end, and is compared with `limit`.
bool ShapePartition::isOver(unsigned index, const Counts &counts) const {
  if (counts.weights > budget.weights ||
      counts.joins + counts.splits > budget.split ||
      std::max(counts.windows, counts.unseeing) > budget.unfold ||
      counts.expanded > budget.expand)
    return true;
  int steps = counts.steps + counts.weights + counts.expanded;
  // Each kept coordinate beyond one per dimension is a join.
  int kept = counts.kept + fixed[index] - static_cast<int>(numTargets);
  // Without views the count is exact.
  if (!hasViews)
    return steps + std::max(kept, 0) > limit;
  // Factors that dimensions lack, and windows. A window is a step, and so is a
  // merge, the halves of which share one.
  int lack = counts.windows;
  int unseeing = counts.unseeing + counts.isHalfUnseeing - counts.seeing;
  for (unsigned target = 0; target < numTargets; ++target)
    if (factors[target] == 0)
      unseeing += unseen >> target & 1;
    else
      lack += !(pieced >> target & 1) && !lacking[target].isZero();
  unseeing = std::max(unseeing, 0);
  // A shift of a split, merged, takes three steps and may see for all.
  bool canSeeInGroup = group.count > 0 || canGroup(counts);
  auto getLeast = [&](int kept) {
    // The group of items that are merged together costs at least three steps.
    int grouped = std::max(kept + 1, lack + 3);
    int least = std::max({kept, lack + unseeing, 0});
    if (group.count > 0)
      return grouped;
    return canSeeInGroup ? std::min(least, grouped) : least;
  };
  // What only a second weight drops is kept, or there is one.
  int second = std::max(2 - counts.weights, 0);
  return steps +
             std::min(getLeast(kept + late[index]), getLeast(kept) + second) >
         limit;
}

/// Only a second weight drops it. The first weight does not take it: see
/// `ShapeItem::DroppableLater`.
bool ShapePartition::isLate(const ShapeItem &item, uint16_t droppable) {
  uint16_t flags = item.flags & droppable;
  return flags == ShapeItem::DroppableLater;
}

/// The flags of items that a step may take away. By the kinds of steps that are
/// in the budget.
uint16_t ShapePartition::getDroppable(const ShapeBudget &budget) {
  uint16_t droppable = 0;
  if (budget.weights > 0)
    droppable |= ShapeItem::Droppable;
  if (budget.weights > 1)
    droppable |= ShapeItem::DroppableLater;
  if (budget.expand > 0)
    droppable |= ShapeItem::Expandable;
  return droppable;
}

/// The empty assignment.
bool ShapePartition::isFeasible() {
  Counts counts;
  counts.weights = budget.needsWeight;
  for (const ShapeItem &item : items)
    counts.allowed = std::max(counts.allowed, item.windowBelow);
  return visit(0, counts);
}

/// Every dimension has its factors, and the windows have bases that are large
/// enough.
bool ShapePartition::finish(const Counts &counts) {
  for (unsigned target = 0; target < numTargets; ++target)
    if (factors[target] == 0 ||
        (!(pieced >> target & 1) && !lacking[target].isZero()))
      return false;
  return counts.window <= counts.allowed && canMakeWindows(counts) &&
         counts.unseeing + counts.isHalfUnseeing <= counts.seeing &&
         (counts.weights <= counts.dropped || !limits.weightTakes) &&
         (!hasViews || isCovered(counts));
}

/// Windows that a split has yet to make have two factors at least, and so has
/// each one that a coordinate needs. Each window in the making takes two
/// coordinates; fewer than four make a single one.
bool ShapePartition::canMakeWindows(const Counts &counts) const {
  if (!budget.needsMadeWindow || counts.windows == 0)
    return true;
  bool isOneWindow = counts.windows < 4;
  return counts.windows > 1 && 2 * counts.unseeing <= counts.windows &&
         (!isOneWindow ||
          counts.windowPoints <= static_cast<double>(limits.window));
}

/// Equal items take choices in ascending order, since exchanging them changes
/// nothing.
bool ShapePartition::visit(unsigned index, const Counts &counts) {
  if (distance.stopped)
    return true;
  // Primary symbols that neither items nor merges can give any more.
  if (isOver(index, counts) ||
      (available[index] + merged - lackingInAll).hasNegative())
    return false;
  if (index == items.size())
    return finishReductions(numReductions, counts);
  const ShapeItem &item = items[index];
  // At least the choice of the equal item before.
  int least = index && items[index - 1] == item ? counts.last : 0;
  int choices = FirstFactor + static_cast<int>(numTargets);
  for (int choice = least; choice < choices; ++choice)
    if (visitChoice(index, item, choice, counts))
      return true;
  return hasViews && visitViews(index, counts);
}

/// `next` is a copy, changed and passed on.
bool ShapePartition::visitChoice(unsigned index, const ShapeItem &item,
                                 int choice, Counts next) {
  const SizeInfo &info = distance.sizes[item.size];
  next.last = choice;
  // The largest number of weights that any choice asks for.
  auto needWeights = [&](int8_t weights) {
    next.weights = std::max(next.weights, weights);
  };
  bool isUnweighted = item.flags & ShapeItem::Unweighted;
  switch (choice) {
  case Drop:
    if (!(item.flags & (ShapeItem::Droppable | ShapeItem::DroppableLater)))
      return false;
    needWeights(item.flags & ShapeItem::Droppable ? 1 : 2);
    ++next.dropped;
    return visit(index + 1, next);
  case Expand:
    if (!(item.flags & ShapeItem::Expandable))
      return false;
    ++next.expanded;
    return visit(index + 1, next);
  // U2, U3: odd, small, and indexed by a weight.
  case Window:
    if (!info.isOdd || info.max > limits.window || info.max < 2 ||
        (item.flags & ShapeItem::Frozen))
      return false;
    needWeights(isUnweighted);
    ++next.kept;
    ++next.windows;
    next.seeing += !(item.flags & ShapeItem::Unseeing) ||
                   (item.flags & ShapeItem::SeeingMerged);
    next.window = std::max<int64_t>(next.window, info.min);
    next.windowPoints *= static_cast<double>(info.min);
    allowWindows(item, next);
    return visit(index + 1, next);
  // A factor of the input dimension `choice - FirstFactor`.
  default:
    if (item.flags & ShapeItem::Strided)
      return false;
    if (isUnweighted) { // P1
      next.pooled *= static_cast<double>(info.max);
      needWeights(next.pooled > static_cast<double>(limits.pooling));
    }
    allowWindows(item, next);
    return visitFactor(index, item, choice - FirstFactor, next);
  }
}

/// Q1: whether a coordinate with these flags can be a factor, and the window
/// that it needs.
bool ShapePartition::see(uint16_t flags, bool canUnfold, unsigned target,
                         Counts &counts) const {
  if (!(flags & ShapeItem::Unseeing) || !distance.areWindowed[target])
    return true;
  if (flags & ShapeItem::SeeingHalf)
    return counts.isHalfUnseeing = true;
  ++counts.unseeing;
  return canUnfold;
}

/// What the data keeps may be the base of an unfold. U2: the base must be large
/// enough for the window.
void ShapePartition::allowWindows(const ShapeItem &item, Counts &counts) const {
  if (item.flags & ShapeItem::Unfoldable)
    counts.allowed =
        std::max(counts.allowed, distance.sizes[item.size].maxWindow);
}

/// Equal dimensions that nothing is in yet are one.
bool ShapePartition::isLaterTwin(unsigned target) const {
  return target && distance.targets[target] == distance.targets[target - 1] &&
         distance.areWindowed[target] == distance.areWindowed[target - 1] &&
         factors[target] == 0 && factors[target - 1] == 0;
}

/// The item becomes a factor of an input dimension. Undoes its changes to the
/// dimension when it comes back.
bool ShapePartition::visitFactor(unsigned index, const ShapeItem &item,
                                 unsigned target, Counts next) {
  const SizeInfo &info = distance.sizes[item.size];
  bool canUnfold = (item.flags & ShapeItem::Unfoldable) && info.maxWindow > 0;
  Powers old = lacking[target], rest = old - info.powers;
  // More of a primary symbol than the dimension has, or a dimension that is
  // complete.
  if (!see(item.flags, canUnfold, target, next) || isLaterTwin(target) ||
      (rest & mask).hasNegative() || (next.closed >> target & 1))
    return false;
  // A frozen item can only be a dimension as it is.
  if (item.flags & ShapeItem::Frozen) {
    if (factors[target] || !rest.isZero())
      return false;
    next.closed |= 1 << target;
  }
  uint16_t oldSets = weightSets[target];
  // With weights to come the sets may still change.
  if (budget.weights == 0 && (item.flags & ShapeItem::IsReduce) &&
      distance.areChannels[target]) { // D3
    uint16_t set = 1 << item.weights;
    if (oldSets & set)
      return false;
    weightSets[target] |= set;
  }
  ++next.kept;
  next.joins += factors[target] > 0;
  Powers oldLacking = lackingInAll;
  // What comes later has to give what is lacking then.
  lackingInAll = lackingInAll - (info.powers & mask);
  lacking[target] = rest;
  ++factors[target];
  bool isFound = visit(index + 1, next);
  --factors[target];
  weightSets[target] = oldSets;
  lacking[target] = old;
  lackingInAll = oldLacking;
  return isFound;
}
