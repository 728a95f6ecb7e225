//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes with free variables in a search of kernels, interned, with what the
// search asks about them.
//
// A search asks the same few thousand sizes again and again; each gets a 16-bit
// number, and the answers are kept with it.
//
//===----------------------------------------------------------------------===//

#include "KernelSizes.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

/// Size 1 is number 0.
KernelSizes::KernelSizes(const KernelProblem &problem)
    : problem(problem), rules(problem.rules),
      firstVariable(problem.symbols.size() - problem.rules.variables.size()) {
  // Legality must follow from facts alone: bindings would make it depend on the
  // layers.
  rules.bindings.clear();
  intern(Size());
}

/// `noSize` when all 65 535 numbers are in use.
SizeId KernelSizes::intern(const Size &size) {
  auto [found, isNew] = ids.try_emplace(size, entries.size());
  if (!isNew)
    return found->second;
  if (entries.size() == noSize) {
    ids.erase(found);
    return noSize;
  }
  Entry entry;
  entry.size = size;
  // Computed once, here.
  entry.legal = rules.isLegal(size);
  for (unsigned number = 0; number < rules.variables.size(); ++number) {
    int exponent = size.getExponent(firstVariable + number);
    if (exponent != 0)
      entry.variables |= 1u << number;
    // 255: a variable is in the denominator, see `isBelow`.
    if (exponent < 0)
      entry.degree = 255;
    else if (entry.degree != 255)
      entry.degree += exponent;
  }
  // The hash is of the size without its variables, see `getHash`.
  Size rest = size;
  for (unsigned variable : rules.variables)
    rest = rest.divide(Size::symbol(variable, size.getExponent(variable)))
               .value_or(rest);
  entry.hash = mixBits(rest.hash());
  evaluate(entry);
  entries.push_back(entry);
  return found->second;
}

/// Lower bounds: a variable is 1, and the symbol that is chosen has the value
/// at which the size is least.
void KernelSizes::evaluate(Entry &entry) const {
  for (auto [binding, count] :
       llvm::zip_equal(problem.rules.bindings, problem.multiplicities)) {
    double value = static_cast<double>(entry.size.getNumerator()) /
                   static_cast<double>(entry.size.getDenominator());
    for (unsigned symbol = 0; symbol < firstVariable; ++symbol) {
      int exponent = entry.size.getExponent(symbol);
      if (exponent == 0)
        continue;
      auto base = static_cast<double>(binding[symbol]);
      // Least where it is in the numerator, largest in the denominator.
      if (problem.groups == symbol)
        base =
            static_cast<double>(exponent > 0 ? problem.groupCandidates.front()
                                             : problem.groupCandidates.back());
      value *= std::pow(base, exponent);
    }
    entry.total += static_cast<double>(count) * value;
    entry.largest = std::max(entry.largest, value);
  }
}

/// `groups` is the number of a candidate.
int64_t KernelSizes::getSymbolValue(unsigned symbol, const Binding &binding,
                                    unsigned groups) const {
  return problem.groups == symbol ? problem.groupCandidates[groups]
                                  : binding[symbol];
}

/// Kept by size and candidate.
llvm::ArrayRef<double> KernelSizes::getValues(SizeId id, unsigned groups) {
  std::vector<double> &entry = getEntry(values, id, groups);
  if (!entry.empty())
    return entry;
  for (const Binding &binding : problem.rules.bindings) {
    double value = static_cast<double>(entries[id].size.getNumerator()) /
                   static_cast<double>(entries[id].size.getDenominator());
    for (unsigned symbol = 0; symbol < firstVariable; ++symbol)
      if (int exponent = entries[id].size.getExponent(symbol))
        value *= std::pow(
            static_cast<double>(getSymbolValue(symbol, binding, groups)),
            exponent);
    entry.push_back(value);
  }
  return entry;
}

/// The size at a layer is (above / below) * x in lowest terms, so x must be a
/// multiple of below / gcd(above, below).
llvm::ArrayRef<int64_t> KernelSizes::getSteps(SizeId id, unsigned groups) {
  std::vector<int64_t> &entry = getEntry(steps, id, groups);
  if (!entry.empty())
    return entry;
  for (const Binding &binding : problem.rules.bindings) {
    int64_t above = entries[id].size.getNumerator();
    int64_t below = entries[id].size.getDenominator();
    for (unsigned symbol = 0; symbol < firstVariable; ++symbol) {
      int64_t value = getSymbolValue(symbol, binding, groups);
      // Saturating, with the sign bit cleared: a size that large is illegal for
      // other reasons.
      for (int e = entries[id].size.getExponent(symbol); e > 0; --e)
        above = llvm::SaturatingMultiply<uint64_t>(above, value) & INT64_MAX;
      for (int e = entries[id].size.getExponent(symbol); e < 0; ++e)
        below = llvm::SaturatingMultiply<uint64_t>(below, value) & INT64_MAX;
    }
    entry.push_back(below / std::gcd(above, below));
  }
  return entry;
}

/// Interns the result; `noSize` when it does not fit.
SizeId KernelSizes::computeSubstitution(SizeId id, unsigned variable,
                                        SizeId value) {
  Substitution made{firstVariable + variable, (*this)[value]};
  return intern(kas::solver::substitute((*this)[id], made));
}

/// Equal in variables and in the symbol whose value is chosen, and in numbers
/// in what is left. Such factors give the same kernel at every layer, for
/// example H and W of square images.
bool KernelSizes::areEqualAtAllLayers(const Size &a, const Size &b) const {
  std::optional<Size> ratio = a.divide(b);
  if (!ratio || (problem.groups && ratio->getExponent(*problem.groups) != 0))
    return false;
  for (unsigned variable : rules.variables)
    if (ratio->getExponent(variable) != 0)
      return false;
  return llvm::all_of(problem.rules.bindings, [&](const Binding &binding) {
    return ratio->evaluate(binding) == 1;
  });
}

/// Kept by size: merges ask for the factors of the same ratios again and again.
llvm::ArrayRef<SizeId> KernelSizes::getFactors(SizeId id) {
  auto [found, isNew] = factors.try_emplace(id);
  if (!isNew)
    return found->second;
  llvm::SmallVector<SizeId, 16> result;
  for (const Size &factor : rules.factors((*this)[id]))
    if (llvm::none_of(result, [&](SizeId other) {
          return areEqualAtAllLayers((*this)[other], factor);
        }))
      result.push_back(intern(factor));
  // Factors for which there is no number left.
  llvm::erase(result, noSize);
  return factors[id] = std::move(result);
}
