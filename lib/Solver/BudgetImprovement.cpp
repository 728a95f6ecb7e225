//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Good points of budget problems: in proportion to the channels, then improved
// by single moves and pairs of them. A local search that starts branch and
// bound (BudgetSearch.cpp) with a high value, or reaches the bound by itself
// (docs/reference/tensor-level.md, section 5, step 3). A point has one position
// per variable and layer (an item); it always keeps the upper budgets and
// limits.
//
//===----------------------------------------------------------------------===//

#include "BudgetSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <numeric>

using namespace kas;
using namespace kas::solver;

/// The largest point in proportion to the channels of the layers that is within
/// the upper budgets.
BudgetSearch::Point BudgetSearch::getProportional() const {
  int64_t leastChannels = INT64_MAX;
  for (const BudgetProblem::Layer &layer : problem.layers)
    leastChannels = std::min(leastChannels, layer.channels);
  // Factors are fixed-point numbers with 8 fractional bits.
  constexpr int scale = 8;
  // For each item the largest value of its domain up to `factor * channels /
  // least channels`, at least that of `low`.
  auto pointAt = [&](int64_t factor) {
    Point point;
    for (unsigned layer : llvm::seq(model.numLayers))
      for (unsigned variable : llvm::seq(model.numVariables)) {
        const BudgetModel::Domain &domain = model.getDomain(layer, variable);
        __int128 wanted =
            __int128(factor) * problem.layers[layer].channels / leastChannels;
        unsigned item = itemOf(layer, variable);
        point.push_back(findLast(low[item], high[item], [&](int64_t index) {
          return __int128(domain.getValue(index)) << scale <= wanted;
        }));
      }
    return point;
  };
  // Monotone: a larger factor makes no value smaller, nor any cost. Factor 0 is
  // the point `low`, which fits after `tighten`.
  return pointAt(findLast(0, problem.maxValue << scale, [&](int64_t factor) {
    return isWithinUpper(pointAt(factor));
  }));
}

/// Makes `point`, which is within the upper budgets, the best one if it reaches
/// the lower ones, too, and has more of the objective.
void BudgetSearch::offer(const Point &point, llvm::ArrayRef<int64_t> totals) {
  for (auto [total, lower] : llvm::zip(totals, range.lower))
    if (total < lower)
      return;
  if (totals[objective] > bestValue) {
    bestValue = totals[objective];
    best = point;
  }
}

/// Raises the one item by as much as fits that gains most. Changes `point` and
/// `totals`; false if no item gains anything. Of equal gains the first item.
bool BudgetSearch::improveByStep(Point &point,
                                 llvm::MutableArrayRef<int64_t> totals) const {
  int64_t mostGain = 0;
  unsigned bestItem = 0;
  int64_t bestIndex = 0;
  Point trial = point;
  for (unsigned layer : llvm::seq(model.numLayers)) {
    llvm::MutableArrayRef<int64_t> indices = layerOf(trial, layer);
    llvm::SmallVector<int64_t, 2> before;
    for (unsigned cost : llvm::seq(model.numCosts))
      before.push_back(model.evaluateCost(layer, cost, indices));
    for (unsigned variable : llvm::seq(model.numVariables)) {
      unsigned item = itemOf(layer, variable);
      int64_t index =
          // Costs are monotone in each item, so that what fits is an interval.
          findLastNear(point[item], high[item], [&](int64_t candidate) {
            indices[variable] = candidate;
            return model.isWithinLimits(layer, indices) &&
                   llvm::all_of(llvm::seq(model.numCosts), [&](unsigned cost) {
                     return model.evaluateCost(layer, cost, indices) -
                                before[cost] <=
                            range.upper[cost] - totals[cost];
                   });
          });
      indices[variable] = index;
      int64_t gain =
          model.evaluateCost(layer, objective, indices) - before[objective];
      indices[variable] = point[item];
      if (gain > mostGain) {
        mostGain = gain;
        bestItem = item;
        bestIndex = index;
      }
    }
  }
  if (mostGain == 0)
    return false;
  point[bestItem] = bestIndex;
  for (unsigned cost : llvm::seq(model.numCosts))
    totals[cost] = getTotal(point, cost);
  return true;
}

namespace {
/// A change of one item, and what it changes in the objective.
struct Move {
  int64_t gain = 0;
  unsigned item = 0;
  int64_t index = 0;
};
} // namespace

