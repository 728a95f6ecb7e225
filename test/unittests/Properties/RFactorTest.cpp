//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "Properties.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::solver;
using namespace kas::test;
using namespace mlir;

/// Intermediates are rounded to f32 between stages.
static constexpr double tolerance = 1e-5;

/// The value of a chain of operators, each with its own weights.
static std::vector<float> evaluateStages(ArrayRef<OperatorOp> stages,
                                         const StagePlan &plan,
                                         const Inputs &inputs) {
  std::vector<float> value = inputs.data;
  for (auto [op, stage] : llvm::zip_equal(stages, plan.stages)) {
    Inputs ofStage(getShapes(op), 0);
    ofStage.data = value;
    for (auto [index, weight] : llvm::enumerate(stage.weights))
      ofStage.weights[index] = inputs.weights[weight];
    value = evaluate(op, ofStage);
  }
  return value;
}

TEST(RFactor, StagesKeepTheMeaning) {
  unsigned staged = 0, longest = 0;
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp op = makeConcrete(random.op, random.binding);
    Inputs inputs(getShapes(op), seed);
    StagePlan plan = planStages(op);
    OpBuilder builder(op);
    SmallVector<OperatorOp> stages = buildStages(builder, op, plan);
    for (OperatorOp stage : stages)
      ASSERT_TRUE(succeeded(verify(stage))) << print(stage);
    EXPECT_LE(getError(evaluateStages(stages, plan, inputs),
                       evaluate(op, inputs), getCancellationFloor(op, inputs)),
              tolerance);
    staged += stages.size() > 1;
    longest = std::max<unsigned>(longest, stages.size());
  });
  // Enough of the random operators gain from stages.
  EXPECT_GT(staged, getNumOperators() / 10);
  EXPECT_GE(longest, 3u);
}

TEST(RFactor, MaxStaysWhole) {
  forEachOperator([&](const RandomOperator &random, uint64_t) {
    OperatorOp op = makeConcrete(random.op, random.binding);
    if (!canFactor(op))
      EXPECT_EQ(planStages(op).stages.size(), 1u);
  });
}
