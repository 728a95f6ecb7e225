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
using namespace mlir;

namespace {

int64_t largestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = std::min(value, limit); divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

/// The least time by a simple model: an instruction per product or load, and
/// at least the latency of a sum.
void chooseRegisters(PanelPlan &plan, int64_t rows, int64_t vectors,
                     const ContractionTarget &target) {
  constexpr int64_t latency = 8;
  int64_t best = std::numeric_limits<int64_t>::max();
  auto time = [&](int64_t r, int64_t v) {
    return r && v ? std::max({r * v, latency, 2 * (r + v)}) + 1 : 0;
  };
  for (int64_t v = 1; v <= std::min<int64_t>(4, vectors); ++v)
    for (int64_t r = 1; r <= std::min<int64_t>(12, rows); ++r) {
      if (r * v > target.accumulators)
        continue;
      int64_t total = (rows / r) * (vectors / v) * time(r, v) +
                      (rows / r) * time(r, vectors % v) +
                      (vectors / v) * time(rows % r, v) +
                      time(rows % r, vectors % v);
      if (total < best) {
        best = total;
        plan.registerRows = r;
        plan.registerVectors = v;
      }
    }
}

/// Cuts the columns into tiles of at most `maxColumns` that lie together in the
/// output. False if none is large enough to pay.
bool chooseColumns(PanelPlan &plan, const Contraction &contraction,
                   const ContractionTarget &target) {
  constexpr int64_t maxColumns = 128;
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
  plan.paddedColumns = llvm::alignTo(inner, target.lanes);
  return plan.tileColumns * 2 >= target.lanes;
}

/// The time by the same model as that of direct tiles, in halves of a cycle.
int64_t estimate(const Contraction &contraction, const PanelPlan &plan,
                 const ContractionTarget &target) {
  // Guards and strides make the copies slow.
  bool plain =
      contraction.guards.empty() &&
      llvm::all_of(contraction.vectorInputs, [&](const auto &access) {
        return getCoefficient(access.address, contraction.columns.back()) == 1;
      });
  int64_t copyTime = plain ? 8 : 24, operationTime = target.lanes > 8 ? 2 : 1;
  int64_t products =
      contraction.getExtent(contraction.rows) * operationTime * 17 / 16;
  int64_t tiles = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(contraction.columns) / plan.tileColumns;
  int64_t depth = contraction.getExtent(contraction.reductions);
  return tiles * depth * (plan.paddedColumns / target.lanes) *
         (products + copyTime);
}

} // namespace

FailureOr<PanelPlan>
kas::makePanelPlan(const Contraction &contraction,
                   const ContractionTarget &target, int64_t threads,
                   function_ref<void(const Twine &)> because) {
  PanelPlan plan;
  if (contraction.reductions.empty() || contraction.rows.empty()) {
    because(contraction.reductions.empty()
                ? "its reductions have one iteration"
                : "no input could be reused for several rows");
    return failure();
  }
  if (!chooseColumns(plan, contraction, target)) {
    because("expected columns of the output that fill half a vector of " +
            Twine(target.lanes) + ", got " + Twine(plan.tileColumns));
    return failure();
  }
  int64_t depth = contraction.getExtent(contraction.reductions);
  int64_t outer = contraction.loops[contraction.reductions.front()].extent;
  int64_t inner = depth / outer;
  plan.reductionBlock = largestDivisor(
      outer, std::max<int64_t>(1, target.panelElements /
                                      (plan.paddedColumns * inner)));
  plan.panelDepth = plan.reductionBlock * inner;
  int64_t panelElements = plan.panelDepth * plan.paddedColumns;
  if (panelElements > 4 * target.panelElements) {
    because("expected panels of at most " + Twine(4 * target.panelElements) +
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
  chooseRegisters(plan, rows / plan.rowGroups,
                  plan.paddedColumns / target.lanes, target);
  plan.time = estimate(contraction, plan, target);
  return plan;
}
