//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointTable.h"
#include "RuleCounter.h"
#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

/// Both sides compute in double precision; the order of sums is the same.
static constexpr double tolerance = 1e-6;

TEST(Meaning, EvaluatorAgreesWithTabulation) {
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    Inputs inputs(getShapes(concrete), seed);
    EXPECT_LE(getError(evaluate(concrete, inputs),
                       tabulate(random.op, random.binding, inputs)),
              tolerance);
  });
}

TEST(Meaning, AffineExpressionsAgree) {
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    Inputs inputs(getShapes(concrete), seed);
    EXPECT_LE(
        getError(tabulateAffine(concrete, inputs), evaluate(concrete, inputs)),
        tolerance);
  });
}

TEST(Meaning, SpecializationIsConcreteAndKeepsTheShapes) {
  forEachOperator([&](const RandomOperator &random, uint64_t) {
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    EXPECT_TRUE(concrete.isConcrete());
    EXPECT_TRUE(succeeded(verify(concrete)));
    OperatorOp op = random.op;
    SymbolSet symbols = op.getSymbolSet();
    auto toShape = [&](ArrayRef<SizeAttr> sizes) {
      return llvm::map_to_vector(sizes, [&](SizeAttr size) {
        return *kas::evaluate(size, symbols, random.binding);
      });
    };
    OperatorShapes shapes = getShapes(concrete);
    EXPECT_EQ(shapes.output, toShape(op.getOutputSizes()));
    EXPECT_EQ(shapes.data, toShape(op.getDataSizes()));
    ASSERT_EQ(shapes.weights.size(), op.getNumWeights());
    for (auto [actual, sizes] :
         llvm::zip_equal(shapes.weights, op.getWeightSizes()))
      EXPECT_EQ(actual, toShape(sizes));
  });
}

/// Canonicalizes `op` and compares it with `expected`, its value before.
static void expectCanonicalizationKeeps(OperatorOp op, const Binding &binding,
                                        const Inputs &inputs,
                                        ArrayRef<float> expected) {
  ASSERT_TRUE(succeeded(canonicalizeOperator(op)));
  std::string text = print(op);
  SCOPED_TRACE(text);
  ASSERT_TRUE(succeeded(verify(op)));
  EXPECT_LE(getError(tabulate(op, binding, inputs), expected), tolerance);
  ASSERT_TRUE(succeeded(canonicalizeOperator(op)));
  EXPECT_EQ(print(op), text) << "canonicalization is not idempotent";
}

TEST(Meaning, CanonicalizationKeepsSymbolicOperators) {
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    Inputs inputs(getShapes(concrete), seed);
    expectCanonicalizationKeeps(random.op, random.binding, inputs,
                                evaluate(concrete, inputs));
  });
}

TEST(Meaning, CanonicalizationKeepsConcreteOperators) {
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    Inputs inputs(getShapes(concrete), seed);
    expectCanonicalizationKeeps(concrete, {}, inputs,
                                evaluate(concrete, inputs));
  });
}

/// Operators in which the rules find something to do: each is applied, alone
/// and after others, and keeps the meaning.
TEST(Meaning, EveryRuleOfCanonicalizationKeepsOperators) {
  RandomOperatorOptions options;
  options.redexPercent = 70;
  RuleCounter counter;
  auto check = [&](OperatorOp op, const Binding &binding, const Inputs &inputs,
                   ArrayRef<float> expected) {
    Operation *copy = op->clone();
    RewritePatternSet patterns(op.getContext());
    populateCanonicalizePatterns(patterns);
    auto config =
        GreedyRewriteConfig().enableFolding(false).setListener(&counter);
    EXPECT_TRUE(succeeded(applyPatternsGreedily(copy->getRegion(0),
                                                std::move(patterns), config)));
    copy->erase();
    expectCanonicalizationKeeps(op, binding, inputs, expected);
  };
  unsigned count = getNumOperators(1500);
  forEachOperator(
      [&](const RandomOperator &random, uint64_t seed) {
        OperatorOp concrete = makeConcrete(random.op, random.binding);
        Inputs inputs(getShapes(concrete), seed);
        std::vector<float> expected = evaluate(concrete, inputs);
        check(random.op, random.binding, inputs, expected);
        check(concrete, {}, inputs, expected);
      },
      count, options);
  EXPECT_EQ(counter.counts.size(), 25u);
  for (const auto &[rule, applied] : counter.counts)
    EXPECT_GE(applied, count / 150) << rule;
}
