//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans row vectors: each step multiplies vectors of packed weights (output
// channels) by single elements of the data, which is read in place at any
// stride.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/RowVectorPlan.h"
#include "kas/Support/PrimeFactors.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::Twine;

void LinearExpr::add(const LinearExpr &other, int64_t factor) {
  base += factor * other.base;
  for (auto [stride, added] : llvm::zip_equal(strides, other.strides))
    stride += factor * added;
}

std::optional<LinearExpr> LinearExpr::get(const IndexExpr &expr,
                                          unsigned numLoops) {
  if (!expr.isLinear())
    return std::nullopt;
  LinearExpr linear;
  linear.base = expr.constant;
  linear.strides.assign(numLoops, 0);
  for (const IndexTerm &term : expr.terms)
    linear.strides[term.loop] += term.factor;
  return linear;
}

namespace {

/// A dimension of the data, or part of one, and how it is indexed.
struct DataDim {
  LinearExpr index;
  int64_t size;
};

/// The dimensions of the data such that each guard is that of one of them: one
/// whose index is `extent * outer + guarded` is two. Nothing if there are no
/// such dimensions.
std::optional<SmallVector<DataDim>> getDims(const TileNest &nest) {
  const IndexedTensor &data = nest.vectorInputs.front();
  unsigned numLoops = nest.loops.size();
  SmallVector<bool> met(nest.guards.size(), false);
  SmallVector<DataDim> dims;
  for (auto [expr, size] : llvm::zip_equal(data.index, data.shape)) {
    std::optional<LinearExpr> index = LinearExpr::get(expr, numLoops);
    if (!index)
      return std::nullopt;
    DataDim inner{*index, size};
    for (auto [number, guard] : llvm::enumerate(nest.guards)) {
      std::optional<LinearExpr> guarded = LinearExpr::get(guard.expr, numLoops);
      if (!guarded || size % guard.extent != 0)
        continue;
      LinearExpr outer = *index;
      outer.add(*guarded, -1);
      auto divides = [&, extent = guard.extent](int64_t value) {
        return value % extent == 0;
      };
      if (!divides(outer.base) || !llvm::all_of(outer.strides, divides))
        continue;
      bool same = outer.base == 0 &&
                  llvm::all_of(outer.strides, [](int64_t v) { return v == 0; });
      if (same ? size != guard.extent : size == guard.extent)
        continue;
      met[number] = true;
      if (same)
        continue;
      outer.base /= guard.extent;
      for (int64_t &stride : outer.strides)
        stride /= guard.extent;
      dims.push_back({outer, size / guard.extent});
      inner = {*guarded, guard.extent};
      break;
    }
    dims.push_back(inner);
  }
  if (llvm::is_contained(met, false))
    return std::nullopt;
  return dims;
}

/// The data's strides, in a copy with zeros around it where there are guards.
/// False if the data is not linear in the loops, or a guard is not that of one
/// of its dimensions.
bool chooseData(RowVectorPlan &plan, const TileNest &nest) {
  const IndexedTensor &data = nest.vectorInputs.front();
  unsigned numLoops = nest.loops.size();
  if (nest.guards.empty()) {
    std::optional<LinearExpr> address = LinearExpr::get(data.address, numLoops);
    if (!address)
      return false;
    plan.dataBase = address->base;
    plan.dataStrides = address->strides;
    return true;
  }
  std::optional<SmallVector<DataDim>> dims = getDims(nest);
  if (!dims)
    return false;
  LinearExpr address;
  address.strides.assign(numLoops, 0);
  for (DataDim &dim : *dims) {
    int64_t low = dim.index.base, high = dim.index.base;
    for (auto [stride, loop] : llvm::zip_equal(dim.index.strides, nest.loops))
      (stride < 0 ? low : high) += stride * (loop.extent - 1);
    int64_t before = std::max<int64_t>(0, -low);
    int64_t bordered = before + std::max(dim.size, high + 1);
    plan.dataShape.push_back(dim.size);
    plan.paddingBefore.push_back(before);
    plan.paddedShape.push_back(bordered);
    dim.index.base += before;
    address.base *= bordered;
    for (int64_t &stride : address.strides)
      stride *= bordered;
    address.add(dim.index, 1);
  }
  plan.dataBase = address.base;
  plan.dataStrides = address.strides;
  return true;
}

/// Between columns of the data where each step reads other cache lines; 0 where
/// a window reads the same ones again, or the strides are not known.
int64_t getColumnStride(const RowVectorPlan &plan, const TileNest &nest) {
  constexpr int64_t line = 16;
  bool readsAgain = llvm::any_of(nest.reductions, [&](unsigned reduction) {
    return !plan.dataStrides.empty() && nest.loops[reduction].extent > 1 &&
           plan.dataStrides[reduction] < line;
  });
  return plan.dataStrides.empty() || readsAgain
             ? 0
             : plan.dataStrides[nest.columns.back()];
}

/// The cheapest tile that the registers hold, with the numbers that `given`
/// gives. False if there is none.
bool chooseTile(RowVectorPlan &plan, const TileNest &nest,
                const TileTarget &target, const TileNumbers *given,
                bool mayOverlap) {
  ArrayRef<unsigned> columns = nest.columns;
  int64_t width = nest.loops[columns.back()].extent;
  int64_t height = 1;
  // Short rows of the image that lie together in the output are joined.
  if (columns.size() > 1 &&
      nest.output.strides[columns[columns.size() - 2]] == width)
    height = nest.loops[columns[columns.size() - 2]].extent;
  int64_t outer =
      nest.getExtent(nest.batches) * nest.getExtent(columns) / (width * height);
  // Guards of the outermost reduction would limit the steps of a part.
  unsigned outermost = nest.reductions.front();
  bool isGuarded = llvm::any_of(nest.guards, [&](const Guard &guard) {
    std::optional<LinearExpr> expr =
        LinearExpr::get(guard.expr, nest.loops.size());
    return !expr || expr->strides[outermost] != 0;
  });
  int64_t outerSteps = isGuarded ? 1 : nest.loops[outermost].extent;
  auto isLeft = [](int64_t wanted, int64_t number) {
    return wanted == 0 || wanted == number;
  };
  RowTile tile = chooseRowTile(
      {outer, height, width, nest.getExtent(nest.rows),
       nest.getExtent(nest.reductions), mayOverlap,
       nest.vectorInputs.front().size, getColumnStride(plan, nest), outerSteps},
      target, [&](int64_t columns, int64_t vectors) {
        return !given || (isLeft(given->columns, columns) &&
                          isLeft(given->vectors, vectors));
      });
  plan.time = tile.getTime();
  plan.productTime = tile.products;
  plan.storeTime = tile.stores;
  plan.tileColumns = tile.columns;
  plan.tileOuterColumns = tile.outerColumns;
  plan.isBalanced = tile.isBalanced;
  plan.stepParts = tile.parts;
  plan.registerVectors = tile.vectors;
  plan.lanes = tile.lanes;
  return plan.time != 0;
}

/// An address as a sum of loops and of what cyclic shifts add. False if it is
/// none.
bool getAddress(const IndexExpr &expr, unsigned numLoops, LinearExpr &sum,
                SmallVectorImpl<DataWrap> &wraps) {
  sum.base = expr.constant;
  sum.strides.assign(numLoops, 0);
  for (const IndexTerm &term : expr.terms) {
    if (term.kind == IndexTerm::Kind::Loop) {
      sum.strides[term.loop] += term.factor;
      continue;
    }
    std::optional<LinearExpr> inside =
        LinearExpr::get(*term.dividend, numLoops);
    if (term.kind != IndexTerm::Kind::Remainder || !inside)
      return false;
    sum.add(*inside, term.factor);
    wraps.push_back({*inside, term.divisor, term.factor});
  }
  return true;
}

/// Reads the data where it is and leaves out the steps that guards forbid,
/// where that takes no test in the innermost loop.
class Clipping {
public:
  Clipping(const RowVectorPlan &plan, const TileNest &nest)
      : nest(nest),
        tileLoops(ArrayRef(nest.columns)
                      .take_back(plan.tileOuterColumns > 1 ? 2 : 1)) {}

