//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which symbolic sizes make sense given facts about divisibility: proofs that a
// size is an integer, and substitution of variables
// (docs/reference/tensor-level.md, section 3). Theorem 1 is that of Canvas,
// section 6.2.
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/SizeRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <numeric>

using namespace kas;
using namespace kas::solver;

std::optional<Size>
kas::solver::substitute(const Size &size,
                        llvm::ArrayRef<Substitution> substitutions) {
  // All variables leave before any value enters: a value may be large.
  Size rest = size;
  for (const Substitution &substitution : substitutions) {
    std::optional<Size> without = rest.divide(Size::symbol(
        substitution.variable, size.getExponent(substitution.variable)));
    if (!without)
      return std::nullopt;
    rest = *without;
  }
  // A variable with exponent -2 leaves the power -2 of its value.
  std::optional<Size> result = rest;
  for (const Substitution &substitution : substitutions) {
    std::optional<Size> power =
        substitution.value.power(size.getExponent(substitution.variable));
    result = power ? result->multiply(*power) : std::nullopt;
    if (!result)
      return std::nullopt;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// SizeRules: what makes sense
//===----------------------------------------------------------------------===//

/// The symbols that the divisors of `symbol` lead to, over all facts. `reached`
/// grows by them; depth-first, each symbol once.
static void addReachable(const SizeRules &rules, unsigned symbol,
                         llvm::SmallVectorImpl<bool> &reached) {
  for (const SizeRules::Divides &fact : rules.facts)
    for (unsigned next : llvm::seq(rules.numSymbols))
      if (fact.multiple == symbol && fact.divisor.getExponent(next) != 0 &&
          !reached[next]) {
        reached[next] = true;
        addReachable(rules, next, reached);
      }
}

/// `divisor` must be an integer made of declared symbols, no variables, that
/// divides the symbol's value at every binding.
static llvm::Error checkFact(const SizeRules &rules,
                             const SizeRules::Divides &fact) {
  if (fact.multiple >= rules.numSymbols)
    return llvm::createStringError("a fact must be about a declared symbol");
  if (!fact.divisor.hasIntegerConstant() ||
      llvm::any_of(fact.divisor.getExponents(), [](int8_t e) { return e < 0; }))
    return llvm::createStringError("the divisor of a fact must be an integer");
  // A variable takes any value; what divides it is not known beforehand.
  if (rules.isVariable(fact.multiple) || rules.hasVariable(fact.divisor))
    return llvm::createStringError("a fact must not be about a variable");
  llvm::SmallVector<bool> reached(rules.numSymbols, false);
  addReachable(rules, fact.multiple, reached);
  // `isProvenInteger` would not end.
  if (reached[fact.multiple])
    return llvm::createStringError("facts must not go in circles");
  std::optional<Size> quotient =
      Size::symbol(fact.multiple).divide(fact.divisor);
  // The factors of the symbol would lack it (`factorsOfSymbol`).
  if (!quotient)
    return llvm::createStringError(
        "the quotient of a fact must have exponents and a constant that fit");
  for (const Binding &binding : rules.bindings)
    if (!quotient->evaluate(binding))
      return llvm::createStringError(
          "a fact must hold at every binding, but the divisor of symbol " +
          llvm::Twine(fact.multiple) + " does not divide its value " +
          llvm::Twine(binding[fact.multiple]));
  return llvm::Error::success();
}

llvm::Error SizeRules::check() const {
  if (numSymbols > SymbolSet::maxSymbols)
    return llvm::createStringError(
        "at most " + llvm::Twine(SymbolSet::maxSymbols) +
        " symbols can be declared, got " + llvm::Twine(numSymbols));
  for (unsigned variable : variables)
    if (variable >= numSymbols)
      return llvm::createStringError("a variable must be a declared symbol");
  for (const Binding &binding : bindings)
    if (binding.size() < numSymbols ||
        llvm::any_of(binding, [](int64_t value) { return value < 1; }))
      return llvm::createStringError(
          "a binding must give each symbol a value of at least 1");
  for (const Divides &fact : facts)
    if (llvm::Error error = checkFact(*this, fact))
      return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// SizeRules: legal sizes and factors
//===----------------------------------------------------------------------===//

bool SizeRules::hasVariable(const Size &size) const {
  return llvm::any_of(variables, [&](unsigned variable) {
    return size.getExponent(variable) != 0;
  });
}

/// C * C / (G * G) with the fact "G divides C": one C is G * (C/G), which
/// leaves C / G, and again.
bool SizeRules::isProvenInteger(const Size &size) const {
  if (size.hasIntegerConstant() &&
      llvm::none_of(size.getExponents(), [](int8_t e) { return e < 0; }))
    return true;
  // Write one copy of a symbol as divisor times quotient. The quotient is an
  // integer, so it is enough that the rest is one. Facts do not go in circles,
  // so this ends.
  return llvm::any_of(facts, [&](const Divides &fact) {
    if (size.getExponent(fact.multiple) < 1)
      return false;
    std::optional<Size> rest = size.divide(Size::symbol(fact.multiple));
    rest = rest ? rest->multiply(fact.divisor) : std::nullopt;
    return rest && isProvenInteger(*rest);
  });
}

bool SizeRules::isLegal(const Size &size) const {
  // A variable in the numerator may take whatever the denominator needs.
  if (llvm::any_of(variables, [&](unsigned variable) {
        return size.getExponent(variable) > 0;
      }))
    return true;
  // One in the denominator does best as 1.
  llvm::SmallVector<Substitution> ones;
  for (unsigned variable : variables)
    ones.push_back({variable, Size()});
  std::optional<Size> rest = substitute(size, ones);
  if (!rest)
    return false;
  // Numbers decide where there are any: they know more than the facts.
  return bindings.empty() ? isProvenInteger(*rest) : rest->isLegal(bindings);
}

/// Every product of one size of `left` and one of `right`.
static llvm::SmallVector<Size> multiplyAll(llvm::ArrayRef<Size> left,
                                           llvm::ArrayRef<Size> right) {
  llvm::SmallVector<Size> products;
  for (const Size &l : left)
    for (const Size &r : right)
      if (std::optional<Size> product = l.multiply(r))
        products.push_back(*product);
  llvm::sort(products);
  // Different factors may have equal products.
  products.erase(llvm::unique(products), products.end());
  return products;
}

/// 1 and the symbol and, for each fact about it, the factors of the divisor
/// with and without the quotient.
llvm::SmallVector<Size> SizeRules::factorsOfSymbol(unsigned symbol) const {
  llvm::SmallVector<Size> result = {Size(), Size::symbol(symbol)};
  for (const Divides &fact : facts) {
    if (fact.multiple != symbol)
      continue;
    std::optional<Size> quotient = Size::symbol(symbol).divide(fact.divisor);
    if (quotient)
      llvm::append_range(
          result, multiplyAll(factors(fact.divisor), {Size(), *quotient}));
  }
  return result;
}

llvm::SmallVector<Size> SizeRules::factors(const Size &size) const {
  llvm::SmallVector<Size> result;
  // The divisors of the constant, in pairs.
  int64_t constant = size.getNumerator();
  for (int64_t divisor = 1; divisor * divisor <= constant; ++divisor) {
    if (constant % divisor != 0)
      continue;
    result.push_back(*Size::constant(divisor));
    if (divisor * divisor != constant)
      result.push_back(*Size::constant(constant / divisor));
  }
  for (unsigned symbol : llvm::seq(numSymbols)) {
    if (size.getExponent(symbol) < 1)
      continue;
    llvm::SmallVector<Size> ofSymbol = factorsOfSymbol(symbol);
    // Each copy of the symbol contributes a factor of its own.
    for (int copy = 0; copy < size.getExponent(symbol); ++copy)
      result = multiplyAll(result, ofSymbol);
  }
  llvm::sort(result);
  return result;
}

//===----------------------------------------------------------------------===//
// Theorem 1, groups
//===----------------------------------------------------------------------===//

std::optional<TheoremViolation>
kas::solver::findTheoremViolation(const TensorShape &shape,
                                  const SizeRules &rules) {
  auto channels = llvm::ArrayRef(shape.dims).take_front(shape.numChannelDims);
  for (auto [dim, size] : llvm::enumerate(shape.dims))
    if (dim >= shape.numChannelDims && rules.hasVariable(size))
      return TheoremViolation{TheoremClause::SpatialVariable, unsigned(dim)};

  // Variables in the numerator, each as often as its exponent says.
  auto positivePowers = [&](const Size &size) {
    int sum = 0;
    for (unsigned variable : rules.variables)
      sum += std::max(size.getExponent(variable), 0);
    return sum;
  };
  for (auto [dim, size] : llvm::enumerate(channels))
    for (unsigned variable : rules.variables)
      if (size.getExponent(variable) < 0)
        return TheoremViolation{TheoremClause::VariableInDenominator,
                                unsigned(dim)};
  for (auto [dim, size] : llvm::enumerate(channels))
    if (positivePowers(size) > 1)
      return TheoremViolation{TheoremClause::SeveralInDim, unsigned(dim)};
  int sum = 0;
  for (auto [dim, size] : llvm::enumerate(channels))
    if ((sum += positivePowers(size)) > 1)
      return TheoremViolation{TheoremClause::SeveralInTensor, unsigned(dim)};
  return std::nullopt;
}

/// O(sqrt(gcd)).
llvm::SmallVector<int64_t>
kas::solver::groupCandidates(llvm::ArrayRef<int64_t> channels) {
  int64_t common = 0;
  for (int64_t count : channels)
    common = std::gcd(common, count);
  // `result` gets the divisors up to the root in ascending order, `large` their
  // partners in descending order.
  llvm::SmallVector<int64_t> result, large;
  for (int64_t factor = 1; factor * factor <= common; ++factor) {
    if (common % factor != 0)
      continue;
    result.push_back(factor);
    if (factor * factor != common)
      large.push_back(common / factor);
  }
  llvm::append_range(result, llvm::reverse(large));
  // Without 1, one group, unless there is nothing else.
  if (result.size() > 1)
    result.erase(result.begin());
  return result;
}
