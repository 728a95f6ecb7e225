//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the analysis finds along an axis is what the reference evaluator shows
// when inputs change and when they are moved.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/AxisProperties.h"
#include "Properties.h"
#include "kas/Library/Operators.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

/// Dimensions of the output and of the data that are an axis.
struct Dims {
  unsigned output, input;
};

/// How often each property was found, and how often it was not.
struct Counts {
  unsigned whole = 0, windows = 0;
  unsigned translations[3] = {};
};

} // namespace

static int64_t getIndex(int64_t element, ArrayRef<int64_t> shape,
                        unsigned dim) {
  for (size_t i = shape.size(); i-- > dim + 1;)
    element /= shape[i];
  return element % shape[dim];
}

/// `values` of `shape`, moved by `distance` positions along `dim`, around.
static std::vector<float> move(ArrayRef<float> values, ArrayRef<int64_t> shape,
                               unsigned dim, int64_t distance) {
  int64_t block = 1;
  for (int64_t size : shape.drop_front(dim + 1))
    block *= size;
  std::vector<float> moved(values.size());
  for (int64_t i = 0, end = values.size(); i < end; ++i) {
    int64_t at = getIndex(i, shape, dim);
    int64_t to = (at + distance) % shape[dim];
    moved[i + (to - at) * block] = values[i];
  }
  return moved;
}

/// The fewest and the most positions that an element of the output reads: those
/// whose NaN it gets.
static std::pair<int64_t, int64_t> countRead(OperatorOp op, const Dims &dims) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  reference::OperatorShapes shapes = reference::getShapes(op);
  Inputs inputs(shapes, 1);
  std::vector<int64_t> read;
  for (int64_t at = 0; at < shapes.data[dims.input]; ++at) {
    Inputs changed = inputs;
    for (size_t i = 0; i < changed.data.size(); ++i)
      if (getIndex(i, shapes.data, dims.input) == at)
        changed.data[i] = nan;
    std::vector<float> output = evaluate(op, changed);
    read.resize(output.size());
    for (auto [count, value] : llvm::zip_equal(read, output))
      count += std::isnan(value);
  }
  auto [least, most] = std::minmax_element(read.begin(), read.end());
  return {*least, *most};
}

/// Small integers: what differs does so by much.
static Inputs makeIntegers(OperatorOp op, uint64_t seed) {
  Inputs inputs(reference::getShapes(op), seed);
  auto round = [](std::vector<float> &values) {
    for (float &value : values)
      value = std::round(3 * value);
  };
  round(inputs.data);
  llvm::for_each(inputs.weights, round);
  return inputs;
}

/// A translation of the data moves the output, for some integers.
static bool isMoved(OperatorOp op, const Dims &dims) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Inputs inputs = makeIntegers(op, seed);
    ArrayRef<int64_t> data = inputs.shapes.data, output = inputs.shapes.output;
    std::vector<float> before = evaluate(op, inputs);
    inputs.data = move(inputs.data, data, dims.input,
                       data[dims.input] / output[dims.output]);
    // Sums of means may cancel to nothing but rounding.
    if (getError(evaluate(op, inputs), move(before, output, dims.output, 1),
                 /*floor=*/1) > 1e-4)
      return false;
  }
  return true;
}

/// Writes a window as one in the middle of copies of its axis, of which it says
/// nothing: it goes on at the other end.
static void wrap(UnfoldOp unfold) {
  OpBuilder builder(unfold);
  Location location = unfold.getLoc();
  MLIRContext *context = unfold.getContext();
  auto getSize = [&](int64_t value) {
    return SizeAttr::getConstant(context, value);
  };
  int64_t size = getConcreteSize(unfold.getCoord());
  int64_t window = getConcreteSize(unfold.getWindow());
  int64_t around = (window + size - 1) / size;
  Value zero = ReduceOp::create(builder, location, ReduceKind::Sum, getSize(1));
  Value first =
      StrideOp::create(builder, location, zero, getSize(2 * around + 1));
  Value middle = ShiftOp::create(builder, location, first, around);
  Value copies = SplitOp::create(builder, location, middle, unfold.getCoord());
  Value read = UnfoldOp::create(builder, location, copies, unfold.getWindow(),
                                unfold.getLowAttr());
  auto merge = MergeOp::create(builder, location, read, getSize(size));
  ExpandOp::create(builder, location, merge.getQuotient());
  unfold.getResult().replaceAllUsesWith(merge.getRemainder());
  unfold.erase();
}

static OperatorOp wrapWindows(OperatorOp op) {
  OpBuilder builder(op);
  auto copy = cast<OperatorOp>(builder.clone(*op));
  for (UnfoldOp unfold : llvm::make_early_inc_range(copy.getOps<UnfoldOp>()))
    wrap(unfold);
  return copy;
}

