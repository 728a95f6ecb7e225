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

#include "RowVectorPlan.h"
#include "kas/Solver/TilePlan.h"
#include "kas/Support/PrimeFactors.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void LinearExpr::add(const LinearExpr &other, int64_t factor) {
  base += factor * other.base;
  for (auto [stride, added] : llvm::zip_equal(strides, other.strides))
    stride += factor * added;
}

std::optional<LinearExpr> LinearExpr::get(AffineExpr expr, unsigned numLoops) {
  LinearExpr linear;
  SmallVector<AffineExpr> zeros(numLoops,
                                getAffineConstantExpr(0, expr.getContext()));
  auto base = dyn_cast<AffineConstantExpr>(expr.replaceDims(zeros));
  if (!base)
    return std::nullopt;
  linear.base = base.getValue();
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    std::optional<int64_t> stride = getCoefficient(expr, loop);
    if (!stride)
      return std::nullopt;
    linear.strides.push_back(*stride);
  }
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
std::optional<SmallVector<DataDim>>
getDims(const StridedContraction &contraction) {
  const PackedAccess &data = contraction.vectorInputs.front();
  unsigned numLoops = contraction.loops.size();
  SmallVector<bool> met(contraction.guards.size(), false);
  SmallVector<DataDim> dims;
  for (auto [expr, size] : llvm::zip_equal(data.index, data.shape)) {
    std::optional<LinearExpr> index = LinearExpr::get(expr, numLoops);
    if (!index)
      return std::nullopt;
    DataDim inner{*index, size};
    for (auto [number, guard] : llvm::enumerate(contraction.guards)) {
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
bool chooseData(RowVectorPlan &plan, const StridedContraction &contraction) {
  const PackedAccess &data = contraction.vectorInputs.front();
  unsigned numLoops = contraction.loops.size();
  if (contraction.guards.empty()) {
    std::optional<LinearExpr> address = LinearExpr::get(data.address, numLoops);
    if (!address)
      return false;
    plan.dataBase = address->base;
    plan.dataStrides = address->strides;
    return true;
  }
  std::optional<SmallVector<DataDim>> dims = getDims(contraction);
  if (!dims)
    return false;
  LinearExpr address;
  address.strides.assign(numLoops, 0);
  for (DataDim &dim : *dims) {
    int64_t low = dim.index.base, high = dim.index.base;
    for (auto [stride, loop] :
         llvm::zip_equal(dim.index.strides, contraction.loops))
      (stride < 0 ? low : high) += stride * (loop.extent - 1);
    int64_t before = std::max<int64_t>(0, -low);
    int64_t bordered = before + std::max(dim.size, high + 1);
    plan.dataShape.push_back(dim.size);
    plan.bordersBefore.push_back(before);
    plan.borderedShape.push_back(bordered);
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

/// The cheapest tile that the registers hold, with the numbers that `schedule`
/// gives. False if there is none.
bool chooseTile(RowVectorPlan &plan, const StridedContraction &contraction,
                const ContractionTarget &target, CPUScheduleAttr schedule,
                bool mayOverlap) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t width = contraction.loops[columns.back()].extent;
  int64_t height = 1;
  // Short rows of the image that lie together in the output are joined.
  if (columns.size() > 1 &&
      contraction.output.strides[columns[columns.size() - 2]] == width)
    height = contraction.loops[columns[columns.size() - 2]].extent;
  int64_t outer = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(columns) / (width * height);
  auto isLeft = [](int64_t given, int64_t number) {
    return given == 0 || given == number;
  };
  solver::RowTile tile = solver::chooseRowTile(
      {outer, height, width, contraction.getExtent(contraction.rows),
       contraction.getExtent(contraction.reductions), mayOverlap,
       contraction.vectorInputs.front().size},
      target, [&](int64_t columns, int64_t vectors) {
        return !schedule || (isLeft(schedule.getColumns(), columns) &&
                             isLeft(schedule.getVectors(), vectors));
      });
  plan.time = tile.getTime();
  plan.tileColumns = tile.columns;
  plan.tileOuterColumns = tile.outerColumns;
  plan.registerVectors = tile.vectors;
  plan.lanes = tile.lanes;
  return plan.time != 0;
}

/// An address as a sum of loops and of what cyclic shifts add. False if it is
/// none.
bool addAddress(AffineExpr expr, int64_t factor, unsigned numLoops,
                LinearExpr &sum, SmallVectorImpl<DataWrap> &wraps) {
  if (std::optional<LinearExpr> linear = LinearExpr::get(expr, numLoops)) {
    sum.add(*linear, factor);
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addAddress(binary.getLHS(), factor, numLoops, sum, wraps) &&
           addAddress(binary.getRHS(), factor, numLoops, sum, wraps);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!constant)
    return false;
  if (binary.getKind() == AffineExprKind::Mul)
    return addAddress(binary.getLHS(), factor * constant.getValue(), numLoops,
                      sum, wraps);
  std::optional<LinearExpr> inside = LinearExpr::get(binary.getLHS(), numLoops);
  if (binary.getKind() != AffineExprKind::Mod || !inside)
    return false;
  sum.add(*inside, factor);
  wraps.push_back({*inside, constant.getValue(), factor});
  return true;
}

/// Reads the data where it is and leaves out the steps that guards forbid,
/// where that takes no test in the innermost loop.
class Clipping {
public:
  Clipping(const RowVectorPlan &plan, const StridedContraction &contraction)
      : contraction(contraction),
        tileLoops(ArrayRef(contraction.columns)
                      .take_back(plan.tileOuterColumns > 1 ? 2 : 1)) {}

  /// Changes `plan`, or leaves it as it is and says so.
  bool choose(RowVectorPlan &plan);

private:
  bool chooseGuards();
  bool chooseWraps(ArrayRef<DataWrap> wraps);
  bool addColumnExpr(const LinearExpr &expr);
  SmallVector<unsigned> getReductions(const LinearExpr &expr) const {
    return llvm::filter_to_vector(contraction.reductions, [&](unsigned loop) {
      return expr.strides[loop] != 0;
    });
  }
  bool usesTile(const LinearExpr &expr) const {
    return llvm::any_of(tileLoops,
                        [&](unsigned loop) { return expr.strides[loop] != 0; });
  }

  const StridedContraction &contraction;
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
  for (unsigned loop = 0; loop < contraction.loops.size(); ++loop)
    if (expr.strides[loop] && !contraction.loops[loop].isReduction &&
        !llvm::is_contained(tileLoops, loop))
      return false;
  unrolled.insert_range(getReductions(expr));
  return llvm::count_if(tileLoops, [&](unsigned loop) {
           return expr.strides[loop] != 0;
         }) == 1;
}

bool Clipping::chooseGuards() {
  for (auto [number, guard] : llvm::enumerate(contraction.guards)) {
    std::optional<LinearExpr> expr =
        LinearExpr::get(guard.expr, contraction.loops.size());
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
  unsigned numLoops = contraction.loops.size();
  LinearExpr address;
  address.strides.assign(numLoops, 0);
  SmallVector<DataWrap> wraps;
  if (!addAddress(contraction.vectorInputs.front().address, 1, numLoops,
                  address, wraps))
    return false;
  // Where tiles begin is known for whole loops only.
  if (plan.columnGroups > 1 && tileLoops.size() == contraction.columns.size())
    return false;
  auto isUnrolled = [&](unsigned loop) { return unrolled.contains(loop); };
  if (!chooseGuards() || !chooseWraps(wraps) ||
      llvm::any_of(looped, isUnrolled) ||
      contraction.getExtent(unrolled.getArrayRef()) *
              plan.getNumRegisterColumns() * plan.registerVectors >
          maxProducts)
    return false;
  plan.rangeGuards = rangeGuards;
  plan.columnGuards = columnGuards;
  plan.stepWraps = stepWraps;
  plan.columnWraps = columnWraps;
  // Unrolled steps are around the innermost of the other loops: what one step
  // loads is not kept in registers until the next one then.
  plan.reductions = llvm::filter_to_vector(
      contraction.reductions, [&](unsigned r) { return !isUnrolled(r); });
  plan.numInside = plan.reductions.empty() ? 0 : 1;
  auto *inside = plan.reductions.end() - plan.numInside;
  SmallVector<unsigned> steps =
      llvm::filter_to_vector(contraction.reductions, isUnrolled);
  plan.reductions.insert(inside, steps.begin(), steps.end());
  plan.numUnrolled = unrolled.size();
  plan.dataBase = address.base;
  plan.dataStrides = address.strides;
  plan.dataShape.clear();
  plan.borderedShape.clear();
  plan.bordersBefore.clear();
  return true;
}

/// Unrolls the innermost steps where they are few and read different elements,
/// as those of a window that moves by its size: short loops around all sums
/// take longer than their products. What several steps read would be kept in
/// registers that there are not.
void unrollWindow(RowVectorPlan &plan, const StridedContraction &contraction) {
  // Beyond, decoded instructions of a loop do not stay where they are kept.
  constexpr int64_t maxProducts = 128;
  if (plan.numUnrolled || !plan.rangeGuards.empty() || !plan.stepWraps.empty())
    return;
  ArrayRef<unsigned> columns = contraction.columns;
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
    int64_t extent = contraction.loops[reduction].extent;
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

/// What is fetched ahead of its use.
void choosePrefetches(RowVectorPlan &plan,
                      const StridedContraction &contraction,
                      const ContractionTarget &target) {
  // A step to another line of the cache and page, as that to the next channel
  // of an image is, is none that processors foresee. Where a tile is spread
  // over many lines there is too much to fetch.
  constexpr int64_t minStride = 128, line = 16, maxLines = 4;
  bool isFar = llvm::any_of(contraction.reductions, [&](unsigned reduction) {
    return contraction.loops[reduction].extent > 1 &&
           plan.dataStrides[reduction] >= minStride;
  });
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t span = plan.dataStrides[columns.back()] * (plan.tileColumns - 1);
  if (plan.tileOuterColumns > 1)
    span += plan.dataStrides[columns[columns.size() - 2]] *
            (plan.tileOuterColumns - 1);
  plan.prefetchesData = plan.borderedShape.empty() && plan.stepWraps.empty() &&
                        plan.columnWraps.empty() && isFar &&
                        span <= maxLines * line;
  // Weights that do not stay in the second-level cache from call to call come
  // from beyond for the first tile of each block, no faster than it needs them:
  // those of the next block are fetched in time if both fit. Else they are
  // fetched further ahead than the processor does, which ends at the end of a
  // page.
  int64_t numColumns = contraction.getExtent(columns);
  int64_t numBlocks =
      plan.getNumBlocks(contraction.getExtent(contraction.rows));
  int64_t block =
      plan.getBlockRows() * contraction.getExtent(contraction.reductions);
  if (numBlocks > 1 && numColumns > plan.getNumRegisterColumns() &&
      block * 4 <= target.l2Elements) {
    plan.prefetchesNextBlock = true;
    return;
  }
  constexpr int64_t fewTiles = 32, twoPages = 2048;
  int64_t weights =
      contraction.getExtent(contraction.batches) * numBlocks * block;
  if (numColumns <= fewTiles * plan.getNumRegisterColumns() &&
      weights * 3 > target.panelElements * 8)
    plan.prefetchDistance = twoPages;
}

/// Whether `threads` threads that share `items` are busy nearly all the time.
bool isBalanced(int64_t items, int64_t threads) {
  int64_t slots = llvm::divideCeil(items, threads) * threads;
  return (slots - items) * 16 <= items;
}

/// What it takes to read data whose lines do not stay in the second-level cache
/// from beyond, at each step of each tile.
int64_t getConflictTime(const RowVectorPlan &plan,
                        const StridedContraction &contraction,
                        const ContractionTarget &target) {
  constexpr int64_t lineTime = 40;
  bool conflicts =
      llvm::any_of(contraction.reductions, [&](unsigned reduction) {
        return solver::hasConflicts(contraction.loops[reduction].extent,
                                    plan.dataStrides[reduction], target);
      });
  if (!conflicts)
    return 0;
  int64_t tiles =
      contraction.getExtent(contraction.columns) / plan.getNumRegisterColumns();
  return contraction.getExtent(contraction.batches) *
         plan.getNumBlocks(contraction.getExtent(contraction.rows)) * tiles *
         contraction.getExtent(contraction.reductions) * lineTime;
}

/// Cuts the columns into groups that begin with whole tiles, where threads or
/// the second-level cache need that.
void chooseColumnGroups(RowVectorPlan &plan,
                        const StridedContraction &contraction,
                        const ContractionTarget &target, int64_t threads) {
  int64_t numBlocks =
      plan.getNumBlocks(contraction.getExtent(contraction.rows));
  int64_t items = contraction.getExtent(contraction.batches) * numBlocks;
  int64_t outermost = contraction.loops[contraction.columns.front()].extent;
  int64_t step = contraction.columns.size() == 1   ? plan.tileColumns
                 : contraction.columns.size() == 2 ? plan.tileOuterColumns
                                                   : 1;
  // Data that several blocks of rows read from beyond the cache, and weights
  // that stay in it.
  int64_t depth = contraction.getExtent(contraction.reductions);
  int64_t read = contraction.vectorInputs.front().size /
                 contraction.getExtent(contraction.batches);
  int64_t weights = numBlocks * plan.getBlockRows() * depth;
  int64_t fits = read;
  // Guards need tiles that begin at known places, as those of whole loops do.
  size_t tileLoops = plan.tileOuterColumns > 1 ? 2 : 1;
  bool mayCut =
      contraction.guards.empty() || contraction.columns.size() > tileLoops;
  if (mayCut && numBlocks > 1 && read * 2 > target.l2Elements &&
      weights * 4 <= target.l2Elements) {
    plan.groupsOutside = true;
    fits = target.l2Elements / 4;
  }
  bool overlaps = contraction.columns.size() == 1 && outermost % step != 0;
  for (int64_t groups : listDivisors(outermost))
    if (groups <= outermost / step &&
        (overlaps || outermost % (groups * step) == 0 || groups == 1)) {
      plan.columnGroups = groups;
      if (isBalanced(items * groups, threads) && read <= fits * groups)
        break;
    }
  if (!isBalanced(items * plan.columnGroups, threads))
    plan.columnGroups = 1;
}

} // namespace

FailureOr<RowVectorPlan> kas::codegen::makeRowVectorPlan(
    const StridedContraction &contraction, const ContractionTarget &target,
    int64_t threads, CPUScheduleAttr schedule,
    function_ref<void(const Twine &)> emitReason, bool mayOverlap) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  if (contraction.vectorInputs.size() != 1 ||
      contraction.scalarInputs.size() != 1 || contraction.rows.size() != 1 ||
      contraction.reductions.empty())
    return fail("expected data and a weight with one loop of rows");
  int64_t rows = contraction.getExtent(contraction.rows);
  if (solver::getRowLaneCounts(rows, target).empty())
    return fail("expected rows that fill more than half of a vector, got " +
                Twine(rows));
  RowVectorPlan plan;
  bool isSum = chooseData(plan, contraction);
  if (!chooseTile(plan, contraction, target, schedule, mayOverlap)) {
    if (!schedule)
      return fail("expected columns that registers can hold");
    return fail("expected columns and vectors that fit " +
                Twine(target.registers) + " registers and the shape, got " +
                Twine(schedule.getColumns()) + " times " +
                Twine(schedule.getVectors()));
  }

  if (plan.borderedShape.empty())
    plan.time += getConflictTime(plan, contraction, target);
  // What is packed at each call is read once for each of its rows.
  if (!contraction.scalarInputs.front().isPrepared)
    plan.time += solver::getRowPackingTime(
        contraction.getExtent(contraction.batches) * plan.getNumBlocks(rows) *
        plan.getBlockRows() * contraction.getExtent(contraction.reductions));
  chooseColumnGroups(plan, contraction, target, threads);
  plan.reductions = contraction.reductions;
  bool isClipped = Clipping(plan, contraction).choose(plan);
  if (!isClipped && !isSum)
    return fail("expected data that is read at sums of loops");
  unrollWindow(plan, contraction);
  choosePrefetches(plan, contraction, target);
  return plan;
}
