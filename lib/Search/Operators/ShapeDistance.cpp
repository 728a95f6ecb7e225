//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/ShapeDistance.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

ShapeDistance::ShapeDistance(const SearchProblem &problem, SizeTable &sizes,
                             llvm::ArrayRef<SizeId> targets, size_t maxBytes)
    : problem(problem), sizes(sizes), targets(targets), memo(minCapacity),
      maxBytes(maxBytes) {
  auto addFactor = [&](SizeId id) {
    const SizeInfo &info = sizes[id];
    if (info.isLegal && !info.hasPrimary && id != SizeTable::one &&
        !llvm::is_contained(strideFactors, id))
      strideFactors.push_back(id);
  };
  for (SizeId target : this->targets)
    targetPowers =
        targetPowers + (sizes[target].powers & sizes.getPrimaryMask());
  findChannels();
  areWindowed.assign(targets.size(), false);
  for (const Dimension &input : problem.inputs)
    for (const Dimension &output : problem.outputs)
      addFactor(
          sizes.divide(sizes.intern(input.size), sizes.intern(output.size)));
  numSignatureStrides = strideFactors.size();
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient)
      for (int exponent : {1, 2})
        addFactor(sizes.intern(Size::symbol(symbol, exponent)));
}

/// Input dimensions with a primary symbol that only unordered ones have.
void ShapeDistance::findChannels() {
  auto hasOwnSymbol = [&](const Powers &powers) {
    for (unsigned i = 0; i < sizes.getNumPowers(); ++i) {
      auto isOrderedWithIt = [&](const Dimension &input) {
        return !input.isUnordered &&
               sizes[sizes.intern(input.size)].powers.get(i) > 0;
      };
      if (sizes.getPrimaryMask().get(i) && powers.get(i) > 0 &&
          llvm::none_of(problem.inputs, isOrderedWithIt))
        return true;
    }
    return false;
  };
  for (SizeId target : targets)
    areChannels.push_back(hasOwnSymbol(sizes[target].powers));
}

void ShapeDistance::requireWindows(llvm::ArrayRef<unsigned> windowed) {
  for (unsigned target : windowed)
    isAnyWindowed = areWindowed[target] = true;
}

//===----------------------------------------------------------------------===//
// Partition
//===----------------------------------------------------------------------===//

namespace kas::search {
/// The depth-first search over what each item becomes, until one way is found
/// that takes at most `limit` steps.
struct ShapePartition {
  static constexpr unsigned maxTargets = 8;

  ShapeDistance &distance;
  const SpaceLimits &limits;
  llvm::ArrayRef<ShapeItem> items;
  const ShapeBudget &budget;
  int limit;
  unsigned numTargets;
  Powers mask;
  /// By input dimension: what its factors lack so far, and how many it has.
  Powers lacking[maxTargets];
  uint8_t factors[maxTargets] = {};
  /// What all input dimensions lack, and what the items from one on can give:
  /// primary symbols come from factors only.
  Powers lackingInAll;
  Powers available[ShapeDistance::maxItems + 1];
  /// By input dimension: the sets of weights that index reductions in it.
  uint16_t weightSets[maxTargets] = {};

  struct Counts {
    int8_t kept = 0, joins = 0, windows = 0, expanded = 0, weights = 0,
           dropped = 0;
    /// Windows with a reduction, coordinates that need one of their own, and
    /// whether halves of a merge need one below.
    int8_t seeing = 0, unseeing = 0;
    bool isHalfUnseeing = false;
    /// The largest window, and the largest that some kept base allows (U2).
    uint8_t window = 0, allowed = 0;
    /// The product of the factors that no weight indexes, and that of the
    /// windows.
    double pooled = 1, windowPoints = 1;
    /// What the last item became, so that equal ones do so in order.
    int8_t last = 0;
    /// An item that is the input dimension as it is.
    uint8_t closed = 0;
  };
  enum Choice { Drop, Expand, Window, FirstFactor };

  ShapePartition(ShapeDistance &distance, llvm::ArrayRef<ShapeItem> items,
                 const ShapeBudget &budget, int limit)
      : distance(distance), limits(distance.problem.limits), items(items),
        budget(budget), limit(limit), numTargets(distance.targets.size()),
        mask(distance.sizes.getPrimaryMask()) {
    for (unsigned target = 0; target < numTargets; ++target) {
      lacking[target] = distance.sizes[distance.targets[target]].powers;
      lackingInAll = lackingInAll + (lacking[target] & mask);
    }
    for (size_t index = items.size(); index-- > 0;)
      available[index] = available[index + 1] +
                         (distance.sizes[items[index].size].powers & mask);
  }

