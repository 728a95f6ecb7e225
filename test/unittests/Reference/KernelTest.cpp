//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every op of the tensor level on numbers that can be read.
//
//===----------------------------------------------------------------------===//

#include "EvaluateKernel.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::reference;

namespace {

/// Kernels of one op are much alike.
std::string kernel(const std::string &type, const std::string &step,
                   const std::string &result) {
  return "kas.kernel @f(%in: " + type + ") -> " + result +
         " {\n  %y = kas.dag." + step + " : " + type +
         "\n  kas.dag.output %y : " + result + "\n}";
}

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

TEST(ReferenceKernel, Views) {
  EXPECT_EQ(evaluateKernel(kernel("[6]", "group %in dim 0 by 2", "[2, 3]"),
                           {{1, 2, 3, 4, 5, 6}}),
            Values({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(evaluateKernel(kernel("[2, 2 | 2]", "group_all %in", "[4, 1 | 2]"),
                           {{1, 2, 3, 4, 5, 6, 7, 8}}),
            Values({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ReferenceKernel, ShiftIsAsAtTheCoordinateLevel) {
  EXPECT_EQ(evaluateKernel(kernel("[| 4]", "shift %in dim 0 by 1", "[| 4]"),
                           {{1, 2, 3, 4}}),
            Values({2, 3, 4, 1}));
  EXPECT_EQ(evaluateKernel(kernel("[| 4]", "shift %in dim 0 by -1", "[| 4]"),
                           {{1, 2, 3, 4}}),
            Values({4, 1, 2, 3}));
  EXPECT_EQ(evaluateKernel(kernel("[2 | 2]", "shift %in dim 0 by 1", "[2 | 2]"),
                           {{1, 2, 3, 4}}),
            Values({3, 4, 1, 2}));
}

TEST(ReferenceKernel, Unfold) {
  EXPECT_EQ(
      evaluateKernel(kernel("[| 4]", "unfold %in dims [0] by [3]", "[3 | 4]"),
                     {{1, 2, 3, 4}}),
      Values({0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 0}));
  EXPECT_EQ(
      evaluateKernel(
          kernel("[| 4]", "unfold %in dims [0] by [3] dilation 2", "[3 | 4]"),
          {{1, 2, 3, 4}}),
      Values({0, 0, 1, 2, 1, 2, 3, 4, 3, 4, 0, 0}));
}

/// The windows are in the order of `dims`, whichever dimension comes first.
TEST(ReferenceKernel, UnfoldOrder) {
  Values input = randomValues(2 * 3 * 4, 1);
  auto at = [&](int c, int h, int w) {
    return h < 0 || h >= 3 || w < 0 || w >= 4 ? 0.0f
                                              : input[(c * 3 + h) * 4 + w];
  };
  Values expected;
  for (int c = 0; c < 2; ++c)
    for (int kw = 0; kw < 5; ++kw)
      for (int kh = 0; kh < 3; ++kh)
        for (int h = 0; h < 3; ++h)
          for (int w = 0; w < 4; ++w)
            expected.push_back(at(c, h + kh - 1, w + kw - 2));
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 3, 4]", "unfold %in dims [2, 1] by [5, 3]",
                            "[2, 5, 3 | 3, 4]"),
                     {input}),
      expected);
}

TEST(ReferenceKernel, TransposeShuffleReorder) {
  EXPECT_EQ(evaluateKernel(
                kernel("[| 2, 3]", "transpose %in dims [0, 1]", "[| 3, 2]"),
                {{1, 2, 3, 4, 5, 6}}),
            Values({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(evaluateKernel(kernel("[6]", "shuffle %in dim 0 by 2", "[6]"),
                           {{1, 2, 3, 4, 5, 6}}),
            Values({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(evaluateKernel(kernel("[6]", "shuffle %in dim 0 by 3", "[6]"),
                           {{1, 2, 3, 4, 5, 6}}),
            Values({1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(evaluateKernel(kernel("[| 4]", "reorder %in dim 0", "[| 4]"),
                           {{1, 2, 3, 4}}),
            Values({1, 3, 2, 4}));
  EXPECT_EQ(evaluateKernel(kernel("[| 5]", "reorder %in dim 0", "[| 5]"),
                           {{1, 2, 3, 4, 5}}),
            Values({1, 3, 5, 2, 4}));
  EXPECT_EQ(
      evaluateKernel(kernel("[| 5]", "reorder %in dim 0 inverse", "[| 5]"),
                     {{1, 3, 5, 2, 4}}),
      Values({1, 2, 3, 4, 5}));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

TEST(ReferenceKernel, FullyConnected) {
  // Two outputs of three inputs, at two points.
  EXPECT_EQ(evaluateKernel(kernel("[3 | 2]", "fc %in to 2", "[2 | 2]"),
                           {{1, 2, 3, 4, 5, 6}}, {{1, 0, 0, 1, 10, 100}}),
            Values({1, 2, 531, 642}));
  // Two groups of two inputs; four outputs, two of each group.
  EXPECT_EQ(
      evaluateKernel(kernel("[2, 2 | 1]", "fc %in groups 1 to 4", "[4 | 1]"),
                     {{1, 2, 3, 4}}, {{1, 0, 0, 1, 1, 0, 0, 1}}),
      Values({1, 2, 3, 4}));
}

TEST(ReferenceKernel, Scale) {
  EXPECT_EQ(evaluateKernel(kernel("[2 | 2]", "scale %in dims [0]", "[2 | 2]"),
                           {{1, 2, 3, 4}}, {{10, 100}}),
            Values({10, 20, 300, 400}));
  // In the order of `dims`: the weight is [spatial, channel].
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 2]", "scale %in dims [1, 0]", "[2 | 2]"),
                     {{1, 1, 1, 1}}, {{1, 2, 3, 4}}),
      Values({1, 3, 2, 4}));
}

TEST(ReferenceKernel, ElementWise) {
  auto apply = [](const std::string &kind, float x) {
    return evaluateKernel(kernel("[1]", "unary " + kind + " %in", "[1]"),
                          {{x}})[0];
  };
  EXPECT_EQ(apply("relu", -2), 0);
  EXPECT_EQ(apply("relu", 2), 2);
  EXPECT_NEAR(apply("gelu", 1), 0.8413447, 1e-6);
  EXPECT_NEAR(apply("gelu", -1), -0.1586553, 1e-6);
  EXPECT_NEAR(apply("sigmoid", 1), 0.7310586, 1e-6);
  EXPECT_NEAR(apply("tanh", 1), 0.7615942, 1e-6);
  EXPECT_EQ(apply("abs", -3), 3);
  EXPECT_NEAR(apply("exp", 1), 2.7182818, 1e-6);
  EXPECT_EQ(apply("neg", 3), -3);
  EXPECT_EQ(apply("sin", 1), 1);
  EXPECT_EQ(apply("sqrt", -4), 2);
  EXPECT_EQ(apply("sqr", -4), 16);
}

TEST(ReferenceKernel, Fold) {
  Values input = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 2, 2]", "fold sum %in dims [1]", "[2 | 2]"),
                     {input}),
      Values({4, 6, 12, 14}));
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 2, 2]", "fold mean %in dims [2, 1]", "[2]"),
                     {input}),
      Values({2.5, 6.5}));
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 2, 2]", "fold max %in dims [0]", "[| 2, 2]"),
                     {{-1, -2, -3, -4, -5, 6, -7, -8}}),
      Values({-1, 6, -3, -4}));
}

/// Over H and W together, and not over the channels.
TEST(ReferenceKernel, Softmax) {
  Values input = randomValues(2 * 3 * 2, 2);
  std::vector<double> expected;
  for (int c = 0; c < 2; ++c) {
    double sum = 0;
    for (int i = 0; i < 6; ++i)
      sum += std::exp(double(input[c * 6 + i]));
    for (int i = 0; i < 6; ++i)
      expected.push_back(std::exp(double(input[c * 6 + i])) / sum);
  }
  expectClose(evaluateKernel(
                  kernel("[2 | 3, 2]", "softmax %in dims [1, 2]", "[2 | 3, 2]"),
                  {input}),
              expected);
  // Large values do not overflow.
  EXPECT_EQ(evaluateKernel(kernel("[2]", "softmax %in dims [0]", "[2]"),
                           {{1e30f, 1e30f}}),
            Values({0.5, 0.5}));
}

TEST(ReferenceKernel, CumSum) {
  Values input = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 4]", "cumsum %in dim 1", "[2 | 4]"), {input}),
      Values({1, 3, 6, 10, 5, 11, 18, 26}));
  EXPECT_EQ(
      evaluateKernel(kernel("[2, 2 | 2]", "cumsum %in dim 0", "[2, 2 | 2]"),
                     {input}),
      Values({1, 2, 3, 4, 6, 8, 10, 12}));
}

