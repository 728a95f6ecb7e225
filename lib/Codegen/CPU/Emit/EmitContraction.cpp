//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits a contraction as it was chosen: panels (PanelEmitter.h), direct tiles
// (DirectEmitter.h), or vectors along the rows (RowVectorEmitter.h), and says
// so by a remark.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "../Strategy/ContractionChoice.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-panels"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;
using schedule::TileChoice;

/// Says by a remark how the contraction was cut. The metric `schedule` is an
/// attribute that requests the same cut, to begin with when tuning by hand;
/// numbers that a strategy does not have are 0 in it.
static void remarkPlan(Location loc, const PanelPlan &plan, int64_t lanes,
                       bool weightsCombined) {
  ScheduleAttrInterface schedule = CPUScheduleAttr::get(
      loc.getContext(), CPUStrategy::Panels, plan.registerRows, /*columns=*/0,
      plan.registerVectors, plan.tileColumns, plan.reductionBlock);
  LDBG() << loc << ": " << schedule;
  remark::passed(loc, remark::RemarkOpts::name("Packed").category(panelRemarks))
      << remark::metric("columns", plan.tileColumns)
      << remark::metric("depth", plan.panelDepth)
      << remark::metric("registerRows", plan.registerRows)
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", lanes)
      << remark::metric("rowGroups", plan.rowGroups)
      << remark::metric("schedule", schedule.getText())
      << remark::metric("weightsCombined", weightsCombined);
}

static void remarkPlan(Location loc, const DirectPlan &plan, int64_t /*lanes*/,
                       bool weightsCombined) {
  ScheduleAttrInterface schedule = CPUScheduleAttr::get(
      loc.getContext(), CPUStrategy::Direct, plan.registerRows,
      plan.registerColumns, plan.registerVectors,
      /*tile=*/0, /*depth=*/0);
  LDBG() << loc << ": " << schedule;
  remark::passed(loc, remark::RemarkOpts::name("Direct").category(panelRemarks))
      << remark::metric("registerRows", plan.registerRows)
      << remark::metric("registerColumns", plan.registerColumns)
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", plan.lanes)
      << remark::metric("rowGroups", plan.rowGroups)
      << remark::metric("columnGroups", plan.columnGroups)
      << remark::metric("schedule", schedule.getText())
      << remark::metric("weightsCombined", weightsCombined);
}

static void remarkPlan(Location loc, const RowVectorPlan &plan,
                       int64_t /*lanes*/, bool weightsCombined) {
  ScheduleAttrInterface schedule =
      CPUScheduleAttr::get(loc.getContext(), CPUStrategy::RowVectors,
                           /*rows=*/0, plan.getNumRegisterColumns(),
                           plan.registerVectors, /*tile=*/0,
                           /*depth=*/0);
  LDBG() << loc << ": " << schedule;
  remark::passed(loc,
                 remark::RemarkOpts::name("RowVectors").category(panelRemarks))
      << remark::metric("registerColumns", plan.getNumRegisterColumns())
      << remark::metric("registerVectors", plan.registerVectors)
      << remark::metric("lanes", plan.lanes)
      << remark::metric("balanced", plan.isBalanced)
      << remark::metric("stepParts", plan.stepParts)
      << remark::metric("columnGroups", plan.columnGroups)
      << remark::metric("padded", !plan.paddedShape.empty())
      << remark::metric("schedule", schedule.getText())
      << remark::metric("weightsCombined", weightsCombined);
}

/// Emits what was chosen. Panels need a loop of rows; the choice may have been
/// made for the form that has one.
static void emitPlan(OpBuilder &builder, Location loc,
                     const StridedContraction &contraction,
                     const TileChoice &choice, const ContractionTarget &target,
                     const ContractionOptions &options) {
  if (auto *panels = std::get_if<PanelPlan>(&choice.plan))
    emitPanels(builder, loc,
               contraction.rows.empty() ? contraction.withOneRow()
                                        : contraction,
               *panels, target, options);
  else if (auto *direct = std::get_if<DirectPlan>(&choice.plan))
    emitDirect(builder, loc, contraction, *direct, target, options);
  else
    emitRowVectors(builder, loc, contraction,
                   std::get<RowVectorPlan>(choice.plan), target, options);
}

LogicalResult kas::codegen::emitContraction(
    OpBuilder &builder, Location loc, const StridedContraction &contraction,
    const ContractionOptions &options,
    function_ref<void(const Twine &)> emitReason, bool *tookEpilogue) {
  ContractionTarget target(options.target);
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  const StridedContraction &nest =
      combined ? combined->getRemainder() : contraction;
  FailureOr<ContractionChoice> choice =
      chooseContraction(nest, target, options, emitReason);
  if (failed(choice))
    return failure();
  ContractionOptions taken = options;
  taken.threads = choice->threads;
  if (!choice->takesEpilogue)
    taken.epilogue = nullptr;
  if (tookEpilogue)
    *tookEpilogue = taken.epilogue != nullptr;
  std::visit(
      [&](const auto &plan) {
        remarkPlan(loc, plan, target.lanes, combined.has_value());
      },
      choice->tiles.plan);
  if (combined)
    emitCombinedInputs(builder, loc, *combined);
  emitPlan(builder, loc, nest, choice->tiles, target, taken);
  if (combined && options.deallocate)
    memref::DeallocOp::create(builder, loc, combined->getBuffer());
  return success();
}
