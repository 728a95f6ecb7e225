//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random convolutions by each algorithm of the CPU pipeline, against loops.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <random>

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace mlir;

namespace {

enum class Layout { NCHW, Grouped, NHWC };

/// `outputs` and `inputs` of one group; zeros of half a window around.
struct Shape {
  Layout layout;
  int64_t batches, groups, outputs, inputs, height, width, window, stride,
      dilation;

  int64_t getPadding() const { return dilation * (window / 2); }
  int64_t getOut(int64_t size) const {
    return (size + 2 * getPadding() - dilation * (window - 1) - 1) / stride + 1;
  }
  std::string getText() const;
};

std::string getType(ArrayRef<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

/// A function of a convolution of linalg on a padded image.
std::string Shape::getText() const {
  int64_t p = getPadding(), h = height + 2 * p, w = width + 2 * p;
  int64_t oh = getOut(height), ow = getOut(width);
  std::string data, padded, weight, out, name, low, block;
  if (layout == Layout::NCHW) {
    name = "conv_2d_nchw_fchw";
    data = getType({batches, inputs, height, width});
    padded = getType({batches, inputs, h, w});
    weight = getType({outputs, inputs, window, window});
    out = getType({batches, outputs, oh, ow});
    low = llvm::formatv("[0, 0, {0}, {0}]", p).str();
    block = "%a: index, %b: index, %c: index, %d: index";
  } else if (layout == Layout::Grouped) {
    name = "conv_2d_ngchw_gfchw";
    data = getType({batches, groups, inputs, height, width});
    padded = getType({batches, groups, inputs, h, w});
    weight = getType({groups, outputs, inputs, window, window});
    out = getType({batches, groups, outputs, oh, ow});
    low = llvm::formatv("[0, 0, 0, {0}, {0}]", p).str();
    block = "%a: index, %b: index, %c: index, %d: index, %e: index";
  } else {
    name = "conv_2d_nhwc_hwcf";
    data = getType({batches, height, width, inputs});
    padded = getType({batches, h, w, inputs});
    weight = getType({window, window, inputs, outputs});
    out = getType({batches, oh, ow, outputs});
    low = llvm::formatv("[0, {0}, {0}, 0]", p).str();
    block = "%a: index, %b: index, %c: index, %d: index";
  }
  return llvm::formatv(R"mlir(
    func.func @f(%x: {0}, %w: {2}) -> {3} {{
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low{4} high{4} {{
      ^bb0({5}):
        tensor.yield %zero : f32
      } : {0} to {1}
      %e = tensor.empty() : {3}
      %i = linalg.fill ins(%zero : f32) outs(%e : {3}) -> {3}
      %y = linalg.{6} {{strides = dense<{7}> : vector<2xi64>,
                       dilations = dense<{8}> : vector<2xi64>}
          ins(%p, %w : {1}, {2}) outs(%i : {3}) -> {3}
      return %y : {3}
    })mlir",
                       data, padded, weight, out, low, block, name, stride,
                       dilation)
      .str();
}

/// Six loops and more.
std::vector<double> evaluate(const Shape &s, ArrayRef<float> x,
                             ArrayRef<float> weights) {
  int64_t oh = s.getOut(s.height), ow = s.getOut(s.width);
  bool last = s.layout == Layout::NHWC;
  std::vector<double> y(s.batches * s.groups * s.outputs * oh * ow);
  for (int64_t n = 0; n < s.batches; ++n)
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t k = 0; k < s.outputs; ++k)
        for (int64_t h = 0; h < oh; ++h)
          for (int64_t w = 0; w < ow; ++w) {
            double sum = 0;
            for (int64_t c = 0; c < s.inputs; ++c)
              for (int64_t i = 0; i < s.window; ++i)
                for (int64_t j = 0; j < s.window; ++j) {
                  int64_t a = h * s.stride + i * s.dilation - s.getPadding();
                  int64_t b = w * s.stride + j * s.dilation - s.getPadding();
                  if (a < 0 || a >= s.height || b < 0 || b >= s.width)
                    continue;
                  int64_t at =
                      last ? ((n * s.height + a) * s.width + b) * s.inputs + c
                           : (((n * s.groups + g) * s.inputs + c) * s.height +
                              a) * s.width +
                                 b;
                  int64_t weight =
                      last ? ((i * s.window + j) * s.inputs + c) * s.outputs + k
                           : (((g * s.outputs + k) * s.inputs + c) * s.window +
                              i) * s.window +
                                 j;
                  sum += double(x[at]) * weights[weight];
                }
            int64_t at =
                last ? ((n * oh + h) * ow + w) * s.outputs + k
                     : (((n * s.groups + g) * s.outputs + k) * oh + h) * ow + w;
            y[at] = sum;
          }
  return y;
}

void check(const Shape &shape, ConvolutionAlgorithm algorithm, bool prepared,
           uint64_t seed) {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(shape.getText(), &context);
  ASSERT_TRUE(module) << shape.getText();
  CPUPipelineOptions options;
  options.threads = 1;
  options.prepareWeights = prepared;
  options.algorithm = algorithm;
  llvm::Expected<CompiledFunction> compiled =
      compileForCPU(*module, "f", options);
  ASSERT_TRUE(static_cast<bool>(compiled))
      << llvm::toString(compiled.takeError()) << shape.getText();
  std::mt19937_64 random(seed);
  SmallVector<Tensor> arguments;
  for (const auto &argument : compiled->getSignature().arguments) {
    Tensor tensor(argument.shape);
    for (int64_t i = 0; i < tensor.getNumElements(); ++i)
      tensor.data()[i] = float(random() % 2001) / 1000 - 1;
    arguments.push_back(std::move(tensor));
  }
  SmallVector<Tensor> results =
      llvm::cantFail(compiled->getSignature().makeResults());
  if (prepared)
    llvm::cantFail(compiled->prepare(arguments));
  llvm::cantFail((*compiled)(arguments, results));
  std::vector<double> expected =
      evaluate(shape, arguments[0].getValues(), arguments[1].getValues());
  double largest = 0, error = 0;
  for (auto [value, wanted] :
       llvm::zip_equal(results.front().getValues(), expected)) {
    largest = std::max(largest, std::abs(wanted));
    error = std::isfinite(value) ? std::max(error, std::abs(value - wanted))
                                 : INFINITY;
  }
  // Winograd's transforms lose some bits.
  double tolerance = algorithm == ConvolutionAlgorithm::Winograd ? 5e-5 : 1e-5;
  EXPECT_LE(error, tolerance * largest)
      << "algorithm " << static_cast<int>(algorithm) << ", prepared "
      << prepared << ", seed " << seed << shape.getText();
}

Shape draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto among = [&](ArrayRef<int64_t> values) {
    return values[random() % values.size()];
  };
  Shape shape;
  shape.layout = seed % 4 == 3   ? Layout::NHWC
                 : seed % 4 == 2 ? Layout::NCHW
                                 : Layout::Grouped;
  shape.batches = among({1, 1, 2});
  shape.groups = shape.layout == Layout::Grouped ? among({1, 2, 3, 7}) : 1;
  // A multiplier is more outputs than inputs of a group of one.
  shape.inputs = among({1, 1, 3, 4, 9});
  shape.outputs = among({1, 2, 3, 5, 9, 12, 18, 24, 33});
  shape.height = among({4, 7, 8, 13, 18});
  shape.width = among({7, 8, 14, 17, 30});
  shape.window = among({1, 3, 3, 3, 5});
  shape.stride = among({1, 1, 2, 3});
  shape.dilation = among({1, 1, 1, 2});
  return shape;
}

} // namespace

TEST(ConvolutionAlgorithms, AllAsLoops) {
  bool slow = std::getenv("KAS_SLOW_TESTS") != nullptr;
  for (uint64_t seed = 1; seed <= (slow ? 200 : 8); ++seed)
    for (auto algorithm :
         {ConvolutionAlgorithm::Auto, ConvolutionAlgorithm::Direct,
          ConvolutionAlgorithm::Im2col, ConvolutionAlgorithm::SpatialPack})
      check(draw(seed), algorithm, /*prepared=*/seed % 3 != 0, seed);
}

// Windows of all sizes, which share lines, on images of odd and even widths.
TEST(ConvolutionAlgorithms, DirectOfStrideTwoAsLoops) {
  bool slow = std::getenv("KAS_SLOW_TESTS") != nullptr;
  for (uint64_t seed = 1; seed <= (slow ? 200 : 16); ++seed) {
    std::mt19937_64 random(seed);
    auto among = [&](ArrayRef<int64_t> values) {
      return values[random() % values.size()];
    };
    Shape shape = draw(seed);
    shape.layout = Layout::Grouped;
    shape.groups = among({1, 3, 5});
    shape.inputs = among({1, 1, 2});
    shape.outputs = among({1, 1, 2, 4});
    shape.window = among({1, 2, 3, 3, 3, 4, 5});
    shape.height = among({8, 9, 14, 17});
    shape.width = 14 + static_cast<int64_t>(random() % 60);
    shape.stride = 2;
    shape.dilation = among({1, 1, 2, 3});
    check(shape, ConvolutionAlgorithm::Direct, /*prepared=*/false, seed);
  }
}

TEST(ConvolutionAlgorithms, WinogradAsLoops) {
  bool slow = std::getenv("KAS_SLOW_TESTS") != nullptr;
  for (uint64_t seed = 1; seed <= (slow ? 60 : 6); ++seed) {
    Shape shape = draw(seed);
    shape.layout = Layout::NCHW;
    shape.groups = shape.stride = shape.dilation = 1;
    shape.window = 3;
    // Tiles that outputs fill, and others.
    shape.height += 12;
    check(shape, ConvolutionAlgorithm::Winograd, /*prepared=*/seed % 2, seed);
  }
}
