//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lower bound on the primitives that must still come before the shape of the
// input is reached, memoized by sizes.
//
// The game is solved by `ShapePartition` (what each coordinate becomes) after
// up to a few merges and strides, which are tried here one by one. Answers are
// kept by a hash of the multiset of items and the budget, as an interval of
// limits: within `reachable` yes, up to `unreachable` no.
//
//===----------------------------------------------------------------------===//

#include "ShapePartition.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

ShapeDistance::ShapeDistance(const SearchProblem &problem, SizeTable &sizes,
                             llvm::ArrayRef<SizeId> targets, size_t maxBytes)
    : problem(problem), sizes(sizes), targets(targets), memo(minCapacity),
      maxBytes(maxBytes) {
  // Coefficients only: a stride by an image's size is none.
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
  // Strides that the signature suggests come first.
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

/// Fills `areChannels`: the input dimensions with a primary symbol that no
/// ordered input dimension has. Each is a set of factors, in no order (D3).
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
// Merges
//===----------------------------------------------------------------------===//

/// Both halves of a merged coordinate, as if nothing had happened to them. A
/// relaxation: a half may be anything that a fresh output may be.
static ShapeItem makeHalf(const SizeTable &sizes, SizeId size) {
  uint16_t flags = ShapeItem::Expandable | ShapeItem::Mergeable |
                   ShapeItem::HasOutput | ShapeItem::Stridable |
                   ShapeItem::Unfoldable;
  if (sizes[size].isShareable)
    flags |= ShapeItem::Droppable;
  return {size, flags, 0, 0};
}

/// Replaces the last two of `items` by the halves of `whole`. Tries all blocks
/// of one merge; the other items and the rest of the budget stay as they are.
bool ShapeDistance::canCut(llvm::MutableArrayRef<ShapeItem> items,
                           const ShapeItem &whole, bool isSmall,
                           const ShapeBudget &rest, int limit) {
  if (limit < 0)
    return false;
  // The halves have the primary symbols of the whole, whatever the block: one
  // test with a half of the whole size covers all blocks.
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
  // Looked up by the sum before the halves are made.
  uint64_t sum = 0;
  for (const ShapeItem &item : items.drop_back(2))
    sum += hashItem(item);
  uint8_t windowBelow = rest.unfold ? getWindowBelow(whole) : 0;
  uint16_t sight = getSightOfHalf(whole, windowBelow);
  for (Cut cut : getCuts(whole.size, isSmall)) {
    cut.high.windowBelow = cut.low.windowBelow = windowBelow;
    cut.high.flags |= sight;
    cut.low.flags |= sight;
    // The memo may know the answer for this block already.
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
/// `windowBelow` is of halves of merges made in this game.
uint8_t ShapeDistance::getWindowBelow(const ShapeItem &item) const {
  uint8_t own =
      item.flags & ShapeItem::Unfoldable ? sizes[item.size].maxWindow : 0;
  return std::max(own, item.windowBelow);
}

/// Of both halves: whether they see a window. A half of something with a
/// reduction sees by itself; of all else it needs an unfold below the merge.
uint16_t ShapeDistance::getSightOfHalf(const ShapeItem &whole,
                                       uint8_t windowBelow) {
  if (!(whole.flags & ShapeItem::Unseeing) ||
      (whole.flags & ShapeItem::SeeingMerged))
    return 0;
  uint16_t half = windowBelow ? ShapeItem::SeeingHalf : 0;
  return ShapeItem::Unseeing | half;
}

/// Recursive over the blocks, for one merge or two; more are assumed to.
bool ShapeDistance::hasWindowPiece(SizeId size, unsigned merges) {
  if (merges > 2)
    return true;
  // `sizes` may grow while blocks are collected, so the table has room beyond
  // it.
  std::vector<int8_t> &known = windowPieces[merges - 1];
  if (known.size() <= size)
    known.resize(sizes.size() + size, -1);
  if (known[size] >= 0)
    return known[size];
  bool isFound = llvm::any_of(sizes.getBlocks(size), [&](SizeId block) {
    return llvm::any_of(
        std::array{block, sizes.divide(size, block)}, [&](SizeId half) {
          const SizeInfo &info = sizes[half];
          return (info.isOdd && info.max <= problem.limits.window) ||
                 (merges > 1 && hasWindowPiece(half, merges - 1));
        });
  });
  return windowPieces[merges - 1][size] = isFound;
}

/// The halves of a coordinate of this size, by all blocks or by those that a
/// shift allows. The list is made once for each size and kept.
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

/// A shift of a split, merged: two to four coordinates become the halves of
/// their product. A carry between coordinates makes positions that no other
/// primitive makes, and takes a shift, at least one split, and a merge.
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
  // All sets of two to four items.
  uint16_t droppableFlags = ShapePartition::getDroppable(budget);
  for (uint32_t chosen = 3; chosen < 1u << count; ++chosen) {
    int factors = llvm::popcount(chosen);
    if (factors < 2 || factors > 4 || factors - 1 > budget.split ||
        factors + 1 > limit)
      continue;
    Powers powers;
    uint16_t any = 0;
    // One that has a reduction is enough.
    uint16_t sight = ShapeItem::Unseeing;
    // Summarized over the set: sizes multiply, flags join.
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
    // At least one output, nothing frozen or strided; and the steps that are
    // left must suffice for what remains.
    if ((any & (ShapeItem::Strided | ShapeItem::Frozen)) ||
        !(any & ShapeItem::HasOutput) ||
        static_cast<int>(fixed) + budget.needsWeight >
            limit - factors - 1 + static_cast<int>(targets.size()))
      continue;
    // The product must be a size.
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

/// Merging one of the items first. For each item by what the rules of its kind
/// allow.
bool ShapeDistance::canMerge(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit) {
  if (budget.merge == 0 || limit < 1 || items.size() + 1 >= maxItems)
    return false;
  ShapeBudget rest = budget;
  --rest.merge;
  for (unsigned index = 0; index < items.size(); ++index) {
    // Equal items once.
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
      // A split: only a shift of it may be merged, which is a step more.
      ShapeBudget shifted = rest;
      --shifted.shift;
      if (canCut(result, whole, /*isSmall=*/true, shifted, limit - 2))
        return true;
    }
  }
  return canShiftSplitMerge(items, budget, limit);
}

/// A stride of the signature on one of the items first. The strided coordinate
/// can be no weight's any more.
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
    for (SizeId factor : getSignatureStrides()) {
      item.size = sizes.multiply(old.size, factor);
      if (sizes[item.size].isLegal && isWithin(strided, rest, limit - 1))
        return true;
    }
    // One item at a time, the others unchanged.
    item = old;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// The parts of a budget are bytes of one word.
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
  uint16_t droppable = ShapePartition::getDroppable(budget);
  Powers powers;
  for (const ShapeItem &item : items) {
    kept += !(item.flags & droppable);
    powers = powers + (sizes[item.size].powers & sizes.getPrimaryMask());
  }
  return kept - static_cast<int>(targets.size()) + budget.needsWeight > limit ||
         (powers - targetPowers).hasNegative();
}

/// Those with primary symbols first: they decide most. The order is for speed
/// only.
void ShapeDistance::sort(llvm::MutableArrayRef<ShapeItem> items) const {
  llvm::sort(items, [&](const ShapeItem &a, const ShapeItem &b) {
    return std::tuple(!sizes[a.size].hasPrimary, a.size, a.flags, a.weights,
                      a.windowBelow) < std::tuple(!sizes[b.size].hasPrimary,
                                                  b.size, b.flags, b.weights,
                                                  b.windowBelow);
  });
}

/// The result is exact for the relaxed game. Beyond `maxItems` the answer is
/// yes, which loses nothing.
bool ShapeDistance::isWithin(llvm::ArrayRef<ShapeItem> unsorted,
                             const ShapeBudget &budget, int limit) {
  if (limit < 0 || isTooFar(unsorted, budget, limit))
    return false;
  if (unsorted.size() > maxItems || stopped)
    return true;
  llvm::SmallVector<ShapeItem, maxItems> items(unsorted);
  uint64_t sum = 0;
  // See `forgetWeights`.
  for (ShapeItem &item : items) {
    if (budget.weights > 0)
      item = forgetWeights(item);
    sum += hashItem(item);
  }
  uint64_t key = getKey(sum, budget);
  if (std::optional<bool> known = recall(key, limit))
    return *known;
  ++statistics.computed;
  sort(items);
  // First without views, then whether views can help, then all of them.
  bool isFound =
      ShapePartition(*this, items, budget, limit, /*hasViews=*/false)
          .isFeasible() ||
      (canBeWithViews(items, budget, limit) &&
       (canStride(items, budget, limit) || canMerge(items, budget, limit)));
  // Then yes is no finding.
  if (stopped)
    return true;
  // All that is known is dropped when the memory is full: simpler than
  // choosing, and rare.
  if (memo.isFull() && 2 * memo.getMemorySize() > maxBytes)
    memo = FlatMap<Known>(minCapacity);
  Known &known = memo[key];
  if (isFound)
    known.reachable = std::min<int>(known.reachable, limit);
  else
    known.unreachable = std::max<int>(known.unreachable, limit);
  return isFound;
}

/// Whether strides and merges may help at all, before all blocks are tried. The
/// relaxed pieces of `hasViews` are an upper bound for all blocks at once.
bool ShapeDistance::canBeWithViews(llvm::ArrayRef<ShapeItem> items,
                                   const ShapeBudget &budget, int limit) {
  if ((budget.merge == 0 && budget.stride == 0) || limit < 1)
    return false;
  // The blocks of one merge are not many.
  return budget.merge + budget.stride < 2 ||
         !ShapePartition::coversViews(budget, limit) ||
         ShapePartition(*this, items, budget, limit, /*hasViews=*/true)
             .isFeasible();
}

/// Called once, with the sizes that the space allows.
void ShapeDistance::allowReductions(llvm::ArrayRef<SizeId> reductions) {
  for (SizeId size : reductions) {
    const SizeInfo &info = sizes[size];
    hasWindowReduction |= info.isOdd && info.max <= problem.limits.window;
    for (unsigned i = 0; i < sizes.getNumPowers(); ++i)
      if (sizes.getPrimaryMask().get(i) && info.powers.get(i) > 0)
        reductionPowers.set(i, 8);
  }
}

/// With few views the ordinary question is cheap, so only harder ones are
/// bounded here.
bool ShapeDistance::isWithinReductions(llvm::ArrayRef<ShapeItem> unsorted,
                                       const ShapeBudget &budget, int limit,
                                       unsigned numReductions) {
  if (budget.merge + budget.stride < 2 ||
      !ShapePartition::coversViews(budget, limit) || unsorted.size() > maxItems)
    return true;
  llvm::SmallVector<ShapeItem, maxItems> items(unsorted);
  for (ShapeItem &item : items)
    if (budget.weights > 0)
      item = forgetWeights(item);
  sort(items);
  return ShapePartition(*this, items, budget, limit, /*hasViews=*/true,
                        numReductions)
      .isFeasible();
}

/// For statistics and tests: the least limit, by trying.
std::optional<int> ShapeDistance::measure(llvm::ArrayRef<ShapeItem> items,
                                          const ShapeBudget &budget,
                                          int limit) {
  for (int steps = 0; steps <= limit; ++steps)
    if (isWithin(items, budget, steps))
      return steps;
  return std::nullopt;
}
