//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Size.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>
#include <set>

using namespace kas;

namespace {

/// Two primaries and two coefficients.
SymbolSet makeSymbols() {
  SymbolSet symbols;
  cantFail(symbols.add("H", SymbolKind::Primary));
  cantFail(symbols.add("C", SymbolKind::Primary));
  cantFail(symbols.add("g", SymbolKind::Coefficient));
  cantFail(symbols.add("s", SymbolKind::Coefficient));
  return symbols;
}

std::string errorOf(llvm::Expected<Size> size) {
  return size ? std::string("no error") : llvm::toString(size.takeError());
}

/// The same monomial with unbounded exponents and a 128-bit constant: what the
/// packed form must agree with, or refuse.
struct Model {
  std::array<int, SymbolSet::maxSymbols> exponents = {};
  unsigned __int128 numerator = 1, denominator = 1;

  static Model of(const Size &size) {
    Model model;
    llvm::copy(size.getExponents(), model.exponents.begin());
    model.numerator = size.getNumerator();
    model.denominator = size.getDenominator();
    return model;
  }
  Model combine(const Model &other, int sign) const {
    Model result = *this;
    for (unsigned i = 0; i < exponents.size(); ++i)
      result.exponents[i] += sign * other.exponents[i];
    result.numerator *= sign > 0 ? other.numerator : other.denominator;
    result.denominator *= sign > 0 ? other.denominator : other.numerator;
    unsigned __int128 a = result.numerator, b = result.denominator;
    while (b != 0)
      std::swap(a %= b, b);
    result.numerator /= a;
    result.denominator /= a;
    return result;
  }
  bool fits() const {
    bool exponentsFit = llvm::all_of(
        exponents, [](int e) { return e >= INT8_MIN && e <= INT8_MAX; });
    bool constantFits = denominator == 1
                            ? numerator <= Size::maxInteger
                            : numerator <= Size::maxNumerator &&
                                  denominator <= Size::maxDenominator;
    return exponentsFit && constantFits;
  }
};

/// Random sizes near and far from the limits of the packed form.
struct RandomSizes {
  std::mt19937_64 engine{20261121};

  int64_t below(int64_t bound) { return engine() % bound; }
  Size next() {
    int64_t limit = below(2) ? 12 : Size::maxNumerator;
    int64_t bottom = below(3) ? 1 : 1 + below(below(2) ? 7 : 2000);
    std::optional<Size> size = Size::constant(1 + below(limit), bottom);
    int reach = below(4) ? 3 : 127;
    for (unsigned i = 0; i < SymbolSet::maxSymbols; ++i)
      if (below(3) == 0)
        size = size->multiply(
            Size::symbol(i, static_cast<int8_t>(below(2 * reach + 1) - reach)));
    return *size;
  }
};

} // namespace

TEST(Size, PrintsInNormalOrder) {
  SymbolSet symbols = makeSymbols();
  auto normal = [&](llvm::StringRef text) {
    return toString(cantFail(parseSize(text, symbols)), symbols);
  };
  EXPECT_EQ(normal("H*C"), "C*H");
  EXPECT_EQ(normal("C/s/g"), "C/(g*s)");
  EXPECT_EQ(normal("C/(s*g)*3"), "3*C/(g*s)");
  EXPECT_EQ(normal("g**2*H*2/4"), "H*g**2/2");
  EXPECT_EQ(normal("1"), "1");
  EXPECT_EQ(normal("1/s**2"), "1/s**2");
  EXPECT_EQ(normal("C/C"), "1");
  EXPECT_EQ(normal(" ( C ) * 6 / ( 4 * s ) "), "3*C/(2*s)");
}

TEST(Size, RejectsMalformedText) {
  SymbolSet symbols = makeSymbols();
  auto error = [&](llvm::StringRef text) {
    return errorOf(parseSize(text, symbols));
  };
  EXPECT_EQ(error("K"), "size refers to undeclared symbol 'K' at character 1 "
                        "of 'K'");
  EXPECT_EQ(error("0"), "a size must be at least 1 at character 2 of '0'");
  EXPECT_EQ(error(""), "expected a size: an integer, a symbol or '(' at "
                       "character 1 of ''");
  EXPECT_EQ(error("C/"), "expected a size: an integer, a symbol or '(' at "
                         "character 3 of 'C/'");
  EXPECT_EQ(error("C H"), "unexpected text after a size at character 3 of "
                          "'C H'");
  EXPECT_EQ(error("C**0"), "expected a positive integer after '**' at "
                           "character 5 of 'C**0'");
  EXPECT_EQ(error("(C"), "expected ')' in a size at character 3 of '(C'");
  EXPECT_EQ(error("99999999999999999999"),
            "size constant is too large at character 21 of "
            "'99999999999999999999'");
  EXPECT_EQ(error("C**128"), "size exponent or constant is too large at "
                             "character 7 of 'C**128'");
  EXPECT_EQ(error(std::string(100, '(')),
            "parentheses nest too deeply in a size at character 18 of '" +
                std::string(100, '(') + "'");
}

