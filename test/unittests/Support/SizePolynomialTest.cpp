//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/SizePolynomial.h"
#include "gtest/gtest.h"
#include <limits>

using namespace kas;

namespace {

class SizePolynomialTest : public testing::Test {
protected:
  SizePolynomialTest() {
    llvm::cantFail(symbols.add("N", SymbolKind::Primary));
    llvm::cantFail(symbols.add("C", SymbolKind::Primary));
    llvm::cantFail(symbols.add("k", SymbolKind::Coefficient));
    llvm::cantFail(symbols.add("g", SymbolKind::Coefficient));
  }

  Size size(llvm::StringRef text) {
    return llvm::cantFail(parseSize(text, symbols));
  }
  SizePolynomial product(std::initializer_list<llvm::StringRef> texts,
                         int64_t factor = 1) {
    llvm::SmallVector<Size> sizes;
    for (llvm::StringRef text : texts)
      sizes.push_back(size(text));
    return *SizePolynomial::product(sizes, factor);
  }
  std::string print(const SizePolynomial &polynomial) {
    return toString(polynomial, symbols);
  }

  SymbolSet symbols;
  static constexpr int64_t largest = std::numeric_limits<int64_t>::max();
};

TEST_F(SizePolynomialTest, Prints) {
  EXPECT_EQ(print(SizePolynomial()), "0");
  EXPECT_EQ(print(product({})), "1");
  EXPECT_EQ(print(product({"N", "C/g", "k", "k"}, 2)), "2*C*N*k**2/g");
  EXPECT_EQ(print(product({"1/g"}, 3)), "3/g");
  EXPECT_EQ(print(product({"N"}, 0)), "0");
  // Constants beyond those of a size.
  EXPECT_EQ(print(product({"N"}, 1ll << 40)), "1099511627776*N");
  EXPECT_EQ(print(product({}, 1ll << 40)), "1099511627776");
}

TEST_F(SizePolynomialTest, AddsLikeTerms) {
  SizePolynomial sum = *product({"N", "C"}).add(product({"C", "N"}, 2));
  EXPECT_EQ(sum, product({"N", "C"}, 3));
  EXPECT_EQ(*sum.add(SizePolynomial()), sum);
  EXPECT_EQ(*SizePolynomial().add(sum), sum);
  EXPECT_EQ(*product({"N/2"}).add(product({"N/3"})), product({"5*N/6"}));
  EXPECT_EQ(*product({"N/2"}).add(product({"N/2"})), product({"N"}));
}

TEST_F(SizePolynomialTest, OrderOfTermsDoesNotDependOnTheOrderOfSums) {
  SizePolynomial a = product({"N"}), b = product({"C", "C"}),
                 c = product({"k/g"});
  SizePolynomial left = *a.add(b)->add(c);
  EXPECT_EQ(left, *c.add(b)->add(a));
  EXPECT_EQ(print(left), "N + C**2 + k/g");
}

TEST_F(SizePolynomialTest, Scales) {
  EXPECT_EQ(*product({"N"}).add(product({"C"}))->scale(4),
            *product({"N"}, 4).add(product({"C"}, 4)));
  EXPECT_TRUE(product({"N"}).scale(0)->isZero());
}

TEST_F(SizePolynomialTest, EvaluatesExactly) {
  Binding binding = {2, 12, 3, 4};
  EXPECT_EQ(SizePolynomial().evaluate(binding), 0);
  EXPECT_EQ(product({"N", "C/g", "k"}).evaluate(binding), 18);
  EXPECT_EQ(product({"N"}).add(product({"C"}))->evaluate(binding), 14);
  EXPECT_EQ(product({"k/g"}).evaluate(binding), std::nullopt);
  // Each term must be an integer.
  EXPECT_EQ(product({"1/g"}, 2).evaluate(binding), std::nullopt);
}

TEST_F(SizePolynomialTest, ReportsOverflow) {
  int64_t root = 3037000500; // root * root is just above 2^63.
  EXPECT_EQ(product({"N", "C"}).evaluate({root, root, 1, 1}), std::nullopt);
  EXPECT_EQ(product({"N", "C"}).evaluate({root - 1, root - 1, 1, 1}),
            (root - 1) * (root - 1));
  // What cancels does not overflow.
  EXPECT_EQ(product({"N", "C/g", "1/k"}).evaluate({root, root, root, root}), 1);
  EXPECT_FALSE(product({"N"}, largest).scale(2));
  EXPECT_EQ(product({}, largest).evaluate({}), largest);
  EXPECT_FALSE(product({}, largest).add(product({})));
  EXPECT_EQ(product({"N"}, largest).add(product({"C"}))->evaluate({1, 1, 1, 1}),
            std::nullopt);
  llvm::SmallVector<Size> sizes(128, Size::symbol(0));
  EXPECT_FALSE(SizePolynomial::product(sizes));
  sizes.pop_back();
  EXPECT_TRUE(SizePolynomial::product(sizes));
}

} // namespace
