//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The convolution that an operator is computes what the reference does, bit by
// bit on integers, at borders, too.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/EffectiveConvolution.h"
#include "Properties.h"
#include "kas/Library/Operators.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

static constexpr int64_t limit = 1 << 20;

/// Row-major positions of a shape.
static SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// The position that the number of a channel adds.
static int64_t getChannel(int64_t number, ArrayRef<unsigned> dims,
                          ArrayRef<int64_t> shape) {
  int64_t position = 0;
  SmallVector<int64_t> strides = getStrides(shape);
  for (unsigned dim : llvm::reverse(dims)) {
    position += number % shape[dim] * strides[dim];
    number /= shape[dim];
  }
  return position;
}

namespace {
/// Applies a convolution by its definition.
class Application {
public:
  Application(const EffectiveConvolution &convolution, const Inputs &inputs)
      : convolution(convolution), inputs(inputs),
        dataStrides(getStrides(inputs.shapes.data)),
        outputStrides(getStrides(inputs.shapes.output)), data(rollData()),
        weight(convolution.getNumElements(), 0) {
    for (size_t slot = 0; slot < convolution.exists.size(); ++slot) {
      double product = convolution.exists[slot];
      for (auto [list, values] :
           llvm::zip_equal(convolution.elements, inputs.weights))
        product *= values[list[slot]];
      weight[slot % weight.size()] += product;
    }
    output.assign(*reference::getNumElements(inputs.shapes.output), 0);
  }

  std::vector<float> run() {
    for (int64_t o = 0; o < convolution.numOutputs; ++o)
      visitBatch(
          0, o, 0,
          getChannel(o, convolution.outputChannels, inputs.shapes.output));
    return output;
  }

private:
  std::vector<float> rollData() const {
    std::vector<float> rolled(inputs.data.size());
    for (size_t position = 0; position < rolled.size(); ++position) {
      int64_t from = 0;
      for (auto [stride, size, roll] :
           llvm::zip_equal(dataStrides, inputs.shapes.data, convolution.rolls))
        from += (position / stride + roll) % size * stride;
      rolled[position] = inputs.data[from];
    }
    return rolled;
  }
  void visitBatch(size_t index, int64_t o, int64_t data, int64_t place) {
    if (index < convolution.batch.size()) {
      auto [from, to] = convolution.batch[index];
      for (int64_t i = 0; i < inputs.shapes.output[to]; ++i)
        visitBatch(index + 1, o, data + i * dataStrides[from],
                   place + i * outputStrides[to]);
      return;
    }
    SmallVector<int64_t> places;
    visitPlaces(places, o, data, place);
  }
  void visitPlaces(SmallVector<int64_t> &places, int64_t o, int64_t data,
                   int64_t place) {
    if (places.size() < convolution.windows.size()) {
      unsigned dim = convolution.windows[places.size()].output;
      for (int64_t h = 0; h < inputs.shapes.output[dim]; ++h) {
        places.push_back(h);
        visitPlaces(places, o, data, place + h * outputStrides[dim]);
        places.pop_back();
      }
      return;
    }
    int64_t count = convolution.numInputs / convolution.groups;
    int64_t group = o / (convolution.numOutputs / convolution.groups);
    double sum = 0;
    for (int64_t c = 0; c < count; ++c)
      sum += visitWindow(0, places, o * count + c,
                         data + getChannel(group * count + c,
                                           convolution.dataChannels,
                                           inputs.shapes.data));
    output[place] = sum / convolution.divisor;
  }
  double visitWindow(size_t index, ArrayRef<int64_t> places, int64_t element,
                     int64_t position) {
    if (index == convolution.windows.size())
      return weight[element] * data[position];
    const EffectiveWindow &window = convolution.windows[index];
    double sum = 0;
    for (int64_t x = 0; x < window.size; ++x) {
      int64_t at =
          window.stride * places[index] + window.dilation * x + window.first;
      if (at >= 0 && at < inputs.shapes.data[window.data])
        sum += visitWindow(index + 1, places, element * window.size + x,
                           position + at * dataStrides[window.data]);
    }
    return sum;
  }

  const EffectiveConvolution &convolution;
  const Inputs &inputs;
  SmallVector<int64_t> dataStrides, outputStrides;
  std::vector<float> data;
  std::vector<double> weight;
  std::vector<float> output;
};
} // namespace

static Inputs makeIntegers(OperatorOp op, uint64_t seed) {
  Inputs inputs(reference::getShapes(op), seed);
  auto round = [](std::vector<float> &values) {
    for (float &value : values)
      value = std::round(4 * value);
  };
  round(inputs.data);
  llvm::for_each(inputs.weights, round);
  return inputs;
}

