//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans direct tiles: sums in registers while the inputs are read in place. For
// operators that use each element too rarely to pay for packing, such as
// depthwise convolutions.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/DirectPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace kas;
using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::Twine;

namespace {

// All times are in halves of a cycle of a core that begins two arithmetic
// operations and two loads per cycle; those on wider vectors take twice as
// long.

constexpr int64_t latency = 8, tileTime = 12;
constexpr int64_t cacheLineElements = 16;

/// The best of all ways to cut one nest.
class Planner {
public:
  Planner(const TileNest &nest, const TileTarget &target,
          const TileNumbers *given)
      : nest(nest), target(target), given(given),
        hasStride(!nest.hasStrides({1})) {
    // Measured on a Sapphire Rapids; the others on a Zen 4, which halves
    // vectors of 512 bits.
    if (target.hasWideArithmetic()) {
      productTime = 17;
      permutationTime = 3;
      loopTime = 2;
    }
    best.time = std::numeric_limits<int64_t>::max();
    best.vectorLoop = nest.columns.back();
    best.lanes = target.getLanes(extent(best.vectorLoop));
    cacheLineTime = getCacheLineTime();
    // Two instructions for a product leave time for both: eight 1x1 layers on a
    // Zen 5 took no more than products and loads.
    if (nest.isOfInt16)
      loopTime = cacheLineTime = 1;
  }

  /// A time of the largest number says that there is none.
  DirectPlan run() {
    tryColumnLoop(std::nullopt);
    for (unsigned loop : ArrayRef(nest.columns).drop_back())
      if (isLinear(loop))
        tryColumnLoop(loop);
    return best;
  }

private:
  static constexpr int64_t maxUnrolled = 8;

  int64_t extent(unsigned loop) const { return nest.loops[loop].extent; }
  int64_t getPlaces(const DirectPlan &plan) const {
    return plan.imageRowLoop ? extent(*plan.imageRowLoop) : 1;
  }
  int64_t operationTime(int64_t lanes) const {
    return target.getOperationTime(lanes);
  }
  /// Most loads cross the end of a cache line.
  int64_t loadTime(int64_t lanes) const { return 2 * operationTime(lanes); }

  /// Whether `loop` may be unrolled: each step adds a constant everywhere.
  bool isLinear(unsigned loop) const {
    return llvm::all_of(nest.vectorInputs,
                        [&](const IndexedTensor &access) {
                          return access.address.getCoefficient(loop);
                        }) &&
           llvm::all_of(nest.guards, [&](const Guard &guard) {
             return guard.expr.getCoefficient(loop);
           });
  }

  /// Whether steps of `reduction` reach what other steps of `column` read, or
  /// lie between.
  bool sharesData(unsigned reduction, unsigned column) const {
    return isLinear(reduction) &&
           llvm::all_of(nest.vectorInputs, [&](const IndexedTensor &access) {
             int64_t a = std::abs(*access.address.getCoefficient(reduction));
             int64_t b = std::abs(*access.address.getCoefficient(column));
             return a && b && (a % b == 0 || b % a == 0) &&
                    a < b * extent(column) && b <= a * extent(reduction);
           });
  }

  /// Whether steps of `reduction` move along the vectors by a few elements; if
  /// these have stride 2, whether all steps can take them from the same loads.
  bool movesAlongImageRows(unsigned reduction) const {
    // As many as a vector of four holds after those of even or odd numbers.
    constexpr int64_t maxSharedMove = 5;
    if (nest.segments.size() != 1 || extent(reduction) < 2 ||
        extent(reduction) > maxUnrolled || !isLinear(reduction))
      return false;
    for (const IndexExpr &address : nest.segments.front().addresses) {
      int64_t step = *address.getCoefficient(reduction);
      int64_t move = step * (extent(reduction) - 1);
      if (step <= 0 || move >= best.lanes)
        return false;
      if (*address.getCoefficient(best.vectorLoop) == 1)
        continue;
      // Guards of the lines must move with them.
      if (move > maxSharedMove ||
          !llvm::all_of(nest.segments.front().guards, [&](const Guard &guard) {
            int64_t lanes = *guard.expr.getCoefficient(best.vectorLoop);
            int64_t steps = *guard.expr.getCoefficient(reduction);
            return lanes == 2 ? steps == step : lanes == 0 && steps == 0;
          }))
        return false;
    }
    return true;
  }

  void tryColumnLoop(std::optional<unsigned> columnLoop) {
    DirectPlan plan = best;
    plan.columnLoop = columnLoop;
    plan.looped = nest.reductions;
    plan.unrolled.clear();
    tryImageRowLoops(plan);
    if (columnLoop)
      for (unsigned loop : nest.reductions)
        if (extent(loop) <= maxUnrolled && sharesData(loop, *columnLoop)) {
          plan.unrolled = {loop};
          plan.looped = getOthers(nest.reductions, loop);
          tryImageRowLoops(plan);
        }
  }