TEST(ReferenceKernel, LooksBack) {
  Values input = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(evaluateKernel(
                kernel("[2 | 4]", "shift %in dim 1 by -1 causal", "[2 | 4]"),
                {input}),
            Values({0, 1, 2, 3, 0, 5, 6, 7}));
  EXPECT_EQ(evaluateKernel(
                kernel("[| 4]", "unfold %in dims [0] by [3] causal", "[3 | 4]"),
                {{1, 2, 3, 4}}),
            Values({0, 0, 1, 2, 0, 1, 2, 3, 1, 2, 3, 4}));
  EXPECT_EQ(evaluateKernel(
                kernel("[| 4]", "unfold %in dims [0] by [2] dilation 2 causal",
                       "[2 | 4]"),
                {{1, 2, 3, 4}}),
            Values({0, 0, 1, 2, 1, 2, 3, 4}));
  // Depthwise: the last weight meets the position itself.
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 4]",
                            "conv %in groups 1 dims [1] by [3] causal to 2",
                            "[2 | 4]"),
                     {input}, {{100, 10, 1, 0, 1, 2}}),
      Values({1, 12, 123, 234, 10, 17, 20, 23}));
}

/// The first factor is not read.
TEST(ReferenceKernel, Scan) {
  std::string text = R"(
kas.kernel @f(%a: [2 | 3], %x: [2 | 3]) -> [2 | 3] {
  %h = kas.dag.scan %a, %x dim DIM : [2 | 3], [2 | 3]
  kas.dag.output %h : [2 | 3]
})";
  auto scan = [&](const char *dim, const Values &factors) {
    std::string along = text;
    along.replace(along.find("DIM"), 3, dim);
    return evaluateKernel(along, {factors, {1, 2, 3, 4, 5, 6}});
  };
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(scan("1", {infinity, 2, 3, 7, 0, -1}), Values({1, 4, 15, 4, 5, 1}));
  EXPECT_EQ(scan("0", {infinity, 2, 3, 7, 0, -1}), Values({1, 2, 3, 11, 5, 3}));
}

