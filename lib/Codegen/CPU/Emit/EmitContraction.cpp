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

#include "../Strategy/DirectPlan.h"
#include "../Strategy/PanelPlan.h"
#include "../Strategy/RowVectorPlan.h"
#include "ContractionTail.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"
#include <variant>

#define DEBUG_TYPE "kas-panels"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Whether tiles of `plan` compute the epilogue (`options.tail`) with the sums.
/// Panels never do: with more than one block of reductions their sums are not
/// finished when they are stored.
bool takesTail(const PanelPlan &, const StridedContraction &,
               const ContractionOptions &) {
  return false;
}
bool takesTail(const DirectPlan &plan, const StridedContraction &contraction,
               const ContractionOptions &options) {
  return options.tail &&
         options.tail->suitsDirectTiles(contraction, plan.vectorLoop);
}
bool takesTail(const RowVectorPlan &, const StridedContraction &contraction,
               const ContractionOptions &options) {
  return options.tail && options.tail->suitsRowVectors(contraction);
}

/// How a contraction is emitted.
struct ContractionChoice {
  /// The plan itself, which says what strategy it is by its type.
  std::variant<PanelPlan, DirectPlan, RowVectorPlan> plan;
  /// Estimated time, in halves of a cycle, with the loops of the tail where the
  /// tiles do not compute it.
  int64_t time;

  /// Whether the plan is one of the strategy `Plan`.
  template <typename Plan>
  bool is() const {
    return std::holds_alternative<Plan>(plan);
  }
  bool takesTail(const StridedContraction &contraction,
                 const ContractionOptions &options) const {
    return std::visit(
        [&](const auto &chosen) {
          return ::takesTail(chosen, contraction, options);
        },
        plan);
  }
};

/// Why plans do not suit: panels, direct tiles, row vectors, in this order.
/// Empty where the plan suits, or was not tried.
using PlanReasons = std::array<std::string, 3>;

} // namespace

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
      << remark::metric("bordered", !plan.borderedShape.empty())
      << remark::metric("schedule", schedule.getText())
      << remark::metric("weightsCombined", weightsCombined);
}