  static SmallVector<unsigned> getOthers(ArrayRef<unsigned> loops,
                                         unsigned loop) {
    return llvm::filter_to_vector(
        loops, [&](unsigned other) { return other != loop; });
  }

  void tryImageRowLoops(DirectPlan plan) {
    plan.imageRowLoop = std::nullopt;
    plan.sharesImageRows = false;
    tryColumns(plan);
    SmallVector<unsigned> looped = plan.looped;
    for (unsigned loop : looped)
      if (movesAlongImageRows(loop)) {
        plan.imageRowLoop = loop;
        plan.sharesImageRows = hasStride;
        plan.looped = getOthers(looped, loop);
        tryColumns(plan);
      }
  }

  void tryColumns(DirectPlan plan) {
    constexpr int64_t maxColumns = 28;
    std::optional<unsigned> columnLoop = plan.columnLoop;
    int64_t limit = columnLoop ? std::min(maxColumns, extent(*columnLoop)) : 1;
    SmallVector<int64_t, 28> loads = countLoads(plan, limit);
    for (int64_t columns = 1; columns <= limit; ++columns)
      if (isAllowed(columnLoop, columns) &&
          (!given || isLeft(given->columns, columns))) {
        plan.registerColumns = columns;
        tryRows(plan, loads[columns - 1]);
      }
  }

  /// Whether the given, if any, leaves `number` to choose.
  static bool isLeft(int64_t wanted, int64_t number) {
    return wanted == 0 || wanted == number;
  }

  /// Blocks that overlap would be added twice.
  bool isAllowed(std::optional<unsigned> loop, int64_t block) const {
    return !nest.accumulates || !loop || extent(*loop) % block == 0;
  }

  /// Vectors that are loaded at all unrolled steps for the first register
  /// column, the first two, and so on up to `columns`.
  SmallVector<int64_t, 28> countLoads(const DirectPlan &plan,
                                      int64_t columns) const {
    int64_t steps = nest.getExtent(plan.unrolled);
    SmallVector<std::pair<int64_t, int64_t>, 2> strides;
    for (const IndexedTensor &access : nest.vectorInputs) {
      auto &[column, step] = strides.emplace_back(0, 0);
      if (plan.columnLoop)
        column = *access.address.getCoefficient(*plan.columnLoop);
      if (!plan.unrolled.empty())
        step = *access.address.getCoefficient(plan.unrolled.front());
    }
    bool areShared =
        llvm::all_of(strides, [](auto stride) { return stride.first == 0; });
    // Whether `step` of a column reads what `other` has read, of it or of one
    // before it. With unrolled steps, all inputs step with the columns.
    auto isRead = [&](int64_t column, int64_t step, int64_t other) {
      auto [ofColumn, ofStep] = strides.front();
      int64_t back = ofStep * (other - step) / ofColumn;
      return back >= (other < step ? 0 : 1) && back <= column &&
             llvm::all_of(strides, [&](auto stride) {
               return stride.first * back == stride.second * (other - step);
             });
    };
    SmallVector<int64_t, 28> loads;
    int64_t sum = 0;
    for (int64_t column : llvm::seq(columns)) {
      if (steps == 1)
        sum += column == 0 || !areShared;
      else
        for (int64_t step : llvm::seq(steps))
          sum += llvm::none_of(llvm::seq(steps), [&](int64_t other) {
            return isRead(column, step, other);
          });
      loads.push_back(sum);
    }
    return loads;
  }

  /// What all register tiles over the same loops have in common.
  struct Common {
    /// Vectors that are loaded (`countLoads`), places of a line, steps of a
    /// reduction in the tile and of those around it.
    int64_t loads, places, steps, looped;
    /// How many times other lines of the data are read.
    int64_t imageRows;
    /// Of weights that the first-level cache does not keep, for all rows.
    int64_t weightTime = 0;
    /// Of the loops around all tiles.
    int64_t repeats;
  };

  Common getCommon(const DirectPlan &plan, int64_t loads) const {
    Common common;
    common.loads = loads;
    common.places = getPlaces(plan);
    common.steps = nest.getExtent(plan.unrolled) * common.places;
    common.looped = nest.getExtent(plan.looped);
    common.imageRows = countImageRows(plan);
    int64_t weights =
        nest.getExtent(nest.reductions) * nest.getExtent(nest.rows);
    if (!nest.scalarInputs.empty() && weights > target.l1Elements / 2)
      common.weightTime = weights / cacheLineElements * cacheLineTime;
    common.repeats = nest.getExtent(nest.batches) *
                     nest.getExtent(nest.columns) / extent(plan.vectorLoop) *
                     nest.getExtent(nest.rows);
    if (plan.columnLoop)
      common.repeats /= extent(*plan.columnLoop);
    if (plan.rowLoop)
      common.repeats /= extent(*plan.rowLoop);
    return common;
  }