TEST(SymbolSet, RejectsDuplicatesAndTooMany) {
  SymbolSet symbols = makeSymbols();
  EXPECT_EQ(llvm::toString(symbols.add("H", SymbolKind::Coefficient)),
            "symbol 'H' is declared more than once");
  while (symbols.size() < SymbolSet::maxSymbols)
    cantFail(
        symbols.add("x" + std::to_string(symbols.size()), SymbolKind::Primary));
  EXPECT_EQ(llvm::toString(symbols.add("last", SymbolKind::Primary)),
            "at most 12 symbols can be declared, 'last' is one too many");
}

TEST(Size, ArithmeticIsExactOrRefused) {
  RandomSizes random;
  unsigned refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Size a = random.next(), b = random.next();
    for (int sign : {1, -1}) {
      Model expected = Model::of(a).combine(Model::of(b), sign);
      std::optional<Size> result = sign > 0 ? a.multiply(b) : a.divide(b);
      ASSERT_EQ(result.has_value(), expected.fits()) << "trial " << trial;
      if (!result) {
        ++refused;
        continue;
      }
      Model got = Model::of(*result);
      ASSERT_EQ(got.exponents, expected.exponents) << "trial " << trial;
      ASSERT_TRUE(got.numerator == expected.numerator &&
                  got.denominator == expected.denominator)
          << "trial " << trial;
      std::optional<Size> back =
          sign > 0 ? result->divide(b) : result->multiply(b);
      ASSERT_EQ(back, a) << "trial " << trial;
      ASSERT_EQ(back->hash(), a.hash());
    }
    ASSERT_EQ(a.multiply(b), b.multiply(a));
  }
  // The generator reaches both sides of the limits.
  EXPECT_GT(refused, 1000u);
  EXPECT_LT(refused, 39000u);
}

TEST(Size, PowerIsRepeatedMultiplication) {
  Size two = *Size::constant(2);
  EXPECT_EQ(two.power(30)->getNumerator(), int64_t(1) << 30);
  EXPECT_EQ(two.power(31), std::nullopt);
  EXPECT_EQ(two.power(-3)->getDenominator(), 8);
  EXPECT_EQ(Size::symbol(3, 2).power(-5), Size::symbol(3, -10));
  EXPECT_EQ(Size::symbol(3, 2).power(64), std::nullopt);
  EXPECT_TRUE(two.power(0)->isOne());
}

TEST(Size, ParsesWhatItPrints) {
  SymbolSet symbols;
  for (unsigned i = 0; i < SymbolSet::maxSymbols; ++i)
    cantFail(
        symbols.add("s" + std::to_string(i),
                    i % 2 ? SymbolKind::Primary : SymbolKind::Coefficient));
  RandomSizes random;
  for (int trial = 0; trial < 5000; ++trial) {
    Size size = random.next();
    bool positivePowers =
        llvm::all_of(size.getExponents(), [](int8_t e) { return e > -128; });
    ASSERT_TRUE(positivePowers);
    std::string text = toString(size, symbols);
    llvm::Expected<Size> parsed = parseSize(text, symbols);
    if (!parsed) {
      // A numerator and a denominator fit together, but not always apart.
      llvm::consumeError(parsed.takeError());
      ASSERT_GT(size.getDenominator(), 1) << text;
      continue;
    }
    ASSERT_EQ(*parsed, size) << text;
    ASSERT_EQ(toString(*parsed, symbols), text);
  }
}

TEST(Size, EvaluatesExactly) {
  SymbolSet symbols = makeSymbols();
  auto evaluate = [&](llvm::StringRef text, Binding binding) {
    return cantFail(parseSize(text, symbols)).evaluate(binding);
  };
  EXPECT_EQ(evaluate("C*H/(2*s)", {56, 64, 4, 2}), 56 * 64 / 4);
  EXPECT_EQ(evaluate("C/g", {56, 64, 3, 2}), std::nullopt);
  EXPECT_EQ(evaluate("1/2*C", {56, 64, 3, 2}), 32);
  // Intermediate results may be too large: only the value counts.
  int64_t large = int64_t(1) << 62;
  EXPECT_EQ(evaluate("C*H/g", {large, large, large, 1}), large);
  EXPECT_EQ(evaluate("C*H", {large, 1, 1, 1}), large);
  EXPECT_EQ(evaluate("C*H", {large, 2, 1, 1}), std::nullopt);
  EXPECT_EQ(evaluate("C*H", {large, large, 1, 1}), std::nullopt);
}

