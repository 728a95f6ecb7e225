//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "mlir/IR/Verifier.h"
#include <algorithm>
#include <cmath>
#include <random>

using namespace kas;
using namespace kas::library;
using namespace mlir;

/// The array of the formula and the f32 tensor of the operator with the same
/// random values.
static formulas::Array makeRandom(const std::vector<int64_t> &shape,
                                  std::mt19937 &random, TestTensor &tensor) {
  formulas::Array array(shape);
  tensor.shape = shape;
  for (double &value : array.values) {
    // 24 random bits between -1 and 1: exact in f32, the same on all machines.
    float number = float(int32_t(random() >> 8) - (1 << 23)) / (1 << 23);
    tensor.values.push_back(number);
    value = number;
  }
  return array;
}

static void compare(const std::vector<float> &got,
                    const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    // A NaN fails here.
    ASSERT_FALSE(std::isnan(got[i])) << "at " << i;
    difference = std::max(difference, std::abs(got[i] - expected[i]));
  }
  EXPECT_GT(largest, 0) << "a formula that is zero tests nothing";
  EXPECT_LE(difference, tolerance * largest);
}

void kas::checkAgainstFormula(const formulas::Formula &formula,
                              EvaluateFn evaluate, double tolerance,
                              TransformFn transform) {
  constexpr unsigned seed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const formulas::Sizes &sizes : formula.bindings) {
    MLIRContext context;
    OwningOpRef<ModuleOp> module = parseNamedOperator(&context, formula.name);
    ASSERT_TRUE(module);
    auto op = module->lookupSymbol<OperatorOp>(formula.name);
    Binding binding = getTestBinding(op, sizes);
    transform(op);
    ASSERT_TRUE(succeeded(verify(*module)));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    FailureOr<OperatorOp> concrete =
        specialize(builder, op, binding, formula.name + "_concrete",
                   [&] { return op.emitError(); });
    ASSERT_TRUE(succeeded(concrete));

    std::mt19937 random(seed);
    TestTensor data;
    formulas::Array x = makeRandom(formula.dataShape(sizes), random, data);
    formulas::Weights w;
    std::vector<TestTensor> weights;
    for (const std::vector<int64_t> &shape : formula.weightShapes(sizes))
      w.push_back(makeRandom(shape, random, weights.emplace_back()));
    formulas::Array y(formula.outputShape(sizes));
    formula.compute(sizes, x, w, y);
    compare(evaluate(*concrete, data, weights), y.values, tolerance);
  }
}
