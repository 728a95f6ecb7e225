//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neural transformations of convolutions are run on the CPU and compared with
// the formulas that define them, at the layers of ResNet-34 scaled down.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Library/Operators.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::library;
using namespace kas::reference;
using namespace kas::search;
using namespace mlir;

namespace {

/// A convolution with `kernel / 2` padding.
struct Layer {
  int64_t inputs, outputs, size, stride = 1, kernel = 3, batch = 2;
  /// As an operator of the kas dialect, not as a structured operation.
  bool isOperator = false;

  int64_t getOutputSize() const { return size / stride; }
};

/// Small integers, so that sums are exact.
float getData(int64_t n, int64_t c, int64_t h, int64_t w) {
  return (7 * n + 3 * c + 5 * h + 2 * w) % 11 - 5;
}
float getWeight(int64_t branch, int64_t o, int64_t i, int64_t kh, int64_t kw) {
  return (2 * o + 3 * i + 5 * kh + 7 * kw + branch) % 7 - 3;
}

/// Which weight element (branch, output channel in it, input channel in its
/// group) an input channel meets at an output channel and row; none for those
/// that do not meet.
struct Element {
  int64_t branch, output, input;
};
using ConnectFn = std::function<std::optional<Element>(
    int64_t output, int64_t input, int64_t row, int64_t inputRow)>;

std::vector<float> convolve(const Layer &layer, ConnectFn connect) {
  std::vector<float> result;
  int64_t size = layer.getOutputSize(), low = layer.kernel / 2;
  for (int64_t n = 0; n < layer.batch; ++n)
    for (int64_t o = 0; o < layer.outputs; ++o)
      for (int64_t h = 0; h < size; ++h)
        for (int64_t w = 0; w < size; ++w) {
          float sum = 0;
          for (int64_t i = 0; i < layer.inputs; ++i)
            for (int64_t kh = 0; kh < layer.kernel; ++kh)
              for (int64_t kw = 0; kw < layer.kernel; ++kw) {
                int64_t y = h * layer.stride + kh - low;
                int64_t x = w * layer.stride + kw - low;
                if (y < 0 || y >= layer.size || x < 0 || x >= layer.size)
                  continue;
                if (std::optional<Element> element = connect(o, i, h, y))
                  sum += getData(n, i, y, x) *
                         getWeight(element->branch, element->output,
                                   element->input, kh, kw);
              }
          result.push_back(sum);
        }
  return result;
}

class NeuralTransformsTest : public testing::TestWithParam<Layer> {
protected:
  NeuralTransformsTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    linalg::registerTransformDialectExtension(registry);
    registry.insert<transform::TransformDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    static bool once = (transform::registerTransformPasses(),
                        registerTransformsPasses(), true);
    (void)once;
  }

  /// The layer with `script`, whose `%convolution` is the convolution, applied.
  void transform(const Layer &layer, StringRef script);
  void parse(std::string text);
  /// Runs it on `getData` and `getWeight`; the weights are the branches. Where
  /// their shapes do not show how many inputs a group has, that is to be given.
  std::vector<float> run(std::optional<int64_t> inputsPerGroup = std::nullopt);

  /// What the reference says about the one operator that is applied to
  /// arguments as they are.
  void compareWithReference(ArrayRef<Tensor> arguments, ArrayRef<float> result);

  /// Multiplications over those of the layer, weights over those of the layer.
  double getWorkRatio();
  double getWeightRatio();

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Layer layer = {};
};

/// Of structured operations alone: their parts are no operator.
class StructuredTransformsTest : public NeuralTransformsTest {};

} // namespace