TEST(Size, EvaluationMultiplies) {
  RandomSizes random;
  unsigned compared = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Size a = random.next(), b = random.next();
    std::optional<Size> product = a.multiply(b);
    Binding binding;
    for (unsigned i = 0; i < SymbolSet::maxSymbols; ++i)
      binding.push_back(int64_t(1) << random.below(3));
    auto left = a.evaluate(binding), right = b.evaluate(binding);
    if (!product || !left || !right)
      continue;
    int64_t expected = 0;
    if (__builtin_mul_overflow(*left, *right, &expected)) {
      ASSERT_EQ(product->evaluate(binding), std::nullopt);
      continue;
    }
    ++compared;
    ASSERT_EQ(product->evaluate(binding), expected) << "trial " << trial;
  }
  EXPECT_GT(compared, 500u);
}

TEST(Size, LegalUnderAllBindings) {
  SymbolSet symbols = makeSymbols();
  Size size = cantFail(parseSize("C/g", symbols));
  EXPECT_TRUE(size.isLegal({{1, 64, 4, 1}, {1, 32, 8, 1}}));
  EXPECT_FALSE(size.isLegal({{1, 64, 4, 1}, {1, 36, 8, 1}}));
  EXPECT_FALSE(size.isLegal({{1, 4, 8, 1}}));
  EXPECT_TRUE(size.isLegal({}));
}

TEST(Size, DivisorsDivide) {
  SymbolSet symbols = makeSymbols();
  llvm::SmallVector<Binding> bindings = {{56, 64, 4, 2}, {28, 128, 4, 2}};
  for (llvm::StringRef text : {"C*H", "6*C/g", "H**2", "C*s/g", "1"}) {
    Size size = cantFail(parseSize(text, symbols));
    auto divisors = enumerateDivisors(size, symbols, bindings, 1);
    EXPECT_TRUE(llvm::is_sorted(divisors));
    EXPECT_EQ(std::set<Size>(divisors.begin(), divisors.end()).size(),
              divisors.size());
    EXPECT_TRUE(llvm::is_contained(divisors, Size())) << text.str();
    EXPECT_TRUE(llvm::is_contained(divisors, size)) << text.str();
    for (const Size &divisor : divisors) {
      std::optional<Size> quotient = size.divide(divisor);
      ASSERT_TRUE(quotient);
      EXPECT_TRUE(divisor.isLegal(bindings)) << toString(divisor, symbols);
      EXPECT_TRUE(quotient->isLegal(bindings)) << toString(divisor, symbols);
    }
  }
}

TEST(Size, DivisorsAreComplete) {
  SymbolSet symbols = makeSymbols();
  llvm::SmallVector<Binding> bindings = {{56, 64, 4, 2}};
  Size size = cantFail(parseSize("6*C*H", symbols));
  std::set<Size> expected;
  for (int constant : {1, 2, 3, 6})
    for (int h : {0, 1})
      for (int c : {0, 1})
        for (int g : {-1, 0, 1})
          for (int s : {-1, 0, 1}) {
            Size d = *Size::constant(constant);
            for (auto [index, e] : {std::pair(0, h), {1, c}, {2, g}, {3, s}})
              d = *d.multiply(Size::symbol(index, e));
            if (d.isLegal(bindings) && size.divide(d)->isLegal(bindings))
              expected.insert(d);
          }
  auto divisors = enumerateDivisors(size, symbols, bindings, 1);
  EXPECT_EQ(std::set<Size>(divisors.begin(), divisors.end()), expected);
  EXPECT_GT(expected.size(), 30u);
}

TEST(Size, OrderAndHashAreFixed) {
  // The same numbers on any machine: results and databases depend on them.
  SymbolSet symbols = makeSymbols();
  Size size = cantFail(parseSize("3*C*H/(2*s)", symbols));
  EXPECT_EQ(Size().hash(), 0xe82573b10ac9a7d4u);
  EXPECT_EQ(size.hash(), 0x82f38144a1ab9fedu);
  EXPECT_LT(Size::symbol(0, -1), Size());
  EXPECT_LT(Size(), Size::symbol(1));
  EXPECT_LT(Size::symbol(1), Size::symbol(0));
  EXPECT_LT(Size(), *Size::constant(2));
}

TEST(Size, RemapMovesExponents) {
  Size size = *Size::symbol(0, 2).multiply(Size::symbol(2, -1));
  Size moved = size.remap({5, 0, 1});
  EXPECT_EQ(moved.getExponent(5), 2);
  EXPECT_EQ(moved.getExponent(1), -1);
  EXPECT_EQ(moved.getExponent(0), 0);
}
