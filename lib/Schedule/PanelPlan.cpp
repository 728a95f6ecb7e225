//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans packed panels: the columns of a tile, the blocks of the outermost
// reduction, and the rows and vectors in registers.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/PanelPlan.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::schedule;
using llvm::SmallVector;
using llvm::Twine;

namespace {

/// The extents of the columns and how the output steps with them.
struct Columns {
  explicit Columns(const TileNest &nest) {
    for (unsigned dim : nest.columns) {
      extents.push_back(nest.loops[dim].extent);
      strides.push_back(nest.output.strides[dim]);
    }
  }

  SmallVector<int64_t> extents, strides;
};

void setColumns(PanelPlan &plan, const PanelColumns &cut,
                const TileTarget &target) {
  plan.blockedColumn = cut.blocked;
  plan.columnBlock = cut.block;
  plan.tileColumns = cut.tile;
  plan.paddedColumns = llvm::alignTo(cut.tile, target.lanes);
}

/// What is packed ahead is read in the order of memory by tiles of as many
/// columns as registers hold for many rows.
PanelColumns chooseColumns(const Columns &columns, bool isPrepacked,
                           const TileTarget &target) {
  constexpr int64_t registerVectors = 2;
  int64_t few = registerVectors * target.lanes;
  PanelColumns cut = cutPanelColumns(columns.extents, columns.strides, few);
  if (isPrepacked && cut.tile == few)
    return cut;
  return choosePanelColumns(columns.extents, columns.strides, target);
}

/// With the numbers that `given` gives. False if none suit.
bool chooseRegisters(PanelPlan &plan, const TileNest &nest, int64_t rows,
                     const TileTarget &target, const TileNumbers *given) {
  // Four registers hold columns and a row. Panels that are copied at each call
  // were measured with a quarter of them left.
  int64_t limit =
      given || plan.isPrepacked ? target.registers - 4 : target.accumulators;
  auto isLeft = [](int64_t wanted, int64_t number) {
    return wanted == 0 || wanted == number;
  };
  int64_t maxRows = plan.isPrepacked ? 14 : 8, maxVectors = 4;
  if (given) {
    maxRows = maxVectors = limit;
  } else if (nest.isOfVNNIGroups && !nest.isOfInt16 && !target.hasByteDots) {
    // Two vectors and a row in two registers each, and what they are masked
    // with.
    maxVectors = 2;
    limit = std::max<int64_t>(1, target.registers - 3 * maxVectors - 1);
  }
  std::optional<PanelRegisters> registers =
      choosePanelRegisters(plan.tileColumns, rows, target, limit, maxRows,
                           maxVectors, [&](int64_t rows, int64_t vectors) {
                             return !given || (isLeft(given->rows, rows) &&
                                               isLeft(given->vectors, vectors));
                           });
  if (!registers)
    return false;
  plan.registerRows = registers->rows;
  plan.registerVectors = registers->vectors;
  plan.loopedVectors = registers->loopedVectors;
  plan.stepTime = registers->time;
  return true;
}

PanelCopy chooseCopy(const TileNest &nest, const PanelPlan &plan,
                     const TileTarget &target) {
  bool vectors = target.hasMaskedLoads
                     ? nest.hasStrides({1, 2})
                     : nest.guards.empty() && nest.hasStrides({1});
  // Parts of lines as short as a window take as long as their elements.
  vectors &= nest.loops[nest.columns.back()].extent > 3;
  if (plan.isPrepacked)
    return PanelCopy::None;
  if (!vectors)
    return PanelCopy::Elements;
  return nest.hasStrides({1}) ? PanelCopy::Vectors : PanelCopy::StridedVectors;
}

/// What panels take beyond `getPanelTime` without registers of masks, as
/// measured.
int64_t getTimeWithoutMasks(const TileNest &nest, const PanelPlan &plan,
                            int64_t items, const TileTarget &target) {
  constexpr int64_t crossingTime = 32, weightTime = 1;
  if (target.hasMaskRegisters || plan.copy == PanelCopy::None)
    return 0;
  // No step fetches weights ahead.
  int64_t weights = 0, time = 0;
  for (const StridedTensor &input : nest.scalarInputs)
    weights += input.size;
  if (weights * 2 > target.l2Elements)
    time += weights * weightTime;
  // Vectors that begin in one line of an image and end in the next one, with
  // padding in between, are put together of masked loads: most of those of
  // short lines. Those of a stride take as long in every line.
  int64_t line = nest.loops[nest.columns.back()].extent;
  bool isStrided = plan.copy == PanelCopy::StridedVectors;
  if (!nest.guards.empty() && line % target.lanes != 0 &&
      (isStrided || line < 2 * target.lanes))
    time += items * plan.paddedColumns / target.lanes *
            nest.getExtent(nest.reductions) * crossingTime *
            (isStrided ? 2 : 1);
  return time;
}

} // namespace