static bool hasMax(OperatorOp op) {
  return llvm::any_of(getReductions(op), [](ReduceOp reduce) {
    return reduce.getKind() == ReduceKind::Max;
  });
}

static void check(OperatorOp op, const Dims &dims, Counts &counts) {
  FailureOr<AxisProperties> properties = getAxisProperties(
      op, dims.output, dims.input, [&] { return op.emitError(); });
  ASSERT_TRUE(succeeded(properties));
  auto [fewest, most] = countRead(op, dims);
  EXPECT_EQ(properties->fewestRead, fewest);
  EXPECT_EQ(properties->mostRead, most);
  counts.whole += properties->readsAll();
  counts.windows += most > 1 && !properties->readsAll();
  ++counts.translations[static_cast<unsigned>(properties->translations)];
  bool isCyclic = isMoved(op, dims);
  OperatorOp wrapped = wrapWindows(op);
  bool isZeroPadded = isMoved(wrapped, dims);
  wrapped.erase();
  switch (properties->translations) {
  case Translations::Cyclic:
    EXPECT_TRUE(isCyclic);
    return;
  case Translations::ZeroPadded:
    EXPECT_TRUE(isZeroPadded);
    EXPECT_FALSE(isCyclic && !hasMax(op));
    return;
  case Translations::None:
    EXPECT_FALSE((isCyclic || isZeroPadded) && !hasMax(op));
    return;
  }
}

TEST(AxisProperties, AreThoseOfTheReference) {
  RandomOperatorOptions options;
  options.maxPoints = 500;
  options.causalPercent = 30;
  Counts counts;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        OperatorOp op = makeConcrete(random.op, random.binding);
        reference::OperatorShapes shapes = reference::getShapes(op);
        for (unsigned output = 0; output < shapes.output.size(); ++output)
          for (unsigned input = 0; input < shapes.data.size(); ++input)
            if (shapes.output[output] > 1 &&
                shapes.data[input] % shapes.output[output] == 0)
              check(op, {output, input}, counts);
      },
      getNumOperators(1500, 30000), options);
  EXPECT_GE(counts.whole, 100u);
  EXPECT_GE(counts.windows, 100u);
  for (unsigned count : counts.translations)
    EXPECT_GE(count, 30u);
}

/// By hand, and the axes of operators with symbols.
TEST(AxisProperties, OfNamedOperators) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  OwningOpRef<ModuleOp> library = library::parseNamedOperators(&context);
  auto get = [&](StringRef name, const Binding &binding, unsigned axis) {
    auto op = library->lookupSymbol<OperatorOp>(name);
    SpaceAxis dims = getOperatorAxes(op)[axis];
    return *getAxisProperties(makeConcrete(op, binding), dims.output,
                              dims.input, [&] { return op.emitError(); });
  };
  AxisProperties window = get("conv1d_depthwise", {1, 4, 8, 3}, 0);
  EXPECT_EQ(window.fewestRead, 2);
  EXPECT_EQ(window.mostRead, 3);
  EXPECT_EQ(window.translations, Translations::ZeroPadded);
  EXPECT_EQ(get("conv1d_depthwise", {1, 4, 8, 1}, 0).translations,
            Translations::Cyclic)
      << "one point";
  AxisProperties strided = get("conv1d_strided", {1, 3, 4, 8, 3, 2}, 0);
  EXPECT_EQ(strided.size, 8);
  EXPECT_EQ(strided.translations, Translations::ZeroPadded);
  AxisProperties pooled = get("max_pool2d", {1, 2, 8, 8, 2, 2}, 1);
  EXPECT_EQ(pooled.translations, Translations::ZeroPadded);
  auto conv = library->lookupSymbol<OperatorOp>("conv2d");
  SmallVector<SpaceAxis> axes = getOperatorAxes(conv);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].output, 2u);
  EXPECT_TRUE(fitsAnyGrid(conv, axes[0]));
}

/// Weights that have a size of the grid, and an axis without a symbol.
TEST(AxisProperties, OfOneGrid) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      R"(
kas.operator @mixing<N, C, H>(%n: N, %c: C, %h: H, %w: 4) from [N, C, H, 4] {
  %i = kas.reduce sum : H
  %i_d, %i_w = kas.share %i : H
  kas.yield data(%n, %c, %i_d, %w) weight(%h, %i_w)
})",
      &context);
  auto op = *module->getOps<OperatorOp>().begin();
  SmallVector<SpaceAxis> axes = getOperatorAxes(op);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_FALSE(fitsAnyGrid(op, axes[0]));
  EXPECT_FALSE(fitsAnyGrid(op, axes[1])) << "there is no other one";
}