/// A module with the layer as a structured operation, up to its last brace.
static std::string getStructured(const Layer &layer) {
  int64_t padded = layer.size + layer.kernel - 1;
  std::string data = llvm::formatv("tensor<{0}x{1}x{2}x{2}xf32>", layer.batch,
                                   layer.inputs, layer.size);
  std::string paddedData = llvm::formatv("tensor<{0}x{1}x{2}x{2}xf32>",
                                         layer.batch, layer.inputs, padded);
  std::string weight = llvm::formatv("tensor<{0}x{1}x{2}x{2}xf32>",
                                     layer.outputs, layer.inputs, layer.kernel);
  std::string result = llvm::formatv("tensor<{0}x{1}x{2}x{2}xf32>", layer.batch,
                                     layer.outputs, layer.getOutputSize());
  return llvm::formatv(
      R"(
module attributes {{transform.with_named_sequence} {{
  func.func @forward(%x: {0} {{kas.name = "input"}, %w: {2} {{kas.name = "w"}) -> {3} {{
    %zero = arith.constant 0.0 : f32
    %pad = tensor.pad %x low[0, 0, {4}, {4}] high[0, 0, {4}, {4}] {{
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : {0} to {1}
    %empty = tensor.empty() : {3}
    %init = linalg.fill ins(%zero : f32) outs(%empty : {3}) -> {3}
    %y = linalg.conv_2d_nchw_fchw {{strides = dense<{5}> : tensor<2xi64>}
        ins(%pad, %w : {1}, {2}) outs(%init : {3}) -> {3}
    return %y : {3}
  }
)",
      data, paddedData, weight, result, layer.kernel / 2, layer.stride);
}

/// The same as an operator.
static std::string getApplied(const Layer &layer) {
  StringRef name = layer.stride == 1 ? "conv2d" : "conv2d_strided";
  std::string binding = llvm::formatv("k = {0}", layer.kernel);
  if (layer.stride != 1)
    binding += llvm::formatv(", s = {0}", layer.stride).str();
  return llvm::formatv(
      R"(
module attributes {{transform.with_named_sequence} {{
  {0}
  func.func @forward(%x: tensor<{1}x{2}x{3}x{3}xf32> {{kas.name = "input"},
                     %w: tensor<{4}x{2}x{5}x{5}xf32> {{kas.name = "w"}) -> tensor<{1}x{4}x{6}x{6}xf32> {{
    %y = kas.apply @{7}<{8}>(%x, %w)
        : (tensor<{1}x{2}x{3}x{3}xf32>, tensor<{4}x{2}x{5}x{5}xf32>) -> tensor<{1}x{4}x{6}x{6}xf32>
    return %y : tensor<{1}x{4}x{6}x{6}xf32>
  }
)",
      lookupNamedOperator(name)->text, layer.batch, layer.inputs, layer.size,
      layer.outputs, layer.kernel, layer.getOutputSize(), name, binding);
}

void NeuralTransformsTest::transform(const Layer &layer, StringRef script) {
  this->layer = layer;
  parse((layer.isOperator ? getApplied(layer) : getStructured(layer)) +
        llvm::formatv(
            R"(
  transform.named_sequence @__transform_main(%root: !transform.any_op {{transform.readonly}) {{
    %convolution = transform.structured.match ops{{["{0}"]} in %root
        : (!transform.any_op) -> !transform.any_op
    {1}
    transform.yield
  }
)",
            layer.isOperator ? "kas.apply" : "linalg.conv_2d_nchw_fchw", script)
            .str());
}

void NeuralTransformsTest::parse(std::string text) {
  // The sequences of the library are next to the script.
  auto library = llvm::MemoryBuffer::getFile(KAS_TRANSFORM_LIBRARY);
  ASSERT_TRUE(bool(library));
  StringRef sequences = (*library)->getBuffer();
  text += sequences.substr(sequences.find("  transform.named_sequence"));
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(
      parsePassPipeline("transform-interpreter,canonicalize,cse", manager)));
  ASSERT_TRUE(succeeded(manager.run(*module))) << text;
  // What is left is the function and its operators.
  for (Operation &op : llvm::make_early_inc_range(*module->getBody()))
    if (!isa<func::FuncOp, OperatorOp>(op))
      op.erase();
}

/// Fills a weight with dimensions (output channels, input channels, kernel),
/// whatever the output channels and the branch are split into.
static void fillWeight(MutableArrayRef<float> values, int64_t kernel,
                       int64_t inputs, int64_t outputs, int64_t branch) {
  for (auto [index, value] : llvm::enumerate(values)) {
    int64_t kw = index % kernel, kh = index / kernel % kernel;
    int64_t input = index / (kernel * kernel) % inputs;
    int64_t output = index / (kernel * kernel * inputs);
    value =
        getWeight(branch + output / outputs, output % outputs, input, kh, kw);
  }
}

std::vector<float>
NeuralTransformsTest::run(std::optional<int64_t> inputsPerGroup) {
  auto function =
      compileForCPU(*module, "forward", /*pipeline=*/{}, {.optLevel = 0});
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return {};
  }
  auto arguments =
      llvm::cantFail(function->getSignature().makeArguments({}, 0));
  auto results = llvm::cantFail(function->getSignature().makeResults());
  MutableArrayRef<float> data = arguments[0].getValues();
  int64_t size = layer.size;
  for (auto [index, value] : llvm::enumerate(data))
    value = getData(index / (layer.inputs * size * size),
                    index / (size * size) % layer.inputs, index / size % size,
                    index % size);
  for (unsigned weight = 1; weight < arguments.size(); ++weight) {
    ArrayRef<int64_t> shape = arguments[weight].getShape();
    fillWeight(arguments[weight].getValues(), layer.kernel,
               inputsPerGroup.value_or(shape[shape.size() - 3]), layer.outputs,
               weight - 1);
  }
  llvm::cantFail((*function)(arguments, results));
  compareWithReference(arguments, results[0].getValues());
  return std::vector<float>(results[0].getValues().begin(),
                            results[0].getValues().end());
}

void NeuralTransformsTest::compareWithReference(ArrayRef<Tensor> arguments,
                                                ArrayRef<float> result) {
  ApplyOp apply;
  module->walk([&](ApplyOp op) { apply = op; });
  if (!apply || !llvm::all_of(apply->getOperands(), [](Value operand) {
        return isa<BlockArgument>(operand);
      }))
    return;
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  std::vector<float> expected(result.size());
  ASSERT_TRUE(succeeded(
      evaluateOperator(apply.getOperator(), view(arguments[0]),
                       llvm::map_to_vector(arguments.drop_front(), view),
                       expected, [&] { return apply.emitError(); })));
  EXPECT_EQ(ArrayRef(expected), result);
}

double NeuralTransformsTest::getWorkRatio() {
  int64_t work = 0;
  module->walk([&](ApplyOp apply) { work += getCost(apply)->macs; });
  module->walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    int64_t points = 1;
    for (int64_t size : op.getStaticLoopRanges())
      points *= size;
    work += points;
  });
  return double(work) /
         (layer.batch * layer.outputs * layer.inputs * layer.kernel *
          layer.kernel * layer.getOutputSize() * layer.getOutputSize());
}

double NeuralTransformsTest::getWeightRatio() {
  int64_t elements = 0;
  auto function = *module->getOps<func::FuncOp>().begin();
  for (Type type : ArrayRef(function.getArgumentTypes()).drop_front())
    elements += cast<ShapedType>(type).getNumElements();
  return double(elements) /
         (layer.outputs * layer.inputs * layer.kernel * layer.kernel);
}

// ResNet-34's layers with an eighth of the channels and a quarter of the sizes.
static auto getLayers(bool isOperator) {
  return testing::Values(Layer{8, 8, 16, 1, 3, 2, isOperator},
                         Layer{8, 16, 16, 2, 3, 2, isOperator},
                         Layer{16, 16, 8, 1, 3, 2, isOperator},
                         Layer{16, 32, 8, 2, 3, 2, isOperator},
                         Layer{32, 32, 4, 1, 3, 2, isOperator},
                         Layer{16, 16, 8, 1, 1, 2, isOperator});
}
INSTANTIATE_TEST_SUITE_P(ResNet34, NeuralTransformsTest, getLayers(false));
INSTANTIATE_TEST_SUITE_P(ResNet34Operators, NeuralTransformsTest,
                         getLayers(true));
INSTANTIATE_TEST_SUITE_P(ResNet34, StructuredTransformsTest, getLayers(false));

//===----------------------------------------------------------------------===//
// Single transformations
//===----------------------------------------------------------------------===//

TEST_P(NeuralTransformsTest, Group) {
  const Layer &layer = GetParam();
  for (int64_t groups : {1, 2, 4, 8}) {
    transform(layer, llvm::formatv(R"(
      %g = transform.kas.group %convolution by {0} : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %g : (!transform.any_op) -> !transform.any_op)",
                                   groups)
                         .str());
    int64_t outputs = layer.outputs / groups, inputs = layer.inputs / groups;
    EXPECT_EQ(run(inputs), convolve(layer,
                                    [&](int64_t o, int64_t i, int64_t,
                                        int64_t) -> std::optional<Element> {
                                      if (o / outputs != i / inputs)
                                        return std::nullopt;
                                      return Element{0, o, i % inputs};
                                    }))
        << groups << " groups";
    EXPECT_EQ(getWorkRatio(), 1.0 / groups);
    EXPECT_EQ(getWeightRatio(), 1.0 / groups);
  }
}

/// Without weights of its own, a group reads the diagonal blocks of the old.
TEST_P(NeuralTransformsTest, GroupInheritsWeights) {
  const Layer &layer = GetParam();
  transform(layer, "%g = transform.kas.group %convolution by 2 : "
                   "(!transform.any_op) -> !transform.any_op");
  int64_t outputs = layer.outputs / 2, inputs = layer.inputs / 2;
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t,
                                int64_t) -> std::optional<Element> {
                              if (o / outputs != i / inputs)
                                return std::nullopt;
                              return Element{0, o, i};
                            }));
}

TEST_F(NeuralTransformsTest, Depthwise) {
  for (Layer layer :
       {Layer{8, 8, 16}, Layer{16, 16, 8, 2}, Layer{32, 32, 4},
        Layer{8, 8, 16, 1, 3, 2, true}, Layer{16, 16, 8, 2, 3, 2, true}}) {
    transform(layer, R"(
      %g = transform.kas.depthwise %convolution : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %g : (!transform.any_op) -> !transform.any_op)");
    EXPECT_EQ(run(/*inputsPerGroup=*/1),
              convolve(layer,
                       [&](int64_t o, int64_t i, int64_t,
                           int64_t) -> std::optional<Element> {
                         if (o != i)
                           return std::nullopt;
                         return Element{0, o, 0};
                       }));
    EXPECT_EQ(getWorkRatio(), 1.0 / layer.inputs);
  }
}

TEST_P(NeuralTransformsTest, InputBottleneck) {
  const Layer &layer = GetParam();
  transform(layer, R"(
      %g = transform.kas.bottleneck %convolution iterator 4 by 4 : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %g : (!transform.any_op) -> !transform.any_op)");
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t,
                                int64_t) -> std::optional<Element> {
                              if (i >= layer.inputs / 4)
                                return std::nullopt;
                              return Element{0, o, i};
                            }));
  EXPECT_EQ(getWorkRatio(), 0.25);
  EXPECT_EQ(getWeightRatio(), 0.25);
}

/// Half of the channels, each twice.
TEST_P(NeuralTransformsTest, OutputBottleneck) {
  const Layer &layer = GetParam();
  transform(layer, R"(
      %g = transform.kas.bottleneck %convolution iterator 1 by 2 : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %g : (!transform.any_op) -> !transform.any_op)");
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t,
                                int64_t) -> std::optional<Element> {
                              return Element{0, o / 2, i};
                            }));
  EXPECT_EQ(getWorkRatio(), 0.5);
  EXPECT_EQ(getWeightRatio(), 0.5);
}

/// Every second row and column, spread to the nearest.
TEST_P(NeuralTransformsTest, SpatialBottleneck) {
  Layer layer = GetParam();
  transform(layer, R"(
      %h = transform.kas.bottleneck %convolution iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
      %g = transform.kas.bottleneck %h iterator 3 by 2 : (!transform.any_op) -> !transform.any_op)");
  std::vector<float> dense =
      convolve(layer, [&](int64_t o, int64_t i, int64_t, int64_t) {
        return std::optional(Element{0, o, i});
      });
  std::vector<float> expected;
  int64_t size = layer.getOutputSize();
  for (int64_t image = 0; image < layer.batch * layer.outputs; ++image)
    for (int64_t h = 0; h < size; ++h)
      for (int64_t w = 0; w < size; ++w)
        expected.push_back(
            dense[(image * size + h / 2 * 2) * size + w / 2 * 2]);
  EXPECT_EQ(run(), expected);
  EXPECT_EQ(getWorkRatio(), 0.25);
  EXPECT_EQ(getWeightRatio(), 1);
}

/// Input channels and kernel rows from one on, of the old weights.
TEST_P(NeuralTransformsTest, Restrict) {
  const Layer &layer = GetParam();
  auto getKernelRow = [&](int64_t row, int64_t inputRow) {
    return inputRow - row * layer.stride + layer.kernel / 2;
  };
  transform(layer, "%r = transform.kas.restrict %convolution iterator 4 from 3 "
                   ": (!transform.any_op) -> !transform.any_op");
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t,
                                int64_t) -> std::optional<Element> {
                              if (i < 3)
                                return std::nullopt;
                              return Element{0, o, i};
                            }));
  if (layer.kernel == 1)
    return;
  transform(layer, "%r = transform.kas.restrict %convolution iterator 5 from 1 "
                   ": (!transform.any_op) -> !transform.any_op");
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t row,
                                int64_t inputRow) -> std::optional<Element> {
                              if (getKernelRow(row, inputRow) < 1)
                                return std::nullopt;
                              return Element{0, o, i};
                            }));
}

