//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// Chooses between the two ways to emit a contraction.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/DirectPlan.h"
#include "../Strategy/PanelPlan.h"
#include "../Strategy/RowVectorPlan.h"
#include "ContractionTail.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

static std::string toString(CPUScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  return text;
}

static void remarkPacked(Location loc, const PanelPlan &plan, int64_t lanes,
                         bool weightsCombined) {
  auto schedule = CPUScheduleAttr::get(
      loc.getContext(), CPUStrategy::Panels, plan.registerRows, /*columns=*/0,
      plan.registerVectors, plan.tileColumns, plan.reductionBlock);
  remark::passed(loc, remark::RemarkOpts::name("Packed").category(panelRemarks))
      << remark::metric("columns", plan.tileColumns)
      << remark::metric("depth", plan.panelDepth)
      << remark::metric("registerRows", plan.registerRows)
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", lanes)
      << remark::metric("rowGroups", plan.rowGroups)
      << remark::metric("schedule", toString(schedule))
      << remark::metric("weightsCombined", weightsCombined);
}

static void remarkDirect(Location loc, const DirectPlan &plan,
                         bool weightsCombined) {
  auto schedule = CPUScheduleAttr::get(loc.getContext(), CPUStrategy::Direct,
                                       plan.registerRows, plan.registerColumns,
                                       plan.registerVectors,
                                       /*tile=*/0, /*depth=*/0);
  remark::passed(loc, remark::RemarkOpts::name("Direct").category(panelRemarks))
      << remark::metric("registerRows", plan.registerRows)
      << remark::metric("registerColumns", plan.registerColumns)
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", plan.lanes)
      << remark::metric("rowGroups", plan.rowGroups)
      << remark::metric("columnGroups", plan.columnGroups)
      << remark::metric("schedule", toString(schedule))
      << remark::metric("weightsCombined", weightsCombined);
}

static void remarkRowVectors(Location loc, const RowVectorPlan &plan,
                             bool weightsCombined) {
  auto schedule =
      CPUScheduleAttr::get(loc.getContext(), CPUStrategy::RowVectors,
                           /*rows=*/0, plan.getNumRegisterColumns(),
                           plan.registerVectors, /*tile=*/0,
                           /*depth=*/0);
  remark::passed(loc,
                 remark::RemarkOpts::name("RowVectors").category(panelRemarks))
      << remark::metric("registerColumns", plan.getNumRegisterColumns())
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", plan.lanes)
      << remark::metric("columnGroups", plan.columnGroups)
      << remark::metric("bordered", !plan.borderedShape.empty())
      << remark::metric("schedule", toString(schedule))
      << remark::metric("weightsCombined", weightsCombined);
}

/// What it takes to compute the tail by loops of its own, which only vectors
/// along the rows save: each reads and writes the second-level cache, in halves
/// of a cycle.
static int64_t getTailTime(const Contraction &contraction,
                           const ContractionTarget &target,
                           const ContractionOptions &options) {
  constexpr int64_t vectorTime = 16;
  if (!options.tail)
    return 0;
  int64_t elements = contraction.getExtent(contraction.batches) *
                     contraction.getExtent(contraction.rows) *
                     contraction.getExtent(contraction.columns);
  int64_t passes =
      (options.tail->bias ? 1 : 0) + (options.tail->elementwise ? 1 : 0);
  return passes * elements / target.lanes * vectorTime;
}

/// The tiles that an algorithm names, if any.
static std::optional<CPUStrategy> getStrategy(ConvolutionAlgorithm algorithm) {
  switch (algorithm) {
  case ConvolutionAlgorithm::Direct:
    return CPUStrategy::Direct;
  case ConvolutionAlgorithm::Im2col:
    return CPUStrategy::Panels;
  case ConvolutionAlgorithm::SpatialPack:
    return CPUStrategy::RowVectors;
  case ConvolutionAlgorithm::Auto:
  case ConvolutionAlgorithm::Winograd:
    return std::nullopt;
  }
  llvm_unreachable("all algorithms are above");
}

LogicalResult kas::codegen::emitContraction(
    OpBuilder &builder, Location loc, const Contraction &contraction,
    const ContractionOptions &options,
    function_ref<void(const Twine &)> emitReason, bool *tookTail) {
  ContractionTarget target(options.target);
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  const Contraction &nest = combined ? combined->getRemainder() : contraction;
  int64_t threads = options.threads ? options.threads : 8;
  std::string noPanels, noTiles, noVectors;
  CPUScheduleAttr schedule = options.schedule;
  FailureOr<PanelPlan> panels = failure();
  FailureOr<DirectPlan> direct = failure();
  FailureOr<RowVectorPlan> vectors = failure();
  std::optional<CPUStrategy> requested =
      schedule ? schedule.getStrategy() : getStrategy(options.algorithm);
  auto isAsked = [&](CPUStrategy strategy) {
    return !requested || *requested == strategy;
  };
  if (isAsked(CPUStrategy::Panels))
    panels =
        makePanelPlan(nest, target, threads, schedule,
                      [&](const Twine &reason) { noPanels = reason.str(); });
  if (isAsked(CPUStrategy::Direct))
    direct =
        makeDirectPlan(nest, target, threads, schedule,
                       [&](const Twine &reason) { noTiles = reason.str(); });
  // Where weights are packed at each call, panels and direct tiles do as well.
  if (requested ? *requested == CPUStrategy::RowVectors : options.prepared)
    vectors = makeRowVectorPlan(
        nest, target, threads, schedule,
        [&](const Twine &reason) { noVectors = reason.str(); });
  if (failed(panels) && failed(direct) && failed(vectors)) {
    if (requested && !schedule && !options.readsUnpadded) {
      ContractionOptions any = options;
      any.algorithm = ConvolutionAlgorithm::Auto;
      return emitContraction(builder, loc, contraction, any, emitReason,
                             tookTail);
    }
    SmallVector<StringRef> reasons;
    for (const std::string *reason : {&noPanels, &noTiles, &noVectors})
      if (!reason->empty())
        reasons.push_back(*reason);
    emitReason(llvm::join(reasons, "; "));
    return failure();
  }
  bool isDirect =
      succeeded(direct) && (failed(panels) || direct->time < panels->time);
  int64_t time = isDirect            ? direct->time
                 : succeeded(panels) ? panels->time
                                     : std::numeric_limits<int64_t>::max();
  if (succeeded(vectors) && time != std::numeric_limits<int64_t>::max())
    time += getTailTime(nest, target, options);
  bool isRowVectors = succeeded(vectors) && vectors->time < time;
  bool isReadOnce = isDirect && nest.getExtent(nest.rows) == 1 &&
                    !(options.tail && options.tail->bias);
  if (options.readsUnpadded && !isRowVectors && !isReadOnce) {
    emitReason("other tiles take less time" +
               (noVectors.empty() ? "" : "; " + noVectors));
    return failure();
  }
  if (tookTail)
    *tookTail = isRowVectors && options.tail;
  if (isRowVectors)
    remarkRowVectors(loc, *vectors, combined.has_value());
  else if (isDirect)
    remarkDirect(loc, *direct, combined.has_value());
  else
    remarkPacked(loc, *panels, target.lanes, combined.has_value());
  if (combined)
    combined->emit(builder, loc);
  if (isRowVectors)
    emitRowVectors(builder, loc, nest, *vectors, target, options);
  else if (isDirect)
    emitDirect(builder, loc, nest, *direct, target, options);
  else
    emitPanels(builder, loc, nest, *panels, target, options);
  if (combined && options.deallocate)
    memref::DeallocOp::create(builder, loc, combined->getBuffer());
  return success();
}
