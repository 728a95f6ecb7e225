//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the property tests share: a loop over random operators, and tensors for
// them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_PROPERTIES_H
#define KAS_TEST_UNITTESTS_PROPERTIES_PROPERTIES_H

#include "RandomOperator.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include <vector>

namespace kas::test {

/// How many random operators a property is tested on: `quick`, or `slow` when
/// KAS_SLOW_TESTS is set.
unsigned getNumOperators(unsigned quick = 1000, unsigned slow = 20000);

/// The seed of the first operator: 0, or KAS_TEST_SEED.
uint64_t getFirstSeed();

/// Calls `body(operator, seed)` for operators that are one by one in a module
/// of their own. Failures are reported with the seed and the text. Stops at the
/// first operator with a failure.
void forEachOperator(
    llvm::function_ref<void(const RandomOperator &, uint64_t)> body,
    unsigned count = getNumOperators(),
    const RandomOperatorOptions &options = {});

/// The text of an op.
std::string print(mlir::Operation *op);

/// The text of `random` and its binding, for messages.
std::string describe(const RandomOperator &random);

/// Values for the tensors of an operator: in [-1, 1), or given.
struct Inputs {
  Inputs(const reference::OperatorShapes &shapes, uint64_t seed);
  Inputs(const reference::OperatorShapes &shapes, std::vector<float> data,
         std::vector<std::vector<float>> weights)
      : shapes(shapes), data(std::move(data)), weights(std::move(weights)) {}

  reference::OperatorShapes shapes;
  std::vector<float> data;
  std::vector<std::vector<float>> weights;
};

/// The output of the reference evaluator.
std::vector<float> evaluate(OperatorOp concrete, const Inputs &inputs);

/// `op` made concrete at `binding`, next to it.
OperatorOp makeConcrete(OperatorOp op, const Binding &binding);

/// The largest difference, relative to the largest magnitude of `expected` or
/// to `floor`, whatever is larger (to 1 where both are 0); infinite where the
/// lengths differ or one is NaN.
double getError(llvm::ArrayRef<float> actual, llvm::ArrayRef<float> expected,
                double floor = 0);

/// Values that differ from `values` in their last digits. How far they move a
/// result shows how many digits of it can be compared.
std::vector<float> perturb(llvm::ArrayRef<float> values);

/// For comparisons with what was computed in f32: a hundredth of the largest
/// magnitude of the output for inputs without signs. Sums of terms that cancel
/// further than this are not exact in f32, whoever computes them.
double getCancellationFloor(OperatorOp concrete, Inputs inputs);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_PROPERTIES_H
