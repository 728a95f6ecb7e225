//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes of the named operators.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Library/Operators.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::library;
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
