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
  llvm::SmallVector<Size> factors;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient)
      factors.push_back(Size::symbol(symbol));
  // Strides of the signature itself, such as from 2*H to H.
  for (const Dimension &input : problem.inputs)
    for (const Dimension &output : problem.outputs)
      if (std::optional<Size> factor = input.size.divide(output.size))
        factors.push_back(*factor);
  for (const Size &factor : factors) {
    SizeId id = sizes.intern(factor);
    const SizeInfo &info = sizes[id];
    if (info.isLegal && !info.hasPrimary && info.min >= 2 &&
        !llvm::is_contained(strideFactors, id))
      strideFactors.push_back(id);
  }
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

/// The depth-first search over what each item becomes.
struct ShapeDistance::Partition {
  ShapeDistance &distance;
  llvm::ArrayRef<ShapeItem> items;
  const ShapeBudget &budget;
  int best;
  /// By input dimension: what its factors lack so far, and how many it has.
  llvm::SmallVector<SizeId, 4> lacking;
  llvm::SmallVector<uint8_t, 4> factors;

  /// `kept` items are neither dropped nor expanded; `weights` more are needed.
  struct Counts {
    int kept = 0, joins = 0, windows = 0, expanded = 0, weights = 0;
  };

  int getCost(const Counts &counts, int strides) const {
    int joins = counts.kept - static_cast<int>(distance.targets.size());
    return counts.weights + counts.expanded + strides + std::max(joins, 0);
  }

  void finish(const Counts &counts) {
    int strides = 0;
    for (auto [size, count] : llvm::zip_equal(lacking, factors)) {
      if (count == 0)
        return;
      if (size == SizeTable::one)
        continue;
      if (!llvm::is_contained(distance.strideFactors, size) ||
          ++strides > budget.stride)
        return;
    }
    best = std::min(best, getCost(counts, strides));
  }

  void visit(unsigned index, Counts counts) {
    if (counts.weights > budget.weights || counts.joins > budget.split ||
        counts.windows + counts.joins > budget.unfold + budget.split ||
        counts.expanded > budget.expand || getCost(counts, 0) >= best)
      return;
    if (index == items.size())
      return finish(counts);
    const ShapeItem &item = items[index];
    const SizeInfo &info = distance.sizes[item.size];
    if (item.flags & (ShapeItem::Droppable | ShapeItem::DroppableLater)) {
      Counts next = counts;
      next.weights =
          std::max(next.weights, item.flags & ShapeItem::Droppable ? 1 : 2);
      visit(index + 1, next);
    }
    if (item.flags & ShapeItem::Expandable) {
      Counts next = counts;
      ++next.expanded;
      visit(index + 1, next);
    }
    bool isUnweighted = item.flags & ShapeItem::Unweighted;
    if ((item.flags & ShapeItem::Window) && info.isOdd &&
        info.max <= maxWindow) {
      Counts next = counts;
      ++next.windows;
      ++next.kept;
      next.weights = std::max(next.weights, isUnweighted ? 1 : 0);
      visit(index + 1, next);
    }
    visitFactors(index, counts, isUnweighted && info.max > maxPooling);
  }

  void visitFactors(unsigned index, const Counts &counts, bool needsWeight) {
    for (unsigned target = 0; target < lacking.size(); ++target) {
      SizeId old = lacking[target];
      std::optional<SizeId> rest =
          distance.sizes.divide(old, items[index].size);
      if (!rest || distance.sizes[*rest].hasNegativePrimary)
        continue;
      Counts next = counts;
      ++next.kept;
      next.joins += factors[target] > 0;
      next.weights = std::max(next.weights, needsWeight ? 1 : 0);
      lacking[target] = *rest;
      ++factors[target];
      visit(index + 1, next);
      --factors[target];
      lacking[target] = old;
    }
  }
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

int ShapeDistance::solve(llvm::SmallVector<ShapeItem, 12> items,
                         const ShapeBudget &budget, int limit) {
  if (limit < 0)
    return infinite;
  uint64_t key = getKey(items, budget);
  if (auto known = memo.find(key); known != memo.end()) {
    if (known->second.distance <= limit)
      return known->second.distance;
    if (known->second.limit >= limit)
      return infinite;
  }
  llvm::sort(items);
  Partition partition{*this, items, budget, limit + 1, targets, {}};
  partition.factors.resize(targets.size());
  Partition::Counts counts;
  counts.weights = budget.needsWeight;
  partition.visit(0, counts);
  int best = partition.best <= limit ? partition.best : infinite;

  ShapeBudget merged = budget;
  if (budget.merge > 0) {
    --merged.merge;
    for (unsigned index = 0; index < items.size(); ++index) {
      if (!(items[index].flags & ShapeItem::Mergeable) ||
          (index && items[index] == items[index - 1]))
        continue;
      uint8_t flags =
          ShapeItem::Droppable | ShapeItem::Expandable | ShapeItem::Window;
      for (SizeId block : getBlocks(items[index].size)) {
        llvm::SmallVector<ShapeItem, 12> cut = items;
        SizeId quotient = *sizes.divide(items[index].size, block);
        auto drop = [&](SizeId size) -> uint8_t {
          return sizes[size].isAllowed ? flags : flags & ~ShapeItem::Droppable;
        };
        cut[index] = {quotient, drop(quotient)};
        cut.push_back(
            {block, static_cast<uint8_t>(drop(block) | ShapeItem::Mergeable)});
        best = std::min(best, 1 + solve(std::move(cut), merged,
                                        std::min(limit, best - 1) - 1));
      }
    }
  }
  best = best <= limit ? best : infinite;
  auto [entry, isNew] = memo.try_emplace(
      key, Known{static_cast<uint8_t>(best), static_cast<uint8_t>(limit)});
  if (!isNew)
    entry->second = {
        static_cast<uint8_t>(best),
        std::max(entry->second.limit, static_cast<uint8_t>(limit))};
  return best;
}

bool ShapeDistance::isWithin(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit) {
  return solve(llvm::SmallVector<ShapeItem, 12>(items), budget, limit) <= limit;
}
