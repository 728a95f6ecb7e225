//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Branch and bound over the domains of a budget problem, with tightening by the
// budgets. In the order of `run`: tighten the domains, bound the objective
// (Lagrangian and residue class), improve good points (BudgetImprovement.cpp),
// and branch until the best point reaches the bound or the evaluations are used
// up (docs/reference/tensor-level.md, section 5).
//
// All of it relies on monotone costs: the box of all points from `low` to
// `high` has its least total at `low` and its greatest at `high`.
//
//===----------------------------------------------------------------------===//

#include "BudgetSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <numeric>

using namespace kas;
using namespace kas::solver;

BudgetSearch::BudgetSearch(const BudgetModel &model,
                           const BudgetProblem &problem, BudgetRange range,
                           unsigned objective, uint64_t maxEvaluations)
    : model(model), problem(problem), range(std::move(range)),
      objective(objective), maxEvaluations(maxEvaluations) {
  for (unsigned layer : llvm::seq(model.numLayers))
    for (unsigned variable : llvm::seq(model.numVariables)) {
      low.push_back(0);
      high.push_back(model.getDomain(layer, variable).count - 1);
    }
}

/// The cost of all layers at `point`; at the ceiling where it saturates.
int64_t BudgetSearch::getTotal(const Point &point, unsigned cost) const {
  int64_t total = 0;
  for (unsigned layer : llvm::seq(model.numLayers))
    total =
        saturatingAdd(total, model.evaluateCost(layer, cost,
                                                llvm::ArrayRef(point).slice(
                                                    layer * model.numVariables,
                                                    model.numVariables)));
  return total;
}

