//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelPlan.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

int64_t largestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = std::min(value, limit); divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

/// Halves of a cycle for one step of all sums: their products, or the loads of
/// all columns and rows, or the latency of a sum. `narrow` vectors take half
/// the time of the others.
int64_t getStepTime(int64_t rows, int64_t vectors, int64_t narrow) {
  constexpr int64_t latency = 16;
  if (!rows || vectors + narrow == 0)
    return 0;
  return std::max({rows * (2 * vectors + narrow), latency,
                   2 * (rows + vectors + narrow)}) +
         2;
}

/// The least time by a simple model, with the numbers that `schedule` gives.
/// False if none of them suit.
bool chooseRegisters(PanelPlan &plan, int64_t rows,
                     const ContractionTarget &target,
                     CPUScheduleAttr schedule) {
  // Some registers hold columns and a row.
  int64_t limit = schedule ? target.registers - 4 : target.accumulators;
  auto isLeft = [](int64_t given, int64_t number) {
    return given == 0 || given == number;
  };
  int64_t whole = plan.tileColumns / target.lanes;
  int64_t tail = plan.tileColumns % target.lanes;
  int64_t isNarrow = tail && target.getLanes(tail) <= 8 && target.lanes > 8;
  int64_t isWide = tail && !isNarrow;
  int64_t best = std::numeric_limits<int64_t>::max();
  int64_t maxVectors = schedule ? limit : 4, maxRows = schedule ? limit : 8;
  for (int64_t v = 1; v <= maxVectors; ++v)
    for (int64_t r = 1; r <= std::min(maxRows, rows); ++r) {
      if (r * v > limit || (v > 1 && v > whole + isWide) ||
          (schedule && !(isLeft(schedule.getRows(), r) &&
                         isLeft(schedule.getVectors(), v))))
        continue;
      int64_t looped = whole / v * v;
      // The tail alone would wait for each of its sums.
      if (tail && looped == whole && looped && r * (v + 1) <= limit)
        looped -= v;
      auto time = [&](int64_t r) {
        return looped / v * getStepTime(r, v, 0) +
               getStepTime(r, whole - looped + isWide, isNarrow);
      };
      int64_t total = rows / r * time(r) + time(rows % r);
      if (total < best) {
        best = total;
        plan.registerRows = r;
        plan.registerVectors = v;
        plan.loopedVectors = looped;
        plan.stepTime = total;
      }
    }
  return best != std::numeric_limits<int64_t>::max();
}

/// Cuts the columns into tiles of at most `maxColumns` that lie together in the
/// output.
void cutColumns(PanelPlan &plan, const StridedContraction &contraction,
                int64_t maxColumns) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t inner = 1;
  plan.blockedColumn = columns.size() - 1;
  for (unsigned position = columns.size(); position-- > 0;) {
    unsigned dim = columns[position];
    int64_t extent = contraction.loops[dim].extent;
    // Only what is contiguous in the output can be stored as vectors.
    if (contraction.output.strides[dim] != inner)
      break;
    int64_t block = largestDivisor(extent, maxColumns / inner);
    plan.blockedColumn = position;
    plan.columnBlock = block;
    inner *= block;
    if (block != extent)
      break;
  }
  plan.tileColumns = inner;
}

/// Lanes that the vectors of a tile have for each of its columns, in percent;
/// those of a narrow one count half.
int64_t getLaneShare(const PanelPlan &plan, const ContractionTarget &target) {
  int64_t whole = plan.tileColumns / target.lanes * target.lanes;
  int64_t tail = target.getLanes(plan.tileColumns - whole);
  if (plan.tileColumns == whole)
    tail = 0;
  else if (target.lanes > 8 && tail <= 8)
    tail = target.lanes / 2;
  return (whole + tail) * 100 / plan.tileColumns;
}

/// Cuts the columns into tiles. False if none is large enough to pay.
bool chooseColumns(PanelPlan &plan, const StridedContraction &contraction,
                   const ContractionTarget &target) {
  constexpr int64_t maxColumns = 128;
  cutColumns(plan, contraction, maxColumns);
  // Larger ones, if that wastes fewer lanes.
  PanelPlan larger = plan;
  cutColumns(larger, contraction, 2 * maxColumns);
  if (getLaneShare(larger, target) + 2 < getLaneShare(plan, target))
    plan = larger;
  plan.paddedColumns = llvm::alignTo(plan.tileColumns, target.lanes);
  return plan.tileColumns * 2 >= target.lanes;
}

/// The time by the same model as that of direct tiles, in halves of a cycle.
int64_t estimate(const StridedContraction &contraction, const PanelPlan &plan,
                 const ContractionTarget &target) {
  // Copies of vectors, or element by element.
  bool vectors = target.hasMaskedLoads
                     ? contraction.hasSteps({1, 2})
                     : contraction.guards.empty() && contraction.hasSteps({1});
  int64_t copyTime = vectors ? 6 : 2 * target.lanes;
  // Every other element of two vectors.
  if (vectors && !contraction.hasSteps({1}))
    copyTime = 24;
  // Wide arithmetic speeds up products, and not what reads and writes.
  int64_t operationTime = target.getOperationTime(target.lanes);
  if (target.lanes > 8 && operationTime == 1)
    copyTime *= 2;
  int64_t products =
      contraction.getExtent(contraction.rows) * operationTime * 17 / 16;
  int64_t tiles = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(contraction.columns) / plan.tileColumns;
  int64_t depth = contraction.getExtent(contraction.reductions);
  return tiles * depth * plan.tileColumns * getLaneShare(plan, target) / 100 *
         (products + copyTime) / target.lanes;
}

} // namespace

FailureOr<PanelPlan>
kas::codegen::makePanelPlan(const StridedContraction &contraction,
                            const ContractionTarget &target, int64_t threads,
                            CPUScheduleAttr schedule,
                            function_ref<void(const Twine &)> emitReason) {
  PanelPlan plan;
  if (contraction.reductions.empty() || contraction.rows.empty()) {
    emitReason(contraction.reductions.empty()
                   ? "its reductions have one iteration"
                   : "no input could be reused for several rows");
    return failure();
  }
  if (!chooseColumns(plan, contraction, target)) {
    emitReason("expected columns of the output that fill half a vector of " +
               Twine(target.lanes) + ", got " + Twine(plan.tileColumns));
    return failure();
  }
  if (schedule && schedule.getTile()) {
    cutColumns(plan, contraction, schedule.getTile());
    plan.paddedColumns = llvm::alignTo(plan.tileColumns, target.lanes);
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
  plan.reductionBlock = largestDivisor(
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
