//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/ExactCheck.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::reference;
using namespace mlir;

namespace {

/// An operator that is given as text.
struct Parsed {
  explicit Parsed(const std::string &text) {
    context.loadDialect<KasDialect>();
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module);
    problem = getExactProblem(*module->getOps<OperatorOp>().begin());
  }

  /// Null where there is no check, with the reason in `error`.
  std::optional<ExactCheck> check(const ExactOptions &options = {}) {
    auto made = ExactCheck::create(problem, options);
    if (made)
      return std::move(*made);
    error = llvm::toString(made.takeError());
    return std::nullopt;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ExactProblem problem;
  std::string error;
};

/// y[i] = sum over `size` of x[i, r] * w[r].
std::string makeProduct(int64_t size) {
  std::string n = std::to_string(size);
  return "kas.operator @f(%i: 2) from [2, " + n + "] {\n" +
         "%r = kas.reduce sum : " + n + "\n" + "%d, %w = kas.share %r : " + n +
         "\n" + "kas.yield data(%i, %d) weight(%w)\n}";
}

/// The `kind` of `size` elements.
std::string makeReduction(const std::string &kind, int64_t size) {
  std::string n = std::to_string(size);
  return "kas.operator @f() from [" + n + "] {\n%r = kas.reduce " + kind +
         " : " + n + "\nkas.yield data(%r)\n}";
}

SmallVector<ArrayRef<float>> view(const std::vector<TensorValues> &results) {
  return SmallVector<ArrayRef<float>>(results.begin(), results.end());
}

} // namespace

TEST(ExactCheck, ValuesAreTheLargestWithExactSums) {
  Parsed product(makeProduct(576));
  auto check = product.check();
  ASSERT_TRUE(check) << product.error;
  EXPECT_EQ(check->getDegree(), 2u);
  int64_t data = check->getDesign().magnitudes[0],
          weight = check->getDesign().magnitudes[1];
  EXPECT_LE(576 * data * weight, 1 << 24);
  EXPECT_GT(576 * (data + 1) * (weight + 1), 1 << 24);
  std::set<float> seen;
  for (const ExactCheck::Draw &draw : check->getDraws())
    for (float value : draw.inputs.front()) {
      EXPECT_EQ(value, std::trunc(value));
      EXPECT_LE(std::fabs(value), data);
      seen.insert(value);
    }
  EXPECT_TRUE(seen.count(static_cast<float>(data)));
  EXPECT_TRUE(seen.count(static_cast<float>(-data)));
}

TEST(ExactCheck, DrawsDependOnTheSeedAlone) {
  Parsed product(makeProduct(5));
  auto first = product.check({.seed = 1}), second = product.check({.seed = 1}),
       other = product.check({.seed = 2});
  EXPECT_EQ(first->getDraws()[0].inputs, second->getDraws()[0].inputs);
  EXPECT_NE(first->getDraws()[0].inputs, other->getDraws()[0].inputs);
  EXPECT_NE(first->getDraws()[0].inputs, first->getDraws()[1].inputs);
}

TEST(ExactCheck, FormatsLimitFactorsAndResults) {
  Parsed product(makeProduct(576));
  // Factors of 8 bits; sums have 24.
  auto factors = product.check({.format = {24, 8, 24}});
  EXPECT_LE(factors->getDesign().magnitudes[0], 256);
  // Results of 8 bits: those that are drawn must be kept as they are.
  auto elements = product.check({.format = {24, 8, 8}});
  ASSERT_TRUE(elements) << product.error;
  for (const ExactCheck::Draw &draw : elements->getDraws())
    for (float value : draw.results.front())
      EXPECT_LT(std::fabs(value), 256);
}

// A kernel that computes nothing passes where x * w is zero: of all wrong
// polynomials of these degrees those with one term pass most often.
TEST(ExactCheck, TheBoundIsThatOfASingleProduct) {
  Parsed product("kas.operator @f(%i: 1) from [1] {\n"
                 "%j = kas.reduce sum : 1\n"
                 "kas.yield data(%i) weight(%j)\n}");
  unsigned numPassed = 0, numSeeds = 4000;
  double bound = 0;
  for (uint64_t seed = 0; seed < numSeeds; ++seed) {
    auto check =
        product.check({.format = {2, 2, 24}, .seed = seed, .draws = 1});
    ASSERT_TRUE(check) << product.error;
    float zero = 0;
    numPassed += !check->compare(0, {ArrayRef<float>(zero)});
    bound = *check->getMissProbability();
  }
  // Values of -2..2, since 2 * 2 is exact with 2 bits.
  EXPECT_NEAR(bound, 1 - 0.8 * 0.8, 1e-9);
  EXPECT_NEAR(double(numPassed) / numSeeds, bound, 0.03);
}

TEST(ExactCheck, DrawsAreRepeatedUntilTheBoundIsSmall) {
  Parsed product(makeProduct(100));
  auto check = product.check();
  EXPECT_LE(*check->getMissProbability(), ExactOptions::enough);
  auto one = product.check({.draws = 1});
  EXPECT_GT(*one->getMissProbability(), ExactOptions::enough);
  EXPECT_NEAR(*check->getMissProbability(),
              std::pow(*one->getMissProbability(), check->getDraws().size()),
              1e-9);
}