/// Of an operator, the rows of a window can be in groups, too.
TEST_F(NeuralTransformsTest, GroupOfWindow) {
  Layer layer{4, 6, 6, 1, 3, 2, true};
  transform(layer,
            "%g = transform.kas.group %convolution iterators [1, 5] by 3 : "
            "(!transform.any_op) -> !transform.any_op");
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t row,
                                int64_t inputRow) -> std::optional<Element> {
                              if (o / 2 != inputRow - row + 1)
                                return std::nullopt;
                              return Element{0, o, i};
                            }));
  EXPECT_DOUBLE_EQ(getWorkRatio(), 1 / 3.0);
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

TEST_P(NeuralTransformsTest, Sequence1) {
  const Layer &layer = GetParam();
  for (int64_t slabs : {1, 2, 4}) {
    transform(layer, llvm::formatv(R"(
      %s = transform.param.constant {0} -> !transform.param<i64>
      %r = transform.include @nas_pte_sequence_1 failures(propagate) (%convolution, %s)
          : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
      %n = transform.kas.new_weights %r : (!transform.any_op) -> !transform.any_op)",
                                   slabs)
                         .str());
    int64_t rows = layer.getOutputSize() / slabs,
            inputRows = layer.size / slabs;
    EXPECT_EQ(run(), convolve(layer,
                              [&](int64_t o, int64_t i, int64_t row,
                                  int64_t inputRow) -> std::optional<Element> {
                                if (row / rows != inputRow / inputRows)
                                  return std::nullopt;
                                return Element{row / rows, o, i};
                              }))
        << slabs << " slabs";
    EXPECT_EQ(getWorkRatio(), 1);
    EXPECT_EQ(getWeightRatio(), slabs);
  }
}

