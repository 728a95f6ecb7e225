//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes and parameter counts of the named operators.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Operators/Operators.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace mlir;

using OperatorShapes = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorShapes, FollowTheFormula) {
  MLIRContext context;
  const formulas::Formula &formula = GetParam();
  OwningOpRef<ModuleOp> module = parseNamedOperator(&context, formula.name);
  ASSERT_TRUE(module);
  auto op = module->lookupSymbol<OperatorOp>(formula.name);
  for (const formulas::Sizes &sizes : formula.bindings) {
    Binding binding = getTestBinding(op, sizes);
    ASSERT_TRUE(
        succeeded(verifyBinding(op, binding, [&] { return op.emitError(); })));
    SymbolSet symbols = op.getSymbolSet();
    auto values = [&](ArrayRef<SizeAttr> shape) {
      std::vector<int64_t> result;
      for (SizeAttr size : shape)
        result.push_back(*kas::evaluate(size, symbols, binding));
      return result;
    };
    std::vector<std::vector<int64_t>> weights;
    for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
      weights.push_back(values(weight));
    EXPECT_EQ(values(op.getOutputSizes()), formula.outputShape(sizes));
    EXPECT_EQ(values(op.getDataSizes()), formula.dataShape(sizes));
    EXPECT_EQ(weights, formula.weightShapes(sizes));
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorShapes,
                         testing::ValuesIn(formulas::getFormulas()), getName);

static int64_t countParameters(StringRef name, const formulas::Sizes &sizes) {
  for (const formulas::Formula &formula : formulas::getFormulas()) {
    if (formula.name != name)
      continue;
    int64_t count = 0;
    for (const std::vector<int64_t> &shape : formula.weightShapes(sizes)) {
      int64_t elements = 1;
      for (int64_t extent : shape)
        elements *= extent;
      count += elements;
    }
    return count;
  }
  return -1;
}

// The counts that the sources of the operators state.
TEST(OperatorParameters, AreThoseOfTheSources) {
  formulas::Sizes image = {.N = 1, .Cin = 64, .Cout = 64, .H = 56, .W = 56};
  image.k = 3;
  EXPECT_EQ(countParameters("conv2d", image), 36864);

  formulas::Sizes grouped = image;
  grouped.g = 2;
  EXPECT_EQ(countParameters("conv2d_grouped", grouped), 18432);

  formulas::Sizes depthwise = image;
  depthwise.C = 64;
  EXPECT_EQ(countParameters("conv2d_depthwise", depthwise), 576);

  // k*Cin*Cout/(g*s) + k**2*Cout**2/s, half of the dense convolution's.
  formulas::Sizes lowRank = image;
  lowRank.g = 32;
  lowRank.s = 2;
  EXPECT_EQ(countParameters("syno_operator1", lowRank), 192 + 18432);
  // k*Cin*Cout/(g*s) + k*Cout**2/s, a sixth.
  EXPECT_EQ(countParameters("syno_operator2", lowRank), 192 + 6144);
  EXPECT_EQ(countParameters("stacked_conv2d", lowRank), 192 + 18432);

  // A quarter of the 768 x 2304 matrix of GPT-2's queries, keys and values.
  formulas::Sizes attention = {.N = 1, .L = 2048, .H = 768};
  attention.k = 2;
  attention.t = 3;
  EXPECT_EQ(countParameters("gpt2_projection", attention), 768 * 2304 / 4);
}
