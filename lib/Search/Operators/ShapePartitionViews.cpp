//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strides and merges before a partition, with pieces of any sizes.
//
// A relaxation for the case that there are too many blocks to try: pieces of a
// merge have any sizes. What is excluded here is excluded for every block
// (docs/internals/search-algorithms.md, "States that cannot see").
//
//===----------------------------------------------------------------------===//

#include "ShapePartition.h"
#include "llvm/ADT/STLExtras.h"
#include <utility>

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// Views before
//===----------------------------------------------------------------------===//

/// The item is not assigned as it is, but strided or merged first, or joins the
/// group.
bool ShapePartition::visitViews(unsigned index, const Counts &counts) {
  const ShapeItem &item = items[index];
  Counts next = counts;
  // Items that are equal to this one are no longer ordered with it.
  next.last = FirstFactor + static_cast<int>(numTargets);
  if (visitStrides(index, next))
    return true;
  if (item.flags & ShapeItem::Frozen)
    return false;
  return visitMerges(index, next) ||
         (!(item.flags & ShapeItem::Strided) && canGroup(next) &&
          visitGrouped(index, item, next));
}

/// As `ShapeDistance::canStride`, for one item.
bool ShapePartition::visitStrides(unsigned index, const Counts &counts) {
  const ShapeItem &item = items[index];
  if (counts.strides == budget.stride || !(item.flags & ShapeItem::Stridable))
    return false;
  Counts next = counts;
  ++next.strides;
  ++next.steps;
  ShapeItem strided = item;
  strided.flags &=
      ~(ShapeItem::Stridable | ShapeItem::Droppable | ShapeItem::Expandable);
  int choices = FirstFactor + static_cast<int>(numTargets);
  for (SizeId factor : distance.getSignatureStrides()) {
    strided.size = distance.sizes.multiply(item.size, factor);
    if (!distance.sizes[strided.size].isLegal)
      continue;
    // A strided coordinate is kept: a window or a factor.
    for (int choice = Window; choice < choices; ++choice)
      if (visitChoice(index, strided, choice, next))
        return true;
  }
  return false;
}

/// Up to so many reductions of any sizes come, which only weights have, or
/// which are windows, factors, or parts of a shift of a split. After all items:
/// the group is finished first, then reductions are added one by one, each as
/// anything that a reduction can become.
bool ShapePartition::finishReductions(unsigned count, const Counts &counts) {
  if (isOver(items.size(), counts))
    return false;
  if (group.count ? finishGroup(counts) : finish(counts))
    return true;
  if (count == 0)
    return false;
  Counts next = counts;
  next.isLossy = true;
  ++next.steps;
  auto goOn = [&] { return finishReductions(count - 1, next); };
  // Only weights have it, which takes two of them.
  Counts dropped = next;
  dropped.weights = std::max<int8_t>(next.weights, 2);
  ++dropped.dropped;
  if (finishReductions(count - 1, dropped))
    return true;
  // As a part of the group.
  if (canGroup(next)) {
    Group old = group;
    ++group.count;
    group.hasPiece = true;
    group.sight = 0;
    group.primary = group.primary + distance.reductionPowers;
    bool isFound = goOn();
    group = old;
    if (isFound)
      return true;
  }
  // As a window, if some reduction has such a size.
  ++next.kept;
  Counts window = next;
  ++window.windows;
  ++window.seeing;
  std::swap(window, next);
  if (distance.hasWindowReduction && goOn())
    return true;
  std::swap(window, next);
  // As a piece of a dimension, of any size.
  for (unsigned target = 0; target < numTargets; ++target) {
    if (next.closed >> target & 1)
      continue;
    Powers old = pieces[target];
    uint8_t oldPieced = pieced;
    pieces[target] = old + distance.reductionPowers;
    pieced |= 1 << target;
    next.joins += factors[target]++ > 0;
    bool isFound = goOn();
    next.joins -= --factors[target] > 0;
    pieces[target] = old;
    pieced = oldPieced;
    if (isFound)
      return true;
  }
  return false;
}

/// Whether a piece of the item may be a window after so many merges, and
/// perhaps a stride. Asks about real blocks, as odd sizes are rare.
bool ShapePartition::canBeWindow(const ShapeItem &item, unsigned merges) const {
  if (distance.hasWindowPiece(item.size, merges))
    return true;
  return budget.stride > 0 &&
         llvm::any_of(distance.getSignatureStrides(), [&](SizeId factor) {
           SizeId size = distance.sizes.multiply(item.size, factor);
           return distance.sizes[size].isLegal &&
                  distance.hasWindowPiece(size, merges);
         });
}