static void check(OperatorOp op, const EffectiveConvolution &convolution,
                  uint64_t seed) {
  Inputs inputs = makeIntegers(op, seed);
  std::vector<float> actual = Application(convolution, inputs).run();
  std::vector<float> expected = evaluate(op, inputs);
  if (llvm::has_single_bit(uint64_t(convolution.divisor)))
    EXPECT_EQ(actual, expected) << print(op);
  else
    EXPECT_LT(getError(actual, expected), 1e-6) << print(op);
}

static FailureOr<EffectiveConvolution> find(OperatorOp op,
                                            std::string &reason) {
  ScopedDiagnosticHandler handler(op.getContext(), [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  return getEffectiveConvolution(op, limit, [&] { return op.emitError(); });
}

namespace {
struct NamedCase {
  StringRef name;
  Binding binding;
  /// Batch dimensions, windows, groups and products of an element.
  size_t batch;
  size_t windows;
  int64_t groups;
  int64_t terms;
};
} // namespace

TEST(EffectiveConvolution, NamedOperators) {
  MLIRContext context;
  for (const NamedCase &known : std::vector<NamedCase>{
           {"conv2d", {2, 3, 4, 5, 6, 3}, 1, 2, 1, 1},
           {"conv2d_strided", {2, 3, 4, 8, 6, 3, 2}, 1, 2, 1, 1},
           {"conv2d_dilated", {2, 3, 4, 7, 6, 3, 2, 2}, 1, 2, 1, 1},
           {"conv2d_depthwise", {2, 3, 5, 6, 3}, 1, 2, 3, 1},
           {"conv2d_grouped_strided", {2, 4, 6, 6, 4, 3, 2, 2}, 1, 2, 2, 1},
           {"conv2d_depthwise_separable", {2, 3, 4, 5, 6, 3}, 1, 2, 1, 1},
           {"conv2d_spatially_separable", {2, 3, 4, 5, 6, 3}, 1, 2, 1, 4},
           {"conv1x1", {2, 3, 4, 5, 6}, 3, 0, 1, 1},
           {"linear", {2, 3, 4}, 1, 0, 1, 1},
           {"syno_operator1", {2, 8, 8, 5, 6, 3, 4, 2}, 1, 2, 1, 1},
           {"syno_operator2", {2, 8, 16, 5, 6, 3, 4, 2}, 1, 2, 1, 2},
           {"shift2d", {2, 3, 4, 5, 6}, 3, 0, 1, 1},
           {"average_pool2d", {2, 3, 4, 6, 2}, 2, 2, 1, 1},
       }) {
    OwningOpRef<ModuleOp> module =
        library::parseNamedOperator(&context, known.name);
    ASSERT_TRUE(module) << known.name.str();
    OperatorOp op =
        makeConcrete(*module->getOps<OperatorOp>().begin(), known.binding);
    std::string reason;
    FailureOr<EffectiveConvolution> convolution = find(op, reason);
    ASSERT_TRUE(succeeded(convolution)) << known.name.str() << ": " << reason;
    EXPECT_EQ(convolution->batch.size(), known.batch) << known.name.str();
    EXPECT_EQ(convolution->windows.size(), known.windows) << known.name.str();
    EXPECT_EQ(convolution->groups, known.groups) << known.name.str();
    EXPECT_EQ(convolution->numTerms, known.terms) << known.name.str();
    check(op, *convolution, 0);
  }
}

TEST(EffectiveConvolution, Reasons) {
  MLIRContext context;
  auto getReason = [&](StringRef name, const Binding &binding) {
    OwningOpRef<ModuleOp> module = library::parseNamedOperator(&context, name);
    OperatorOp op =
        makeConcrete(*module->getOps<OperatorOp>().begin(), binding);
    std::string reason;
    EXPECT_TRUE(failed(find(op, reason))) << name.str();
    return reason;
  };
  EXPECT_EQ(getReason("max_pool2d", {2, 3, 4, 6, 3, 2}),
            "requires sums and means, got a maximum");
  EXPECT_EQ(getReason("stacked_conv2d", {1, 4, 4, 8, 8, 3, 2, 2}),
            "requires windows that only the ends of the data clip, got one "
            "that is clipped at position 7 of output dimension 3");
  EXPECT_EQ(getReason("conv2d", {1, 512, 512, 8, 8, 3}),
            "requires at most 1048576 points of channels and reductions, got "
            "more");
}

TEST(EffectiveConvolution, RandomOperators) {
  unsigned found = 0;
  std::map<std::string, unsigned> reasons;
  forEachOperator([&](const RandomOperator &random, uint64_t seed) {
    OperatorOp op = makeConcrete(random.op, random.binding);
    std::string reason;
    FailureOr<EffectiveConvolution> convolution = find(op, reason);
    if (succeeded(convolution)) {
      ++found;
      check(op, *convolution, seed);
    }
    ++reasons[StringRef(reason).take_until(llvm::isDigit).str()];
  });
  for (const auto &[reason, count] : reasons)
    RecordProperty(reason.empty() ? "found" : reason.substr(0, 40), count);
  EXPECT_GT(found, getNumOperators() / 2);
}
