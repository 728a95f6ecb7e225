//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Features.h"
#include "Properties.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

/// Among 1000 operators each feature occurs at least this often, so that no
/// change of the generator makes the other tests empty.
static const std::map<std::string, unsigned> leastOccurrences = {
    {"split", 300},
    {"merge", 300},
    {"shift", 150},
    {"expand", 100},
    {"unfold", 300},
    {"stride", 150},
    {"reduce", 500},
    {"share", 250},
    {"reduce sum", 400},
    {"reduce mean", 150},
    {"reduce max", 150},
    {"sum of max", 50},
    {"max of sum", 50},
    {"mean of max", 15},
    {"max of mean", 15},
    {"sum of mean", 50},
    {"mean of sum", 50},
    {"merge(unfold)", 40},
    {"merge(split)", 40},
    {"merge(stride)", 20},
    {"merge(merge)", 40},
    {"merge(shift)", 15},
    {"split(unfold)", 40},
    {"split(merge)", 40},
    {"unfold(unfold)", 40},
    {"unfold(stride)", 30},
    {"unfold(split)", 40},
    {"unfold(merge)", 40},
    {"unfold(share)", 30},
    {"unfold(reduce)", 100},
    {"unfold(shift)", 15},
    {"shift(split)", 20},
    {"shift(unfold)", 20},
    {"stride(unfold)", 15},
    {"expand(unfold)", 10},
    {"expand(merge)", 20},
    {"share(share)", 20},
    {"share(reduce)", 50},
    {"negative shift", 80},
    {"default low", 150},
    {"integer low", 150},
    {"symbolic low", 25},
    {"even window", 150},
    {"wide window", 50},
    {"unfold in a weight", 50},
    {"reduction only in a weight", 50},
    {"direct weight", 200},
    {"diagonal", 10},
    {"0 weights", 200},
    {"1 weights", 150},
    {"2 weights", 100},
    {"3 weights", 50},
    {"rank 0 output", 60},
    {"rank 3 output", 200},
    {"rank 1 data", 100},
    {"size 1", 200},
    {"constant size", 100},
    {"coefficient in a denominator", 100},
    {"fraction", 50},
    {"10 primitives", 150},
    {"14 primitives", 20},
};

TEST(RandomOperator, CoversWhatIsInteresting) {
  std::map<std::string, unsigned> occurrences;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        for (const std::string &feature :
             getFeatures(random.op, random.binding))
          ++occurrences[feature];
      },
      1000);
  for (const auto &[feature, least] : leastOccurrences)
    EXPECT_GE(occurrences[feature], least) << feature;
  EXPECT_EQ(occurrences["too many primitives"], 0u);
  EXPECT_EQ(occurrences["too many weights"], 0u);
  if (testing::Test::HasFailure())
    for (const auto &[feature, count] : occurrences)
      std::printf("%5u %s\n", count, feature.c_str());
}

TEST(RandomOperator, IsValid) {
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        OperatorOp op = random.op;
        EXPECT_TRUE(succeeded(verify(op)));
        EXPECT_TRUE(succeeded(
            verifyBinding(op, random.binding, [&] { return op.emitError(); })));
      },
      1000);
}

TEST(RandomOperator, MayBeLarge) {
  RandomOperatorOptions larger;
  larger.maxPoints = 300000;
  larger.maxExtent = 60;
  MLIRContext context;
  context.loadDialect<KasDialect>();
  unsigned numLarge = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    RandomOperator random = makeRandomOperator(builder, "f", seed, larger);
    OperatorOp op = makeConcrete(random.op, random.binding);
    int64_t points = *getNumElements(getShapes(op).output);
    for (ReduceOp reduce : getReductions(op))
      points *= getConcreteSize(reduce.getResult());
    EXPECT_LE(points, larger.maxPoints);
    numLarge += points > 32768;
  }
  EXPECT_GE(numLarge, 10u);
}

TEST(RandomOperator, DependsOnTheSeedAlone) {
  std::vector<std::string> first, second;
  for (std::vector<std::string> *texts : {&first, &second})
    forEachOperator([&](const RandomOperator &random,
                        uint64_t) { texts->push_back(describe(random)); },
                    20);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), 20u);
}

TEST(RandomOperator, PrintsAndParses) {
  forEachOperator([&](const RandomOperator &random, uint64_t) {
    MLIRContext context;
    context.loadDialect<KasDialect>();
    std::string text = print(random.op);
    auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    ASSERT_TRUE(module);
    EXPECT_EQ(print(&module->getBody()->front()), text);
  });
}