/// The item becomes the pieces of one merge or more. Two pieces by one merge,
/// three by two, and so on, each of any size.
bool ShapePartition::visitMerges(unsigned index, Counts next) {
  const ShapeItem &item = items[index];
  bool isMergeable =
      item.flags & (ShapeItem::Mergeable | ShapeItem::MergeableBySmall);
  // Only a shift of a split may be merged.
  if (!isMergeable) {
    if (!(item.flags & ShapeItem::ShiftMergeable) ||
        next.shifts == budget.shift)
      return false;
    ++next.shifts;
    ++next.steps;
  }
  bool isSmall = !(item.flags & ShapeItem::Mergeable);
  bool isStridable = budget.stride > 0 && (item.flags & ShapeItem::Stridable);
  // No block at all.
  if (!isStridable && distance.getCuts(item.size, isSmall).empty())
    return false;
  const SizeInfo &info = distance.sizes[item.size];
  Whole whole;
  uint8_t below = budget.unfold ? distance.getWindowBelow(item) : 0;
  // Strides may make a larger base or window of it.
  whole.sight = ShapeDistance::getSightOfHalf(item, below);
  whole.allowed = budget.stride ? UINT8_MAX : std::max(below, info.maxWindow);
  whole.canUnfold = budget.stride > 0 || info.maxWindow > 0;
  whole.primary = info.powers & mask;
  Powers oldMerged = merged, oldPowers = mergedPowers;
  merged = merged + whole.primary;
  mergedPowers = mergedPowers + info.powers;
  bool isFound = false;
  // `count` pieces by `count` - 1 merges.
  for (unsigned count = 2; !isFound && next.merges < budget.merge; ++count) {
    ++next.merges;
    ++next.steps;
    whole.canBeWindow = canBeWindow(item, count - 1);
    whole.isFirstSmall =
        isSmall && count == 2 && !isStridable && isSmallPlain(item.size);
    // A second merge may have an unfold below it.
    if (count > 2 && budget.unfold && (whole.sight & ShapeItem::Unseeing))
      whole.sight |= ShapeItem::SeeingHalf;
    isFound = visitPieces(index + 1, whole, count, 0, next);
  }
  merged = oldMerged;
  mergedPowers = oldPowers;
  return isFound;
}

/// No block that a shift allows has a primary symbol. Then a small first piece
/// has none of the primary symbols of its dimension.
bool ShapePartition::isSmallPlain(SizeId size) const {
  return llvm::none_of(
      distance.getCuts(size, /*isSmall=*/true),
      [&](auto &cut) { return distance.sizes[cut.low.size].hasPrimary; });
}

/// So many pieces of `whole` are left, and become no choice before `least`.
/// Pieces are interchangeable, so choices ascend, but for a small first piece.
bool ShapePartition::visitPieces(unsigned index, const Whole &whole,
                                 unsigned count, int least,
                                 const Counts &counts) {
  if (isOver(index, counts))
    return false;
  if (count == 0)
    return whole.isGroup ? finish(counts) : visit(index, counts);
  int grouped = FirstFactor + static_cast<int>(numTargets);
  for (int choice = least; choice <= grouped; ++choice)
    if (visitPiece(index, whole, count, choice, counts))
      return true;
  return false;
}

/// The same choices as for an item, and the group as one more.
bool ShapePartition::visitPiece(unsigned index, const Whole &whole,
                                unsigned count, int choice, Counts next) {
  bool isSmall = whole.isFirstSmall && count == 2;
  auto goOn = [&] {
    return visitPieces(index, whole, count - 1, isSmall ? 0 : choice, next);
  };
  // Then the pieces of the dimensions are less than the whole.
  next.isLossy |= choice < FirstFactor;
  switch (choice) {
  case Drop:
    next.weights = std::max<int8_t>(next.weights, 1);
    ++next.dropped;
    return goOn();
  case Expand:
    ++next.expanded;
    return goOn();
  case Window:
    if (!whole.canBeWindow ||
        (isSmall && limits.shiftBlock < 3 && budget.stride == 0))
      return false;
    ++next.kept;
    ++next.windows;
    next.seeing += !(whole.sight & ShapeItem::Unseeing);
    next.allowed = std::max(next.allowed, whole.allowed);
    return goOn();
  default:
    break;
  }
  // One of the input dimensions, or, after the last one, the group.
  unsigned target = choice - FirstFactor;
  next.allowed = std::max(next.allowed, whole.allowed);
  if (target == numTargets) {
    if (whole.isGroup || !canGroup(next))
      return false;
    Group old = group;
    ++group.count;
    group.hasPiece = true;
    group.flags |= ShapeItem::HasOutput;
    group.sight &= whole.sight;
    group.windowBelow = std::max(group.windowBelow, whole.allowed);
    group.primary = group.primary + whole.primary;
    bool isFound = goOn();
    group = old;
    return isFound;
  }
  if (isLaterTwin(target) || (next.closed >> target & 1) ||
      !see(whole.sight, whole.canUnfold, target, next))
    return false;
  Powers old = pieces[target];
  uint8_t oldPieced = pieced;
  // A small piece brings no primary symbol.
  if (!isSmall)
    pieces[target] = old + whole.primary;
  pieced |= 1 << target;
  ++next.kept;
  next.joins += factors[target]++ > 0;
  bool isFound = goOn();
  --factors[target];
  pieces[target] = old;
  pieced = oldPieced;
  return isFound;
}