  void tryRows(DirectPlan &plan, int64_t loads) {
    constexpr int64_t maxRows = 12, maxVectors = 4, maxProducts = 256;
    plan.rowLoop = std::nullopt;
    if (!nest.rows.empty())
      plan.rowLoop = nest.rows.back();
    int64_t rowLimit =
        plan.rowLoop ? std::min(maxRows, extent(*plan.rowLoop)) : 1;
    int64_t vectorLimit = std::min<int64_t>(
        maxVectors, llvm::divideCeil(extent(plan.vectorLoop), plan.lanes));
    Common common = getCommon(plan, loads);
    int64_t steps = nest.getExtent(plan.unrolled);
    for (int64_t rows = 1; rows <= rowLimit; ++rows)
      for (int64_t vectors = 1; vectors <= vectorLimit; ++vectors) {
        int64_t sums = rows * plan.registerColumns * vectors;
        if (sums > target.registers)
          break;
        int64_t shared = plan.sharesImageRows ? common.places : 1;
        int64_t inside = shared * loads * vectors + 1;
        int64_t outside = shared * (steps * rows + vectors);
        // The elements of a line before they are parted, and which of them go
        // where.
        int64_t parted = plan.sharesImageRows ? 6 : 0;
        // Masked loads are no operands of FMAs: one is under way beside those
        // that are counted. Without mask registers masks take vectors.
        int64_t masks = nest.guards.empty()       ? 0
                        : target.hasMaskRegisters ? 1
                                                  : 2;
        if (sums + std::min(inside, outside) + parted + masks +
                    target.productRegisters >
                target.registers ||
            (sums > 1 && sums * common.steps > maxProducts) ||
            !isAllowed(plan.rowLoop, rows) ||
            (given &&
             !(isLeft(given->rows, rows) && isLeft(given->vectors, vectors))))
          continue;
        plan.registerRows = rows;
        plan.registerVectors = vectors;
        plan.columnsOutside = outside < inside;
        plan.time = estimate(plan, common);
        if (plan.time < best.time)
          best = plan;
      }
  }

  /// The time of one register tile with `vectors` vectors of `lanes`.
  int64_t getTileTime(const DirectPlan &plan, const Common &common,
                      int64_t vectors, int64_t lanes) const {
    if (vectors == 0)
      return 0;
    int64_t places = common.places, steps = common.steps;
    int64_t sums = plan.registerRows * plan.registerColumns * vectors;
    // Every other element of two vectors takes a permutation for each place.
    int64_t vectorsRead = common.loads * vectors * nest.vectorInputs.size() *
                          nest.segments.size();
    int64_t operations =
        sums * steps + (hasStride ? permutationTime * vectorsRead * places : 0);
    int64_t products = operations * operationTime(lanes) * productTime / 16;
    int64_t load = loadTime(lanes) + (nest.guards.empty() ? 0 : 1);
    int64_t perLine = places;
    if (hasStride) {
      int64_t pair = 2 * lanes <= target.lanes ? 1 : 2;
      perLine = plan.sharesImageRows ? pair + (places > 2 ? 1 : 0) : pair;
    }
    int64_t reads = vectorsRead * perLine * load +
                    plan.registerRows * steps * nest.scalarInputs.size();
    int64_t step = std::max({products, reads, latency * steps}) + loopTime;
    return step * common.looped + sums * 2 * operationTime(lanes) + tileTime;
  }

  /// Of a line of the data, as far as it is not read while products are
  /// computed.
  int64_t getCacheLineTime() const {
    if (!target.hasWideArithmetic())
      return 4;
    int64_t read = 0;
    for (const IndexedTensor &access : nest.vectorInputs) {
      read += access.size;
      for (unsigned loop : nest.reductions)
        if (std::optional<int64_t> step = access.address.getCoefficient(loop);
            step && hasConflicts(extent(loop), *step, target))
          return 40;
    }
    read /= nest.getExtent(nest.batches);
    // From the second-level cache, or from beyond.
    return read <= target.l2Elements ? 1 : 12;
  }

  /// How many times other lines of the data are read in a tile.
  int64_t countImageRows(const DirectPlan &plan) const {
    int64_t width = extent(plan.vectorLoop), imageRows = 1;
    for (unsigned loop : plan.looped) {
      std::optional<int64_t> step =
          nest.vectorInputs.front().address.getCoefficient(loop);
      if (!step || std::abs(*step) * extent(loop) >= width)
        imageRows *= extent(loop);
    }
    return imageRows;
  }