TEST(ReferenceKernel, Pool) {
  Values input = {1, 2, 3, 4, 5, 6, 7, 8};
  auto pool = [&](const std::string &kind) {
    return evaluateKernel(kernel("[1 | 2, 4]",
                                 "pool " + kind + " %in dims [2, 1] by [2, 2]",
                                 "[1 | 1, 2]"),
                          {input});
  };
  EXPECT_EQ(pool("sum"), Values({14, 22}));
  EXPECT_EQ(pool("mean"), Values({3.5, 5.5}));
  EXPECT_EQ(pool("max"), Values({6, 8}));
}

/// Weights in the order [output, channels of the group, window].
TEST(ReferenceKernel, ConvolutionStep) {
  constexpr int groups = 2, perGroup = 2, outputs = 4, height = 3, width = 5;
  Values input = randomValues(groups * perGroup * height * width, 20);
  Values weight = randomValues(outputs * perGroup * 3 * 5, 21);
  std::vector<double> expected;
  for (int o = 0; o < outputs; ++o)
    for (int h = 0; h < height; ++h)
      for (int w = 0; w < width; ++w) {
        double sum = 0;
        for (int c = 0; c < perGroup; ++c)
          for (int j = 0; j < 5; ++j)
            for (int i = 0; i < 3; ++i) {
              int y = h + 2 * (i - 1), x = w + 2 * (j - 2);
              int channel = o / (outputs / groups) * perGroup + c;
              if (y >= 0 && y < height && x >= 0 && x < width)
                sum += double(weight[((o * perGroup + c) * 5 + j) * 3 + i]) *
                       input[(channel * height + y) * width + x];
            }
        expected.push_back(sum);
      }
  expectClose(
      evaluateKernel(
          kernel("[2, 2 | 3, 5]",
                 "conv %in groups 1 dims [3, 2] by [5, 3] dilation 2 to 4",
                 "[4 | 3, 5]"),
          {input}, {weight}),
      expected);
}