TEST(ExactCheck, ComparesAllBitsButTheSignOfZero) {
  Parsed product(makeReduction("sum", 3));
  auto check = product.check();
  std::vector<TensorValues> results = check->getDraws()[0].results;
  EXPECT_FALSE(check->compare(0, view(results)));
  float right = results[0][0];
  results[0][0] = std::nextafter(right, 1e9f);
  auto difference = check->compare(0, view(results));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->count, 1);
  EXPECT_EQ(difference->expected, right);
  EXPECT_EQ(difference->actual, results[0][0]);
  EXPECT_NE(check->describe(0, *difference)
                .find("1 of 1 elements differ in draw 0, the first at []: "),
            std::string::npos);
  results[0][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(check->compare(0, view(results)));

  Parsed zero(makeReduction("sum", 1));
  auto zeros = zero.check({.format = {0, 0, 1}, .draws = 8});
  ASSERT_TRUE(zeros) << zero.error;
  for (unsigned i = 0; i < 8; ++i)
    if (zeros->getDraws()[i].results[0][0] == 0)
      EXPECT_FALSE(zeros->compare(i, {ArrayRef<float>(-0.0f)}));
}

TEST(ExactCheck, MeansAreMultiplesOfAFraction) {
  Parsed quarters(makeReduction("mean", 4)), thirds(makeReduction("mean", 3));
  EXPECT_TRUE(quarters.check()->isBitwise());
  auto check = thirds.check();
  EXPECT_FALSE(check->isBitwise());
  for (unsigned draw = 0; draw < check->getDraws().size(); ++draw) {
    std::vector<TensorValues> results = check->getDraws()[draw].results;
    float right = results[0][0];
    // Rounded otherwise, but nearest to the same multiple.
    results[0][0] = std::nextafter(right, 1e9f);
    EXPECT_FALSE(check->compare(draw, view(results)));
    results[0][0] = right + 1.0f / 3;
    EXPECT_TRUE(check->compare(draw, view(results)));
    results[0][0] = right - 1.0f / 3;
    EXPECT_TRUE(check->compare(draw, view(results)));
  }
}

TEST(ExactCheck, MaximaHaveNoBound) {
  auto check = Parsed(makeReduction("max", 5)).check();
  EXPECT_FALSE(check->getMissProbability());
  EXPECT_EQ(check->getDraws().size(), 5 * ExactOptions::drawsPerValue);
  EXPECT_EQ(Parsed(makeReduction("max", 500)).check()->getDraws().size(),
            ExactOptions::maxDrawsOfMaxima);
}

// All terms have the same sign, so that results are larger than those of
// independent terms: smaller values are taken, and both attempts count.
TEST(ExactCheck, SmallerValuesAreTriedWhereResultsAreTooLarge) {
  Parsed repeated("kas.operator @f(%i: 64) from [64, 2] {\n"
                  "%r = kas.reduce sum : 512\n"
                  "%q, %rest = kas.merge %r by 256 : 512\n"
                  "kas.expand %rest : 256\n"
                  "kas.yield data(%i, %q)\n}");
  auto check = repeated.check({.format = {24, 11, 11}, .draws = 1});
  ASSERT_TRUE(check) << repeated.error;
  int64_t magnitude = check->getDesign().magnitudes[0];
  for (float value : check->getDraws()[0].results[0])
    EXPECT_LT(std::fabs(value), 2048);
  EXPECT_GT(*check->getMissProbability(), 1.0 / (2 * magnitude + 1));
}

// More terms than 2^24 in f32 are as many as 2^8 in a type of 8 bits: most
// values must be zero, and what is drawn is what counts.
TEST(ExactCheck, SparseValuesMakeLongSumsExact) {
  Parsed product(makeProduct(1000));
  auto check = product.check({.format = {8, 8, 8}});
  ASSERT_TRUE(check) << product.error;
  EXPECT_LT(check->getDesign().density, 1);
  for (const ExactCheck::Draw &draw : check->getDraws())
    for (unsigned row = 0; row < 2; ++row) {
      float sum = 0;
      for (unsigned i = 0; i < 1000; ++i)
        sum += std::fabs(draw.inputs[0][1000 * row + i] * draw.inputs[1][i]);
      EXPECT_LE(sum, 256);
      EXPECT_GT(sum, 0);
    }
  EXPECT_LT(*check->getMissProbability(), 1);
}

TEST(ExactCheck, SaysWhyItDoesNotApply) {
  Parsed sum(makeReduction("sum", 100000));
  EXPECT_FALSE(sum.check({.format = {4, 4, 4}}));
  EXPECT_EQ(sum.error.find("an exact check does not apply: it requires the sum "
                           "of the magnitudes of all terms to be at most 16 in "
                           "magnitude, got "),
            0u)
      << sum.error;
}
