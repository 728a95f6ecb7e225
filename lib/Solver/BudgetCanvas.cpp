//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The heuristic of Canvas, section 6.3, step by step: doubles the values of
// layers while budgets allow it. It serves as the baseline for the exact solver
// (Budget.cpp); docs/reference/tensor-level.md, section 5, `mode=canvas`.
//
//===----------------------------------------------------------------------===//

#include "BudgetModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::solver;

namespace {
/// The heuristic of Canvas, section 6.3, in the order of its steps.
class Doubling {
public:
  Doubling(const BudgetProblem &problem, const BudgetModel &model)
      : problem(problem), model(model) {}

  /// A base, rounds of doubling, and a check of the lower budgets. What fails
  /// leaves `Unknown` with what was run into: the heuristic proves nothing.
  BudgetSolution run() {
    BudgetSolution solution;
    if (!makeBase(solution) || !checkBase(solution))
      return solution;
    while (doubleOnce())
      ;
    for (unsigned cost : llvm::seq(model.numCosts))
      if (totals[cost] < problem.costs[cost].lower.value_or(0)) {
        solution.conflicts = {{BudgetConflict::Kind::Lower, cost, 0}};
        return solution;
      }
    finish(solution);
    return solution;
  }

private:
  /// Positions in the domains of one layer's variables; value = step *
  /// (position + 1).
  using Indices = llvm::SmallVector<int64_t, 4>;

  /// The value of variable j at layer i is the multiple of its step closest
  /// from above to what is proportional: q_i * ceil(C_i*q_1 / (C_1*q_i)), where
  /// layer 1 has the fewest channels and takes its step once. False if a
  /// variable would be over the maximum.
  bool makeBase(BudgetSolution &solution) {
    unsigned least = 0;
    for (unsigned layer : llvm::seq(model.numLayers))
      if (problem.layers[layer].channels < problem.layers[least].channels)
        least = layer;
    for (unsigned layer : llvm::seq(model.numLayers)) {
      Indices &indices = layers.emplace_back();
      for (unsigned variable : llvm::seq(model.numVariables)) {
        const BudgetModel::Domain &domain = model.getDomain(layer, variable);
        // Rounded up in integers: `C_i * q_1 / (C_1 * q_i)`.
        __int128 over = __int128(problem.layers[layer].channels) *
                        model.getDomain(least, variable).step;
        __int128 under = __int128(problem.layers[least].channels) * domain.step;
        __int128 multiple = (over + under - 1) / under;
        if (multiple > domain.count) {
          solution.conflicts = {
              {BudgetConflict::Kind::Variable, variable, layer}};
          return false;
        }
        // Position 0 is one step.
        indices.push_back(int64_t(multiple) - 1);
      }
    }
    return true;
  }

  /// Sums up the costs of the base; false, with a conflict, if a limit or an
  /// upper budget does not allow it.
  bool checkBase(BudgetSolution &solution) {
    totals.assign(model.numCosts, 0);
    for (unsigned layer : llvm::seq(model.numLayers)) {
      if (std::optional<unsigned> limit =
              model.findExceededLimit(layer, layers[layer])) {
        solution.conflicts = {{BudgetConflict::Kind::Limit, *limit, layer}};
        return false;
      }
      for (unsigned cost : llvm::seq(model.numCosts))
        totals[cost] = saturatingAdd(
            totals[cost], model.evaluateCost(layer, cost, layers[layer]));
    }
    for (unsigned cost : llvm::seq(model.numCosts))
      if (totals[cost] > getUpper(cost)) {
        solution.conflicts = {{BudgetConflict::Kind::Upper, cost, 0}};
        return false;
      }
    return true;
  }

  /// Without an upper budget, the ceiling of all costs.
  int64_t getUpper(unsigned cost) const {
    return std::min(problem.costs[cost].upper.value_or(INT64_MAX),
                    BudgetProblem::costCeiling - 1);
  }

  /// Twice all values of a layer, if that is in range.
  std::optional<Indices> getDoubled(unsigned layer) const {
    Indices indices = layers[layer];
    for (unsigned variable : llvm::seq(model.numVariables)) {
      // Twice the value: step * 2 * (position + 1).
      indices[variable] = 2 * (indices[variable] + 1) - 1;
      if (indices[variable] >= model.getDomain(layer, variable).count)
        return std::nullopt;
    }
    // Without variables nothing changes, and rounds would not end.
    if (indices.empty() || !model.isWithinLimits(layer, indices))
      return std::nullopt;
    return indices;
  }

  /// What a cost grows by if the layer goes on to `next`.
  int64_t getDelta(unsigned layer, llvm::ArrayRef<int64_t> next,
                   unsigned cost) const {
    return model.evaluateCost(layer, cost, next) -
           model.evaluateCost(layer, cost, layers[layer]);
  }

  /// One round over the layers; whether there may be another. Each layer that
  /// can be doubled is, in the order of what that costs in the `sensitivity`
  /// (parameters in the paper), if all budgets allow it.
  bool doubleOnce() {
    struct Candidate {
      int64_t delta;
      unsigned layer;
      Indices next;
    };
    llvm::SmallVector<Candidate, 0> candidates;
    for (unsigned layer : llvm::seq(model.numLayers))
      if (std::optional<Indices> next = getDoubled(layer))
        candidates.push_back(
            {getDelta(layer, *next, problem.sensitivity), layer, *next});
    llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
      return std::tie(a.delta, a.layer) < std::tie(b.delta, b.layer);
    });
    // A round in which one did not fit is the last, as in Canvas.
    bool allFit = !candidates.empty();
    for (const Candidate &candidate : candidates) {
      auto fits = [&](unsigned cost) {
        return getDelta(candidate.layer, candidate.next, cost) <=
               getUpper(cost) - totals[cost];
      };
      if (!llvm::all_of(llvm::seq(model.numCosts), fits)) {
        allFit = false;
        continue;
      }
      for (unsigned cost : llvm::seq(model.numCosts))
        totals[cost] += getDelta(candidate.layer, candidate.next, cost);
      layers[candidate.layer] = candidate.next;
    }
    return allFit;
  }

  /// Values instead of positions, and the bound that the budget gives.
  void finish(BudgetSolution &solution) const {
    for (unsigned layer : llvm::seq(model.numLayers)) {
      auto &values = solution.values.emplace_back();
      for (unsigned variable : llvm::seq(model.numVariables))
        values.push_back(
            model.getDomain(layer, variable).getValue(layers[layer][variable]));
    }
    solution.totals = totals;
    int64_t reached = totals[problem.objective];
    solution.bound =
        model.numVariables == 0 ? reached : getUpper(problem.objective);
    solution.status = solution.bound == reached ? BudgetStatus::Optimal
                                                : BudgetStatus::Bounded;
  }

  const BudgetProblem &problem;
  const BudgetModel &model;
  /// The current positions by layer, and the totals of all costs.
  llvm::SmallVector<Indices, 0> layers;
  llvm::SmallVector<int64_t, 2> totals;
};
} // namespace

BudgetSolution
kas::solver::solveBudgetLikeCanvas(const BudgetProblem &problem) {
  BudgetModel model = llvm::cantFail(BudgetModel::create(problem));
  llvm::SmallVector<BudgetConflict> conflicts = model.findStaticConflicts();
  if (conflicts.empty())
    return Doubling(problem, model).run();
  BudgetSolution solution;
  solution.status = BudgetStatus::Infeasible;
  solution.conflicts = {conflicts.front()};
  solution.isSmallestConflict = true;
  return solution;
}