  bool isFeasible() {
    Counts counts;
    counts.weights = budget.needsWeight;
    for (const ShapeItem &item : items)
      counts.allowed = std::max(counts.allowed, item.windowBelow);
    return visit(0, counts);
  }

  int getCost(const Counts &counts) const {
    int joins = counts.kept - static_cast<int>(numTargets);
    return counts.weights + counts.expanded + std::max(joins, 0);
  }

  bool finish(const Counts &counts) {
    for (unsigned target = 0; target < numTargets; ++target)
      if (factors[target] == 0 || !lacking[target].isZero())
        return false;
    return counts.window <= counts.allowed && canMakeWindows(counts) &&
           counts.unseeing + counts.isHalfUnseeing <= counts.seeing &&
           (counts.weights <= counts.dropped || !limits.weightTakes);
  }

  /// Windows that a split has yet to make have two factors at least, and so has
  /// each one that a coordinate needs.
  bool canMakeWindows(const Counts &counts) const {
    if (!budget.needsMadeWindow || counts.windows == 0)
      return true;
    bool isOneWindow = counts.windows < 4;
    return counts.windows > 1 && 2 * counts.unseeing <= counts.windows &&
           (!isOneWindow ||
            counts.windowPoints <= static_cast<double>(limits.window));
  }

  bool visit(unsigned index, const Counts &counts) {
    if (counts.weights > budget.weights || counts.joins > budget.split ||
        std::max(counts.windows, counts.unseeing) > budget.unfold ||
        counts.expanded > budget.expand || getCost(counts) > limit ||
        (available[index] - lackingInAll).hasNegative())
      return false;
    if (index == items.size())
      return finish(counts);
    const ShapeItem &item = items[index];
    int least = index && items[index - 1] == item ? counts.last : 0;
    int choices = FirstFactor + static_cast<int>(numTargets);
    for (int choice = least; choice < choices; ++choice)
      if (visitChoice(index, choice, counts))
        return true;
    return false;
  }

  bool visitChoice(unsigned index, int choice, Counts next) {
    const ShapeItem &item = items[index];
    const SizeInfo &info = distance.sizes[item.size];
    next.last = choice;
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
    case Window:
      if (!info.isOdd || info.max > limits.window || info.max < 2 ||
          (item.flags & ShapeItem::Frozen))
        return false;
      needWeights(isUnweighted);
      ++next.kept;
      ++next.windows;
      next.seeing += !(item.flags & ShapeItem::Unseeing) || canSeeMerged(item);
      next.window = std::max<int64_t>(next.window, info.min);
      next.windowPoints *= static_cast<double>(info.min);
      allowWindows(item, next);
      return visit(index + 1, next);
    default:
      if (item.flags & ShapeItem::Strided)
        return false;
      if (isUnweighted) { // P1
        next.pooled *= static_cast<double>(info.max);
        needWeights(next.pooled > static_cast<double>(limits.pooling));
      }
      allowWindows(item, next);
      return see(item, choice - FirstFactor, next) &&
             visitFactor(index, choice - FirstFactor, next);
    }
  }

  static bool canSeeMerged(const ShapeItem &item) {
    return item.flags & ShapeItem::SeeingMerged;
  }

  /// Q1: whether the item can be a factor, and the window that it needs.
  bool see(const ShapeItem &item, unsigned target, Counts &counts) const {
    if (!(item.flags & ShapeItem::Unseeing) || !distance.areWindowed[target])
      return true;
    if (item.flags & ShapeItem::SeeingHalf)
      return counts.isHalfUnseeing = true;
    ++counts.unseeing;
    return (item.flags & ShapeItem::Unfoldable) &&
           distance.sizes[item.size].maxWindow > 0;
  }

  /// What the data keeps may be the base of an unfold.
  void allowWindows(const ShapeItem &item, Counts &counts) const {
    if (item.flags & ShapeItem::Unfoldable)
      counts.allowed =
          std::max(counts.allowed, distance.sizes[item.size].maxWindow);
  }