  int64_t estimate(const DirectPlan &plan, const Common &common) const {
    int64_t width = extent(plan.vectorLoop);
    int64_t blockWidth = plan.lanes * plan.registerVectors;
    int64_t rest = width % blockWidth;
    int64_t restLanes = rest % plan.lanes;
    int64_t time =
        width / blockWidth *
            getTileTime(plan, common, plan.registerVectors, plan.lanes) +
        getTileTime(plan, common, rest / plan.lanes, plan.lanes);
    if (restLanes)
      time += getTileTime(plan, common, 1, target.getLanes(restLanes)) -
              (rest / plan.lanes ? tileTime : 0);

    // What does not fit the first-level cache is read from the second one each
    // time.
    int64_t rowBlocks = 1, columnBlocks = 1;
    if (plan.rowLoop)
      rowBlocks = llvm::divideCeil(extent(*plan.rowLoop), plan.registerRows);
    if (plan.columnLoop)
      columnBlocks =
          llvm::divideCeil(extent(*plan.columnLoop), plan.registerColumns);
    int64_t data = common.loads * width * common.imageRows;
    if (data > target.l1Elements / 2)
      time += data / cacheLineElements * cacheLineTime;
    return (time * rowBlocks + common.weightTime) * columnBlocks *
           common.repeats;
  }

  const TileNest &nest;
  const TileTarget &target;
  const TileNumbers *given;
  /// Some input is read in steps of more than one element along the lines.
  bool hasStride;
  /// Of a product, in sixteenths; of a permutation, which there is one unit for
  /// on some cores; and of a loop's iteration.
  int64_t productTime = 19, permutationTime = 1, loopTime = 4;
  int64_t cacheLineTime;
  DirectPlan best;
};

/// In how many groups of whole blocks, or of one block and more if these may
/// overlap, a loop is cut so that `items` items become enough for `threads`.
int64_t getGroups(int64_t extent, int64_t block, bool mayOverlap, int64_t items,
                  int64_t threads) {
  int64_t groups = 1;
  while (items * groups < threads && extent % (groups * 2) == 0 &&
         extent / (groups * 2) >= block &&
         (mayOverlap || extent / (groups * 2) % block == 0))
    groups *= 2;
  return groups;
}

} // namespace

std::optional<DirectPlan> kas::schedule::makeDirectPlan(
    const TileNest &nest, const TileTarget &target, int64_t threads,
    const TileNumbers *given,
    llvm::function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return std::nullopt;
  };
  unsigned vectorLoop = nest.columns.back();
  bool hasStride = !nest.hasStrides({1});
  if (hasStride && !nest.hasStrides({1, 2}))
    return fail("an input is not contiguous along the output's last dimension");
  if (hasStride && (!target.hasMaskedLoads || nest.segments.size() > 1))
    return fail("an input of stride 2 needs masked loads and no shift");
  if ((!nest.guards.empty() || nest.segments.size() > 1) &&
      !target.hasMaskedLoads)
    return fail("the target has no masked loads for points that do not exist");
  int64_t width = nest.loops[vectorLoop].extent;
  if (width * 2 < std::min<int64_t>(8, target.lanes))
    return fail("expected an output whose last dimension fills half a vector "
                "of " +
                Twine(std::min<int64_t>(8, target.lanes)) + ", got " +
                Twine(width));
  DirectPlan plan = Planner(nest, target, given).run();
  if (plan.time == std::numeric_limits<int64_t>::max()) {
    TileNumbers numbers = given ? *given : TileNumbers();
    return fail("expected rows, columns and vectors that fit " +
                Twine(target.registers) + " registers and the shape, got " +
                Twine(numbers.rows) + " times " + Twine(numbers.columns) +
                " times " + Twine(numbers.vectors));
  }
  int64_t items = nest.getExtent(nest.batches) * nest.getExtent(nest.columns) /
                  width * nest.getExtent(nest.rows);
  if (plan.columnLoop)
    items /= nest.loops[*plan.columnLoop].extent;
  if (plan.rowLoop) {
    int64_t extent = nest.loops[*plan.rowLoop].extent;
    items /= extent;
    plan.rowGroups =
        getGroups(extent, plan.registerRows, !nest.accumulates, items, threads);
  }
  if (plan.columnLoop)
    plan.columnGroups =
        getGroups(nest.loops[*plan.columnLoop].extent, plan.registerColumns,
                  !nest.accumulates, items * plan.rowGroups, threads);
  return plan;
}