/// The spatial dimensions are contracted together, each with a new size.
TEST(ReferenceKernel, Mix) {
  Values input = randomValues(2 * 3 * 2, 22), weight = randomValues(4 * 6, 23);
  std::vector<double> expected;
  for (int c = 0; c < 2; ++c)
    for (int o = 0; o < 4; ++o) {
      double sum = 0;
      for (int i = 0; i < 6; ++i)
        sum += double(weight[o * 6 + i]) * input[c * 6 + i];
      expected.push_back(sum);
    }
  expectClose(
      evaluateKernel(
          kernel("[2 | 3, 2]", "mix %in dims [1, 2] to [4, 1]", "[2 | 4, 1]"),
          {input}, {weight}),
      expected);
  // In the order of `dims`: new and old sizes of the weight are [W, C].
  EXPECT_EQ(evaluateKernel(
                kernel("[2 | 2]", "mix %in dims [1, 0] to [1, 2]", "[2 | 1]"),
                {{1, 2, 3, 4}}, {{1, 10, 100, 1000, 0, 0, 0, 1}}),
            Values({1 + 30 + 200 + 4000, 4}));
}

TEST(ReferenceKernel, Norm) {
  float variance = 4 - 1e-5f;
  Values actual =
      evaluateKernel(kernel("[2 | 2]", "norm %in", "[2 | 2]"), {{1, 2, 3, 4}},
                     {{1, 10}, {0.5, 0}, {1, 3}, {variance, -variance}});
  expectClose(actual, {0.5, 1, 0, 5});
}

TEST(ReferenceKernel, DropoutIsOfTraining) {
  EXPECT_EQ(evaluateKernel(kernel("[3]", "dropout %in rate 5.0e-01", "[3]"),
                           {{1, 2, 3}}),
            Values({1, 2, 3}));
}

//===----------------------------------------------------------------------===//
// Channels of inputs and outputs
//===----------------------------------------------------------------------===//

