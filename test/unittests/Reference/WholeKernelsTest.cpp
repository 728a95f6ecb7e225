//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of several steps, against an independent formula.
//
//===----------------------------------------------------------------------===//

#include "EvaluateKernel.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

namespace {

/// The weights of the kernel are in program order, the operator's among them.
TEST(ReferenceKernel, Apply) {
  constexpr int channels = 2, width = 4;
  Values input = randomValues(channels * width, 24);
  Values scale = randomValues(channels, 25);
  Values weight = randomValues(3 * channels * 3, 26);
  std::vector<double> expected;
  for (int o = 0; o < 3; ++o)
    for (int w = 0; w < width; ++w) {
      double sum = 0;
      for (int c = 0; c < channels; ++c)
        for (int i = 0; i < 3; ++i)
          if (int x = w + i - 1; x >= 0 && x < width)
            sum += double(weight[(o * channels + c) * 3 + i]) * scale[c] *
                   input[c * width + x];
      expected.push_back(std::abs(sum));
    }
  expectClose(evaluateKernel(R"(
    kas.kernel @f<C, W | k> (%in: [C | W]) -> [3 | W]
        bindings [<C = 2, W = 4, k = 3>] {
      %s = kas.dag.scale %in dims [0] : [C | W]
      %y = kas.dag.apply @conv1d<N = 1, Cin = C, Cout = 3, W = W, k = k> %s
          : [C | W] -> [3 | W]
      %a = kas.dag.unary abs %y : [3 | W]
      kas.dag.output %a : [3 | W]
    }
    kas.operator @conv1d<N, Cin, Cout, W | k>
        (%n: N, %co: Cout, %w: W) from [N, Cin, W] {
      %ci = kas.reduce sum : Cin
      %kw = kas.reduce sum : k
      %ci_d, %ci_w = kas.share %ci : Cin
      %kw_d, %kw_w = kas.share %kw : k
      %iw = kas.unfold %w, %kw_d : W, k
      kas.yield data(%n, %ci_d, %iw) weight(%co, %ci_w, %kw_w)
    })",
                             {input}, {scale, weight}),
              expected);
}

/// The first binding gives the symbols their values.
TEST(ReferenceKernel, Convolution) {
  constexpr int channels = 3, height = 4, width = 5, window = 3;
  Values input = randomValues(channels * height * width, 3);
  Values weight = randomValues(channels * channels * window * window, 4);
  std::vector<double> expected;
  for (int o = 0; o < channels; ++o)
    for (int h = 0; h < height; ++h)
      for (int w = 0; w < width; ++w) {
        double sum = 0;
        for (int c = 0; c < channels; ++c)
          for (int i = 0; i < window; ++i)
            for (int j = 0; j < window; ++j) {
              int y = h + i - 1, x = w + j - 1;
              if (y >= 0 && y < height && x >= 0 && x < width)
                sum +=
                    double(weight[((o * channels + c) * window + i) * window +
                                  j]) *
                    input[(c * height + y) * width + x];
            }
        expected.push_back(sum);
      }
  expectClose(evaluateKernel(R"(
    kas.kernel @convolution<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 3, H = 4, W = 5, k = 3>] {
      %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
      %y = kas.dag.fc %u to C : [C, k, k | H, W]
      kas.dag.output %y : [C | H, W]
    })",
                             {input}, {weight}),
              expected);
}

/// Squeeze and excite: x = 2 channels between.
TEST(ReferenceKernel, SqueezeExcite) {
  constexpr int channels = 4, points = 6, hidden = 2;
  Values input = randomValues(channels * points, 5);
  Values first = randomValues(hidden * channels, 6);
  Values second = randomValues(channels * hidden, 7);
  std::vector<double> expected;
  for (int c = 0; c < channels; ++c) {
    double gate = 0;
    for (int x = 0; x < hidden; ++x) {
      double sum = 0;
      for (int d = 0; d < channels; ++d) {
        double mean = 0;
        for (int i = 0; i < points; ++i)
          mean += input[d * points + i] / double(points);
        sum += first[x * channels + d] * mean;
      }
      gate += second[c * hidden + x] * std::max(sum, 0.0);
    }
    for (int i = 0; i < points; ++i)
      expected.push_back(input[c * points + i] / (1 + std::exp(-gate)));
  }
  expectClose(evaluateKernel(R"(
    kas.kernel @squeeze_excite<C, H, W | | x> (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 4, H = 2, W = 3, x = 2>] {
      %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
      %a = kas.dag.fc %p to x : [C]
      %r = kas.dag.unary relu %a : [x]
      %b = kas.dag.fc %r to C : [x]
      %s = kas.dag.unary sigmoid %b : [C]
      %m = kas.dag.broadcast mul %s, %in common [1, 0] : [C], [C | H, W]
      kas.dag.output %m : [C | H, W]
    })",
                             {input}, {first, second}),
              expected);
}