  /// Changes `plan`, or leaves it as it is and says so.
  bool choose(RowVectorPlan &plan);

private:
  bool chooseGuards();
  bool chooseWraps(ArrayRef<DataWrap> wraps);
  bool addColumnExpr(const LinearExpr &expr);
  SmallVector<unsigned> getReductions(const LinearExpr &expr) const {
    return llvm::filter_to_vector(nest.reductions, [&](unsigned loop) {
      return expr.strides[loop] != 0;
    });
  }
  bool usesTile(const LinearExpr &expr) const {
    return llvm::any_of(tileLoops,
                        [&](unsigned loop) { return expr.strides[loop] != 0; });
  }

  const TileNest &nest;
  ArrayRef<unsigned> tileLoops;
  SmallVector<unsigned> rangeGuards, columnGuards;
  SmallVector<DataWrap> stepWraps, columnWraps;
  /// Reductions that are loops of their own, and those that are unrolled.
  SmallVector<unsigned> looped;
  llvm::SetVector<unsigned> unrolled;
};

/// Takes an expression that columns of a tile differ in: it must be known when
/// the tile is emitted. One that joins both loops of a tile has no columns of
/// its own.
bool Clipping::addColumnExpr(const LinearExpr &expr) {
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
    if (expr.strides[loop] && !nest.loops[loop].isReduction &&
        !llvm::is_contained(tileLoops, loop))
      return false;
  unrolled.insert_range(getReductions(expr));
  return llvm::count_if(tileLoops, [&](unsigned loop) {
           return expr.strides[loop] != 0;
         }) == 1;
}

bool Clipping::chooseGuards() {
  for (auto [number, guard] : llvm::enumerate(nest.guards)) {
    std::optional<LinearExpr> expr =
        LinearExpr::get(guard.expr, nest.loops.size());
    if (!expr)
      return false;
    if (usesTile(*expr)) {
      if (!addColumnExpr(*expr))
        return false;
      columnGuards.push_back(number);
      continue;
    }
    SmallVector<unsigned> reductions = getReductions(*expr);
    if (reductions.size() != 1 || expr->strides[reductions.front()] < 0)
      return false;
    rangeGuards.push_back(number);
    looped.push_back(reductions.front());
  }
  return true;
}

bool Clipping::chooseWraps(ArrayRef<DataWrap> wraps) {
  for (const DataWrap &wrap : wraps) {
    if (!usesTile(wrap.expr)) {
      stepWraps.push_back(wrap);
      llvm::append_range(looped, getReductions(wrap.expr));
      continue;
    }
    if (!addColumnExpr(wrap.expr))
      return false;
    columnWraps.push_back(wrap);
  }
  return true;
}

bool Clipping::choose(RowVectorPlan &plan) {
  // Beyond, code is long and its gain small.
  constexpr int64_t maxProducts = 256;
  unsigned numLoops = nest.loops.size();
  LinearExpr address;
  SmallVector<DataWrap> wraps;
  if (!getAddress(nest.vectorInputs.front().address, numLoops, address, wraps))
    return false;
  // Where tiles begin is known for whole loops only.
  if (plan.columnGroups > 1 && tileLoops.size() == nest.columns.size())
    return false;
  auto isUnrolled = [&](unsigned loop) { return unrolled.contains(loop); };
  if (!chooseGuards() || !chooseWraps(wraps) ||
      llvm::any_of(looped, isUnrolled) ||
      nest.getExtent(unrolled.getArrayRef()) * plan.getNumRegisterColumns() *
              plan.registerVectors >
          maxProducts)
    return false;
  plan.rangeGuards = rangeGuards;
  plan.columnGuards = columnGuards;
  plan.stepWraps = stepWraps;
  plan.columnWraps = columnWraps;
  // Unrolled steps are around the innermost of the other loops: what one step
  // loads is not kept in registers until the next one then.
  plan.reductions = llvm::filter_to_vector(
      nest.reductions, [&](unsigned r) { return !isUnrolled(r); });
  plan.numInside = plan.reductions.empty() ? 0 : 1;
  auto *inside = plan.reductions.end() - plan.numInside;
  SmallVector<unsigned> steps =
      llvm::filter_to_vector(nest.reductions, isUnrolled);
  plan.reductions.insert(inside, steps.begin(), steps.end());
  plan.numUnrolled = unrolled.size();
  plan.dataBase = address.base;
  plan.dataStrides = address.strides;
  plan.dataShape.clear();
  plan.paddedShape.clear();
  plan.paddingBefore.clear();
  return true;
}

/// Unrolls the innermost steps where they are few and read different elements,
/// as those of a window that moves by its size: short loops around all sums
/// take longer than their products. What several steps read would be kept in
/// registers that there are not.
void unrollWindow(RowVectorPlan &plan, const TileNest &nest) {
  // Beyond, decoded instructions of a loop do not stay where they are kept.
  constexpr int64_t maxProducts = 128;
  if (plan.numUnrolled || !plan.rangeGuards.empty() || !plan.stepWraps.empty())
    return;
  ArrayRef<unsigned> columns = nest.columns;
  SmallVector<int64_t> read{0};
  auto repeat = [&](int64_t stride, int64_t extent) {
    SmallVector<int64_t> once = read;
    for (int64_t i = 1; i < extent; ++i)
      for (int64_t offset : once)
        read.push_back(offset + i * stride);
  };
  repeat(plan.dataStrides[columns.back()], plan.tileColumns);
  if (plan.tileOuterColumns > 1)
    repeat(plan.dataStrides[columns[columns.size() - 2]],
           plan.tileOuterColumns);
  unsigned count = 0;
  for (unsigned reduction : llvm::reverse(plan.reductions)) {
    int64_t extent = nest.loops[reduction].extent;
    if (static_cast<int64_t>(read.size()) * extent * plan.registerVectors >
        maxProducts)
      break;
    repeat(plan.dataStrides[reduction], extent);
    SmallVector<int64_t> sorted = read;
    llvm::sort(sorted);
    if (llvm::adjacent_find(sorted) != sorted.end())
      break;
    ++count;
  }
  // One loop is as good as none.
  if (count == 0 || plan.reductions.size() == 1)
    return;
  plan.numUnrolled = count;
  plan.numInside = 0;
}

/// Cuts the steps only where their outermost loop is that of the outermost
/// reduction, and memory for the sums of an item stays in the second-level
/// cache.
void checkStepParts(RowVectorPlan &plan, const TileNest &nest,
                    const TileTarget &target) {
  ArrayRef<unsigned> steps = plan.getLooped();
  int64_t sums =
      nest.getExtent(nest.columns) / plan.columnGroups * plan.getBlockRows();
  if (steps.empty() || steps.front() != nest.reductions.front() ||
      sums * 4 > target.l2Elements)
    plan.stepParts = 1;
}

/// What is fetched ahead of its use.
void choosePrefetches(RowVectorPlan &plan, const TileNest &nest,
                      const TileTarget &target) {
  // A step to another line of the cache and page, as that to the next channel
  // of an image is, is none that processors foresee. Where a tile is spread
  // over many lines there is too much to fetch.
  constexpr int64_t minStride = 128, line = 16, maxLines = 4;
  bool isFar = llvm::any_of(nest.reductions, [&](unsigned reduction) {
    return nest.loops[reduction].extent > 1 &&
           plan.dataStrides[reduction] >= minStride;
  });
  ArrayRef<unsigned> columns = nest.columns;
  int64_t span = plan.dataStrides[columns.back()] * (plan.tileColumns - 1);
  if (plan.tileOuterColumns > 1)
    span += plan.dataStrides[columns[columns.size() - 2]] *
            (plan.tileOuterColumns - 1);
  plan.prefetchesData = plan.paddedShape.empty() && plan.stepWraps.empty() &&
                        plan.columnWraps.empty() && isFar &&
                        span <= maxLines * line;
  // Weights that do not stay in the second-level cache from call to call come
  // from beyond for the first tile of each block, no faster than it needs them:
  // those of the next block are fetched in time if both fit. Else they are
  // fetched further ahead than the processor does, which ends at the end of a
  // page.
  int64_t numColumns = nest.getExtent(columns);
  int64_t numBlocks = plan.getNumBlocks(nest.getExtent(nest.rows));
  int64_t block = plan.getBlockRows() * nest.getExtent(nest.reductions);
  if (numBlocks > 1 && numColumns > plan.getNumRegisterColumns() &&
      block * 4 <= target.l2Elements) {
    plan.prefetchesNextBlock = true;
    return;
  }
  constexpr int64_t fewTiles = 32, twoPages = 2048;
  int64_t weights = nest.getExtent(nest.batches) * numBlocks * block;
  if (numColumns <= fewTiles * plan.getNumRegisterColumns() &&
      weights * 3 > target.panelElements * 8)
    plan.prefetchDistance = twoPages;
}

/// What it takes to read data whose lines do not stay in the second-level cache
/// from beyond, at each step of each tile.
int64_t getConflictTime(const RowVectorPlan &plan, const TileNest &nest,
                        const TileTarget &target) {
  constexpr int64_t cacheLineTime = 40;
  bool conflicts = llvm::any_of(nest.reductions, [&](unsigned reduction) {
    return hasConflicts(nest.loops[reduction].extent,
                        plan.dataStrides[reduction], target);
  });
  if (!conflicts)
    return 0;
  int64_t tiles = nest.getExtent(nest.columns) / plan.getNumRegisterColumns();
  return nest.getExtent(nest.batches) *
         plan.getNumBlocks(nest.getExtent(nest.rows)) * tiles *
         nest.getExtent(nest.reductions) * cacheLineTime;
}

/// What it takes to read data from beyond the second-level cache for each block
/// of rows, some 20 bytes in a cycle, where products on short vectors take too
/// few of these to hide it.
int64_t getSharedCacheTime(const RowVectorPlan &plan, const TileNest &nest,
                           const TileTarget &target) {
  constexpr int64_t elementsPerHalf = 5, halves = 2;
  int64_t batches = nest.getExtent(nest.batches);
  int64_t stride = std::max<int64_t>(1, getColumnStride(plan, nest));
  int64_t size = nest.vectorInputs.front().size;
  if (target.hasMaskRegisters || plan.groupsOutside ||
      size * stride <= 2 * target.l2Elements * batches)
    return 0;
  int64_t read = batches * nest.getExtent(nest.columns) *
                 nest.getExtent(nest.reductions) * stride;
  return plan.getNumBlocks(nest.getExtent(nest.rows)) * std::min(read, size) *
         halves / elementsPerHalf;
}

/// Cuts the columns into groups that begin with whole tiles, where the busiest
/// thread has fewer tiles then, or the second-level cache needs that.
void chooseColumnGroups(RowVectorPlan &plan, const TileNest &nest,
                        const TileTarget &target, int64_t threads) {
  int64_t numBlocks = plan.getNumBlocks(nest.getExtent(nest.rows));
  int64_t items = nest.getExtent(nest.batches) * numBlocks;
  int64_t outermost = nest.loops[nest.columns.front()].extent;
  int64_t step = nest.columns.size() == 1   ? plan.tileColumns
                 : nest.columns.size() == 2 ? plan.tileOuterColumns
                                            : 1;
  // Data that several blocks of rows read from beyond the cache, and weights
  // that stay in it.
  int64_t depth = nest.getExtent(nest.reductions);
  int64_t read = nest.vectorInputs.front().size / nest.getExtent(nest.batches);
  int64_t weights = numBlocks * plan.getBlockRows() * depth;
  int64_t fits = read;
  // Guards need tiles that begin at known places, as those of whole loops do.
  size_t tileLoops = plan.tileOuterColumns > 1 ? 2 : 1;
  bool mayCut = nest.guards.empty() || nest.columns.size() > tileLoops;
  if (mayCut && numBlocks > 1 && read * 2 > target.l2Elements &&
      weights * 4 <= target.l2Elements) {
    plan.groupsOutside = true;
    fits = target.l2Elements / 4;
  }
  // Tiles that need not divide a group.
  bool overlaps =
      nest.columns.size() == 1 && (plan.isBalanced || outermost % step != 0);
  // First that the data of a group fits, then the tiles of the busiest thread.
  auto getKey = [&](int64_t groups) {
    int64_t excess = std::max<int64_t>(0, read - fits * groups);
    return std::pair(excess / groups,
                     llvm::divideCeil(items * groups, threads) *
                         llvm::divideCeil(outermost / groups, step));
  };
  plan.columnGroups = 1;
  for (int64_t groups : listDivisors(outermost))
    if (groups <= outermost / step &&
        (overlaps || outermost % (groups * step) == 0) &&
        getKey(groups) < getKey(plan.columnGroups))
      plan.columnGroups = groups;
}

} // namespace

