//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans the three kinds of tiles for a contraction and takes the cheapest.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/TileChoice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas::schedule;

namespace {

/// The plans of one nest.
class Chooser {
public:
  Chooser(const TileNest &nest, const TileTarget &target,
          const TileOptions &options, TileReasons &reasons)
      : nest(nest), target(target.forProductsOf(nest)), options(options),
        reasons(reasons) {}

  std::optional<TileChoice> run();

private:
  bool mayBe(TileStrategy strategy) const {
    return options.strategy.value_or(strategy) == strategy;
  }
  auto setReason(TileStrategy strategy) const {
    return [this, strategy](const llvm::Twine &text) {
      reasons.set(strategy, text);
    };
  }
  const TileNumbers *getGiven() const {
    return options.given ? &*options.given : nullptr;
  }
  template <typename Plan>
  static std::optional<TileChoice> getChoice(std::optional<Plan> plan,
                                             int64_t epilogueTime) {
    if (!plan)
      return std::nullopt;
    int64_t time = plan->time + epilogueTime;
    return TileChoice{std::move(*plan), time};
  }

  /// A kind of tiles: when it is tried where `best` is the best of those before
  /// it, and its plan.
  struct Strategy {
    bool (Chooser::*isTried)(const std::optional<TileChoice> &best) const;
    std::optional<TileChoice> (Chooser::*plan)() const;
  };
  static const Strategy strategies[];

  bool readsFromMemory() const;
  bool hasOneRow() const;
  std::optional<TileChoice> planOneRow() const;
  std::optional<TileChoice> planPanels(const TileNest &rows) const;

  bool triesPanels(const std::optional<TileChoice> &best) const;
  std::optional<TileChoice> planPanels() const { return planPanels(nest); }
  bool triesRowVectors(const std::optional<TileChoice> &best) const;
  std::optional<TileChoice> planRowVectors() const;
  bool triesDirect(const std::optional<TileChoice> &best) const;
  std::optional<TileChoice> planDirect() const;

  const TileNest &nest;
  TileTarget target;
  const TileOptions &options;
  TileReasons &reasons;
};

} // namespace

/// Whether one row multiplies weights that are packed ahead.
bool Chooser::hasOneRow() const {
  return options.prepacked && nest.rows.empty() && !nest.scalarInputs.empty() &&
         nest.guards.empty() && nest.hasPrepackedVectors();
}

/// Whether no cache keeps these weights until the next call: what takes time is
/// where they lie.
bool Chooser::readsFromMemory() const {
  return llvm::any_of(nest.vectorInputs, [&](const IndexedTensor &input) {
    return input.size > target.l2Elements;
  });
}

std::optional<TileChoice> Chooser::planPanels(const TileNest &rows) const {
  return getChoice(makePanelPlan(rows, target, options.threads, getGiven(),
                                 setReason(TileStrategy::Panels)),
                   options.epilogueTime);
}

/// Panels for the form of the nest that has a loop of one row. They are read in
/// the order of memory, other tiles in rows far apart; and no other tiles are
/// for one row of VNNI groups.
std::optional<TileChoice> Chooser::planOneRow() const {
  bool isTried = options.strategy ? mayBe(TileStrategy::Panels)
                                  : nest.isOfVNNIGroups || readsFromMemory();
  if (!isTried || !hasOneRow())
    return std::nullopt;
  return planPanels(nest.withOneRow());
}

bool Chooser::triesPanels(const std::optional<TileChoice> & /*best*/) const {
  // Without a plan for one row there is none without rows.
  return mayBe(TileStrategy::Panels) &&
         reasons.get(TileStrategy::Panels).empty();
}

/// Where weights are packed at each call, panels and direct tiles do as well
/// for sums of few products, whose transposed stores take longer than
/// estimated.
bool Chooser::triesRowVectors(
    const std::optional<TileChoice> & /*best*/) const {
  constexpr int64_t minDepth = 64;
  return options.strategy
             ? mayBe(TileStrategy::RowVectors)
             : options.prepacked || nest.getExtent(nest.reductions) >= minDepth;
}

std::optional<TileChoice> Chooser::planRowVectors() const {
  return getChoice(makeRowVectorPlan(nest, target, options.threads, getGiven(),
                                     setReason(TileStrategy::RowVectors),
                                     options.mayComputeTwice),
                   options.rowVectorsTakeEpilogue ? 0 : options.epilogueTime);
}

/// Direct tiles take no less than their products.
bool Chooser::triesDirect(const std::optional<TileChoice> &best) const {
  if (!mayBe(TileStrategy::Direct))
    return false;
  if (!best)
    return true;
  int64_t points = nest.getExtent(nest.reductions) *
                   nest.getExtent(nest.columns) * nest.getExtent(nest.rows) *
                   nest.getExtent(nest.batches);
  return points / target.lanes * target.getOperationTime(target.lanes) <=
         best->time;
}

std::optional<TileChoice> Chooser::planDirect() const {
  return getChoice(makeDirectPlan(nest, target, options.threads, getGiven(),
                                  setReason(TileStrategy::Direct)),
                   options.directTakesEpilogue ? 0 : options.epilogueTime);
}

/// Direct tiles at last: what the others take may rule them out unplanned.
const Chooser::Strategy Chooser::strategies[] = {
    {&Chooser::triesPanels, &Chooser::planPanels},
    {&Chooser::triesRowVectors, &Chooser::planRowVectors},
    {&Chooser::triesDirect, &Chooser::planDirect}};

std::optional<TileChoice> Chooser::run() {
  if (std::optional<TileChoice> panels = planOneRow())
    return panels;
  std::optional<TileChoice> best;
  // Of those that take the same time, the one that comes first by its name.
  auto getKey = [](const TileChoice &choice) {
    return std::pair(choice.time, choice.getStrategy());
  };
  for (const Strategy &strategy : strategies) {
    if (!(this->*strategy.isTried)(best))
      continue;
    std::optional<TileChoice> choice = (this->*strategy.plan)();
    if (choice && (!best || getKey(*choice) < getKey(*best)))
      best = std::move(choice);
  }
  return best;
}

std::string TileReasons::getText() const {
  auto isGiven = [](const std::string &reason) { return !reason.empty(); };
  return llvm::join(llvm::make_filter_range(reasons, isGiven), "; ");
}

std::optional<TileChoice> kas::schedule::chooseTiles(const TileNest &nest,
                                                     const TileTarget &target,
                                                     const TileOptions &options,
                                                     TileReasons &reasons) {
  std::optional<TileChoice> choice =
      Chooser(nest, target, options, reasons).run();
  // An algorithm is a wish, a schedule is an order: only the former falls back
  // on all strategies.
  if (choice || !options.strategy || !options.givesWay)
    return choice;
  reasons = {};
  TileOptions any = options;
  any.strategy = std::nullopt;
  return Chooser(nest, target, any, reasons).run();
}

std::optional<TileChoice>
kas::schedule::chooseTiles(const LoopNest &source, const TileTarget &target,
                           const TileOptions &options) {
  std::optional<TileNest> nest =
      TileNest::get(source, [](const llvm::Twine &) {});
  if (!nest)
    return std::nullopt;
  if (std::optional<CombinedInputs> combined = CombinedInputs::get(*nest))
    *nest = combined->getRemainder(*nest);
  TileReasons reasons;
  return chooseTiles(*nest, target, options, reasons);
}
