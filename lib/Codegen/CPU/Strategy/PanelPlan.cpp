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

#include "PanelPlan.h"
#include "kas/Solver/TilePlan.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// The extents of the columns and how the output steps with them.
struct Columns {
  explicit Columns(const StridedContraction &contraction) {
    for (unsigned dim : contraction.columns) {
      extents.push_back(contraction.loops[dim].extent);
      strides.push_back(contraction.output.strides[dim]);
    }
  }

  SmallVector<int64_t> extents, strides;
};

void setColumns(PanelPlan &plan, const solver::PanelColumns &cut,
                const ContractionTarget &target) {
  plan.blockedColumn = cut.blocked;
  plan.columnBlock = cut.block;
  plan.tileColumns = cut.tile;
  plan.paddedColumns = llvm::alignTo(cut.tile, target.lanes);
}

/// What is packed ahead is read in the order of memory by tiles of as many
/// columns as registers hold for many rows.
solver::PanelColumns chooseColumns(const Columns &columns, bool isPrepared,
                                   const ContractionTarget &target) {
  constexpr int64_t registerVectors = 2;
  int64_t few = registerVectors * target.lanes;
  solver::PanelColumns cut =
      solver::cutPanelColumns(columns.extents, columns.strides, few);
  if (isPrepared && cut.tile == few)
    return cut;
  return solver::choosePanelColumns(columns.extents, columns.strides, target);
}

/// With the numbers that `schedule` gives. False if none suit.
bool chooseRegisters(PanelPlan &plan, int64_t rows,
                     const ContractionTarget &target,
                     CPUScheduleAttr schedule) {
  // Four registers hold columns and a row. Panels that are copied at each call
  // were measured with a quarter of them left.
  int64_t limit =
      schedule || plan.isPrepared ? target.registers - 4 : target.accumulators;
  auto isLeft = [](int64_t given, int64_t number) {
    return given == 0 || given == number;
  };
  int64_t maxRows = plan.isPrepared ? 14 : 8, maxVectors = 4;
  if (schedule)
    maxRows = maxVectors = limit;
  std::optional<solver::PanelRegisters> registers =
      solver::choosePanelRegisters(
          plan.tileColumns, rows, target, limit, maxRows, maxVectors,
          [&](int64_t rows, int64_t vectors) {
            return !schedule || (isLeft(schedule.getRows(), rows) &&
                                 isLeft(schedule.getVectors(), vectors));
          });
  if (!registers)
    return false;
  plan.registerRows = registers->rows;
  plan.registerVectors = registers->vectors;
  plan.loopedVectors = registers->loopedVectors;
  plan.stepTime = registers->time;
  return true;
}

/// The time by the same model as that of direct tiles, in halves of a cycle.
int64_t estimate(const StridedContraction &contraction, const PanelPlan &plan,
                 const ContractionTarget &target) {
  bool vectors = target.hasMaskedLoads
                     ? contraction.hasSteps({1, 2})
                     : contraction.guards.empty() && contraction.hasSteps({1});
  // Parts of lines as short as a window take as long as their elements.
  vectors &= contraction.loops[contraction.columns.back()].extent > 3;
  solver::PanelCopy copy = plan.isPrepared ? solver::PanelCopy::None
                           : !vectors      ? solver::PanelCopy::Elements
                           : contraction.hasSteps({1})
                               ? solver::PanelCopy::Vectors
                               : solver::PanelCopy::StridedVectors;
  int64_t tiles = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(contraction.columns) / plan.tileColumns;
  return solver::getPanelTime(
      tiles, plan.tileColumns, contraction.getExtent(contraction.rows),
      contraction.getExtent(contraction.reductions), copy, target);
}

} // namespace

FailureOr<PanelPlan>
kas::codegen::makePanelPlan(const StridedContraction &contraction,
                            const ContractionTarget &target, int64_t threads,
                            CPUScheduleAttr schedule,
                            function_ref<void(const Twine &)> emitReason) {
  PanelPlan plan;
  plan.isPrepared = contraction.hasPreparedVectors();
  if (contraction.reductions.empty() || contraction.rows.empty()) {
    emitReason(contraction.reductions.empty()
                   ? "its reductions have one iteration"
                   : "no input could be reused for several rows");
    return failure();
  }
  Columns columns(contraction);
  setColumns(plan, chooseColumns(columns, plan.isPrepared, target), target);
  if (plan.tileColumns * 2 < target.lanes) {
    emitReason("expected columns of the output that fill half a vector of " +
               Twine(target.lanes) + ", got " + Twine(plan.tileColumns));
    return failure();
  }
  if (schedule && schedule.getTile()) {
    setColumns(plan,
               solver::cutPanelColumns(columns.extents, columns.strides,
                                       schedule.getTile()),
               target);
    if (plan.tileColumns != schedule.getTile()) {
      emitReason("expected a tile that divides the columns, such as " +
                 Twine(plan.tileColumns) + ", got " +
                 Twine(schedule.getTile()));
      return failure();
    }
  }
  int64_t depth = contraction.getExtent(contraction.reductions);
  int64_t outer = contraction.loops[contraction.reductions.front()].extent;
  int64_t inner = depth / outer;
  plan.reductionBlock = solver::getLargestDivisor(
      outer, std::max<int64_t>(1, target.panelElements /
                                      (plan.paddedColumns * inner)));
  if (schedule && schedule.getDepth()) {
    plan.reductionBlock = schedule.getDepth();
    if (outer % plan.reductionBlock != 0) {
      emitReason("expected a depth that divides the " + Twine(outer) +
                 " iterations of the outermost reduction, got " +
                 Twine(plan.reductionBlock));
      return failure();
    }
  }
  plan.panelDepth = plan.reductionBlock * inner;
  int64_t panelElements = plan.panelDepth * plan.paddedColumns;
  if (panelElements > 4 * target.panelElements) {
    emitReason("expected panels of at most " + Twine(4 * target.panelElements) +
               " elements, got " + Twine(panelElements));
    return failure();
  }

  unsigned rowLoop = contraction.rows.back();
  int64_t rows = contraction.loops[rowLoop].extent;
  int64_t items = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(contraction.columns) / plan.tileColumns;
  // Every group packs again: not more groups than needed, nor small ones.
  while (items * plan.rowGroups < threads && rows % (plan.rowGroups * 2) == 0 &&
         rows / plan.rowGroups >= 32)
    plan.rowGroups *= 2;
  if (!chooseRegisters(plan, rows / plan.rowGroups, target, schedule)) {
    emitReason("expected rows and vectors that fit " + Twine(target.registers) +
               " registers and the shape, got " + Twine(schedule.getRows()) +
               " times " + Twine(schedule.getVectors()));
    return failure();
  }
  plan.time = estimate(contraction, plan, target);
  return plan;
}