  /// The item becomes a factor of an input dimension.
  bool visitFactor(unsigned index, unsigned target, Counts next) {
    const Powers &powers = distance.sizes[items[index].size].powers;
    // Equal dimensions that nothing is in yet are one.
    if (target && distance.targets[target] == distance.targets[target - 1] &&
        distance.areWindowed[target] == distance.areWindowed[target - 1] &&
        factors[target] == 0 && factors[target - 1] == 0)
      return false;
    Powers old = lacking[target], rest = old - powers;
    if ((rest & mask).hasNegative() || (next.closed >> target & 1))
      return false;
    if (items[index].flags & ShapeItem::Frozen) {
      if (factors[target] || !rest.isZero())
        return false;
      next.closed |= 1 << target;
    }
    uint16_t oldSets = weightSets[target];
    if (budget.weights == 0 && (items[index].flags & ShapeItem::IsReduce) &&
        distance.areChannels[target]) { // D3
      uint16_t set = 1 << items[index].weights;
      if (oldSets & set)
        return false;
      weightSets[target] |= set;
    }
    ++next.kept;
    next.joins += factors[target] > 0;
    Powers oldLacking = lackingInAll;
    // What comes later has to give what is lacking then.
    lackingInAll = lackingInAll - (powers & mask);
    lacking[target] = rest;
    ++factors[target];
    bool isFound = visit(index + 1, next);
    --factors[target];
    weightSets[target] = oldSets;
    lacking[target] = old;
    lackingInAll = oldLacking;
    return isFound;
  }
};
} // namespace kas::search

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

/// Both halves of a merged coordinate, as if nothing had happened to them.
static ShapeItem makeHalf(const SizeTable &sizes, SizeId size) {
  uint16_t flags = ShapeItem::Expandable | ShapeItem::Mergeable |
                   ShapeItem::HasOutput | ShapeItem::Stridable |
                   ShapeItem::Unfoldable;
  if (sizes[size].isShareable)
    flags |= ShapeItem::Droppable;
  return {size, flags, 0, 0};
}

/// Replaces the last two of `items` by the halves of `whole`.
bool ShapeDistance::canCut(llvm::MutableArrayRef<ShapeItem> items,
                           const ShapeItem &whole, bool isSmall,
                           const ShapeBudget &rest, int limit) {
  if (limit < 0)
    return false;
  // The halves have the primary symbols of the whole, whatever the block.
  ShapeItem &high = items[items.size() - 2], &low = items[items.size() - 1];
  high = makeHalf(sizes, whole.size);
  high.flags |= ShapeItem::Droppable;
  low = {SizeTable::one, ShapeItem::Droppable, 0, 0};
  if (isTooFar(items, rest, limit))
    return false;
  // Two merges are tried with all blocks. What more of them can reach is not
  // worked out: they are many, and cut little.
  if (rest.merge > 1)
    return !getCuts(whole.size, isSmall).empty();
  uint64_t sum = 0;
  for (const ShapeItem &item : items.drop_back(2))
    sum += hashItem(item);
  uint8_t windowBelow = rest.unfold ? getWindowBelow(whole) : 0;
  uint16_t sight = getSightOfHalf(whole, windowBelow);
  for (Cut cut : getCuts(whole.size, isSmall)) {
    cut.high.windowBelow = cut.low.windowBelow = windowBelow;
    cut.high.flags |= sight;
    cut.low.flags |= sight;
    uint64_t all = sum + hashItem(cut.high) + hashItem(cut.low);
    std::optional<bool> known = recall(getKey(all, rest), limit);
    if (known && !*known)
      continue;
    high = cut.high;
    low = cut.low;
    if (known || isWithin(items, rest, limit))
      return true;
  }
  return false;
}

/// The largest window of an unfold that a merge of the item may be above.
uint8_t ShapeDistance::getWindowBelow(const ShapeItem &item) const {
  uint8_t own =
      item.flags & ShapeItem::Unfoldable ? sizes[item.size].maxWindow : 0;
  return std::max(own, item.windowBelow);
}

/// Of both halves: whether they see a window.
uint16_t ShapeDistance::getSightOfHalf(const ShapeItem &whole,
                                       uint8_t windowBelow) {
  if (!(whole.flags & ShapeItem::Unseeing) ||
      (whole.flags & ShapeItem::SeeingMerged))
    return 0;
  uint16_t half = windowBelow ? ShapeItem::SeeingHalf : 0;
  return ShapeItem::Unseeing | half;
}

