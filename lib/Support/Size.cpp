//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symbolic sizes: products of symbols with integer exponents and a rational
// constant, packed in a few words.
// The cost and legality of candidates are computed with them millions of times
// in a search, so a size is 16 bytes without allocation: twelve exponents of 8
// bits and a constant of 32. Everything that does not fit is refused
// (`nullopt`) and never wraps.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Size.h"
#include "kas/Support/PrimeFactors.h"
#include "kas/Support/SizeGrammar.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace kas;

//===----------------------------------------------------------------------===//
// SymbolSet
//===----------------------------------------------------------------------===//

llvm::Error SymbolSet::add(llvm::StringRef name, SymbolKind kind) {
  if (lookup(name))
    return llvm::createStringError("symbol '" + name +
                                   "' is declared more than once");
  if (size() == maxSymbols)
    return llvm::createStringError("at most " + llvm::Twine(maxSymbols) +
                                   " symbols can be declared, '" + name +
                                   "' is one too many");
  names.push_back(name.str());
  kinds.push_back(kind);
  return llvm::Error::success();
}

std::optional<unsigned> SymbolSet::lookup(llvm::StringRef name) const {
  const auto *it = llvm::find(names, name);
  if (it == names.end())
    return std::nullopt;
  return it - names.begin();
}

//===----------------------------------------------------------------------===//
// Size
//===----------------------------------------------------------------------===//

namespace {
/// The layout of the constant, from bit 31 down: 1, 11 bits of denominator, 20
/// bits of numerator; or 0 and an integer of 31 bits. Both have one form only,
/// since fractions are in lowest terms, so equality compares the bits.
constexpr uint32_t fractionFlag = uint32_t(1) << 31;
constexpr unsigned numeratorBits = 20;
} // namespace

std::optional<Size> Size::constant(int64_t numerator, int64_t denominator) {
  if (numerator < 1 || denominator < 1)
    return std::nullopt;
  // Lowest terms first: 4096/2 is an integer that fits, though 4096 would not
  // be a denominator.
  int64_t divisor = std::gcd(numerator, denominator);
  numerator /= divisor;
  denominator /= divisor;
  Size size;
  if (denominator == 1) {
    if (numerator > maxInteger)
      return std::nullopt;
    size.packedConstant = numerator;
    return size;
  }
  if (numerator > maxNumerator || denominator > maxDenominator)
    return std::nullopt;
  size.packedConstant =
      fractionFlag | uint32_t(denominator) << numeratorBits | numerator;
  return size;
}

Size Size::symbol(unsigned index, int8_t exponent) {
  Size size;
  size.exponents[index] = exponent;
  return size;
}

int64_t Size::getNumerator() const {
  if (!(packedConstant & fractionFlag))
    return packedConstant;
  return packedConstant & maxNumerator;
}

int64_t Size::getDenominator() const {
  if (!(packedConstant & fractionFlag))
    return 1;
  return (packedConstant & ~fractionFlag) >> numeratorBits;
}

bool Size::isConstant() const {
  return llvm::all_of(exponents, [](int8_t e) { return e == 0; });
}

/// `left + sign * right` per exponent, or nothing when one does not fit.
static bool addExponents(llvm::ArrayRef<int8_t> left,
                         llvm::ArrayRef<int8_t> right, int sign,
                         llvm::MutableArrayRef<int8_t> result) {
  for (auto [l, r, out] : llvm::zip(left, right, result)) {
    int sum = l + sign * r;
    if (sum < INT8_MIN || sum > INT8_MAX)
      return false;
    out = sum;
  }
  return true;
}

std::optional<Size> Size::multiply(const Size &other) const {
  // Crosswise reduction keeps the products below 2^62.
  // a/b * c/d with gcd(a, d) and gcd(c, b) taken out is in lowest terms at
  // once.
  int64_t down = std::gcd(getNumerator(), other.getDenominator());
  int64_t up = std::gcd(other.getNumerator(), getDenominator());
  std::optional<Size> result =
      constant((getNumerator() / down) * (other.getNumerator() / up),
               (getDenominator() / up) * (other.getDenominator() / down));
  if (!result ||
      !addExponents(exponents, other.exponents, 1, result->exponents))
    return std::nullopt;
  return result;
}

/// The same with `other` upside down.
std::optional<Size> Size::divide(const Size &other) const {
  int64_t over = std::gcd(getNumerator(), other.getNumerator());
  int64_t under = std::gcd(getDenominator(), other.getDenominator());
  std::optional<Size> result =
      constant((getNumerator() / over) * (other.getDenominator() / under),
               (getDenominator() / under) * (other.getNumerator() / over));
  if (!result ||
      !addExponents(exponents, other.exponents, -1, result->exponents))
    return std::nullopt;
  return result;
}