/// Involution: a kernel per point and group, made from the point itself.
TEST(ReferenceKernel, Involution) {
  constexpr int channels = 4, groups = 2, height = 3, width = 4, window = 3;
  Values input = randomValues(channels * height * width, 8);
  Values weight = randomValues(groups * window * window * channels, 9);
  std::vector<double> expected;
  for (int c = 0; c < channels; ++c)
    for (int h = 0; h < height; ++h)
      for (int w = 0; w < width; ++w) {
        int group = c / (channels / groups);
        double mean = 0;
        for (int i = 0; i < window; ++i)
          for (int j = 0; j < window; ++j) {
            int y = h + i - 1, x = w + j - 1;
            if (y < 0 || y >= height || x < 0 || x >= width)
              continue;
            double factor = 0;
            for (int d = 0; d < channels; ++d)
              factor +=
                  double(weight[((group * window + i) * window + j) * channels +
                                d]) *
                  input[(d * height + h) * width + w];
            mean += factor * input[(c * height + y) * width + x] / 9;
          }
        expected.push_back(mean);
      }
  expectClose(evaluateKernel(R"(
    kas.kernel @involution<C, H, W | G, k> where [G divides C]
        (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 4, G = 2, H = 3, W = 4, k = 3>] {
      %a = kas.dag.fc %in to G*k*k : [C | H, W]
      %b = kas.dag.group %a dim 0 by G : [G*k**2 | H, W]
      %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
      %v = kas.dag.group %u dim 0 by G : [C, k, k | H, W]
      %m = kas.dag.broadcast mul %b, %v common [1, 2] : [G, k**2 | H, W], [G, C/G, k, k | H, W]
      %f = kas.dag.fold mean %m dims [2, 3] : [G, C/G, k, k | H, W]
      kas.dag.output %f : [G, C/G | H, W]
    })",
                             {input}, {weight}),
              expected);
}

/// Attention with two heads over the positions of an image.
TEST(ReferenceKernel, SelfAttention) {
  constexpr int heads = 2, depth = 3, points = 4;
  constexpr int channels = heads * depth;
  Values input = randomValues(channels * points, 12);
  std::vector<Values> weights;
  for (uint64_t i = 0; i < 3; ++i)
    weights.push_back(randomValues(channels * channels, 13 + i));
  auto project = [&](const Values &weight, int channel, int point) {
    double sum = 0;
    for (int c = 0; c < channels; ++c)
      sum += double(weight[channel * channels + c]) * input[c * points + point];
    return sum;
  };
  std::vector<double> expected;
  for (int channel = 0; channel < channels; ++channel)
    for (int query = 0; query < points; ++query) {
      double total = 0, sum = 0;
      for (int key = 0; key < points; ++key) {
        double score = 0;
        for (int d = 0; d < depth; ++d) {
          int c = channel / depth * depth + d;
          score += project(weights[0], c, query) * project(weights[1], c, key);
        }
        double factor = std::exp(score / std::sqrt(double(depth)));
        total += factor;
        sum += factor * project(weights[2], channel, key);
      }
      expected.push_back(sum / total);
    }
  expectClose(evaluateKernel(R"(
    kas.kernel @self_attention<C, H, W | h> where [h divides C]
        (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 6, H = 2, W = 2, h = 2>] {
      %a = kas.dag.fc %in to C : [C | H, W]
      %q = kas.dag.group %a dim 0 by h : [C | H, W]
      %b = kas.dag.fc %in to C : [C | H, W]
      %k = kas.dag.group %b dim 0 by h : [C | H, W]
      %c = kas.dag.fc %in to C : [C | H, W]
      %v = kas.dag.group %c dim 0 by h : [C | H, W]
      %s = kas.dag.matmul %k, %q batch 1 transpose_left scaled : [h, C/h | H, W], [h, C/h | H, W]
      %p = kas.dag.softmax %s dims [1, 2] : [h, H, W | H, W]
      %o = kas.dag.matmul %v, %p batch 1 : [h, C/h | H, W], [h, H, W | H, W]
      kas.dag.output %o : [h, C/h | H, W]
    })",
                             {input}, weights),
              expected);
}

/// One mask over the positions, made from the means, for all channels.
TEST(ReferenceKernel, SharedSpatialMask) {
  Values input = randomValues(2 * 2 * 2, 10);
  Values weight = randomValues(4 * 2, 11);
  std::vector<double> expected;
  double mean[2] = {};
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < 4; ++i)
      mean[c] += input[c * 4 + i] / 4.0;
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < 4; ++i)
      expected.push_back(
          (weight[2 * i] * mean[0] + weight[2 * i + 1] * mean[1]) *
          input[c * 4 + i]);
  expectClose(evaluateKernel(R"(
    kas.kernel @mask<C, H, W> (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 2, H = 2, W = 2>] {
      %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
      %a = kas.dag.fc %p to H*W : [C]
      %m = kas.dag.broadcast mul %a, %in common [0, 0] : [H*W], [C | H, W]
      kas.dag.output %m : [C | H, W]
    })",
                             {input}, {weight}),
              expected);
}

} // namespace
