//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/ShapeMatch.h"
#include "KernelSymbols.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::solver;

namespace {

struct ShapeMatchTest : testing::Test, KernelSymbols {
  ShapeMatchProblem problem(llvm::StringRef left, llvm::StringRef right) const {
    ShapeMatchProblem problem;
    problem.rules = rules;
    problem.left = sizes(left);
    problem.right = sizes(right);
    return problem;
  }

  ShapeMatches match(const ShapeMatchProblem &problem) const {
    EXPECT_EQ(llvm::toString(problem.check()), "");
    ShapeMatches result = matchShapes(problem);
    for (const ShapeMatch &match : result.matches)
      EXPECT_EQ(llvm::toString(verify(problem, match)), "");
    EXPECT_TRUE(result.isComplete);
    return result;
  }

  /// The values of the one variable that is substituted, sorted.
  llvm::SmallVector<Size> values(const ShapeMatches &matches) const {
    llvm::SmallVector<Size> result;
    for (const ShapeMatch &match : matches.matches) {
      EXPECT_EQ(match.substitutions.size(), 1u);
      result.push_back(match.substitutions[0].value);
    }
    llvm::sort(result);
    return result;
  }
};

//===----------------------------------------------------------------------===//
// The cases printed in the Canvas paper, section 6.2, and known of its solver
//===----------------------------------------------------------------------===//

/// The paper's own example (its list leaves out 1, and so the ratio C*KH).
TEST_F(ShapeMatchTest, FactorsOfChannelsAndWindow) {
  ShapeMatches matches = match(problem("x1, H, W", "C, KH, H, W"));
  EXPECT_EQ(values(matches), sorted("1, C, KH, G, C/G, C*KH, G*KH, C*KH/G"));
  for (const ShapeMatch &m : matches.matches) {
    EXPECT_EQ(m.substitutions[0].variable, 6u);
    EXPECT_EQ(m.common, (CommonDims{0, 2}));
    EXPECT_EQ(m.leftBlock, m.substitutions[0].value);
  }
}

TEST_F(ShapeMatchTest, FactorsWithAnotherVariable) {
  ShapeMatches matches =
      match(problem("x1, KH, H, W", "G, x2/G, KH, KW, H, W"));
  EXPECT_EQ(values(matches), sorted("1, x2, KW, x2*KW"));
  const ShapeMatch &all = *llvm::find_if(
      matches.matches, [&](const ShapeMatch &m) { return m.ratio.isOne(); });
  EXPECT_EQ(all.substitutions[0].value, size("x2*KW"));
  EXPECT_EQ(all.leftBlock, size("KH*KW*x2"));
  EXPECT_EQ(values(match(problem("x1, H, W", "x2, H, W"))), sorted("1, x2"));
}

TEST_F(ShapeMatchTest, VariableInTheNumeratorStaysFree) {
  ShapeMatches matches = match(problem("G*KH, H, W", "x1, H, W"));
  ASSERT_EQ(matches.matches.size(), 1u);
  EXPECT_TRUE(matches.matches[0].substitutions.empty());
  EXPECT_EQ(matches.matches[0].leftBlock, size("G*KH"));
  EXPECT_EQ(matches.matches[0].ratio, size("x1/(G*KH)"));
}

TEST_F(ShapeMatchTest, CommonDimsAreStripped) {
  ShapeMatches matches = match(problem("x1, KH, H, W", "x1, KH, KW, H, W"));
  ASSERT_EQ(matches.matches.size(), 1u);
  EXPECT_EQ(matches.matches[0].common, (CommonDims{2, 2}));
  EXPECT_EQ(matches.matches[0].ratio, size("KW"));
  EXPECT_TRUE(matches.matches[0].leftBlock.isOne());
  // Equal shapes: nothing is left.
  EXPECT_EQ(match(problem("C, H, W", "C, H, W")).matches[0].common,
            (CommonDims{0, 3}));
}

TEST_F(ShapeMatchTest, NoMatch) {
  for (auto [left, right] :
       {std::pair("C, KH, H, W", "C, H, W"), std::pair("C, H", "C, W"),
        std::pair("G, H, W", "KH, H, W")}) {
    ShapeMatches matches = match(problem(left, right));
    EXPECT_TRUE(matches.matches.empty()) << left;
    EXPECT_EQ(matches.numRejected, 0u);
    EXPECT_TRUE(matches.ratio);
  }
}

/// A spatial mask that all channels share: x1 = H*W.
TEST_F(ShapeMatchTest, BlockWithSpatialDims) {
  ShapeMatches matches = match(problem("x1", "C, H, W"));
  EXPECT_EQ(matches.matches.size(), 16u);
  const auto *mask = llvm::find_if(matches.matches, [&](const ShapeMatch &m) {
    return m.substitutions[0].value == size("H*W");
  });
  ASSERT_NE(mask, matches.matches.end());
  EXPECT_EQ(mask->ratio, size("C"));
}

//===----------------------------------------------------------------------===//
// Beyond
//===----------------------------------------------------------------------===//

TEST_F(ShapeMatchTest, OutputIsSolved) {
  auto output = [&](llvm::StringRef shape) {
    ShapeMatchProblem p = problem(shape, "C, H, W");
    p.isOutput = true;
    return match(p);
  };
  EXPECT_EQ(values(output("x1, H, W")), sorted("C"));
  EXPECT_EQ(values(output("x1/G, H, W")), sorted("C*G"));
  EXPECT_EQ(values(output("G, x1/G, H, W")), sorted("C"));
  EXPECT_EQ(values(output("G, x1, H, W")), sorted("C/G"));
  EXPECT_TRUE(output("KH, x1, H, W").matches.empty());
  // No symbol is the root of C.
  EXPECT_TRUE(output("x1, x1, H, W").matches.empty());
  // Without a variable, the product decides, in whatever arrangement.
  EXPECT_EQ(output("H, G, C/G, W").matches.size(), 1u);
  EXPECT_TRUE(output("C, H").matches.empty());
  // Two variables: all factorizations.
  EXPECT_EQ(output("x1, x2, H, W").matches.size(), 4u);
}

TEST_F(ShapeMatchTest, RootsOfSquares) {
  ShapeMatchProblem p = problem("x1, x1", "4*C, C");
  p.isOutput = true;
  EXPECT_EQ(values(match(p)), sorted("2*C"));
}

/// A value that would break another op is no match of the kernel.
TEST_F(ShapeMatchTest, RestOfTheKernelDecides) {
  ShapeMatchProblem p = problem("x1, H, W", "C, KH, H, W");
  p.shapes.push_back({sizes("G, x1/G, H, W"), 2});
  EXPECT_EQ(values(match(p)), sorted("C, G, C*KH, G*KH"));
  EXPECT_EQ(match(p).numRejected, 4u);
  p.sizes.push_back(size("x1/C"));
  EXPECT_EQ(values(match(p)), sorted("C, C*KH"));
}

TEST_F(ShapeMatchTest, TheoremIsKept) {
  ShapeMatchProblem p = problem("x1, H, W", "x2, H, W");
  p.shapes.push_back({sizes("x1, KH, H, W"), 2});
  p.shapes.push_back({sizes("C/x1, H, W"), 1});
  EXPECT_EQ(values(match(p)), sorted("1, x2"));
  p.requiresTheorem = true;
  EXPECT_EQ(values(match(p)), sorted("1"));
}

/// Sizes are compared as symbols, but a ratio is decided at the bindings.
TEST_F(ShapeMatchTest, BindingsDecideTheRatio) {
  ShapeMatchProblem p = problem("x1, H, W", "C, KH, H, W");
  p.rules.bindings = {{64, 4, 3, 3, 8, 8, 1, 1, 1}};
  EXPECT_EQ(values(match(p)), sorted("1, C, KH, G, C/G, C*KH, G*KH, C*KH/G"));
  p = problem("C, KH, H, W", "C, KW, H, W");
  EXPECT_TRUE(match(p).matches.empty());
  p.rules.bindings = {{64, 4, 3, 3, 8, 8, 1, 1, 1}};
  EXPECT_EQ(match(p).matches.size(), 1u);
}

/// The block may be given: then later values do not change what is stripped.
TEST_F(ShapeMatchTest, GivenCommonDims) {
  ShapeMatchProblem p = problem("C, H, W", "C, KH, H, W");
  EXPECT_EQ(match(p).matches[0].leftBlock, Size());
  p.common = CommonDims{0, 2};
  EXPECT_EQ(match(p).matches[0].leftBlock, size("C"));
  p.common = CommonDims{1, 3};
  EXPECT_EQ(llvm::toString(p.check()),
            "at most 3 dimensions can be common, got 4");
  p.common = CommonDims{0, 3};
  EXPECT_EQ(llvm::toString(p.check()), "common dimensions must be equal");
}

TEST_F(ShapeMatchTest, SquaresOfVariablesAreResolved) {
  // x1 may be x2, which then has to divide KW: no value holds a variable that
  // is substituted as well.
  ShapeMatchProblem p = problem("x1, x1, H", "x2, KW, H");
  for (const ShapeMatch &m : match(p).matches)
    for (const Substitution &made : m.substitutions)
      for (const Substitution &other : m.substitutions)
        EXPECT_EQ(made.value.getExponent(other.variable), 0);
}

TEST_F(ShapeMatchTest, LimitIsSaid) {
  ShapeMatchProblem p = problem("x1", "C, H, W");
  p.maxCandidates = 3;
  ShapeMatches matches = matchShapes(p);
  EXPECT_EQ(matches.matches.size(), 3u);
  EXPECT_FALSE(matches.isComplete);
}

TEST_F(ShapeMatchTest, OverflowIsNoMatch) {
  ShapeMatchProblem p = problem("1/C**100", "C**100");
  EXPECT_FALSE(matchShapes(p).ratio);
  EXPECT_TRUE(matchShapes(p).matches.empty());
}

TEST_F(ShapeMatchTest, VerifyFindsWrongMatches) {
  ShapeMatchProblem p = problem("x1, H, W", "C, KH, H, W");
  ShapeMatch good = match(p).matches.front();
  auto message = [&](const ShapeMatch &m) {
    return llvm::toString(verify(p, m));
  };
  ShapeMatch bad = good;
  bad.substitutions[0].variable = 0;
  EXPECT_EQ(message(bad), "only a variable can be substituted");
  bad = good;
  bad.substitutions[0].value = size("x1*KH");
  EXPECT_EQ(message(bad), "a value must not contain a substituted variable");
  bad = good;
  bad.substitutions[0].value = size("C/KW");
  EXPECT_EQ(message(bad), "a value must be a legal size");
  bad = good;
  bad.ratio = size("KH");
  EXPECT_EQ(message(bad),
            "the right block must be the left block times the ratio");
  bad = good;
  bad.common.prefix = 1;
  EXPECT_EQ(message(bad), "common dimensions must be equal");
  p.isOutput = true;
  EXPECT_EQ(message(good), "the ratio of an output must be 1");
}

//===----------------------------------------------------------------------===//
// By brute force
//===----------------------------------------------------------------------===//

/// Every monomial with small exponents is tried as the value of the variable:
/// the enumeration finds those that divide the right block, and no others.
TEST_F(ShapeMatchTest, EqualsBruteForce) {
  constexpr uint64_t seed = 20;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  static constexpr const char *parts[] = {"C", "C/G", "G", "KH", "KW", "H"};
  // With C = G*q: no negative power of G, q and the other symbols.
  auto isNatural = [](const Size &size) {
    return size.getExponent(0) >= 0 &&
           size.getExponent(0) + size.getExponent(1) >= 0 &&
           llvm::all_of(size.getExponents().drop_front(2),
                        [](int8_t e) { return e >= 0; });
  };
  for (int round = 0; round < 100; ++round) {
    ShapeMatchProblem p = problem("x1", "");
    for (uint64_t i = 0, e = 1 + random.below(3); i < e; ++i)
      p.right.push_back(size(parts[random.below(std::size(parts))]));
    Size left, right;
    if (random.below(2) != 0) {
      left = size(parts[random.below(4)]);
      p.left.push_back(left);
    }
    for (const Size &dim : p.right)
      right = *right.multiply(dim);
    p.common = CommonDims();

    llvm::SmallVector<Size> expected;
    for (int code = 0; code < 4 * 4 * 4 * 4 * 4; ++code) {
      Size value = *size("C/G").power(code % 4);
      for (unsigned symbol = 1; symbol <= 4; ++symbol)
        value = *value.multiply(Size::symbol(symbol, code >> (2 * symbol) & 3));
      if (isNatural(*right.divide(*left.multiply(value))))
        expected.push_back(value);
    }
    llvm::sort(expected);
    EXPECT_EQ(values(match(p)), expected) << text(left) << " " << text(right);
  }
}

} // namespace
