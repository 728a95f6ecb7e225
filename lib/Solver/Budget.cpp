//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives variables of layers values within lower and upper budgets of costs,
// exactly, and names the budgets in conflict (after Canvas, section 6.3). The
// model and the method are in docs/reference/tensor-level.md, section 5.
// BudgetModel.cpp turns the problem into numbers, BudgetSearch.cpp and
// BudgetImprovement.cpp search; here are the entry points and the verifier,
// which goes by the problem and not by what the search says.
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/Budget.h"
#include "BudgetSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::solver;

llvm::Error BudgetProblem::check() const {
  return BudgetModel::create(*this).takeError();
}

//===----------------------------------------------------------------------===//
// The exact solver
//===----------------------------------------------------------------------===//

/// The budgets of `problem`, or those of `only` alone.
static BudgetRange
getRange(const BudgetProblem &problem,
         std::optional<llvm::ArrayRef<BudgetConflict>> only = std::nullopt) {
  // The budgets of `only` are tested for a conflict among themselves: all
  // others are lifted.
  auto isIn = [&](BudgetConflict::Kind kind, unsigned cost) {
    return !only || llvm::is_contained(*only, BudgetConflict{kind, cost, 0});
  };
  BudgetRange range;
  for (auto [index, cost] : llvm::enumerate(problem.costs)) {
    bool hasLower = isIn(BudgetConflict::Kind::Lower, index);
    bool hasUpper = isIn(BudgetConflict::Kind::Upper, index);
    range.lower.push_back(
        hasLower ? std::max<int64_t>(cost.lower.value_or(0), 0) : 0);
    range.upper.push_back(
        // Totals at the ceiling are saturated, so that no budget may reach it.
        std::min(hasUpper ? cost.upper.value_or(INT64_MAX) : INT64_MAX,
                 BudgetProblem::costCeiling - 1));
  }
  return range;
}

/// The next choice of as many positions below `count`, in lexicographic order.
/// `chosen` ascends; false after the last one. From 0 1 of three positions: 0
/// 2, 1 2, end.
static bool advance(llvm::MutableArrayRef<unsigned> chosen, unsigned count) {
  for (size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] + (chosen.size() - i) >= count)
      continue;
    ++chosen[i];
    for (size_t j = i + 1; j < chosen.size(); ++j)
      chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

/// Looks for the smallest set of budgets that cannot be satisfied, sets of one
/// budget first. Exponential in the number of budgets, which are few.
/// `solution` gets the conflict, or stays `Unknown` if no set is proven to
/// conflict.
static void findConflict(const BudgetModel &model, const BudgetProblem &problem,
                         uint64_t maxEvaluations, BudgetSolution &solution) {
  llvm::SmallVector<BudgetConflict> budgets;
  for (auto [index, cost] : llvm::enumerate(problem.costs)) {
    // Without an upper budget, the ceiling of costs is one.
    budgets.push_back({BudgetConflict::Kind::Upper, unsigned(index), 0});
    if (cost.lower)
      budgets.push_back({BudgetConflict::Kind::Lower, unsigned(index), 0});
  }
  // False once a smaller set could neither be satisfied nor disproved within
  // the evaluations.
  bool isSmallest = true;
  for (unsigned size : llvm::seq_inclusive<unsigned>(1, budgets.size())) {
    llvm::SmallVector<unsigned> chosen = llvm::to_vector(llvm::seq(size));
    do {
      llvm::SmallVector<BudgetConflict, 2> set;
      // To maximize what must reach a lower budget finds a point, or the proof
      // that there is none, the fastest.
      unsigned objective = problem.objective;
      for (unsigned position : chosen) {
        set.push_back(budgets[position]);
        if (set.back().kind == BudgetConflict::Kind::Lower)
          objective = set.back().index;
      }
      BudgetSearch search(model, problem,
                          getRange(problem, llvm::ArrayRef(set)), objective,
                          maxEvaluations);
      search.run(/*stopWhenFeasible=*/true);
      solution.numEvaluations += search.getNumEvaluations();
      if (search.hasPoint())
        continue;
      if (!search.isProven()) {
        isSmallest = false;
        continue;
      }
      solution.status = BudgetStatus::Infeasible;
      solution.conflicts = set;
      solution.isSmallestConflict = isSmallest;
      return;
    } while (advance(chosen, budgets.size()));
  }
}