std::optional<PanelPlan> kas::schedule::makePanelPlan(
    const TileNest &nest, const TileTarget &target, int64_t threads,
    const TileNumbers *given,
    llvm::function_ref<void(const Twine &)> emitReason) {
  PanelPlan plan;
  plan.isPrepacked = nest.hasPrepackedVectors();
  if (nest.reductions.empty() || nest.rows.empty()) {
    emitReason(nest.reductions.empty()
                   ? "its reductions have one iteration"
                   : "no input could be reused for several rows");
    return std::nullopt;
  }
  Columns columns(nest);
  setColumns(plan, chooseColumns(columns, plan.isPrepacked, target), target);
  if (plan.tileColumns * 2 < target.lanes) {
    emitReason("expected columns of the output that fill half a vector of " +
               Twine(target.lanes) + ", got " + Twine(plan.tileColumns));
    return std::nullopt;
  }
  if (given && given->tile) {
    setColumns(plan,
               cutPanelColumns(columns.extents, columns.strides, given->tile),
               target);
    if (plan.tileColumns != given->tile) {
      emitReason("expected a tile that divides the columns, such as " +
                 Twine(plan.tileColumns) + ", got " + Twine(given->tile));
      return std::nullopt;
    }
  }
  int64_t depth = nest.getExtent(nest.reductions);
  int64_t outer = nest.loops[nest.reductions.front()].extent;
  int64_t inner = depth / outer;
  plan.reductionBlock = getLargestDivisor(
      outer, std::max<int64_t>(1, target.panelElements /
                                      (plan.paddedColumns * inner)));
  if (given && given->depth) {
    plan.reductionBlock = given->depth;
    if (outer % plan.reductionBlock != 0) {
      emitReason("expected a depth that divides the " + Twine(outer) +
                 " iterations of the outermost reduction, got " +
                 Twine(plan.reductionBlock));
      return std::nullopt;
    }
  }
  plan.panelDepth = plan.reductionBlock * inner;
  int64_t panelElements = plan.panelDepth * plan.paddedColumns;
  if (panelElements > 4 * target.panelElements) {
    emitReason("expected panels of at most " + Twine(4 * target.panelElements) +
               " elements, got " + Twine(panelElements));
    return std::nullopt;
  }

  unsigned rowLoop = nest.rows.back();
  int64_t rows = nest.loops[rowLoop].extent;
  int64_t items = nest.getExtent(nest.batches) * nest.getExtent(nest.columns) /
                  plan.tileColumns;
  // Every group packs again: not more groups than needed, nor small ones.
  while (items * plan.rowGroups < threads && rows % (plan.rowGroups * 2) == 0 &&
         rows / plan.rowGroups >= 32)
    plan.rowGroups *= 2;
  if (!chooseRegisters(plan, nest, rows / plan.rowGroups, target, given)) {
    emitReason("expected rows and vectors that fit " + Twine(target.registers) +
               " registers and the shape, got " + Twine(given->rows) +
               " times " + Twine(given->vectors));
    return std::nullopt;
  }
  plan.copy = chooseCopy(nest, plan, target);
  // By the same model as that of direct tiles, in halves of a cycle.
  int64_t allRows = nest.getExtent(nest.rows);
  plan.time = getPanelTime(items, plan.tileColumns, allRows, depth,
                           allRows / rows * plan.rowGroups * plan.stepTime,
                           plan.copy, target) +
              getTimeWithoutMasks(nest, plan, items, target);
  return plan;
}