/// The part of `time` for which guards hold. Guards of one image are about
/// different loops.
static int64_t getExistingPart(int64_t time, const TileNest &nest) {
  // Beyond, padding is a small part of the image.
  constexpr int64_t maxPoints = 1 << 12;
  for (const Guard &guard : nest.guards) {
    std::optional<LinearExpr> expr =
        LinearExpr::get(guard.expr, nest.loops.size());
    SmallVector<int64_t> values{expr ? expr->base : 0};
    for (unsigned loop = 0; expr && loop < nest.loops.size(); ++loop) {
      if (expr->strides[loop] == 0)
        continue;
      int64_t extent = nest.loops[loop].extent;
      if (static_cast<int64_t>(values.size()) * extent > maxPoints)
        expr = std::nullopt;
      SmallVector<int64_t> all;
      for (int64_t i = 0; expr && i < extent; ++i)
        for (int64_t value : values)
          all.push_back(value + i * expr->strides[loop]);
      values = all;
    }
    if (expr)
      time = time *
             llvm::count_if(values,
                            [&](int64_t value) {
                              return value >= 0 && value < guard.extent;
                            }) /
             static_cast<int64_t>(values.size());
  }
  return time;
}

std::optional<RowVectorPlan> kas::schedule::makeRowVectorPlan(
    const TileNest &nest, const TileTarget &target, int64_t threads,
    const TileNumbers *given,
    llvm::function_ref<void(const Twine &)> emitReason, bool mayOverlap) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return std::nullopt;
  };
  if (nest.vectorInputs.size() != 1 || nest.scalarInputs.size() != 1 ||
      nest.rows.size() != 1 || nest.reductions.empty())
    return fail("expected data and a weight with one loop of rows");
  int64_t rows = nest.getExtent(nest.rows);
  if (getRowLaneCounts(rows, target).empty())
    return fail("expected rows that fill more than half of a vector, got " +
                Twine(rows));
  RowVectorPlan plan;
  bool isSum = chooseData(plan, nest);
  if (!chooseTile(plan, nest, target, given, mayOverlap)) {
    if (!given)
      return fail("expected columns that registers can hold");
    return fail("expected columns and vectors that fit " +
                Twine(target.registers) + " registers and the shape, got " +
                Twine(given->columns) + " times " + Twine(given->vectors));
  }

  if (isSum && plan.paddedShape.empty())
    plan.time += getConflictTime(plan, nest, target);
  // What is packed at each call is read once for each of its rows.
  if (!nest.scalarInputs.front().isPrepacked)
    plan.time += getRowPackingTime(
        nest.getExtent(nest.batches) * plan.getNumBlocks(rows) *
        plan.getBlockRows() * nest.getExtent(nest.reductions));
  chooseColumnGroups(plan, nest, target, threads);
  if (isSum)
    plan.time += getSharedCacheTime(plan, nest, target);
  plan.reductions = nest.reductions;
  bool isClipped = Clipping(plan, nest).choose(plan);
  if (!isClipped && !isSum)
    return fail("expected data that is read at sums of loops");
  // The strides of data that is shifted were not known before.
  if (!isSum)
    plan.time += getConflictTime(plan, nest, target);
  if (isClipped)
    plan.time -= plan.productTime - getExistingPart(plan.productTime, nest);
  unrollWindow(plan, nest);
  checkStepParts(plan, nest, target);
  choosePrefetches(plan, nest, target);
  return plan;
}
