//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random convolutions by each algorithm of the CPU pipeline, against loops: on
// integers for which nothing rounds, so that all bits agree.
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

/// Integers up to `magnitude` times `factor`, of which one in `rarity` is drawn
/// and the others are zero.
void fill(MutableArrayRef<float> values, std::mt19937_64 &random,
          int64_t magnitude, int64_t factor, uint64_t rarity) {
  for (float &value : values) {
    auto drawn = static_cast<int64_t>(random() % (2 * magnitude + 1));
    value = random() % rarity ? 0.0f : float((drawn - magnitude) * factor);
  }
}

/// The transforms of F(4x4, 3x3) with magnitudes of factors, by rows: those of
/// windows are of multiples of 24.
constexpr double dataFactors[6][6] = {{4, 0, 5, 0, 1, 0}, {0, 4, 4, 1, 1, 0},
                                      {0, 4, 4, 1, 1, 0}, {0, 2, 1, 2, 1, 0},
                                      {0, 2, 1, 2, 1, 0}, {0, 4, 0, 5, 0, 1}};
constexpr double windowFactors[6][3] = {{1. / 4, 0, 0},
                                        {1. / 6, 1. / 6, 1. / 6},
                                        {1. / 6, 1. / 6, 1. / 6},
                                        {1. / 24, 1. / 12, 1. / 6},
                                        {1. / 24, 1. / 12, 1. / 6},
                                        {0, 0, 1}};
constexpr double outputFactors[4][6] = {{1, 1, 1, 1, 1, 0},
                                        {0, 1, 1, 2, 2, 0},
                                        {0, 1, 1, 4, 4, 0},
                                        {0, 1, 1, 8, 8, 1}};

/// `left` times `middle` times the transpose of `left`.
template <size_t rows, size_t columns, typename AtFn>
std::vector<double> transform(const double (&left)[rows][columns], AtFn at) {
  std::vector<double> result(rows * rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j)
      for (size_t p = 0; p < columns; ++p)
        for (size_t q = 0; q < columns; ++q)
          result[i * rows + j] += left[i][p] * left[j][q] * at(p, q);
  return result;
}

/// The largest sum of magnitudes in Winograd's algorithm for an image in NCHW:
/// none of its partial sums is larger.
double getWinogradBound(const Shape &s, ArrayRef<float> x,
                        ArrayRef<float> weights) {
  double largest = 0;
  auto getData = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    if (h < 0 || h >= s.height || w < 0 || w >= s.width)
      return 0.0;
    return std::abs(
        double(x[((n * s.inputs + c) * s.height + h) * s.width + w]));
  };
  for (int64_t n = 0; n < s.batches; ++n)
    for (int64_t k = 0; k < s.outputs; ++k)
      for (int64_t h = 0; h < s.height; h += 4)
        for (int64_t w = 0; w < s.width; w += 4) {
          std::vector<double> products(36);
          for (int64_t c = 0; c < s.inputs; ++c) {
            auto data = transform(dataFactors, [&](int64_t i, int64_t j) {
              return getData(n, c, h + i - 1, w + j - 1);
            });
            auto window = transform(windowFactors, [&](int64_t i, int64_t j) {
              return std::abs(
                  double(weights[((k * s.inputs + c) * 3 + i) * 3 + j]));
            });
            for (size_t i = 0; i < 36; ++i)
              products[i] += data[i] * window[i];
          }
          for (double sum : transform(outputFactors, [&](size_t i, size_t j) {
                 return products[i * 6 + j];
               }))
            largest = std::max(largest, sum);
        }
  return largest;
}

/// Integers for which no partial sum rounds in f32. Winograd divides weights by
/// 24 along each axis, which is exact for multiples of 24^2, and adds up more;
/// values are so rare there that all magnitudes together fit.
void fillExactly(const Shape &shape, ConvolutionAlgorithm algorithm,
                 MutableArrayRef<float> x, MutableArrayRef<float> weights,
                 std::mt19937_64 &random) {
  if (algorithm != ConvolutionAlgorithm::Winograd) {
    // 9 * 5 * 5 terms of at most 270 * 270.
    fill(x, random, 270, 1, 1);
    fill(weights, random, 270, 1, 1);
    return;
  }
  for (uint64_t rarity = 1; rarity <= 64; rarity *= 2) {
    fill(x, random, 1, 1, rarity);
    fill(weights, random, 1, 24 * 24, rarity > 4 ? rarity / 4 : 1);
    if (getWinogradBound(shape, x, weights) <= double(1 << 24))
      return;
  }
  FAIL() << "no values are exact" << shape.getText();
}

void check(const Shape &shape, ConvolutionAlgorithm algorithm, bool prepacked,
           uint64_t seed) {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(shape.getText(), &context);
  ASSERT_TRUE(module) << shape.getText();
  CPUPipelineOptions options;
  options.threads = 1;
  options.prepackWeights = prepacked;
  options.algorithm = algorithm;
  llvm::Expected<CompiledFunction> compiled =
      compileForCPU(*module, "f", options);
  ASSERT_TRUE(static_cast<bool>(compiled))
      << llvm::toString(compiled.takeError()) << shape.getText();
  std::mt19937_64 random(seed);
  SmallVector<Tensor> arguments;
  for (const auto &argument : compiled->getSignature().arguments)
    arguments.emplace_back(argument.shape);
  ASSERT_NO_FATAL_FAILURE(fillExactly(shape, algorithm,
                                      arguments[0].getValues(),
                                      arguments[1].getValues(), random));
  SmallVector<Tensor> results =
      llvm::cantFail(compiled->getSignature().makeResults());
  if (prepacked)
    llvm::cantFail(compiled->prepack(arguments));
  llvm::cantFail((*compiled)(arguments, results));
  std::vector<double> expected =
      evaluate(shape, arguments[0].getValues(), arguments[1].getValues());
  unsigned numWrong = 0, numNonZero = 0;
  for (auto [value, wanted] :
       llvm::zip_equal(results.front().getValues(), expected)) {
    numWrong += !(value == wanted);
    numNonZero += wanted != 0;
  }
  EXPECT_EQ(numWrong, 0u) << "algorithm " << static_cast<int>(algorithm)
                          << ", prepacked " << prepacked << ", seed " << seed
                          << shape.getText();
  EXPECT_GT(numNonZero, 0u);
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
      check(draw(seed), algorithm, /*prepacked=*/seed % 3 != 0, seed);
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
    check(shape, ConvolutionAlgorithm::Direct, /*prepacked=*/false, seed);
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
    check(shape, ConvolutionAlgorithm::Winograd, /*prepacked=*/seed % 2, seed);
  }
}