TEST_P(StructuredTransformsTest, Sequence2) {
  const Layer &layer = GetParam();
  int64_t unrolled = 4, groups = 2;
  transform(layer, llvm::formatv(R"(
      %u = transform.param.constant {0} -> !transform.param<i64>
      %g = transform.param.constant {1} -> !transform.param<i64>
      %r:2 = transform.include @nas_pte_sequence_2 failures(propagate) (%convolution, %u, %g)
          : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      %m = transform.kas.new_weights %r#0 : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %r#1 : (!transform.any_op) -> !transform.any_op)",
                                 unrolled, groups)
                       .str());
  int64_t outputs = (layer.outputs - unrolled) / groups;
  int64_t inputs = (layer.inputs - unrolled) / groups;
  EXPECT_EQ(run(),
            convolve(layer,
                     [&](int64_t o, int64_t i, int64_t,
                         int64_t) -> std::optional<Element> {
                       if (o < unrolled)
                         return Element{0, o, i};
                       if (i < unrolled ||
                           (o - unrolled) / outputs != (i - unrolled) / inputs)
                         return std::nullopt;
                       return Element{1, o - unrolled, (i - unrolled) % inputs};
                     }));
  double expected =
      double(unrolled * layer.inputs +
             (layer.outputs - unrolled) * (layer.inputs - unrolled) / groups) /
      (layer.inputs * layer.outputs);
  EXPECT_DOUBLE_EQ(getWorkRatio(), expected);
  EXPECT_DOUBLE_EQ(getWeightRatio(), expected);
}