/// What it takes to compute the tail by loops of its own, which vectors along
/// the rows and direct tiles save: each reads and writes the second-level
/// cache, in halves of a cycle.
static int64_t getTailTime(const StridedContraction &contraction,
                           const ContractionTarget &target,
                           const ContractionOptions &options) {
  // For one vector: a load and a store that go to the second-level cache.
  constexpr int64_t vectorTime = 16;
  if (!options.tail)
    return 0;
  int64_t elements = contraction.getExtent(contraction.batches) *
                     contraction.getExtent(contraction.rows) *
                     contraction.getExtent(contraction.columns);
  // A bias is a loop that fills the output before, the elementwise operation
  // one after.
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

/// Whether tiles of vectors along the rows may compute an output twice: neither
/// they nor their tail add to what they store.
static bool mayComputeTwice(const StridedContraction &contraction,
                            const ContractionOptions &options) {
  if (!options.tail || !options.tail->suitsRowVectors(contraction))
    return !contraction.accumulates;
  return (options.tail->bias || !contraction.accumulates) &&
         !options.tail->overwritesInput();
}

/// Whether one row multiplies weights that are packed ahead.
static bool hasOneRow(const StridedContraction &contraction,
                      const ContractionOptions &options) {
  return options.prepared && contraction.rows.empty() &&
         !contraction.scalarInputs.empty() && contraction.guards.empty() &&
         contraction.hasPreparedVectors();
}

/// Whether no cache keeps these weights until the next call: what takes time is
/// where they lie.
static bool readsFromMemory(const StridedContraction &contraction,
                            const ContractionTarget &target) {
  return llvm::any_of(contraction.vectorInputs,
                      [&](const PackedAccess &access) {
                        return access.size > target.l2Elements;
                      });
}

/// The plan that takes the least time: of all strategies, or `strategy` alone
/// if there is one.
static std::optional<ContractionChoice>
choosePlan(const StridedContraction &contraction,
           const ContractionTarget &target, const ContractionOptions &options,
           std::optional<CPUStrategy> strategy, PlanReasons &reasons) {
  // All plans are compared with the same extra time, so that a faster
  // contraction that leaves the epilogue to a loop of its own may lose.
  std::optional<ContractionChoice> best;
  int64_t tailTime = getTailTime(contraction, target, options);
  // Plans need a number of threads; 8 stands for one that is not known.
  auto considerFor = [&](const StridedContraction &contraction, auto makePlan,
                         std::string &reason) {
    auto plan = makePlan(
        contraction, target, options.threads ? options.threads : 8,
        options.schedule, [&](const Twine &text) { reason = text.str(); });
    if (failed(plan))
      return;
    int64_t time = plan->time;
    if (!takesTail(*plan, contraction, options))
      time += tailTime;
    if (!best || time < best->time)
      best = ContractionChoice{*plan, time};
  };
  // As above, for the contraction as it is.
  auto consider = [&](auto makePlan, std::string &reason) {
    considerFor(contraction, makePlan, reason);
  };
  bool oneRow = hasOneRow(contraction, options);
  // Panels are read in the order of memory, other tiles in lines far apart; and
  // no other tiles are for one row of words.
  if (oneRow && (strategy ? *strategy == CPUStrategy::Panels
                          : contraction.isOfWords() ||
                                readsFromMemory(contraction, target)))
    considerFor(contraction.withOneRow(), makePanelPlan, reasons[0]);
  else if (strategy.value_or(CPUStrategy::Panels) == CPUStrategy::Panels)
    consider(makePanelPlan, reasons[0]);
  // Where that did not suit, the others are tried as for any contraction.
  if (best && oneRow)
    return best;
  if (strategy.value_or(CPUStrategy::Direct) == CPUStrategy::Direct)
    consider(makeDirectPlan, reasons[1]);
  // Where weights are packed at each call, panels and direct tiles do as well.
  if (strategy ? *strategy == CPUStrategy::RowVectors : options.prepared)
    consider(
        [&](auto &&...arguments) {
          return makeRowVectorPlan(arguments...,
                                   mayComputeTwice(contraction, options));
        },
        reasons[2]);
  return best;
}

/// As `choosePlan` by the schedule, or by the algorithm, which gives way to
/// others where it does not suit. What `readsUnpadded` rules out is no choice.
static FailureOr<ContractionChoice>
chooseContraction(const StridedContraction &contraction,
                  const ContractionTarget &target,
                  const ContractionOptions &options,
                  function_ref<void(const Twine &)> emitReason) {
  PlanReasons reasons;
  std::optional<CPUStrategy> strategy = options.schedule
                                            ? options.schedule.getStrategy()
                                            : getStrategy(options.algorithm);
  std::optional<ContractionChoice> choice =
      choosePlan(contraction, target, options, strategy, reasons);
  // An algorithm is a wish, a schedule is an order: only the former falls back
  // on all strategies. A caller that reads unpadded data has another way to go
  // on.
  if (!choice && strategy && !options.schedule && !options.readsUnpadded) {
    reasons = {};
    choice = choosePlan(contraction, target, options, std::nullopt, reasons);
  }
  if (!choice) {
    auto isGiven = [](StringRef reason) { return !reason.empty(); };
    emitReason(llvm::join(llvm::make_filter_range(reasons, isGiven), "; "));
    return failure();
  }
  // Direct tiles with one row use each element of the data for one output only,
  // so that a padded copy would be written and read once: not worth it.
  bool isReadOnce =
      choice->is<DirectPlan>() && contraction.getExtent(contraction.rows) == 1;
  // The unpadded form has no loop that fills the output before it: a bias must
  // be what the sums begin with.
  bool beginsRight = !options.tail || !options.tail->bias ||
                     choice->takesTail(contraction, options);
  if (options.readsUnpadded &&
      !(beginsRight && (choice->is<RowVectorPlan>() || isReadOnce))) {
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
                     const ContractionChoice &choice,
                     const ContractionTarget &target,
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
  FailureOr<ContractionChoice> choice = chooseContraction(
      combined ? combined->getRemainder() : contraction,
      ContractionTarget(options.target), options, [](const Twine &) {});
  if (failed(choice))
    return std::nullopt;
  return choice->time;
}

LogicalResult kas::codegen::emitContraction(
    OpBuilder &builder, Location loc, const StridedContraction &contraction,
    const ContractionOptions &options,
    function_ref<void(const Twine &)> emitReason, bool *tookTail) {
  ContractionTarget target(options.target);
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  const StridedContraction &nest =
      combined ? combined->getRemainder() : contraction;
  FailureOr<ContractionChoice> choice =
      chooseContraction(nest, target, options, emitReason);
  if (failed(choice))
    return failure();
  ContractionOptions taken = options;
  taken.threads = options.getThreads(choice->time);
  if (taken.threads != options.threads) {
    // Nor are they to be cut for several threads.
    FailureOr<ContractionChoice> alone =
        chooseContraction(nest, target, taken, emitReason);
    if (succeeded(alone))
      choice = alone;
  }
  if (!choice->takesTail(nest, options))
    taken.tail = nullptr;
  if (tookTail)
    *tookTail = taken.tail != nullptr;
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
