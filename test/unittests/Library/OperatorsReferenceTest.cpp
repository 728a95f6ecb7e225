//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named operators on the reference evaluator, against their formulas.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "kas/Reference/Evaluator.h"

using namespace kas;
using namespace kas::reference;
using namespace mlir;

/// In double precision inside, so that only the rounding to f32 remains.
static constexpr double tolerance = 1e-6;

static std::vector<float>
evaluateOnReference(OperatorOp op, const TestTensor &data,
                    const std::vector<TestTensor> &weights) {
  SmallVector<ReferenceTensor> references;
  for (const TestTensor &weight : weights)
    references.push_back({weight.shape, weight.values});
  OperatorShapes shapes = getShapes(op);
  std::vector<float> output(*getNumElements(shapes.output));
  if (failed(evaluateOperator(op, {data.shape, data.values}, references, output,
                              [&] { return op.emitError(); })))
    return {};
  return output;
}

using OperatorValues = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorValues, OnReference) {
  checkAgainstFormula(GetParam(), evaluateOnReference, tolerance);
}

TEST_P(OperatorValues, OnReferenceWhenCanonicalized) {
  checkAgainstFormula(
      GetParam(), evaluateOnReference, tolerance,
      [](OperatorOp op) { ASSERT_TRUE(succeeded(canonicalizeOperator(op))); });
}

INSTANTIATE_TEST_SUITE_P(All, OperatorValues,
                         testing::ValuesIn(formulas::getFormulas()), getName);