/// What input dimensions lack must be in their pieces. Of primary symbols at
/// least as many as are lacking; of all symbols exactly, where nothing was lost
/// on the way.
bool ShapePartition::isCovered(const Counts &counts) const {
  Powers rest;
  for (unsigned target = 0; target < numTargets; ++target) {
    rest = rest + lacking[target];
    if (((pieces[target] & mask) - (lacking[target] & mask)).hasNegative())
      return false;
  }
  return counts.isLossy || counts.merges == 0 || counts.strides > 0 ||
         budget.stride > 0 || rest == mergedPowers;
}

//===----------------------------------------------------------------------===//
// Shifts of splits, merged
//===----------------------------------------------------------------------===//

/// A group needs a shift, a merge and a split for each further item.
bool ShapePartition::canGroup(const Counts &counts) const {
  return group.count < 4 && counts.shifts < budget.shift &&
         counts.merges < budget.merge &&
         counts.joins + counts.splits + std::max<int>(group.count, 1) <=
             budget.split &&
         getCost(counts) + std::max<int>(group.count, 1) + 2 <= limit;
}

/// The item joins the group, whose size becomes the product.
bool ShapePartition::visitGrouped(unsigned index, const ShapeItem &item,
                                  Counts next) {
  const Powers &powers = distance.sizes[item.size].powers;
  Group old = group;
  Powers oldMerged = merged, oldPowers = mergedPowers;
  ++group.count;
  group.flags |= item.flags;
  if (!(item.flags & ShapeItem::Unseeing) ||
      (item.flags & ShapeItem::SeeingMerged))
    group.sight = 0;
  group.windowBelow =
      std::max(group.windowBelow, distance.getWindowBelow(item));
  group.powers = group.powers + powers;
  group.primary = group.primary + (powers & mask);
  merged = merged + (powers & mask);
  mergedPowers = mergedPowers + powers;
  bool isFound = visit(index + 1, next);
  group = old;
  merged = oldMerged;
  mergedPowers = oldPowers;
  return isFound;
}

/// The group becomes the pieces of its merges. Two items at least, one with an
/// output below; the whole must have a legal block, where its size is known.
bool ShapePartition::finishGroup(const Counts &counts) {
  if (group.count < 2 || !(group.flags & ShapeItem::HasOutput))
    return false;
  SizeId size = SizeTable::invalid;
  if (!group.hasPiece) {
    size = distance.sizes.intern(group.powers);
    if (!distance.sizes[size].isLegal ||
        distance.getCuts(size, /*isSmall=*/true).empty())
      return false;
  }
  // Its steps are counted from here on, and its pieces may see for all. `group`
  // is emptied, so that its pieces are not put into itself.
  Group whole = std::exchange(group, {});
  uint8_t oldUnseen = std::exchange(unseen, 0);
  bool isFound = visitGroup(whole, size, counts);
  group = whole;
  unseen = oldUnseen;
  return isFound;
}

/// `size` is invalid when the group has pieces of unknown sizes.
bool ShapePartition::visitGroup(const Group &parts, SizeId size, Counts next) {
  ShapeItem item{size, parts.sight, 0, parts.windowBelow};
  ++next.shifts;
  next.splits += parts.count - 1;
  next.steps += parts.count;
  Whole whole;
  whole.isGroup = whole.canUnfold = true;
  uint8_t below = budget.unfold ? parts.windowBelow : 0;
  whole.sight = ShapeDistance::getSightOfHalf(item, below);
  whole.allowed = UINT8_MAX;
  whole.primary = parts.primary;
  // By one merge or more.
  for (unsigned count = 2; next.merges < budget.merge; ++count) {
    ++next.merges;
    ++next.steps;
    whole.canBeWindow = parts.hasPiece || canBeWindow(item, count - 1);
    whole.isFirstSmall =
        !parts.hasPiece && count == 2 && isSmallPlain(item.size);
    if (count > 2 && budget.unfold && (whole.sight & ShapeItem::Unseeing))
      whole.sight |= ShapeItem::SeeingHalf;
    if (visitPieces(items.size(), whole, count, 0, next))
      return true;
  }
  return false;
}