/// Makes the two moves in different layers that together gain most. Moves of
/// few steps are enough: what is left of the budget is small by now. One item
/// gains and another loses where that frees more of a budget than it costs of
/// the objective. For n moves it takes n log n steps, not n^2: moves are sorted
/// by their gain, and for each first move only the best partners are tried.
bool BudgetSearch::improveByPair(Point &point,
                                 llvm::MutableArrayRef<int64_t> totals) const {
  // Positions in a domain, up and down.
  constexpr int64_t reach = 4;
  llvm::SmallVector<Move, 0> moves;
  Point trial = point;
  for (unsigned layer : llvm::seq(model.numLayers)) {
    llvm::MutableArrayRef<int64_t> indices = layerOf(trial, layer);
    int64_t before = model.evaluateCost(layer, objective, indices);
    for (unsigned variable : llvm::seq(model.numVariables)) {
      unsigned item = itemOf(layer, variable);
      for (int64_t index = std::max(low[item], point[item] - reach),
                   last = std::min(high[item], point[item] + reach);
           index <= last; ++index) {
        if (index == point[item])
          continue;
        indices[variable] = index;
        if (!model.isWithinLimits(layer, indices))
          break;
        moves.push_back({model.evaluateCost(layer, objective, indices) - before,
                         item, index});
      }
      indices[variable] = point[item];
    }
  }
  llvm::sort(moves, [](const Move &a, const Move &b) {
    return std::tie(a.gain, a.item, a.index) <
           std::tie(b.gain, b.item, b.index);
  });

  // What the objective may still grow by.
  int64_t room = std::min(range.upper[objective], bound) - totals[objective];
  int64_t mostGain = 0;
  const Move *chosen[2] = {nullptr, nullptr};
  Point pair = point;
  // Whether both moves together keep the budgets of all other costs; that of
  // the objective is `room`.
  auto fits = [&](const Move &first, const Move &second) {
    pair[first.item] = first.index;
    pair[second.item] = second.index;
    bool result = llvm::all_of(llvm::seq(model.numCosts), [&](unsigned cost) {
      if (cost == objective)
        return true;
      int64_t change = 0;
      for (const Move *move : {&first, &second}) {
        unsigned layer = move->item / model.numVariables;
        change += model.evaluateCost(layer, cost, layerOf(pair, layer)) -
                  model.evaluateCost(layer, cost, layerOf(trial, layer));
      }
      return change <= range.upper[cost] - totals[cost];
    });
    pair[first.item] = point[first.item];
    pair[second.item] = point[second.item];
    return result;
  };
  for (const Move &first : moves) {
    // The largest gain of the second move that still fits, and some below.
    const Move *second = llvm::partition_point(moves, [&](const Move &move) {
      return move.gain <= room - first.gain;
    });
    for (int tries = 0; tries < 4 && second != moves.begin(); ++tries) {
      --second;
      // Those further down gain even less.
      if (first.gain + second->gain <= mostGain)
        break;
      // Two moves in one layer gain more or less than each by itself.
      if (first.item / model.numVariables !=
              second->item / model.numVariables &&
          fits(first, *second)) {
        mostGain = first.gain + second->gain;
        chosen[0] = &first;
        chosen[1] = second;
      }
    }
  }
  if (mostGain == 0)
    return false;
  for (const Move *move : chosen)
    point[move->item] = move->index;
  for (unsigned cost : llvm::seq(model.numCosts))
    totals[cost] = getTotal(point, cost);
  return true;
}

/// Fills what is left of the budgets from `point`, which is within the upper
/// ones. Single moves as long as they gain, then pairs; each point on the way
/// is offered.
void BudgetSearch::improve(Point point) {
  llvm::SmallVector<int64_t, 2> totals;
  for (unsigned cost : llvm::seq(model.numCosts))
    totals.push_back(getTotal(point, cost));
  offer(point, totals);
  // A pair costs far more than a step, and branch and bound comes afterwards.
  constexpr int maxRounds = 64, maxPairs = 8;
  int numPairs = 0;
  for (int round = 0; round < maxRounds && totals[objective] < bound; ++round) {
    if (!improveByStep(point, totals) &&
        (++numPairs > maxPairs || !improveByPair(point, totals)))
      break;
    offer(point, totals);
  }
}

/// Takes values away that are not within the spread. False when that leaves
/// nothing within the budgets. For `BudgetOptions::spread`.
bool BudgetSearch::narrow() {
  Point center = getProportional();
  for (unsigned layer : llvm::seq(model.numLayers))
    for (unsigned variable : llvm::seq(model.numVariables)) {
      const BudgetModel::Domain &domain = model.getDomain(layer, variable);
      unsigned item = itemOf(layer, variable);
      // Products with the spread may exceed 64 bits.
      __int128 value = domain.getValue(center[item]);
      auto isBelow = [&](int64_t index) {
        return __int128(domain.getValue(index)) * spread < value;
      };
      high[item] = findLast(center[item], high[item], [&](int64_t index) {
        return domain.getValue(index) <= value * spread;
      });
      if (isBelow(low[item]))
        low[item] = findLast(low[item], center[item], isBelow) + 1;
    }
  return tighten();
}
