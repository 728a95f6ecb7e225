//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/ShapeDistance.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

ShapeDistance::ShapeDistance(const SearchProblem &problem, SizeTable &sizes,
                             llvm::ArrayRef<SizeId> targets)
    : problem(problem), sizes(sizes), targets(targets) {
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    if (problem.symbols.getKind(symbol) == SymbolKind::Primary)
      primaries.push_back(symbol);
  auto addFactor = [&](const Size &factor) {
    SizeId id = sizes.intern(factor);
    const SizeInfo &info = sizes[id];
    if (info.isLegal && !info.hasPrimary && info.min >= 2 &&
        !llvm::is_contained(strideFactors, id))
      strideFactors.push_back(id);
  };
  for (const Dimension &input : problem.inputs)
    for (const Dimension &output : problem.outputs)
      if (std::optional<Size> factor = input.size.divide(output.size))
        addFactor(*factor);
  numSignatureStrides = strideFactors.size();
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient)
      addFactor(Size::symbol(symbol));
}

llvm::ArrayRef<SizeId> ShapeDistance::getBlocks(SizeId size) {
  auto [entry, isNew] = blocks.try_emplace(size, blockLists.size());
  if (!isNew)
    return blockLists[entry->second];
  llvm::SmallVector<SizeId, 8> &list = blockLists.emplace_back();
  for (const Size &divisor :
       enumerateDivisors(sizes[size].size, problem.symbols, problem.bindings,
                         /*coefficientReach=*/1)) {
    SizeId block = sizes.intern(divisor);
    std::optional<SizeId> quotient = sizes.divide(size, block);
    if (quotient && sizes[block].isLegal && sizes[*quotient].isLegal &&
        sizes[block].min >= 2 && sizes[*quotient].min >= 2)
      list.push_back(block);
  }
  return list;
}

/// The depth-first search over what each item becomes, until one way is found
/// that takes at most `limit` steps.
struct ShapeDistance::Partition {
  ShapeDistance &distance;
  llvm::ArrayRef<ShapeItem> items;
  const ShapeBudget &budget;
  int limit;
  /// By input dimension: what its factors lack so far, and how many it has.
  llvm::SmallVector<SizeId, 4> lacking;
  llvm::SmallVector<uint8_t, 4> factors = {};
  /// By symbol: the power of it that all input dimensions lack; by item, that
  /// which the items from it on can give. Primary symbols come from factors
  /// only.
  Powers lackingPowers = {};
  llvm::SmallVector<Powers, 12> availablePowers = {};

  struct Counts {
    int kept = 0, joins = 0, windows = 0, expanded = 0, weights = 0;
    /// What the last item became, so that equal ones do so in order.
    int last = 0;
  };

  Partition(ShapeDistance &distance, llvm::ArrayRef<ShapeItem> items,
            const ShapeBudget &budget, int limit)
      : distance(distance), items(items), budget(budget), limit(limit),
        lacking(distance.targets), factors(distance.targets.size()),
        availablePowers(items.size() + 1) {
    auto add = [&](Powers &powers, SizeId size) {
      for (unsigned symbol : distance.primaries)
        powers[symbol] += distance.sizes[size].size.getExponent(symbol);
    };
    for (SizeId target : lacking)
      add(lackingPowers, target);
    for (size_t index = items.size(); index-- > 0;) {
      availablePowers[index] = availablePowers[index + 1];
      add(availablePowers[index], items[index].size);
    }
  }

  bool isFeasible() {
    Counts counts;
    counts.weights = budget.needsWeight;
    return visit(0, counts);
  }

  int getCost(const Counts &counts, int strides) const {
    int joins = counts.kept - static_cast<int>(factors.size());
    return counts.weights + counts.expanded + strides + std::max(joins, 0);
  }

  bool finish(const Counts &counts) {
    int strides = 0;
    for (auto [size, count] : llvm::zip_equal(lacking, factors)) {
      if (count == 0)
        return false;
      if (size == SizeTable::one)
        continue;
      if (!distance.isSignatureStride(size) || ++strides > budget.stride)
        return false;
    }
    return getCost(counts, strides) <= limit;
  }