/// Exponents are small; an overflow on the way is one of the result, too, since
/// each step moves every part away from 1.
std::optional<Size> Size::power(int exponent) const {
  std::optional<Size> result = Size();
  for (int i = 0, e = std::abs(exponent); i < e && result; ++i)
    result = exponent > 0 ? result->multiply(*this) : result->divide(*this);
  return result;
}

Size Size::remap(llvm::ArrayRef<unsigned> positions) const {
  Size result;
  result.packedConstant = packedConstant;
  for (auto [index, exponent] : llvm::enumerate(exponents))
    if (exponent != 0)
      result.exponents[positions[index]] = exponent;
  return result;
}

namespace {
/// A positive rational in lowest terms whose products never wrap.
struct Rational {
  uint64_t numerator, denominator;

  /// False when the result does not fit; the value is undefined then.
  bool multiply(uint64_t factor) {
    uint64_t common = std::gcd(factor, denominator);
    denominator /= common;
    bool overflow = false;
    numerator = llvm::SaturatingMultiply(numerator, factor / common, &overflow);
    return !overflow;
  }
  bool divide(uint64_t factor) {
    uint64_t common = std::gcd(factor, numerator);
    numerator /= common;
    bool overflow = false;
    denominator =
        llvm::SaturatingMultiply(denominator, factor / common, &overflow);
    return !overflow;
  }
};
} // namespace

