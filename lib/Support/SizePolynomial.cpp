//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of symbolic sizes with exact arithmetic: costs as functions of symbols.
// `SizePolynomial` adds up FLOPs and elements of stages while symbols are
// unbound (docs/internals/rationale/stages.md). Constants have 63 bits and not
// the 31 of a Size, since FLOPs of one operator exceed these.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/SizePolynomial.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <numeric>

using namespace kas;

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// `size` with the constant 1.
static Size dropConstant(const Size &size) {
  Size symbols;
  for (unsigned i = 0; i < SymbolSet::maxSymbols; ++i)
    if (size.getExponent(i) != 0)
      // Distinct symbols with exponents that fit: the product fits.
      symbols = *symbols.multiply(Size::symbol(i, size.getExponent(i)));
  return symbols;
}

/// Crosswise reduction as in `Size::multiply`, so that only a result that does
/// not fit overflows. False then.
bool SizePolynomial::Term::multiply(int64_t moreNumerator,
                                    int64_t moreDenominator) {
  int64_t first = std::gcd(numerator, moreDenominator);
  int64_t second = std::gcd(moreNumerator, denominator);
  return !llvm::MulOverflow(numerator / first, moreNumerator / second,
                            numerator) &&
         !llvm::MulOverflow(denominator / second, moreDenominator / first,
                            denominator);
}

bool SizePolynomial::Term::multiply(const Size &size) {
  std::optional<Size> product = symbols.multiply(dropConstant(size));
  if (!product || !multiply(size.getNumerator(), size.getDenominator()))
    return false;
  symbols = *product;
  return true;
}

/// Adds a term with the same symbols; over the least common denominator.
bool SizePolynomial::Term::addLike(const Term &other) {
  int64_t common = std::gcd(denominator, other.denominator);
  int64_t left = 0, right = 0, sum = 0, under = 0;
  if (llvm::MulOverflow(numerator, other.denominator / common, left) ||
      llvm::MulOverflow(other.numerator, denominator / common, right) ||
      llvm::AddOverflow(left, right, sum) ||
      llvm::MulOverflow(denominator, other.denominator / common, under))
    return false;
  int64_t divisor = std::gcd(sum, under);
  numerator = sum / divisor;
  denominator = under / divisor;
  return true;
}

std::optional<int64_t>
SizePolynomial::Term::evaluate(llvm::ArrayRef<int64_t> binding) const {
  // Integer factors of both sides, an exponent as so many repetitions.
  llvm::SmallVector<int64_t> over = {numerator}, under = {denominator};
  for (auto [index, value] : llvm::enumerate(binding)) {
    int exponent = symbols.getExponent(index);
    (exponent > 0 ? over : under).append(std::abs(exponent), value);
  }
  // Cancel each pair first, so that only the value itself can overflow.
  for (int64_t &divisor : under)
    for (int64_t &factor : over) {
      int64_t common = std::gcd(factor, divisor);
      factor /= common;
      divisor /= common;
    }
  if (llvm::any_of(under, [](int64_t divisor) { return divisor != 1; }))
    return std::nullopt;
  int64_t product = 1;
  for (int64_t factor : over)
    if (llvm::MulOverflow(product, factor, product))
      return std::nullopt;
  return product;
}

void SizePolynomial::Term::print(llvm::raw_ostream &os,
                                 llvm::ArrayRef<llvm::StringRef> names) const {
  // Small constants are printed as part of the size (`C*k**2/2`), larger ones
  // in front, in a form that is read the same way.
  auto isSmall = [](int64_t value) { return value <= Size::maxInteger; };
  std::optional<Size> size;
  if (isSmall(numerator) && isSmall(denominator))
    if (std::optional<Size> constant = Size::constant(numerator, denominator))
      size = constant->multiply(symbols);
  if (size)
    return printSize(os, *size, names);
  os << numerator;
  if (!symbols.isOne()) {
    os << '*';
    printSize(os, symbols, names);
  }
  if (denominator != 1)
    os << '/' << denominator;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

std::optional<SizePolynomial>
SizePolynomial::product(llvm::ArrayRef<Size> sizes, int64_t factor) {
  SizePolynomial result;
  // Zero has no terms, so that equal polynomials are equal vectors.
  if (factor == 0)
    return result;
  Term term;
  term.numerator = factor;
  // Denominators first, so that what cancels cannot overflow.
  for (const Size &size : sizes)
    if (!term.multiply(1, size.getDenominator()))
      return std::nullopt;
  for (const Size &size : sizes)
    if (!term.multiply(dropConstant(size)) ||
        !term.multiply(size.getNumerator(), 1))
      return std::nullopt;
  result.terms.push_back(term);
  return result;
}

std::optional<SizePolynomial>
SizePolynomial::add(const SizePolynomial &other) const {
  SizePolynomial result = *this;
  for (const Term &term : other.terms) {
    // Terms are sorted by their symbols in descending order, and like terms are
    // one: a binary search finds the term to add to.
    auto *place = llvm::lower_bound(result.terms, term,
                                    [](const Term &left, const Term &right) {
                                      return left.symbols > right.symbols;
                                    });
    if (place == result.terms.end() || place->symbols != term.symbols)
      result.terms.insert(place, term);
    else if (!place->addLike(term))
      return std::nullopt;
  }
  return result;
}

std::optional<SizePolynomial> SizePolynomial::scale(int64_t factor) const {
  if (factor == 0)
    return SizePolynomial();
  SizePolynomial result = *this;
  for (Term &term : result.terms)
    if (!term.multiply(factor, 1))
      return std::nullopt;
  return result;
}

std::optional<int64_t>
SizePolynomial::evaluate(llvm::ArrayRef<int64_t> binding) const {
  int64_t sum = 0;
  // Each term must be an integer by itself: costs are sums of counts, so a
  // fraction means that the binding does not suit the operator.
  for (const Term &term : terms) {
    std::optional<int64_t> value = term.evaluate(binding);
    if (!value || llvm::AddOverflow(sum, *value, sum))
      return std::nullopt;
  }
  return sum;
}

void SizePolynomial::print(llvm::raw_ostream &os,
                           llvm::ArrayRef<llvm::StringRef> names) const {
  if (isZero())
    os << '0';
  llvm::interleave(
      terms, os, [&](const Term &term) { term.print(os, names); }, " + ");
}

std::string kas::toString(const SizePolynomial &polynomial,
                          const SymbolSet &symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::SmallVector<llvm::StringRef> names;
  for (unsigned i = 0; i < symbols.size(); ++i)
    names.push_back(symbols.getName(i));
  names.resize(SymbolSet::maxSymbols);
  polynomial.print(os, names);
  return text;
}