bool BudgetSearch::isWithinUpper(const Point &point) const {
  for (unsigned layer : llvm::seq(model.numLayers))
    if (!model.isWithinLimits(
            layer, llvm::ArrayRef(point).slice(layer * model.numVariables,
                                               model.numVariables)))
      return false;
  return llvm::all_of(llvm::seq(model.numCosts), [&](unsigned cost) {
    return getTotal(point, cost) <= range.upper[cost];
  });
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// Takes values away that are over a budget or limit with all others at their
/// least. False when the least values are.
bool BudgetSearch::tightenUpper() {
  if (!isWithinUpper(low))
    return false;
  Point point = low;
  for (unsigned layer : llvm::seq(model.numLayers)) {
    llvm::MutableArrayRef<int64_t> indices = layerOf(point, layer);
    // By cost, what all other layers take at their least values.
    llvm::SmallVector<int64_t, 2> others;
    for (unsigned cost : llvm::seq(model.numCosts))
      others.push_back(getTotal(low, cost) -
                       model.evaluateCost(layer, cost, indices));
    for (unsigned variable : llvm::seq(model.numVariables)) {
      unsigned item = itemOf(layer, variable);
      high[item] = findLast(low[item], high[item], [&](int64_t index) {
        indices[variable] = index;
        if (!model.isWithinLimits(layer, indices))
          return false;
        return llvm::all_of(llvm::seq(model.numCosts), [&](unsigned cost) {
          return model.evaluateCost(layer, cost, indices) <=
                 range.upper[cost] - others[cost];
        });
      });
      indices[variable] = low[item];
    }
  }
  return true;
}

/// Takes values away that miss a lower budget with all others at their
/// greatest. False when the greatest values do.
bool BudgetSearch::tightenLower() {
  for (unsigned cost : llvm::seq(model.numCosts)) {
    if (range.lower[cost] == 0)
      continue;
    int64_t total = getTotal(high, cost);
    if (total < range.lower[cost])
      return false;
    // A saturated sum has no parts.
    if (total == BudgetProblem::costCeiling)
      continue;
    Point point = high;
    for (unsigned layer : llvm::seq(model.numLayers)) {
      llvm::MutableArrayRef<int64_t> indices = layerOf(point, layer);
      int64_t others = total - model.evaluateCost(layer, cost, indices);
      for (unsigned variable : llvm::seq(model.numVariables)) {
        unsigned item = itemOf(layer, variable);
        auto misses = [&](int64_t index) {
          indices[variable] = index;
          return model.evaluateCost(layer, cost, indices) <
                 range.lower[cost] - others;
        };
        // The first position that does not miss it.
        if (misses(low[item]))
          low[item] = findLast(low[item], high[item], misses) + 1;
        indices[variable] = high[item];
      }
    }
  }
  return true;
}

/// To a fixed point, at most 8 rounds: a smaller upper end lowers what others
/// can contribute, and so raises lower ends. False if no point is left.
bool BudgetSearch::tighten() {
  for (int round = 0; round < 8; ++round) {
    Point before = low;
    if (!tightenUpper() || !tightenLower())
      return false;
    // `tightenUpper` depends on `low` alone.
    if (low == before)
      return true;
  }
  return isWithinUpper(low);
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// The largest total of the objective up to `total`, as far as the residue
/// class that all totals lie in tells.
int64_t BudgetSearch::boundByResidue(int64_t total) const {
  // Every total is `constant` plus a multiple of `modulus`: multipliers are
  // integers.
  int64_t modulus = 0, constant = 0;
  for (unsigned layer : llvm::seq(model.numLayers))
    for (const BudgetModel::Term &term : model.getCost(layer, objective))
      if (term.powers.empty())
        constant = saturatingAdd(constant, term.coefficient);
      else
        modulus = std::gcd(modulus, term.coefficient);
  // No variables: there is one total.
  if (modulus == 0)
    return std::min(total, constant);
  return total < constant ? total : total - (total - constant) % modulus;
}

/// Points of a layer such that, for any multiplier, objective minus multiplier
/// times another cost is nowhere greater than at one of them. Costs of the
/// first degree in each variable take their extremes at the ends. Nothing when
/// a variable has a higher degree. 2^variables points. With terms such as `x *
/// y` the extremes of a box are still at corners, as the sum is linear in each
/// variable.
llvm::SmallVector<BudgetSearch::Point, 0>
BudgetSearch::getExtremes(unsigned layer) const {
  for (unsigned cost : llvm::seq(model.numCosts))
    for (const BudgetModel::Term &term : model.getCost(layer, cost))
      if (llvm::any_of(term.powers,
                       [](auto power) { return power.second > 1; }))
        return {};
  llvm::SmallVector<Point, 0> points;
  for (uint64_t code = 0; code >> model.numVariables == 0; ++code) {
    Point &point = points.emplace_back();
    for (unsigned variable : llvm::seq(model.numVariables)) {
      unsigned item = itemOf(layer, variable);
      // Bit `variable` of the code chooses the end.
      point.push_back(code >> variable & 1 ? high[item] : low[item]);
    }
  }
  return points;
}

/// The Lagrangian bound of the objective for the upper budget of `cost`: for a
/// multiplier m, m * budget + sum over layers of max(objective - m * cost). Any
/// m gives a bound, so the search for the best one need not be exact.
/// `argument` is where the maxima are taken, within the budget of `cost`.
int64_t BudgetSearch::boundByLagrangian(unsigned cost, Point &argument) const {
  using Wide = __int128;
  // Multipliers are fixed-point numbers with 20 fractional bits.
  constexpr int scale = 20;
  llvm::SmallVector<llvm::SmallVector<std::pair<int64_t, int64_t>>, 0> layers;
  llvm::SmallVector<llvm::SmallVector<Point, 0>, 0> points;
  for (unsigned layer : llvm::seq(model.numLayers)) {
    points.push_back(getExtremes(layer));
    if (points.back().empty())
      return BudgetProblem::costCeiling;
    auto &values = layers.emplace_back();
    for (const Point &point : points.back()) {
      values.push_back({model.evaluateCost(layer, objective, point),
                        model.evaluateCost(layer, cost, point)});
      // A saturated cost says nothing about the points between.
      if (values.back().first == BudgetProblem::costCeiling ||
          values.back().second == BudgetProblem::costCeiling)
        return BudgetProblem::costCeiling;
    }
  }
  Wide least = Wide(BudgetProblem::costCeiling) << scale;
  // Above this multiplier, the other cost alone decides.
  int64_t first = 0, last = int64_t(1) << 40;
  // The bound is convex in the multiplier, and what is used of `cost` falls
  // when it grows: bisection on whether the budget is exceeded.
  while (first <= last) {
    int64_t multiplier = first + (last - first) / 2;
    // `layers[i]` has (objective, cost) at each extreme point of layer i.
    Wide value = Wide(multiplier) * range.upper[cost];
    Wide used = 0;
    Point taken;
    for (auto [values, extremes] : llvm::zip(layers, points)) {
      auto reduced = [&](const std::pair<int64_t, int64_t> &pair) {
        return (Wide(pair.first) << scale) - Wide(multiplier) * pair.second;
      };
      unsigned choice = 0;
      for (unsigned i : llvm::seq<unsigned>(1, values.size()))
        if (reduced(values[i]) > reduced(values[choice]))
          choice = i;
      value += reduced(values[choice]);
      used += values[choice].second;
      llvm::append_range(taken, extremes[choice]);
    }
    least = std::min(least, value);
    if (used > range.upper[cost]) {
      first = multiplier + 1;
    } else {
      // The last one kept is that of the least multiplier within the budget:
      // the closest to the optimum.
      argument = taken;
      last = multiplier - 1;
    }
  }
  // Rounded down: totals are integers.
  return int64_t(least >> scale);
}

/// Sets `bound` to the least of all bounds, and improves the points at which
/// they were taken.
void BudgetSearch::computeBound() {
  bound = std::min(range.upper[objective], getTotal(high, objective));
  llvm::SmallVector<Point, 0> starts;
  // With many variables per layer, the ends are too many to try.
  constexpr unsigned maxVariables = 8;
  for (unsigned cost : llvm::seq(model.numCosts)) {
    // A budget that the greatest values keep bounds nothing.
    if (cost == objective || model.numVariables > maxVariables ||
        getTotal(high, cost) <= range.upper[cost])
      continue;
    Point argument;
    bound = std::min(bound, boundByLagrangian(cost, argument));
    if (!argument.empty() && isWithinUpper(argument))
      starts.push_back(std::move(argument));
  }
  bound = boundByResidue(bound);
  for (Point &start : starts)
    improve(std::move(start));
}

//===----------------------------------------------------------------------===//
// Branch and bound
//===----------------------------------------------------------------------===//

/// Brings the costs of a layer up to date with a corner. `side` 0 is the corner
/// of the least values, 1 that of the greatest. Only the entries of one layer
/// change; `totals` follow.
void BudgetSearch::update(unsigned side, unsigned layer) {
  ++numEvaluations;
  for (unsigned cost : llvm::seq(model.numCosts)) {
    int64_t &entry = layerCosts[side][layer * model.numCosts + cost];
    int64_t value =
        model.evaluateCost(layer, cost, layerOf(corner[side], layer));
    totals[side][cost] += value - entry;
    entry = value;
  }
}

/// Sets the item at `position` of the order in both corners. False when no
/// point below is within the budgets and better than the best one.
bool BudgetSearch::setItem(unsigned position, int64_t index) {
  unsigned item = order[position], layer = item / model.numVariables;
  for (unsigned side : {0u, 1u}) {
    corner[side][item] = index;
    update(side, layer);
  }
  for (unsigned cost : llvm::seq(model.numCosts))
    // No point of the box can keep the budget.
    if (totals[0][cost] > range.upper[cost] ||
        totals[1][cost] < range.lower[cost])
      return false;
  return totals[1][objective] > bestValue &&
         model.isWithinLimits(layer, layerOf(corner[0], layer));
}

/// The largest index of the item at `position` within the upper budgets when
/// the open items have their least values, or -1.
int64_t BudgetSearch::findLargest(unsigned position) {
  unsigned item = order[position], layer = item / model.numVariables;
  llvm::MutableArrayRef<int64_t> indices = layerOf(corner[0], layer);
  int64_t &index = corner[0][item];
  int64_t old = index;
  auto fits = [&](int64_t candidate) {
    index = candidate;
    ++numEvaluations;
    return model.isWithinLimits(layer, indices) &&
           llvm::all_of(llvm::seq(model.numCosts), [&](unsigned cost) {
             return model.evaluateCost(layer, cost, indices) -
                        layerCosts[0][layer * model.numCosts + cost] <=
                    range.upper[cost] - totals[0][cost];
           });
  };
  int64_t result = fits(low[item]) ? findLast(low[item], high[item], fits) : -1;
  index = old;
  return result;
}

/// Items before `position` have their values in both corners, the others are
/// open.
void BudgetSearch::branchOn(unsigned position) {
  // Both corners are one point.
  if (position == order.size()) {
    llvm::SmallVector<int64_t, 2> values(totals[0].begin(), totals[0].end());
    offer(corner[0], values);
    return;
  }
  unsigned item = order[position];
  // Of the last item the largest value that fits is the best: no other is
  // tried.
  bool isLast = position + 1 == order.size();
  for (int64_t index = findLargest(position); index >= low[item]; --index) {
    bool isOpen = setItem(position, index);
    if (isOpen)
      branchOn(position + 1);
    // Smaller values of the item only lower the totals.
    bool canImprove = totals[1][objective] > bestValue;
    bool canReach =
        llvm::all_of(llvm::zip(totals[1], range.lower), [](auto pair) {
          return std::get<0>(pair) >= std::get<1>(pair);
        });
    if (isLast || !canImprove || !canReach || isDone() ||
        numEvaluations >= maxEvaluations)
      break;
  }
  // Open again.
  unsigned layer = item / model.numVariables;
  corner[0][item] = low[item];
  corner[1][item] = high[item];
  for (unsigned side : {0u, 1u})
    update(side, layer);
}

void BudgetSearch::branch() {
  // Layers with the widest range first: what is left then is small.
  llvm::SmallVector<unsigned> layers =
      llvm::to_vector(llvm::seq(model.numLayers));
  corner[0] = low;
  corner[1] = high;
  for (unsigned side : {0u, 1u}) {
    layerCosts[side].assign(model.numLayers * model.numCosts, 0);
    totals[side].assign(model.numCosts, 0);
    for (unsigned layer : llvm::seq(model.numLayers))
      update(side, layer);
  }
  // How much of the objective depends on the layer.
  auto widthOf = [&](unsigned layer) {
    unsigned entry = layer * model.numCosts + objective;
    return layerCosts[1][entry] - layerCosts[0][entry];
  };
  llvm::sort(layers, [&](unsigned a, unsigned b) {
    return std::pair(widthOf(b), a) < std::pair(widthOf(a), b);
  });
  for (unsigned layer : layers)
    for (unsigned variable : llvm::seq(model.numVariables))
      order.push_back(itemOf(layer, variable));
  branchOn(0);
}

void BudgetSearch::run(bool stopWhenFeasible) {
  this->stopWhenFeasible = stopWhenFeasible;
  // No point at all: that is proven, too.
  if (!tighten() || (spread > 0 && !narrow())) {
    proven = true;
    bound = -1;
    return;
  }
  computeBound();
  if (bound < range.lower[objective]) {
    proven = true;
    return;
  }
  if (!isDone())
    improve(getProportional());
  if (!isDone())
    branch();
  // The evaluations did not run out, nor was the search satisfied with any
  // point.
  bool isComplete =
      numEvaluations < maxEvaluations && !(stopWhenFeasible && hasPoint());
  proven = isComplete || (hasPoint() && bestValue >= bound);
  // Without a better point the bound is what was reached.
  if (proven && hasPoint())
    bound = bestValue;
}
