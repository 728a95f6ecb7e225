//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The budget problem in numbers: domains of variables and saturating
// polynomials of costs. Symbols other than the variables get their values at
// each layer, so that what remains are polynomials in positions of the domains,
// with non-negative coefficients: monotone, which all pruning of the search
// relies on (docs/reference/tensor-level.md, section 5).
//
//===----------------------------------------------------------------------===//

#include "BudgetModel.h"
#include "kas/Support/PrimeFactors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace kas;
using namespace kas::solver;

namespace {
/// A positive fraction in lowest terms.
struct Fraction {
  int64_t numerator = 1, denominator = 1;
};
} // namespace

/// The value of `size` at a layer with its variables left out. `C * x / G` at C
/// = 64 and G = 4 gives 16 for the variable x. Nothing where the numerator or
/// the denominator does not fit 63 bits.
static std::optional<Fraction> evaluateRest(const BudgetProblem &problem,
                                            unsigned layer, const Size &size) {
  Fraction result = {size.getNumerator(), size.getDenominator()};
  for (unsigned symbol : llvm::seq(problem.numSymbols)) {
    int exponent = size.getExponent(symbol);
    if (llvm::is_contained(problem.variables, symbol))
      continue;
    int64_t value = problem.layers[layer].binding[symbol];
    for (int i = 0; i < std::abs(exponent); ++i) {
      int64_t &side = exponent > 0 ? result.numerator : result.denominator;
      int64_t &other = exponent > 0 ? result.denominator : result.numerator;
      // Reduced before each product, so that it overflows only if the result
      // does.
      int64_t common = std::gcd(value, other);
      other /= common;
      if (llvm::MulOverflow(side, value / common, side))
        return std::nullopt;
    }
  }
  int64_t common = std::gcd(result.numerator, result.denominator);
  return Fraction{result.numerator / common, result.denominator / common};
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// The least number whose power `exponent` is a multiple of `denominator`.
/// `step^exponent` is a multiple of `denominator`: 12 with exponent 2 gives 6,
/// as 36 is one of 12 and no smaller square is. `exponent` is at least 1.
static int64_t getStep(int64_t denominator, int exponent) {
  if (exponent == 1)
    return denominator;
  int64_t step = 1;
  for (int64_t prime = 2; denominator > 1; ++prime) {
    // What is left has no smaller factor than itself: it is prime.
    if (prime * prime > denominator)
      prime = denominator;
    int power = 0;
    for (; denominator % prime == 0; denominator /= prime)
      ++power;
    // Each prime in as many copies as its power needs, rounded up.
    for (int i = 0; i < (power + exponent - 1) / exponent; ++i)
      step *= prime;
  }
  return step;
}

/// The multiples of `step` up to `maximum` whose power `exponent` divides
/// `number`. Ascending. Takes `min(number, maximum) / step` steps.
static llvm::SmallVector<int64_t, 0>
getDivisors(int64_t number, int exponent, int64_t step, int64_t maximum) {
  llvm::SmallVector<int64_t, 0> result;
  for (int64_t value = step; value <= std::min(number, maximum);
       value += step) {
    int64_t rest = number;
    int power = 0;
    for (; power < exponent && rest % value == 0; ++power)
      rest /= value;
    if (power == exponent)
      result.push_back(value);
  }
  return result;
}

/// Each size demands something of one variable: above, that it is a multiple of
/// a step; below, that its power divides a number. What a size without
/// variables demands, holds or does not (`illegalSizes`).
llvm::Error BudgetModel::makeDomains(const BudgetProblem &problem,
                                     unsigned layer) {
  llvm::SmallVector<int64_t> steps(numVariables, 1);
  // (variable, exponent, number): the power must divide the number.
  llvm::SmallVector<std::tuple<unsigned, int, int64_t>> dividers;
  for (auto [index, size] : llvm::enumerate(problem.sizes)) {
    std::optional<Fraction> rest = evaluateRest(problem, layer, size);
    if (!rest)
      return llvm::createStringError("size " + llvm::Twine(index) +
                                     " does not fit 63 bits at layer " +
                                     llvm::Twine(layer));
    const unsigned *variable =
        llvm::find_if(problem.variables, [&](unsigned symbol) {
          return size.getExponent(symbol) != 0;
        });
    if (variable == problem.variables.end()) {
      if (rest->denominator != 1)
        illegalSizes.push_back(
            {BudgetConflict::Kind::Size, unsigned(index), layer});
      continue;
    }
    unsigned position = variable - problem.variables.begin();
    int exponent = size.getExponent(*variable);
    if (exponent > 0)
      // Past the maximum it does not matter by how much.
      steps[position] = std::lcm(
          std::min(steps[position], problem.maxValue + 1),
          std::min(getStep(rest->denominator, exponent), problem.maxValue + 1));
    // A variable below only makes it worse.
    else if (rest->denominator != 1)
      illegalSizes.push_back(
          {BudgetConflict::Kind::Size, unsigned(index), layer});
    else
      dividers.push_back({position, -exponent, rest->numerator});
  }

  for (unsigned variable : llvm::seq(numVariables)) {
    Domain &domain = domains.emplace_back();
    domain.step = steps[variable];
    // 0 where the step is past the maximum: an empty domain, which is a static
    // conflict.
    domain.count = problem.maxValue / domain.step;
    bool isFirst = true;
    for (auto [position, exponent, number] : dividers) {
      if (position != variable)
        continue;
      // With a divisor the domain is a list: the values that all such sizes
      // allow.
      llvm::SmallVector<int64_t, 0> divisors =
          getDivisors(number, exponent, steps[variable], problem.maxValue);
      if (isFirst)
        domain.list = divisors;
      else
        llvm::erase_if(domain.list, [&](int64_t value) {
          return !llvm::is_contained(divisors, value);
        });
      isFirst = false;
      // The list has the values themselves.
      domain.step = 1;
      domain.count = domain.list.size();
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

/// The cost of one layer, `count` times. A variable is `step * multiplier`, so
/// that the powers of the steps are part of the coefficients, which must be
/// integers.
llvm::Expected<BudgetModel::Polynomial>
BudgetModel::makePolynomial(const BudgetProblem &problem, unsigned layer,
                            llvm::ArrayRef<CostTerm> terms, int64_t count) {
  Polynomial result;
  auto tooLarge = [&] {
    return llvm::createStringError(
        "a term of a cost does not fit 62 bits at layer " + llvm::Twine(layer));
  };
  for (const CostTerm &costTerm : terms) {
    if (costTerm.factor == 0)
      continue;
    std::optional<Fraction> rest = evaluateRest(problem, layer, costTerm.size);
    if (!rest)
      return tooLarge();
    Term term;
    // Cancels with the denominator first; false where the numerator overflows.
    auto multiply = [&](int64_t factor) {
      int64_t common = std::gcd(factor, rest->denominator);
      rest->denominator /= common;
      return !llvm::MulOverflow(rest->numerator, factor / common,
                                rest->numerator);
    };
    bool fits = multiply(costTerm.factor) && multiply(count);
    for (auto [position, symbol] : llvm::enumerate(problem.variables)) {
      int exponent = costTerm.size.getExponent(symbol);
      if (exponent == 0)
        continue;
      term.powers.push_back({unsigned(position), unsigned(exponent)});
      for (int i = 0; i < exponent; ++i)
        fits &= multiply(getDomain(layer, position).step);
    }
    if (!fits || rest->numerator >= BudgetProblem::costCeiling)
      return tooLarge();
    if (rest->denominator != 1)
      return llvm::createStringError(
          "a term of a cost is no integer at layer " + llvm::Twine(layer));
    term.coefficient = rest->numerator;
    // Terms with the same powers become one: fewer to evaluate, and the residue
    // classes of totals (`boundByResidue`) are those of the sums.
    auto *like = llvm::find_if(
        result, [&](const Term &other) { return other.powers == term.powers; });
    if (like == result.end())
      result.push_back(std::move(term));
    else
      like->coefficient = saturatingAdd(like->coefficient, term.coefficient);
  }
  return result;
}

/// `indices` are positions in the domains of the layer's variables. Saturates
/// at `costCeiling`, and so stays monotone.
int64_t BudgetModel::evaluate(const Polynomial &polynomial, unsigned layer,
                              llvm::ArrayRef<int64_t> indices) const {
  int64_t sum = 0;
  for (const Term &term : polynomial) {
    int64_t product = term.coefficient;
    for (auto [variable, exponent] : term.powers) {
      int64_t multiplier =
          getDomain(layer, variable).getMultiplier(indices[variable]);
      for (unsigned i = 0; i < exponent; ++i)
        product = saturatingMultiply(product, multiplier);
    }
    sum = saturatingAdd(sum, product);
  }
  return sum;
}

std::optional<unsigned>
BudgetModel::findExceededLimit(unsigned layer,
                               llvm::ArrayRef<int64_t> indices) const {
  for (unsigned limit : llvm::seq(numLimits))
    if (evaluate(limits[layer * numLimits + limit], layer, indices) >
        maxima[limit])
      return limit;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// Costs must be monotone: no negative factors, no variables in denominators.
static llvm::Error checkTerms(const BudgetProblem &problem,
                              llvm::ArrayRef<CostTerm> terms) {
  for (const CostTerm &term : terms) {
    if (term.factor < 0)
      return llvm::createStringError("the factor of a term must be at least 0");
    for (unsigned variable : problem.variables)
      if (term.size.getExponent(variable) < 0)
        return llvm::createStringError(
            "a cost must not fall when a variable grows");
  }
  return llvm::Error::success();
}

/// What can be said without the layers' numbers.
static llvm::Error checkDescription(const BudgetProblem &problem) {
  auto isSymbol = [&](unsigned symbol) { return symbol < problem.numSymbols; };
  if (problem.numSymbols > SymbolSet::maxSymbols)
    return llvm::createStringError(
        "at most " + llvm::Twine(SymbolSet::maxSymbols) +
        " symbols can be declared, got " + llvm::Twine(problem.numSymbols));
  for (auto [position, variable] : llvm::enumerate(problem.variables))
    if (!isSymbol(variable) ||
        llvm::is_contained(
            llvm::ArrayRef(problem.variables).take_front(position), variable))
      return llvm::createStringError(
          "a variable must be a declared symbol, and be listed once");
  if (problem.layers.empty())
    return llvm::createStringError("at least one layer is needed");
  for (const BudgetProblem::Layer &layer : problem.layers)
    if (layer.binding.size() < problem.numSymbols || layer.count < 1 ||
        layer.channels < 1 ||
        llvm::any_of(layer.binding, [](int64_t value) { return value < 1; }))
      return llvm::createStringError("a layer must have a value of at least 1 "
                                     "per symbol, a count and channels");
  for (auto [index, size] : llvm::enumerate(problem.sizes))
    if (llvm::count_if(problem.variables, [&](unsigned variable) {
          return size.getExponent(variable) != 0;
        }) > 1)
      return llvm::createStringError("a size must hold one variable at most, "
                                     "but size " +
                                     llvm::Twine(index) + " holds several");
  if (problem.costs.empty() || problem.objective >= problem.costs.size() ||
      problem.sensitivity >= problem.costs.size())
    return llvm::createStringError(
        "the objective and the sensitivity must be costs");
  if (problem.maxValue < 1 || problem.maxValue > INT32_MAX)
    return llvm::createStringError(
        "the largest value of a variable must be from 1 to 2^31-1, got " +
        llvm::Twine(problem.maxValue));
  for (const BudgetProblem::Cost &cost : problem.costs)
    if (llvm::Error error = checkTerms(problem, cost.terms))
      return error;
  for (const BudgetProblem::Limit &limit : problem.limits)
    if (llvm::Error error = checkTerms(problem, limit.terms))
      return error;
  return llvm::Error::success();
}

llvm::Expected<BudgetModel> BudgetModel::create(const BudgetProblem &problem) {
  if (llvm::Error error = checkDescription(problem))
    return error;
  BudgetModel model;
  model.numLayers = problem.layers.size();
  model.numVariables = problem.variables.size();
  model.numCosts = problem.costs.size();
  model.numLimits = problem.limits.size();
  for (const BudgetProblem::Limit &limit : problem.limits)
    // A saturated sum is over every limit.
    model.maxima.push_back(
        std::min(limit.maximum, BudgetProblem::costCeiling - 1));
  for (unsigned layer : llvm::seq(model.numLayers)) {
    if (llvm::Error error = model.makeDomains(problem, layer))
      return error;
    for (const BudgetProblem::Cost &cost : problem.costs) {
      llvm::Expected<Polynomial> polynomial = model.makePolynomial(
          problem, layer, cost.terms, problem.layers[layer].count);
      if (!polynomial)
        return polynomial.takeError();
      model.costs.push_back(std::move(*polynomial));
    }
    for (const BudgetProblem::Limit &limit : problem.limits) {
      llvm::Expected<Polynomial> polynomial =
          // Limits are on a layer by itself, however often it occurs.
          model.makePolynomial(problem, layer, limit.terms, 1);
      if (!polynomial)
        return polynomial.takeError();
      model.limits.push_back(std::move(*polynomial));
    }
  }
  return model;
}

llvm::SmallVector<BudgetConflict> BudgetModel::findStaticConflicts() const {
  if (!illegalSizes.empty())
    return {illegalSizes.front()};
  for (unsigned layer : llvm::seq(numLayers)) {
    for (unsigned variable : llvm::seq(numVariables))
      if (getDomain(layer, variable).count == 0)
        return {{BudgetConflict::Kind::Variable, variable, layer}};
    // With larger values a sum is no smaller.
    llvm::SmallVector<int64_t> least(numVariables, 0);
    if (std::optional<unsigned> limit = findExceededLimit(layer, least))
      return {{BudgetConflict::Kind::Limit, *limit, layer}};
  }
  return {};
}
