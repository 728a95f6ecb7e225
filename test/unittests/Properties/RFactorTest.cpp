//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "Comparison.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::schedule;
using namespace kas::test;
using namespace mlir;

/// The value of the operators of a plan.
static std::vector<float> evaluateStages(ArrayRef<OperatorOp> stages,
                                         const StagePlan &plan,
                                         const Inputs &inputs) {
  std::vector<std::vector<float>> results;
  auto getValue = [&](const StageOperand &operand) -> ArrayRef<float> {
    switch (operand.kind) {
    case StageOperand::Kind::Data:
      return inputs.data;
    case StageOperand::Kind::Weight:
      return inputs.weights[operand.index];
    case StageOperand::Kind::Stage:
      return results[operand.index];
    }
    llvm_unreachable("all kinds are known");
  };
  for (auto [op, stage] : llvm::zip_equal(stages, plan.stages)) {
    Inputs ofStage(getShapes(op), 0);
    ofStage.data = getValue(stage.operands.front());
    for (auto [index, operand] :
         llvm::enumerate(llvm::drop_begin(stage.operands)))
      ofStage.weights[index] = getValue(operand);
    results.push_back(evaluate(op, ofStage));
  }
  return results.back();
}

static void expectStagesToKeepTheMeaning(StageCost cost) {
  unsigned staged = 0, longest = 0, ofWeights = 0;
  ComparisonCounts counts;
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp op = makeConcrete(random.op, random.binding);
    StagePlanOptions options;
    options.cost = cost;
    StagePlan plan = planStages(op, options);
    OpBuilder builder(op);
    SmallVector<OperatorOp> stages = buildStages(builder, op, plan);
    for (OperatorOp stage : stages)
      ASSERT_TRUE(succeeded(verify(stage))) << print(stage);
    // Intermediates are rounded to f32 between stages.
    compareWithReference(op, seed, {}, counts, [&](const Inputs &inputs) {
      return evaluateStages(stages, plan, inputs);
    });
    staged += stages.size() > 1;
    ofWeights += llvm::any_of(
        plan.stages, [](const Stage &stage) { return stage.isOfWeights; });
    longest = std::max<unsigned>(longest, stages.size());
  });
  counts.check();
  // Enough of the random operators gain from stages.
  EXPECT_GT(staged, getNumOperators() / 10);
  EXPECT_GT(ofWeights, getNumOperators() / 20);
  EXPECT_GE(longest, 3u);
}

TEST(RFactor, StagesKeepTheMeaning) {
  expectStagesToKeepTheMeaning(StageCost::Unprepared);
}

TEST(RFactor, PreparedStagesKeepTheMeaning) {
  expectStagesToKeepTheMeaning(StageCost::Prepared);
}

TEST(RFactor, MaxStaysWhole) {
  forEachOperator([&](const RandomOperator &random, uint64_t) {
    OperatorOp op = makeConcrete(random.op, random.binding);
    if (!canFactor(op))
      EXPECT_EQ(planStages(op).stages.size(), 1u);
  });
}