/// The halves of a coordinate of this size, by all blocks or by those that a
/// shift allows.
llvm::ArrayRef<ShapeDistance::Cut> ShapeDistance::getCuts(SizeId size,
                                                          bool isSmall) {
  CutLists &lists = cuts[isSmall];
  if (lists.size() <= size)
    lists.resize(sizes.size() + size);
  if (!lists[size]) {
    auto list = std::make_unique<llvm::SmallVector<Cut, 4>>();
    for (SizeId block : sizes.getBlocks(size)) {
      if (isSmall && sizes[block].max > problem.limits.shiftBlock)
        continue;
      list->push_back(
          {makeHalf(sizes, sizes.divide(size, block)), makeHalf(sizes, block)});
    }
    lists[size] = std::move(list);
  }
  return *lists[size];
}

/// The flags of items that a step may take away.
static uint16_t getDroppable(const ShapeBudget &budget) {
  uint16_t droppable = 0;
  if (budget.weights > 0)
    droppable |= ShapeItem::Droppable;
  if (budget.weights > 1)
    droppable |= ShapeItem::DroppableLater;
  if (budget.expand > 0)
    droppable |= ShapeItem::Expandable;
  return droppable;
}

/// A shift of a split, merged: two to four coordinates become the halves of
/// their product.
bool ShapeDistance::canShiftSplitMerge(llvm::ArrayRef<ShapeItem> items,
                                       const ShapeBudget &budget, int limit) {
  if (budget.shift == 0 || budget.split == 0 || limit < 3)
    return false;
  unsigned count = items.size();
  // All that may be dropped is, and both halves.
  int droppable = llvm::count_if(items, [](const ShapeItem &item) {
    return item.flags & (ShapeItem::Droppable | ShapeItem::DroppableLater |
                         ShapeItem::Expandable);
  });
  if (static_cast<int>(count) + 1 - droppable -
          static_cast<int>(targets.size()) >
      limit)
    return false;
  uint16_t droppableFlags = getDroppable(budget);
  for (uint32_t chosen = 3; chosen < 1u << count; ++chosen) {
    int factors = llvm::popcount(chosen);
    if (factors < 2 || factors > 4 || factors - 1 > budget.split ||
        factors + 1 > limit)
      continue;
    Powers powers;
    uint16_t any = 0;
    // One that has a reduction is enough.
    uint16_t sight = ShapeItem::Unseeing;
    uint8_t windowBelow = 0;
    ShapeItem cut[maxItems];
    unsigned kept = 0, fixed = 0;
    for (unsigned index = 0; index < count; ++index) {
      if (chosen >> index & 1) {
        powers = powers + sizes[items[index].size].powers;
        any |= items[index].flags;
        if (!(items[index].flags & ShapeItem::Unseeing) ||
            (items[index].flags & ShapeItem::SeeingMerged))
          sight = 0;
        windowBelow = std::max(windowBelow, getWindowBelow(items[index]));
      } else {
        cut[kept++] = items[index];
        fixed += !(items[index].flags & droppableFlags);
      }
    }
    if ((any & (ShapeItem::Strided | ShapeItem::Frozen)) ||
        !(any & ShapeItem::HasOutput) ||
        static_cast<int>(fixed) + budget.needsWeight >
            limit - factors - 1 + static_cast<int>(targets.size()))
      continue;
    SizeId whole = sizes.intern(powers);
    if (!sizes[whole].isLegal)
      continue;
    ShapeBudget rest = budget;
    rest.merge -= 1;
    rest.shift -= 1;
    rest.split -= factors - 1;
    if (canCut({cut, kept + 2}, {whole, sight, 0, windowBelow},
               /*isSmall=*/true, rest, limit - factors - 1))
      return true;
  }
  return false;
}

/// Merging one of the items first.
bool ShapeDistance::canMerge(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit) {
  if (budget.merge == 0 || limit < 1 || items.size() + 1 >= maxItems)
    return false;
  ShapeBudget rest = budget;
  --rest.merge;
  for (unsigned index = 0; index < items.size(); ++index) {
    if ((index && items[index] == items[index - 1]) ||
        (items[index].flags & ShapeItem::Frozen))
      continue;
    ShapeItem cut[maxItems];
    std::copy(items.begin(), items.begin() + index, cut);
    std::copy(items.begin() + index + 1, items.end(), cut + index);
    const ShapeItem &whole = items[index];
    llvm::MutableArrayRef<ShapeItem> result(cut, items.size() + 1);
    if (items[index].flags & ShapeItem::Mergeable) {
      if (canCut(result, whole, /*isSmall=*/false, rest, limit - 1))
        return true;
    } else if (items[index].flags & ShapeItem::MergeableBySmall) {
      if (canCut(result, whole, /*isSmall=*/true, rest, limit - 1))
        return true;
    } else if ((items[index].flags & ShapeItem::ShiftMergeable) &&
               budget.shift > 0) {
      ShapeBudget shifted = rest;
      --shifted.shift;
      if (canCut(result, whole, /*isSmall=*/true, shifted, limit - 2))
        return true;
    }
  }
  return canShiftSplitMerge(items, budget, limit);
}

