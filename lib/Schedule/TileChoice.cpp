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

using namespace kas::schedule;

namespace {

/// The plans of one nest.
class Chooser {
public:
  Chooser(const TileNest &nest, const TileTarget &target,
          const TileOptions &options, TileReasons &reasons)
      : nest(nest), target(target), options(options), reasons(reasons) {}

  std::optional<TileChoice> run();

private:
  bool mayBe(TileStrategy strategy) const {
    return options.strategy.value_or(strategy) == strategy;
  }
  auto setReason(TileStrategy strategy) {
    return [this, strategy](const llvm::Twine &text) {
      reasons[static_cast<unsigned>(strategy)] = text.str();
    };
  }
  const TileNumbers *getGiven() const {
    return options.given ? &*options.given : nullptr;
  }
  template <typename Plan>
  static std::optional<TileChoice> add(std::optional<Plan> plan,
                                       int64_t epilogueTime) {
    if (!plan)
      return std::nullopt;
    int64_t time = plan->time + epilogueTime;
    return TileChoice{std::move(*plan), time};
  }

  bool hasOneRow() const;
  bool readsFromMemory() const;
  bool mayBeDirect(const std::optional<TileChoice> &other) const;
  std::optional<TileChoice> planPanels(bool hasOneRow);

  const TileNest &nest;
  const TileTarget &target;
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

std::optional<TileChoice> Chooser::planPanels(bool hasOneRow) {
  // Panels are read in the order of memory, other tiles in lines far apart; and
  // no other tiles are for one row of words.
  if (hasOneRow &&
      (options.strategy ? mayBe(TileStrategy::Panels)
                        : nest.isOfVNNIGroups || readsFromMemory()))
    return add(makePanelPlan(nest.withOneRow(), target, options.threads,
                             getGiven(), setReason(TileStrategy::Panels)),
               options.epilogueTime);
  if (!mayBe(TileStrategy::Panels))
    return std::nullopt;
  return add(makePanelPlan(nest, target, options.threads, getGiven(),
                           setReason(TileStrategy::Panels)),
             options.epilogueTime);
}

/// Direct tiles take no less than their products.
bool Chooser::mayBeDirect(const std::optional<TileChoice> &other) const {
  if (!other)
    return true;
  int64_t points = nest.getExtent(nest.reductions) *
                   nest.getExtent(nest.columns) * nest.getExtent(nest.rows) *
                   nest.getExtent(nest.batches);
  return points / target.lanes * target.getOperationTime(target.lanes) <=
         other->time;
}

std::optional<TileChoice> Chooser::run() {
  bool oneRow = hasOneRow();
  std::optional<TileChoice> best = planPanels(oneRow);
  if (best && oneRow)
    return best;
  auto isBetter = [](const std::optional<TileChoice> &choice,
                     const std::optional<TileChoice> &other) {
    return choice && (!other || choice->time < other->time);
  };
  std::optional<TileChoice> rowVectors;
  // Where weights are packed at each call, panels and direct tiles do as well.
  if (options.strategy ? mayBe(TileStrategy::RowVectors) : options.prepacked)
    rowVectors =
        add(makeRowVectorPlan(nest, target, options.threads, getGiven(),
                              setReason(TileStrategy::RowVectors),
                              options.mayComputeTwice),
            options.rowVectorsTakeEpilogue ? 0 : options.epilogueTime);
  if (mayBe(TileStrategy::Direct) &&
      mayBeDirect(isBetter(rowVectors, best) ? rowVectors : best)) {
    std::optional<TileChoice> direct =
        add(makeDirectPlan(nest, target, options.threads, getGiven(),
                           setReason(TileStrategy::Direct)),
            options.directTakesEpilogue ? 0 : options.epilogueTime);
    if (isBetter(direct, best))
      best = std::move(direct);
  }
  return isBetter(rowVectors, best) ? rowVectors : best;
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