/// What neither budgets nor search can help.
static std::optional<BudgetSolution>
findStaticConflict(const BudgetModel &model) {
  llvm::SmallVector<BudgetConflict> conflicts = model.findStaticConflicts();
  if (conflicts.empty())
    return std::nullopt;
  BudgetSolution solution;
  solution.status = BudgetStatus::Infeasible;
  // One is enough: each of them conflicts alone.
  solution.conflicts = {conflicts.front()};
  solution.isSmallestConflict = true;
  return solution;
}

BudgetSolution kas::solver::solveBudget(const BudgetProblem &problem,
                                        const BudgetOptions &options) {
  BudgetModel model = llvm::cantFail(BudgetModel::create(problem));
  if (std::optional<BudgetSolution> solution = findStaticConflict(model))
    return *solution;
  BudgetSearch search(model, problem, getRange(problem), problem.objective,
                      options.maxEvaluations);
  search.setSpread(options.spread);
  search.run();
  if (!search.hasPoint() && options.spread > 0) {
    // Other values may be within the budgets.
    BudgetOptions withoutSpread = options;
    withoutSpread.spread = 0;
    return solveBudget(problem, withoutSpread);
  }
  BudgetSolution solution;
  solution.numEvaluations = search.getNumEvaluations();
  if (!search.hasPoint()) {
    findConflict(model, problem, options.maxEvaluations, solution);
    return solution;
  }
  solution.status =
      search.isProven() ? BudgetStatus::Optimal : BudgetStatus::Bounded;
  // Also for `Optimal`, where it is what was reached.
  solution.bound = search.getBound();
  // From positions in the domains to values.
  llvm::ArrayRef<int64_t> point = search.getPoint();
  for (unsigned layer : llvm::seq(model.numLayers)) {
    auto &values = solution.values.emplace_back();
    for (unsigned variable : llvm::seq(model.numVariables))
      values.push_back(
          model.getDomain(layer, variable)
              .getValue(point[layer * model.numVariables + variable]));
  }
  for (unsigned cost : llvm::seq(model.numCosts)) {
    int64_t total = 0;
    for (unsigned layer : llvm::seq(model.numLayers))
      total = saturatingAdd(
          total, model.evaluateCost(layer, cost,
                                    point.slice(layer * model.numVariables,
                                                model.numVariables)));
    solution.totals.push_back(total);
  }
  return solution;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The exact sum of `terms`, or nothing when it is no integer or too large. In
/// 128 bits and from the sizes themselves, not from the model's polynomials:
/// the verifier must not repeat an error of the search.
static std::optional<__int128> evaluateTerms(llvm::ArrayRef<CostTerm> terms,
                                             llvm::ArrayRef<int64_t> binding) {
  __int128 sum = 0;
  for (const CostTerm &term : terms) {
    // Numerator and denominator apart, since a term alone may be no integer
    // before it is multiplied with its factor.
    Size over = *Size::constant(term.size.getNumerator());
    Size under = *Size::constant(term.size.getDenominator());
    for (auto [symbol, exponent] : llvm::enumerate(term.size.getExponents()))
      if (exponent != 0) {
        Size &side = exponent > 0 ? over : under;
        side = *side.multiply(Size::symbol(symbol, std::abs(exponent)));
      }
    std::optional<int64_t> numerator = over.evaluate(binding);
    std::optional<int64_t> denominator = under.evaluate(binding);
    if (!numerator || !denominator)
      return std::nullopt;
    __int128 product = __int128(*numerator) * term.factor;
    if (product % *denominator != 0)
      return std::nullopt;
    sum += product / *denominator;
  }
  return sum;
}

/// Reports values of one layer that do not fit, and adds up the costs. `values`
/// are by position in `problem.variables`; `totals`, by cost, grow by what the
/// layer costs, as often as the network has it.
static llvm::Error verifyLayer(const BudgetProblem &problem, unsigned layer,
                               llvm::ArrayRef<int64_t> values,
                               llvm::MutableArrayRef<__int128> totals) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError(what + " at layer " + llvm::Twine(layer));
  };
  if (values.size() != problem.variables.size())
    return fail("every variable must have a value");
  // The layer's own sizes with the values of its variables.
  Binding binding = problem.layers[layer].binding;
  for (auto [variable, value] : llvm::zip(problem.variables, values)) {
    if (value < 1 || value > problem.maxValue)
      return fail("a value is out of range");
    binding[variable] = value;
  }
  for (const Size &size : problem.sizes)
    if (!size.evaluate(binding))
      return fail("a size is no integer");
  for (const BudgetProblem::Limit &limit : problem.limits) {
    std::optional<__int128> value = evaluateTerms(limit.terms, binding);
    if (!value || *value > limit.maximum)
      return fail("a limit is exceeded");
  }
  for (auto [cost, total] : llvm::zip(problem.costs, totals)) {
    std::optional<__int128> value = evaluateTerms(cost.terms, binding);
    if (!value)
      return fail("a cost is no integer");
    total += *value * problem.layers[layer].count;
  }
  return llvm::Error::success();
}

