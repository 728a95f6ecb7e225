//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses between the three ways to emit a contraction by the estimated time of
// their plans, and emits it: panels (PanelPlan.cpp), direct tiles
// (DirectPlan.cpp), or vectors along the rows (RowVectorPlan.cpp). Every
// strategy makes its plan; the shortest time wins, unless a schedule or an
// algorithm names one. docs/internals/code-generation.md, "The cost model", has
// the units.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/StridedContraction.h"
#include "ContractionEpilogue.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
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
      << remark::metric("columnGroups", plan.columnGroups)
      << remark::metric("padded", !plan.paddedShape.empty())
      << remark::metric("schedule", schedule.getText())
      << remark::metric("weightsCombined", weightsCombined);
}

/// What it takes to compute the epilogue by loops of its own, which vectors
/// along the rows and direct tiles save: each reads and writes the second-level
/// cache, in halves of a cycle.
static int64_t getEpilogueTime(const StridedContraction &contraction,
                               const ContractionTarget &target,
                               const ContractionOptions &options) {
  // For one vector: a load and a store that go to the second-level cache.
  constexpr int64_t vectorTime = 16;
  if (!options.epilogue)
    return 0;
  int64_t elements = contraction.getExtent(contraction.batches) *
                     contraction.getExtent(contraction.rows) *
                     contraction.getExtent(contraction.columns);
  // A bias is a loop that fills the output before, the elementwise operation
  // one after.
  int64_t passes = (options.epilogue->bias ? 1 : 0) +
                   (options.epilogue->elementwise ? 1 : 0);
  return passes * elements / target.lanes * vectorTime;
}

/// Whether tiles of vectors along the rows may compute an output twice: neither
/// they nor their epilogue add to what they store.
static bool mayComputeTwice(const StridedContraction &contraction,
                            const ContractionOptions &options) {
  if (!options.epilogue || !options.epilogue->suitsRowVectors(contraction))
    return !contraction.accumulates;
  return (options.epilogue->bias || !contraction.accumulates) &&
         !options.epilogue->overwritesInput();
}

/// What tiles are chosen for, with what follows the contraction.
static schedule::TileOptions
getTileOptions(const StridedContraction &contraction,
               const ContractionTarget &target,
               const ContractionOptions &options) {
  schedule::TileOptions result = options.getTileOptions();
  result.mayComputeTwice = mayComputeTwice(contraction, options);
  result.epilogueTime = getEpilogueTime(contraction, target, options);
  result.directTakesEpilogue =
      options.epilogue && options.epilogue->suitsDirectTiles(
                              contraction, contraction.columns.back());
  result.rowVectorsTakeEpilogue =
      options.epilogue && options.epilogue->suitsRowVectors(contraction);
  return result;
}

/// Whether the tiles of `choice` compute the epilogue (`options.epilogue`) with
/// the sums. Panels never do: with more than one block of reductions their sums
/// are not finished when they are stored.
static bool takesEpilogue(const TileChoice &choice,
                          const schedule::TileOptions &options) {
  return (options.directTakesEpilogue &&
          choice.getStrategy() == schedule::TileStrategy::Direct) ||
         (options.rowVectorsTakeEpilogue &&
          choice.getStrategy() == schedule::TileStrategy::RowVectors);
}

/// As `chooseTiles`. What `readsUnpadded` rules out is no choice.
static FailureOr<TileChoice>
chooseContraction(const StridedContraction &contraction,
                  const ContractionTarget &target,
                  const ContractionOptions &options,
                  function_ref<void(const Twine &)> emitReason) {
  schedule::TileReasons reasons;
  schedule::TileOptions tileOptions =
      getTileOptions(contraction, target, options);
  std::optional<TileChoice> choice =
      chooseTiles(contraction.getNest(), target, tileOptions, reasons);
  if (!choice) {
    auto isGiven = [](StringRef reason) { return !reason.empty(); };
    emitReason(llvm::join(llvm::make_filter_range(reasons, isGiven), "; "));
    return failure();
  }
  // Direct tiles with one row use each element of the data for one output only,
  // so that a padded copy would be written and read once: not worth it.
  bool isReadOnce = choice->getStrategy() == schedule::TileStrategy::Direct &&
                    contraction.getExtent(contraction.rows) == 1;
  // The unpadded form has no loop that fills the output before it: a bias must
  // be what the sums begin with.
  bool beginsRight = !options.epilogue || !options.epilogue->bias ||
                     takesEpilogue(*choice, tileOptions);
  if (options.readsUnpadded &&
      !(beginsRight &&
        (choice->getStrategy() == schedule::TileStrategy::RowVectors ||
         isReadOnce))) {
    const std::string &noVectors = reasons[2];
    emitReason("other tiles take less time" +
               (noVectors.empty() ? "" : "; " + noVectors));
    return failure();
  }
  return *choice;
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

std::optional<int64_t>
kas::codegen::getContractionTime(const StridedContraction &contraction,
                                 const ContractionOptions &options) {
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  FailureOr<TileChoice> choice = chooseContraction(
      combined ? combined->getRemainder() : contraction,
      ContractionTarget(options.target), options, [](const Twine &) {});
  if (failed(choice))
    return std::nullopt;
  return choice->time;
}

LogicalResult kas::codegen::emitContraction(
    OpBuilder &builder, Location loc, const StridedContraction &contraction,
    const ContractionOptions &options,
    function_ref<void(const Twine &)> emitReason, bool *tookEpilogue) {
  ContractionTarget target(options.target);
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  const StridedContraction &nest =
      combined ? combined->getRemainder() : contraction;
  FailureOr<TileChoice> choice =
      chooseContraction(nest, target, options, emitReason);
  if (failed(choice))
    return failure();
  ContractionOptions taken = options;
  taken.threads = options.getThreads(choice->time);
  if (taken.threads != options.threads) {
    // Nor are they to be cut for several threads.
    FailureOr<TileChoice> alone =
        chooseContraction(nest, target, taken, emitReason);
    if (succeeded(alone))
      choice = alone;
  }
  if (!takesEpilogue(*choice, getTileOptions(nest, target, options)))
    taken.epilogue = nullptr;
  if (tookEpilogue)
    *tookEpilogue = taken.epilogue != nullptr;
  std::visit(
      [&](const auto &plan) {
        remarkPlan(loc, plan, target.lanes, combined.has_value());
      },
      choice->plan);
  if (combined)
    combined->emit(builder, loc);
  emitPlan(builder, loc, nest, *choice, target, taken);
  if (combined && options.deallocate)
    memref::DeallocOp::create(builder, loc, combined->getBuffer());
  return success();
}