TEST(ReferenceKernel, AmplifyRepeatsBlocks) {
  EXPECT_EQ(
      evaluateKernel(kernel("[2 | 2]", "amplify %in by 3 of 2", "[3, 2 | 2]"),
                     {{1, 2, 3, 4}}),
      Values({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  // A view.
  EXPECT_EQ(evaluateKernel(kernel("[4]", "amplify %in by 2 of 2", "[2, 2]"),
                           {{1, 2, 3, 4}}),
            Values({1, 2, 3, 4}));
  // Two blocks for five copies.
  EXPECT_EQ(evaluateKernel(kernel("[2]", "amplify %in by 5 of 1", "[5, 1]"),
                           {{1, 2}}),
            Values({1, 2, 1, 2, 1}));
}

TEST(ReferenceKernel, OutputAveragesBlocks) {
  auto average = [](const std::string &result, const std::string &blocks) {
    return evaluateKernel("kas.kernel @f(%in: [6]) -> " + result +
                              " {\n  kas.dag.output %in average " + blocks +
                              " : [6]\n}",
                          {{1, 2, 3, 5, 8, 13}});
  };
  EXPECT_EQ(average("[2]", "3 of 2"), Values({4, 20 / 3.0f}));
  EXPECT_EQ(average("[6]", "3 of 2"), Values({1, 2, 3, 5, 8, 13}));
  EXPECT_EQ(average("[4]", "6 of 1"), Values({4.5, 7.5, 3, 5}));
}

//===----------------------------------------------------------------------===//
// Blending
//===----------------------------------------------------------------------===//

Values broadcast(const std::string &kind, const std::string &common,
                 const std::string &left, const std::string &right,
                 const Values &a, const Values &b) {
  return evaluateKernel("kas.kernel @f(%a: " + left + ", %b: " + right +
                            ") -> " + right + " {\n  %y = kas.dag.broadcast " +
                            kind + " %a, %b common " + common + " : " + left +
                            ", " + right + "\n  kas.dag.output %y : " + right +
                            "\n}",
                        {a, b});
}

TEST(ReferenceKernel, BroadcastRepeatsTheLeftBlock) {
  auto kinds = [](const std::string &kind) {
    return broadcast(kind, "[0, 0]", "[2]", "[4]", {10, 20}, {1, 2, 3, 4});
  };
  EXPECT_EQ(kinds("add"), Values({11, 22, 13, 24}));
  EXPECT_EQ(kinds("sub"), Values({9, 18, 7, 16}));
  EXPECT_EQ(kinds("mul"), Values({10, 40, 30, 80}));
  EXPECT_EQ(kinds("min"), Values({1, 2, 3, 4}));
  EXPECT_EQ(kinds("max"), Values({10, 20, 10, 20}));
}

/// What is common at the front is not repeated: the same tensors differ.
TEST(ReferenceKernel, BroadcastCommonDims) {
  Values left = {10, 20}, right = {1, 2, 3, 4};
  EXPECT_EQ(broadcast("add", "[1, 0]", "[2]", "[2, 2]", left, right),
            Values({11, 12, 23, 24}));
  EXPECT_EQ(broadcast("add", "[0, 1]", "[2]", "[2, 2]", left, right),
            Values({11, 22, 13, 24}));
  EXPECT_EQ(broadcast("add", "[0, 0]", "[2]", "[2, 2]", left, right),
            Values({11, 22, 13, 24}));
  // Between a common front and a common back.
  EXPECT_EQ(broadcast("add", "[1, 1]", "[2 | 2]", "[2, 2 | 2]",
                      {10, 20, 30, 40}, {1, 2, 3, 4, 5, 6, 7, 8}),
            Values({11, 22, 13, 24, 35, 46, 37, 48}));
}

TEST(ReferenceKernel, MatMul) {
  auto multiply = [](const std::string &options, const std::string &left,
                     const std::string &right, const std::string &result,
                     const Values &a, const Values &b) {
    return evaluateKernel(
        "kas.kernel @f(%a: " + left + ", %b: " + right + ") -> " + result +
            " {\n  %y = kas.dag.matmul " + "%a, %b " + options + " : " + left +
            ", " + right + "\n  kas.dag.output %y : " + result + "\n}",
        {a, b});
  };
  // [1 2 3; 4 5 6] times [1 10; 2 20; 3 30].
  EXPECT_EQ(multiply("", "[2 | 3]", "[3 | 2]", "[2 | 2]", {1, 2, 3, 4, 5, 6},
                     {1, 10, 2, 20, 3, 30}),
            Values({14, 140, 32, 320}));
  EXPECT_EQ(multiply("transpose_left", "[3 | 2]", "[3 | 2]", "[2 | 2]",
                     {1, 4, 2, 5, 3, 6}, {1, 10, 2, 20, 3, 30}),
            Values({14, 140, 32, 320}));
  EXPECT_EQ(multiply("transpose_right", "[2 | 3]", "[2 | 3]", "[2 | 2]",
                     {1, 2, 3, 4, 5, 6}, {1, 2, 3, 10, 20, 30}),
            Values({14, 140, 32, 320}));
  EXPECT_EQ(multiply("scaled", "[1 | 4]", "[4 | 1]", "[1 | 1]", {1, 2, 3, 4},
                     {1, 1, 1, 1}),
            Values({5}));
  EXPECT_EQ(multiply("batch 1", "[2, 1 | 2]", "[2, 2 | 1]", "[2, 1 | 1]",
                     {1, 2, 3, 4}, {1, 1, 10, 10}),
            Values({3, 70}));
}

TEST(ReferenceKernel, QuietNaN) {
  float nan = std::nanf("");
  for (const char *kind : {"min", "max"})
    for (const auto &[a, b] : {std::pair(nan, 1.0f), std::pair(1.0f, nan)})
      EXPECT_TRUE(
          std::isnan(broadcast(kind, "[0, 0]", "[1]", "[1]", {a}, {b})[0]));
}

/// 1e30 squared is no f32: infinite where steps are rounded, else the root
/// brings it back.
TEST(ReferenceKernel, StepPrecision) {
  std::string text = R"(
    kas.kernel @f(%in: [2]) -> [2] {
      %s = kas.dag.unary sqr %in : [2]
      %r = kas.dag.unary sqrt %s : [2]
      kas.dag.output %r : [2]
    })";
  std::vector<Values> inputs = {{3, 1e30f}};
  EXPECT_EQ(evaluateKernel(text, inputs), Values({3, 1e30f}));
  EXPECT_EQ(evaluateKernel(text, inputs, {}, nullptr, StepPrecision::Single),
            Values({3, std::numeric_limits<float>::infinity()}));
}

} // namespace