/// Reports a conflict that the least or the greatest values resolve.
static llvm::Error verifyConflict(const BudgetModel &model,
                                  const BudgetProblem &problem,
                                  llvm::ArrayRef<BudgetConflict> conflicts) {
  if (conflicts.empty())
    return llvm::createStringError("an infeasible problem needs a conflict");
  // A conflict of sizes and limits is found without a search, and found again.
  if (conflicts.front().kind != BudgetConflict::Kind::Lower &&
      conflicts.front().kind != BudgetConflict::Kind::Upper) {
    if (model.findStaticConflicts().empty())
      return llvm::createStringError("sizes and limits do not conflict");
    return llvm::Error::success();
  }
  BudgetRange range = getRange(problem, conflicts);
  // No proof, which would need the search: but costs are monotone, so that
  // wrong conflicts mostly show at one of the two corners.
  for (bool isGreatest : {false, true}) {
    bool satisfies = true;
    llvm::SmallVector<int64_t> totals(model.numCosts, 0);
    for (unsigned layer : llvm::seq(model.numLayers)) {
      llvm::SmallVector<int64_t> point;
      for (unsigned variable : llvm::seq(model.numVariables))
        point.push_back(isGreatest ? model.getDomain(layer, variable).count - 1
                                   : 0);
      satisfies &= model.isWithinLimits(layer, point);
      for (unsigned cost : llvm::seq(model.numCosts))
        totals[cost] =
            saturatingAdd(totals[cost], model.evaluateCost(layer, cost, point));
    }
    for (unsigned cost : llvm::seq(model.numCosts))
      satisfies &= totals[cost] >= range.lower[cost] &&
                   totals[cost] <= range.upper[cost];
    if (satisfies)
      return llvm::createStringError(
          llvm::Twine("the conflict is resolved by the ") +
          (isGreatest ? "greatest" : "least") + " values");
  }
  return llvm::Error::success();
}

llvm::Error kas::solver::verify(const BudgetProblem &problem,
                                const BudgetSolution &solution) {
  llvm::Expected<BudgetModel> model = BudgetModel::create(problem);
  if (!model)
    return model.takeError();
  if (solution.status == BudgetStatus::Infeasible)
    return verifyConflict(*model, problem, solution.conflicts);
  // Nothing is claimed.
  if (solution.status == BudgetStatus::Unknown)
    return llvm::Error::success();

  if (solution.values.size() != problem.layers.size())
    return llvm::createStringError("every layer must have values");
  llvm::SmallVector<__int128> totals(problem.costs.size(), 0);
  for (unsigned layer : llvm::seq<unsigned>(0, problem.layers.size()))
    if (llvm::Error error =
            verifyLayer(problem, layer, solution.values[layer], totals))
      return error;
  for (auto [index, cost] : llvm::enumerate(problem.costs)) {
    if (index >= solution.totals.size() ||
        totals[index] != solution.totals[index])
      return llvm::createStringError("the total of '" + cost.name +
                                     "' is not what the values give");
    if (totals[index] < cost.lower.value_or(0) ||
        totals[index] > cost.upper.value_or(INT64_MAX))
      return llvm::createStringError("the budget of '" + cost.name +
                                     "' is not kept");
  }
  int64_t reached = solution.totals[problem.objective];
  if (reached > solution.bound)
    return llvm::createStringError("the bound is below what is reached");
  if (solution.status == BudgetStatus::Optimal && reached != solution.bound)
    return llvm::createStringError("an optimum must reach its bound");
  return llvm::Error::success();
}