TEST_P(StructuredTransformsTest, Sequence3) {
  const Layer &layer = GetParam();
  int64_t half = layer.outputs / 2;
  transform(layer, llvm::formatv(R"(
      %c = transform.param.constant {0} -> !transform.param<i64>
      %g = transform.param.constant 2 -> !transform.param<i64>
      %h = transform.param.constant 4 -> !transform.param<i64>
      %r:2 = transform.include @nas_pte_sequence_3 failures(propagate) (%convolution, %c, %g, %h)
          : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
          -> (!transform.any_op, !transform.any_op)
      %m = transform.kas.new_weights %r#0 : (!transform.any_op) -> !transform.any_op
      %n = transform.kas.new_weights %r#1 : (!transform.any_op) -> !transform.any_op)",
                                 half)
                       .str());
  EXPECT_EQ(run(), convolve(layer,
                            [&](int64_t o, int64_t i, int64_t,
                                int64_t) -> std::optional<Element> {
                              int64_t part = o / half,
                                      groups = part == 0 ? 2 : 4;
                              int64_t outputs = half / groups,
                                      inputs = layer.inputs / groups;
                              if (o % half / outputs != i / inputs)
                                return std::nullopt;
                              return Element{part, o % half, i % inputs};
                            }));
  // Half of (1/2 + 1/4).
  EXPECT_EQ(getWorkRatio(), 0.375);
  EXPECT_EQ(getWeightRatio(), 0.375);
}