  bool visit(unsigned index, const Counts &counts) {
    if (counts.weights > budget.weights || counts.joins > budget.split ||
        counts.windows + counts.joins > budget.unfold + budget.split ||
        counts.expanded > budget.expand || getCost(counts, 0) > limit)
      return false;
    for (unsigned symbol : distance.primaries)
      if (lackingPowers[symbol] > availablePowers[index][symbol])
        return false;
    if (index == items.size())
      return finish(counts);
    const ShapeItem &item = items[index];
    const SizeInfo &info = distance.sizes[item.size];
    int least = index && items[index - 1] == item ? counts.last : 0;
    bool isUnweighted = item.flags & ShapeItem::Unweighted;
    int choices = FirstFactor + static_cast<int>(factors.size());
    for (int choice = least; choice < choices; ++choice) {
      Counts next = counts;
      next.last = choice;
      auto needWeights = [&](int weights) {
        next.weights = std::max(next.weights, weights);
      };
      switch (choice) {
      case Drop:
        if (!(item.flags & (ShapeItem::Droppable | ShapeItem::DroppableLater)))
          continue;
        needWeights(item.flags & ShapeItem::Droppable ? 1 : 2);
        break;
      case Expand:
        if (!(item.flags & ShapeItem::Expandable))
          continue;
        ++next.expanded;
        break;
      case Window:
        if (!(item.flags & ShapeItem::Window) || !info.isOdd ||
            info.max > maxWindow)
          continue;
        ++next.windows;
        ++next.kept;
        needWeights(isUnweighted ? 1 : 0);
        break;
      default:
        needWeights(isUnweighted && info.max > maxPooling ? 1 : 0);
        if (visitFactor(index, choice - FirstFactor, next))
          return true;
        continue;
      }
      if (visit(index + 1, next))
        return true;
    }
    return false;
  }

  /// The item becomes a factor of an input dimension.
  bool visitFactor(unsigned index, unsigned target, Counts next) {
    SizeId size = items[index].size, old = lacking[target];
    std::optional<SizeId> rest = distance.sizes.divide(old, size);
    if (!rest || distance.sizes[*rest].hasNegativePrimary)
      return false;
    ++next.kept;
    next.joins += factors[target] > 0;
    Powers oldPowers = lackingPowers;
    for (unsigned symbol : distance.primaries)
      lackingPowers[symbol] -= distance.sizes[size].size.getExponent(symbol);
    lacking[target] = *rest;
    ++factors[target];
    bool isFound = visit(index + 1, next);
    --factors[target];
    lacking[target] = old;
    lackingPowers = oldPowers;
    return isFound;
  }

private:
  enum Choice { Drop, Expand, Window, FirstFactor };
};

static uint64_t getKey(llvm::ArrayRef<ShapeItem> items,
                       const ShapeBudget &budget) {
  uint64_t key = budget.split;
  for (uint64_t part : {budget.merge, budget.expand, budget.unfold,
                        budget.stride, budget.weights})
    key = key << 8 | part;
  key = mixBits(key << 1 | budget.needsWeight);
  // A sum: the order of items does not matter.
  for (const ShapeItem &item : items)
    key += mixBits((uint64_t(item.size) << 8 | item.flags) +
                   0x9e3779b97f4a7c15ull);
  return key >> 1; // DenseMap reserves the two largest keys.
}

/// Merging one of the items first.
bool ShapeDistance::canMerge(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit) {
  if (budget.merge == 0 || limit < 1)
    return false;
  ShapeBudget rest = budget;
  --rest.merge;
  // Strong enough for outputs and for halves of merges, which is all there is.
  auto make = [&](SizeId size, uint8_t flags) -> ShapeItem {
    flags |= ShapeItem::Expandable | ShapeItem::Window;
    if (sizes[size].isAllowed)
      flags |= ShapeItem::Droppable;
    return {size, flags};
  };
  for (unsigned index = 0; index < items.size(); ++index) {
    if (!(items[index].flags & ShapeItem::Mergeable) ||
        (index && items[index] == items[index - 1]))
      continue;
    for (SizeId block : getBlocks(items[index].size)) {
      llvm::SmallVector<ShapeItem, 12> cut(items);
      cut[index] = make(*sizes.divide(items[index].size, block), 0);
      cut.push_back(make(block, ShapeItem::Mergeable));
      if (isWithin(cut, rest, limit - 1))
        return true;
    }
  }
  return false;
}

bool ShapeDistance::isWithin(llvm::ArrayRef<ShapeItem> unsorted,
                             const ShapeBudget &budget, int limit) {
  if (limit < 0)
    return false;
  uint64_t key = getKey(unsorted, budget);
  if (auto known = memo.find(key); known != memo.end()) {
    if (known->second.reachable <= limit)
      return true;
    if (known->second.unreachable >= limit)
      return false;
  }
  llvm::SmallVector<ShapeItem, 12> items(unsorted);
  // Those with primary symbols first: they decide most.
  llvm::sort(items, [&](const ShapeItem &a, const ShapeItem &b) {
    return std::tuple(!sizes[a.size].hasPrimary, a) <
           std::tuple(!sizes[b.size].hasPrimary, b);
  });
  bool isFound = Partition(*this, items, budget, limit).isFeasible() ||
                 canMerge(items, budget, limit);
  Known &known = memo.try_emplace(key).first->second;
  if (isFound)
    known.reachable = limit;
  else
    known.unreachable = limit;
  return isFound;
}
