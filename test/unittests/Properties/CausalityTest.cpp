//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the access relation says about later inputs is what the reference
// evaluator says when they change.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Causality.h"
#include "Properties.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Library/Operators.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

/// A dimension of the output and one of the data.
struct Sequence {
  unsigned output, input;
  int64_t stride;
};

/// The output of the reference evaluator for data that is something else from
/// a position on.
class LaterInputs {
public:
  LaterInputs(OperatorOp op, const Sequence &sequence)
      : op(op), sequence(sequence), inputs(reference::getShapes(op), 1),
        before(evaluate(op, inputs)) {}

  /// How many elements of the output at positions up to `position` are not the
  /// same, bit by bit, when the data after it is `value`, or other numbers.
  size_t countChanged(int64_t position, std::optional<float> value) const {
    Inputs changed = inputs;
    Inputs others(inputs.shapes, 2);
    ArrayRef<int64_t> dataShape = inputs.shapes.data;
    for (size_t i = 0; i < changed.data.size(); ++i)
      if (getIndex(i, dataShape, sequence.input) > sequence.stride * position)
        changed.data[i] = value.value_or(others.data[i]);
    std::vector<float> after = evaluate(op, changed);
    size_t count = 0;
    for (size_t i = 0; i < after.size(); ++i)
      count += getIndex(i, inputs.shapes.output, sequence.output) <= position &&
               after[i] != before[i];
    return count;
  }

private:
  static int64_t getIndex(int64_t element, ArrayRef<int64_t> shape,
                          unsigned dim) {
    for (size_t i = shape.size(); i-- > dim + 1;)
      element /= shape[i];
    return element % shape[dim];
  }

  OperatorOp op;
  Sequence sequence;
  Inputs inputs;
  std::vector<float> before;
};

/// How many sequences look back only, though they read several positions; and
/// how many do not.
struct Counts {
  unsigned causal = 0, others = 0;
};

} // namespace

/// What is read is not just the position of the output.
static bool readsSeveral(OperatorOp op, const Sequence &sequence) {
  Coordinates coordinates = getCoordinates(op);
  AffineExpr read = coordinates.data[sequence.input];
  for (unsigned axis = 0; axis < coordinates.axes.size(); ++axis)
    if (axis != sequence.output && coordinates.axes[axis].extent > 1 &&
        read.isFunctionOfDim(axis))
      return read.isFunctionOfDim(sequence.output);
  return false;
}

static void check(OperatorOp op, const Sequence &sequence, Counts &counts) {
  // A changed input is NaN, which every output that reads it gets.
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  LaterInputs later(op, sequence);
  std::optional<Lookahead> found =
      findLookahead(op, sequence.output, sequence.input, sequence.stride);
  if (found) {
    EXPECT_GT(found->input, sequence.stride * found->output);
    EXPECT_GT(later.countChanged(found->output, nan), 0u)
        << "output " << found->output << " does not read " << found->input;
    ++counts.others;
    return;
  }
  int64_t size = reference::getShapes(op).output[sequence.output];
  for (int64_t position = 0; position < size; ++position) {
    EXPECT_EQ(later.countChanged(position, nan), 0u) << position;
    EXPECT_EQ(later.countChanged(position, std::nullopt), 0u) << position;
  }
  counts.causal += readsSeveral(op, sequence);
}

/// All pairs of dimensions of which one is a multiple of the other.
static void checkAll(OperatorOp op, Counts &counts) {
  reference::OperatorShapes shapes = reference::getShapes(op);
  for (unsigned output = 0; output < shapes.output.size(); ++output)
    for (unsigned input = 0; input < shapes.data.size(); ++input)
      if (shapes.data[input] > 1 &&
          shapes.data[input] % shapes.output[output] == 0)
        check(op, {output, input, shapes.data[input] / shapes.output[output]},
              counts);
}

TEST(Causality, IsThatOfTheReference) {
  RandomOperatorOptions options;
  options.causalPercent = 90;
  options.maxPoints = 1000;
  Counts counts;
  unsigned numCausal = 0;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        unsigned before = counts.causal;
        checkAll(makeConcrete(random.op, random.binding), counts);
        numCausal += counts.causal > before;
      },
      getNumOperators(20000, 100000), options);
  EXPECT_GE(numCausal, 1000u);
  EXPECT_GE(counts.others, 1000u);
}

/// The place where an operator looks ahead, by hand.
TEST(Causality, OfNamedOperators) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  OwningOpRef<ModuleOp> library = library::parseNamedOperators(&context);
  auto find = [&](StringRef name, Binding binding, unsigned dim) {
    auto op = library->lookupSymbol<OperatorOp>(name);
    return findLookahead(makeConcrete(op, binding), dim, dim);
  };
  EXPECT_FALSE(find("conv1d_depthwise_causal", {1, 4, 8, 3}, 2));
  EXPECT_FALSE(find("conv1d_depthwise_causal", {1, 4, 8, 4}, 2));
  std::optional<Lookahead> centred = find("conv1d_depthwise", {1, 4, 8, 3}, 2);
  ASSERT_TRUE(centred);
  EXPECT_EQ(centred->input, centred->output + 1);
  EXPECT_FALSE(find("conv1d_depthwise", {1, 4, 8, 3}, 1)) << "the channels";
  EXPECT_FALSE(find("conv1d_depthwise", {1, 4, 8, 1}, 2)) << "one point";
  // p = d * (k - 1) and one less.
  EXPECT_FALSE(find("conv1d_dilated", {1, 3, 4, 14, 3, 2, 4}, 2));
  EXPECT_TRUE(find("conv1d_dilated", {1, 3, 4, 14, 3, 2, 3}, 2));
}