/// A stride of the signature on one of the items first.
bool ShapeDistance::canStride(llvm::ArrayRef<ShapeItem> items,
                              const ShapeBudget &budget, int limit) {
  if (budget.stride == 0 || limit < 1)
    return false;
  ShapeBudget rest = budget;
  --rest.stride;
  llvm::SmallVector<ShapeItem, maxItems> strided(items);
  for (ShapeItem &item : strided) {
    if (!(item.flags & ShapeItem::Stridable))
      continue;
    ShapeItem old = item;
    item.flags &=
        ~(ShapeItem::Stridable | ShapeItem::Droppable | ShapeItem::Expandable);
    for (SizeId factor :
         llvm::ArrayRef(strideFactors).take_front(numSignatureStrides)) {
      item.size = sizes.multiply(old.size, factor);
      if (sizes[item.size].isLegal && isWithin(strided, rest, limit - 1))
        return true;
    }
    item = old;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

uint64_t ShapeDistance::getKey(uint64_t sum, const ShapeBudget &budget) {
  uint64_t rest = budget.needsWeight | budget.needsMadeWindow << 1;
  // Shifts matter below merges only.
  uint8_t shift = std::min(budget.shift, budget.merge);
  for (uint8_t part : {budget.split, budget.merge, shift, budget.expand,
                       budget.unfold, budget.stride, budget.weights})
    rest = rest << 8 | part;
  return mixBits(sum + mixBits(rest + 0x632be59bd9b4e019ull));
}

/// What is seen without a search: each coordinate that nothing can drop, beyond
/// those of the input, takes a join; and primary symbols do not come from
/// nowhere.
bool ShapeDistance::isTooFar(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit) const {
  int kept = 0;
  uint16_t droppable = getDroppable(budget);
  Powers powers;
  for (const ShapeItem &item : items) {
    kept += !(item.flags & droppable);
    powers = powers + (sizes[item.size].powers & sizes.getPrimaryMask());
  }
  return kept - static_cast<int>(targets.size()) + budget.needsWeight > limit ||
         (powers - targetPowers).hasNegative();
}

bool ShapeDistance::isWithin(llvm::ArrayRef<ShapeItem> unsorted,
                             const ShapeBudget &budget, int limit) {
  if (limit < 0 || isTooFar(unsorted, budget, limit))
    return false;
  if (unsorted.size() > maxItems)
    return true;
  llvm::SmallVector<ShapeItem, maxItems> items(unsorted);
  uint64_t sum = 0;
  for (ShapeItem &item : items) {
    if (budget.weights > 0)
      item = forgetWeights(item);
    sum += hashItem(item);
  }
  uint64_t key = getKey(sum, budget);
  if (std::optional<bool> known = recall(key, limit))
    return *known;
  ++statistics.computed;
  // Those with primary symbols first: they decide most. The order is for speed
  // only.
  llvm::sort(items, [&](const ShapeItem &a, const ShapeItem &b) {
    return std::tuple(!sizes[a.size].hasPrimary, a.size, a.flags, a.weights,
                      a.windowBelow) < std::tuple(!sizes[b.size].hasPrimary,
                                                  b.size, b.flags, b.weights,
                                                  b.windowBelow);
  });
  bool isFound = ShapePartition(*this, items, budget, limit).isFeasible() ||
                 canStride(items, budget, limit) ||
                 canMerge(items, budget, limit);
  if (memo.isFull() && 2 * memo.getMemorySize() > maxBytes)
    memo = FlatMap<Known>(minCapacity);
  Known &known = memo[key];
  if (isFound)
    known.reachable = std::min<int>(known.reachable, limit);
  else
    known.unreachable = std::max<int>(known.unreachable, limit);
  return isFound;
}

std::optional<int> ShapeDistance::measure(llvm::ArrayRef<ShapeItem> items,
                                          const ShapeBudget &budget,
                                          int limit) {
  for (int steps = 0; steps <= limit; ++steps)
    if (isWithin(items, budget, steps))
      return steps;
  return std::nullopt;
}
