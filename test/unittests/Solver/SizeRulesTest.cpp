//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/SizeRules.h"
#include "KernelSymbols.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::solver;

namespace {

struct SizeRulesTest : testing::Test, KernelSymbols {};

/// An integer for some values of the variables.
TEST_F(SizeRulesTest, LegalByTheFacts) {
  for (const char *legal : {"1", "C", "C/G", "C*C/(G*G)", "x1/C", "C*KH/G",
                            "12*C/(4*G)", "G*C/G", "x1/(x2*C)", "C/x1", "1/x1"})
    EXPECT_TRUE(rules.isLegal(size(legal))) << legal;
  for (const char *illegal :
       {"C/(G*G)", "C/H", "3/5", "G/C", "C/(G*G*x1)", "KH/KW"})
    EXPECT_FALSE(rules.isLegal(size(illegal))) << illegal;
}

TEST_F(SizeRulesTest, LegalByTheBindings) {
  //                  C, G, KH, KW, H, W, x1, x2, x3
  rules.bindings = {{64, 4, 3, 3, 8, 8, 1, 1, 1}};
  EXPECT_FALSE(rules.check());
  EXPECT_TRUE(rules.isLegal(size("C/(G*G)")));
  EXPECT_TRUE(rules.isLegal(size("C/H")));
  EXPECT_FALSE(rules.isLegal(size("C/KH")));
  EXPECT_TRUE(rules.isLegal(size("x1/KH")));
  EXPECT_FALSE(rules.isLegal(size("C/(KH*x1)")));
  // Every layer counts.
  rules.bindings.push_back({32, 4, 5, 5, 6, 6, 1, 1, 1});
  EXPECT_FALSE(rules.isLegal(size("C/H")));
}

/// With two divisors of one symbol, each copy gives way to one of them.
TEST_F(SizeRulesTest, TwoDivisorsOfOneSymbol) {
  rules.facts.push_back({size("4*KH"), 0});
  EXPECT_TRUE(rules.isLegal(size("C/(2*KH)")));
  EXPECT_TRUE(rules.isLegal(size("C*C/(G*KH)")));
  EXPECT_FALSE(rules.isLegal(size("C/(G*KH)")));
  EXPECT_FALSE(rules.isLegal(size("C/(8*KH)")));
  // 1, C, G, C/G, and {1,2,4} * {1,KH} * {1, C/(4*KH)}.
  EXPECT_EQ(rules.factors(size("C")).size(), 4u + 12u - 2u);
}

TEST_F(SizeRulesTest, ChainsOfDivisors) {
  rules.facts.push_back({size("KW"), 1});
  EXPECT_TRUE(rules.isLegal(size("C/KW")));
  EXPECT_TRUE(rules.isLegal(size("C*G/(KW*KW)")));
  EXPECT_FALSE(rules.isLegal(size("C/(KW*KW)")));
  EXPECT_EQ(rules.factors(size("C")),
            sorted("1, C, KW, G/KW, G, C/G, C*KW/G, C/KW"));
}

TEST_F(SizeRulesTest, Factors) {
  EXPECT_EQ(rules.factors(size("C")), sorted("1, G, C, C/G"));
  EXPECT_EQ(rules.factors(size("C*KH")),
            sorted("1, G, C, C/G, KH, G*KH, C*KH, C*KH/G"));
  EXPECT_EQ(rules.factors(size("x2*KW")), sorted("1, KW, x2, x2*KW"));
  EXPECT_EQ(rules.factors(size("C*H*W")).size(), 16u);
  EXPECT_EQ(rules.factors(size("C*C")),
            sorted("1, G, C/G, C, G*G, C*G, C*C/(G*G), C*C/G, C*C"));
  EXPECT_EQ(rules.factors(size("C*G")), sorted("1, C, C/G, G, C*G, G*G"));
  EXPECT_EQ(rules.factors(size("12")), sorted("1, 2, 3, 4, 6, 12"));
  EXPECT_EQ(rules.factors(size("2*KH/3")), sorted("1, 2, KH, 2*KH"));
}

TEST_F(SizeRulesTest, TheoremClauses) {
  struct Case {
    const char *dims;
    unsigned numChannelDims;
    TheoremClause clause;
    unsigned dim;
  };
  for (const Case &c : std::initializer_list<Case>{
           {"C, H, x1", 1, TheoremClause::SpatialVariable, 2},
           {"C, H, W/x1", 1, TheoremClause::SpatialVariable, 2},
           {"G, C/x1, H, W", 2, TheoremClause::VariableInDenominator, 1},
           {"x1*x2/KH, H, W", 1, TheoremClause::SeveralInDim, 0},
           {"C, x1*x1, H, W", 2, TheoremClause::SeveralInDim, 1},
           {"x1, x2, H, W", 2, TheoremClause::SeveralInTensor, 1},
           {"G, x1/G, KH, x1, W", 4, TheoremClause::SeveralInTensor, 3}}) {
    std::optional<TheoremViolation> violation =
        findTheoremViolation({sizes(c.dims), c.numChannelDims}, rules);
    ASSERT_TRUE(violation) << c.dims;
    EXPECT_EQ(violation->clause, c.clause) << c.dims;
    EXPECT_EQ(violation->dim, c.dim) << c.dims;
  }
  for (const char *good : {"C, H, W", "G, x1/G, KH, H, W", "x2*KW, KH, H, W"})
    EXPECT_FALSE(findTheoremViolation(
        {sizes(good), unsigned(sizes(good).size()) - 2}, rules))
        << good;
}

TEST(GroupCandidates, FactorsOfTheCommonDivisor) {
  using List = llvm::SmallVector<int64_t>;
  EXPECT_EQ(groupCandidates({32, 48}), (List{2, 4, 8, 16}));
  EXPECT_EQ(groupCandidates({36}), (List{2, 3, 4, 6, 9, 12, 18, 36}));
  EXPECT_EQ(groupCandidates({7, 16}), (List{1}));
  EXPECT_EQ(groupCandidates({1}), (List{1}));
}

/// Every mistake in a description is reported, none is acted upon.
TEST_F(SizeRulesTest, Check) {
  auto message = [](const SizeRules &rules) {
    return llvm::toString(rules.check());
  };
  SizeRules bad = rules;
  bad.variables.push_back(9);
  EXPECT_EQ(message(bad), "a variable must be a declared symbol");
  bad = rules;
  bad.numSymbols = 13;
  EXPECT_EQ(message(bad), "at most 12 symbols can be declared, got 13");
  bad = rules;
  bad.facts.push_back({size("C"), 1});
  EXPECT_EQ(message(bad), "facts must not go in circles");
  bad = rules;
  bad.facts.push_back({size("C/G"), 2});
  EXPECT_EQ(message(bad), "the divisor of a fact must be an integer");
  bad = rules;
  bad.facts.push_back({size("x1"), 0});
  EXPECT_EQ(message(bad), "a fact must not be about a variable");
  bad = rules;
  bad.facts.push_back({size("KH"), 9});
  EXPECT_EQ(message(bad), "a fact must be about a declared symbol");
  // C/4096 has too large a denominator, with and without a binding.
  bad = rules;
  bad.facts.push_back({size("4096"), 0});
  for (bool hasBindings : {false, true}) {
    bad.bindings.clear();
    if (hasBindings)
      bad.bindings = {{8192, 2, 3, 3, 8, 8, 1, 1, 1}};
    EXPECT_EQ(message(bad), "the quotient of a fact must have exponents and a "
                            "constant that fit");
  }
  bad = rules;
  bad.bindings = {{64, 4}};
  EXPECT_EQ(message(bad),
            "a binding must give each symbol a value of at least 1");
  bad.bindings = {{64, 3, 3, 3, 8, 8, 1, 1, 1}};
  EXPECT_EQ(message(bad), "a fact must hold at every binding, but the divisor "
                          "of symbol 0 does not divide its value 64");
}

TEST_F(SizeRulesTest, SubstituteAtOnce) {
  EXPECT_EQ(substitute(size("C/G*x1*x1*x3"), {{6, size("C")}}),
            size("C*C*C*x3/G"));
  // Both at once: the x2 that x1 brings in stays.
  EXPECT_EQ(substitute(size("x1*x2"), {{6, size("x2*KW")}, {7, size("G")}}),
            size("x2*KW*G"));
  EXPECT_EQ(substitute(size("x1**100"), {{6, size("C*C")}}), std::nullopt);
}

} // namespace