/// Exact: every factor is cancelled against the other side before it is
/// multiplied, so H*W/(s*s) with large H and W does not overflow on the way.
std::optional<int64_t> Size::evaluate(llvm::ArrayRef<int64_t> binding) const {
  Rational value = {uint64_t(getNumerator()), uint64_t(getDenominator())};
  // A division may make room for a product and the reverse, so factors that do
  // not fit yet wait for another round.
  std::array<int, SymbolSet::maxSymbols> left = {};
  llvm::copy(exponents, left.begin());
  bool progress = true, done = false;
  while (progress && !done) {
    progress = false;
    done = true;
    for (auto [index, exponent] : llvm::enumerate(left)) {
      while (exponent != 0) {
        assert(index < binding.size() && binding[index] >= 1);
        Rational next = value;
        bool fits = exponent > 0 ? next.multiply(binding[index])
                                 : next.divide(binding[index]);
        if (!fits) {
          done = false;
          break;
        }
        value = next;
        exponent += exponent > 0 ? -1 : 1;
        progress = true;
      }
    }
  }
  if (!done || value.denominator != 1 ||
      value.numerator > uint64_t(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value.numerator;
}

/// A candidate must make sense at every binding of the search, and its sizes
/// are integers there.
bool Size::isLegal(llvm::ArrayRef<Binding> bindings) const {
  return llvm::all_of(bindings, [&](const Binding &binding) {
    return evaluate(binding).has_value();
  });
}

uint64_t Size::hash() const {
  // FNV-1a over the bytes in a fixed order: independent of the machine.
  uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (int8_t exponent : exponents)
    mix(exponent);
  for (unsigned shift = 0; shift < 32; shift += 8)
    mix(packedConstant >> shift);
  return hash;
}

//===----------------------------------------------------------------------===//
// Divisors
//===----------------------------------------------------------------------===//

llvm::SmallVector<Size> kas::enumerateDivisors(const Size &size,
                                               const SymbolSet &symbols,
                                               llvm::ArrayRef<Binding> bindings,
                                               unsigned coefficientReach) {
  // All products of a divisor of the numerator and of powers of symbols, then
  // those that are legal. The number of candidates is the product of the ranges
  // of all exponents, which is small: sizes have two or three symbols.
  llvm::SmallVector<Size> candidates;
  for (int64_t divisor : listDivisors(size.getNumerator()))
    candidates.push_back(*Size::constant(divisor));
  for (unsigned index = 0; index < symbols.size(); ++index) {
    // A coefficient symbol may appear in d although it is not in `size`, as in
    // C -> (C/s) * s; its inverse is then in the quotient.
    int exponent = size.getExponent(index);
    int reach = symbols.getKind(index) == SymbolKind::Coefficient
                    ? coefficientReach
                    : 0;
    // -128 has no negation in eight bits, and `divide` negates.
    int low = std::max(std::min(exponent, 0) - reach, -127);
    int high = std::min(std::max(exponent, 0) + reach, 127);
    llvm::SmallVector<Size> next;
    for (const Size &candidate : candidates)
      for (int e = low; e <= high; ++e)
        if (std::optional<Size> product =
                candidate.multiply(Size::symbol(index, e)))
          next.push_back(*product);
    candidates = std::move(next);
  }
  llvm::erase_if(candidates, [&](const Size &candidate) {
    std::optional<Size> quotient = size.divide(candidate);
    return !quotient || !candidate.isLegal(bindings) ||
           !quotient->isLegal(bindings);
  });
  // The order of the search does not depend on the order of symbols above.
  llvm::sort(candidates);
  return candidates;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

void kas::printSize(llvm::raw_ostream &os, const Size &size,
                    llvm::ArrayRef<llvm::StringRef> names) {
  llvm::SmallVector<unsigned> order;
  // Symbols by name, not in the order of their declaration: equal sizes of
  // modules that declare in other orders print the same.
  for (unsigned index = 0; index < SymbolSet::maxSymbols; ++index)
    if (size.getExponent(index) != 0)
      order.push_back(index);
  llvm::sort(order,
             [&](unsigned a, unsigned b) { return names[a] < names[b]; });

  // The factors on one side of the division line: sign 1 the numerator, -1 the
  // denominator.
  auto factors = [&](int sign, int64_t constant) {
    llvm::SmallVector<std::string> result;
    if (constant != 1)
      result.push_back(std::to_string(constant));
    for (unsigned index : order) {
      int exponent = sign * size.getExponent(index);
      if (exponent > 0)
        result.push_back(names[index].str() +
                         (exponent > 1 ? "**" + std::to_string(exponent) : ""));
    }
    return result;
  };
  llvm::SmallVector<std::string> over = factors(1, size.getNumerator());
  llvm::SmallVector<std::string> under = factors(-1, size.getDenominator());
  os << (over.empty() ? "1" : llvm::join(over, "*"));
  if (under.empty())
    return;
  bool parentheses = under.size() > 1;
  os << '/' << (parentheses ? "(" : "") << llvm::join(under, "*")
     << (parentheses ? ")" : "");
}

std::string kas::toString(const Size &size, const SymbolSet &symbols) {
  llvm::SmallVector<llvm::StringRef> names;
  for (unsigned index = 0; index < symbols.size(); ++index)
    names.push_back(symbols.getName(index));
  std::string text;
  llvm::raw_string_ostream os(text);
  printSize(os, size, names);
  return text;
}

namespace {
/// The characters of a string as a source for `parseSizeFrom`, whose other
/// source is the parser of MLIR attributes: one grammar for both.
struct StringSource {
  llvm::StringRef text;
  const SymbolSet &symbols;
  size_t position = 0;
  bool failed = false;
  std::string message = {};

  void skipSpace() {
    while (position < text.size() && llvm::isSpace(text[position]))
      ++position;
  }
  bool eat(char c) {
    skipSpace();
    if (position == text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }
  bool integer(int64_t &value) {
    skipSpace();
    llvm::StringRef digits = text.substr(position).take_while(llvm::isDigit);
    if (digits.empty())
      return false;
    position += digits.size();
    // Digits beyond 64 bits: the largest value does not fit a size, so the
    // grammar reports it as one that is too large.
    if (digits.getAsInteger(10, value))
      value = std::numeric_limits<int64_t>::max();
    return true;
  }
  bool symbol(Size &size) {
    skipSpace();
    llvm::StringRef name = text.substr(position).take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return false;
    std::optional<unsigned> index = symbols.lookup(name);
    if (!index) {
      error(("size refers to undeclared symbol '" + name + "'").str());
      return false;
    }
    position += name.size();
    size = Size::symbol(*index);
    return true;
  }
  /// Only the first message counts: later ones follow from it.
  std::nullopt_t error(llvm::StringRef what) {
    if (!failed)
      message = (what + " at character " + llvm::Twine(position + 1) + " of '" +
                 text + "'")
                    .str();
    failed = true;
    return std::nullopt;
  }
};
} // namespace

llvm::Expected<Size> kas::parseSize(llvm::StringRef text,
                                    const SymbolSet &symbols) {
  StringSource source{text, symbols};
  std::optional<Size> size = parseSizeFrom(source);
  // The grammar stops at the first character that cannot continue a size, such
  // as the second `C` in `C C`.
  source.skipSpace();
  if (size && source.position != text.size()) {
    source.error("unexpected text after a size");
    size = std::nullopt;
  }
  if (!size)
    return llvm::createStringError(source.message);
  return *size;
}