/// The figures that are known for whole layers.
TEST_F(NeuralTransformsTest, KnownFigures) {
  // One convolution of ResNet-34.
  Layer dense{64, 64, 56, 1, 3, 1};
  for (auto [channels, ratio] :
       {std::pair(64, 0.53125), std::pair(128, 0.5078125),
        std::pair(256, 0.501953125), std::pair(512, 0.50048828125)}) {
    transform(Layer{channels, channels, 14, 1, 3, 1}, R"(
      %u = transform.param.constant 16 -> !transform.param<i64>
      %g = transform.param.constant 2 -> !transform.param<i64>
      %r:2 = transform.include @nas_pte_sequence_2 failures(propagate) (%convolution, %u, %g)
          : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op))");
    EXPECT_DOUBLE_EQ(getWorkRatio(), ratio) << channels;
  }
  for (auto [groups, work] : {std::pair(1, 115605504), std::pair(2, 57802752),
                              std::pair(64, 1806336)}) {
    transform(dense,
              llvm::formatv("%g = transform.kas.group %convolution by {0}"
                            " : (!transform.any_op) -> !transform.any_op",
                            groups)
                  .str());
    EXPECT_EQ(getWorkRatio() * 115605504, work);
  }
}

/// With the same weights in each slab, only the rows at the cut differ from the
/// convolution: two rows for a kernel of 3.
TEST_F(NeuralTransformsTest, SlabsDifferAtTheCut) {
  Layer layer{2, 2, 6, 1, 3, 1};
  transform(layer, "%s = transform.kas.slabs %convolution iterator 2 by 2 : "
                   "(!transform.any_op) -> !transform.any_op");
  std::vector<float> slabs = run();
  std::vector<float> dense =
      convolve(layer, [&](int64_t o, int64_t i, int64_t, int64_t) {
        return std::optional(Element{0, o, i});
      });
  for (auto [index, value] : llvm::enumerate(slabs)) {
    int64_t row = index / 6 % 6;
    if (row != 2 && row != 3)
      EXPECT_EQ(value, dense[index]) << index;
  }
  EXPECT_NE(slabs, dense);
}
