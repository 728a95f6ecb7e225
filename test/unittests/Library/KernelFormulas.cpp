//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelFormulas.h"
#include <algorithm>
#include <cmath>

using namespace formulas;

namespace {

/// An image of C channels; zero outside of its points.
struct Image {
  int channels, height, width;
  List values;

  double at(int c, int h, int w) const {
    if (h < 0 || h >= height || w < 0 || w >= width)
      return 0;
    return values[(c * height + h) * width + w];
  }
};

Image getImage(const KernelSizes &sizes, const List &input) {
  return {sizes.at("C"), sizes.at("H"), sizes.at("W"), input};
}

/// The value `compute(c, h, w)` at each point of as many channels.
template <typename Compute>
Image makeImage(int channels, const Image &like, Compute compute) {
  Image image{channels, like.height, like.width, {}};
  for (int c = 0; c < channels; ++c)
    for (int h = 0; h < like.height; ++h)
      for (int w = 0; w < like.width; ++w)
        image.values.push_back(compute(c, h, w));
  return image;
}

/// A convolution with windows of `rows` times `columns`, in groups of channels.
Image convolve(const Image &x, const List &weight, int outputs, int groups,
               int rows, int columns, int dilation = 1) {
  int inner = x.channels / groups;
  return makeImage(outputs, x, [&](int o, int h, int w) {
    double sum = 0;
    for (int c = 0; c < inner; ++c)
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          sum += weight[((o * inner + c) * rows + i) * columns + j] *
                 x.at(o / (outputs / groups) * inner + c,
                      h + dilation * (i - rows / 2),
                      w + dilation * (j - columns / 2));
    return sum;
  });
}

/// The same map of the channels at every point.
Image mapChannels(const Image &x, const List &weight, int outputs) {
  return convolve(x, weight, outputs, 1, 1, 1);
}

template <typename Function>
Image apply(const Image &x, Function function) {
  return makeImage(x.channels, x, [&](int c, int h, int w) {
    return function(x.at(c, h, w));
  });
}

double rectify(double x) { return std::max(x, 0.0); }
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }

Image add(const Image &a, const Image &b) {
  return makeImage(a.channels, a, [&](int c, int h, int w) {
    return a.at(c, h, w) + b.at(c, h, w);
  });
}

/// Each point reads its neighbour, around the border.
Image shift(const Image &x, int down, int right) {
  return makeImage(x.channels, x, [&](int c, int h, int w) {
    return x.at(c, (h + down) % x.height, (w + right) % x.width);
  });
}

List getMeans(const Image &x) {
  List means;
  int points = x.height * x.width;
  for (int c = 0; c < x.channels; ++c) {
    double sum = 0;
    for (int p = 0; p < points; ++p)
      sum += x.values[c * points + p];
    means.push_back(sum / points);
  }
  return means;
}

/// A map of a vector.
List multiply(const List &weight, const List &vector, int rows) {
  List result;
  int columns = int(vector.size());
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int column = 0; column < columns; ++column)
      sum += weight[row * columns + column] * vector[column];
    result.push_back(sum);
  }
  return result;
}

/// Attention of `heads` heads between the points.
Image attend(const Image &q, const Image &k, const Image &v, int heads) {
  int points = q.height * q.width, depth = q.channels / heads;
  Image result = q;
  for (int channel = 0; channel < q.channels; ++channel)
    for (int query = 0; query < points; ++query) {
      double total = 0, sum = 0;
      for (int key = 0; key < points; ++key) {
        double score = 0;
        for (int d = 0; d < depth; ++d) {
          int c = channel / depth * depth + d;
          score += q.values[c * points + query] * k.values[c * points + key];
        }
        double factor = std::exp(score / std::sqrt(double(depth)));
        total += factor;
        sum += factor * v.values[channel * points + key];
      }
      result.values[channel * points + query] = sum / total;
    }
  return result;
}

using Weights = std::vector<List>;

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

List convolution(const KernelSizes &s, const List &x, const Weights &w) {
  return convolve(getImage(s, x), w[0], s.at("C"), 1, s.at("k"), s.at("k"))
      .values;
}

List depthwise(const KernelSizes &s, const List &x, const Weights &w) {
  int channels = s.at("C");
  return convolve(getImage(s, x), w[0], channels, channels, s.at("k"),
                  s.at("k"))
      .values;
}

List grouped(const KernelSizes &s, const List &x, const Weights &w) {
  return convolve(getImage(s, x), w[0], s.at("C"), s.at("G"), s.at("k"),
                  s.at("k"))
      .values;
}

List separable(const KernelSizes &s, const List &x, const Weights &w) {
  Image y = getImage(s, depthwise(s, x, w));
  Image normal = makeImage(y.channels, y, [&](int c, int h, int column) {
    double centered = rectify(y.at(c, h, column)) - w[3][c];
    return centered / std::sqrt(std::abs(w[4][c]) + 1e-5) * w[1][c] + w[2][c];
  });
  return mapChannels(normal, w[5], y.channels).values;
}

List spatiallySeparable(const KernelSizes &s, const List &x, const Weights &w) {
  int channels = s.at("C");
  Image z = convolve(getImage(s, x), w[0], channels, 1, s.at("k"), 1);
  return convolve(z, w[1], channels, 1, 1, s.at("k")).values;
}

List shiftConvolution(const KernelSizes &s, const List &x, const Weights &w) {
  return mapChannels(shift(getImage(s, x), 1, 1), w[0], s.at("C")).values;
}

List residual(const KernelSizes &s, const List &x, const Weights &w) {
  Image y = getImage(s, convolution(s, x, w));
  return add(getImage(s, x), apply(y, rectify)).values;
}

List involution(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int window = s.at("k"), groups = s.at("G"), points = window * window;
  Image hidden = apply(mapChannels(input, w[0], s.at("x")), rectify);
  Image kernels = mapChannels(hidden, w[1], groups * points);
  return makeImage(input.channels, input,
                   [&](int c, int h, int column) {
                     int group = c / (input.channels / groups);
                     double sum = 0;
                     for (int i = 0; i < window; ++i)
                       for (int j = 0; j < window; ++j)
                         sum += kernels.at((group * window + i) * window + j, h,
                                           column) *
                                input.at(c, h + i - window / 2,
                                         column + j - window / 2);
                     return sum / points;
                   })
      .values;
}

//===----------------------------------------------------------------------===//
// Gates and attention
//===----------------------------------------------------------------------===//

List squeezeExcite(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  List hidden = multiply(w[0], getMeans(input), s.at("x"));
  std::transform(hidden.begin(), hidden.end(), hidden.begin(), rectify);
  List gates = multiply(w[1], hidden, input.channels);
  return makeImage(input.channels, input,
                   [&](int c, int h, int column) {
                     return input.at(c, h, column) / (1 + std::exp(-gates[c]));
                   })
      .values;
}

List selfAttention(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels;
  return attend(mapChannels(input, w[0], channels),
                mapChannels(input, w[1], channels),
                mapChannels(input, w[2], channels), 1)
      .values;
}

List multiHeadAttention(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels;
  Image heads = attend(mapChannels(input, w[0], channels),
                       mapChannels(input, w[1], channels),
                       mapChannels(input, w[2], channels), s.at("G"));
  return mapChannels(heads, w[3], channels).values;
}

List linearAttention(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels, points = input.height * input.width;
  Image q = apply(mapChannels(input, w[0], channels),
                  [](double value) { return std::exp(value); });
  Image k = apply(mapChannels(input, w[1], channels),
                  [](double value) { return std::exp(value); });
  Image v = mapChannels(input, w[2], channels);
  // Both are divided by their sums: over the channels, over the points.
  List sums(points, 0), totals(channels, 0);
  for (int d = 0; d < channels; ++d)
    for (int p = 0; p < points; ++p) {
      sums[p] += q.values[d * points + p];
      totals[d] += k.values[d * points + p];
    }
  Image result = input;
  for (int c = 0; c < channels; ++c)
    for (int query = 0; query < points; ++query) {
      double sum = 0;
      for (int d = 0; d < channels; ++d)
        for (int p = 0; p < points; ++p)
          sum += v.values[c * points + p] * k.values[d * points + p] /
                 totals[d] * q.values[d * points + query] / sums[query];
      result.values[c * points + query] = sum;
    }
  return result.values;
}

List largeKernelAttention(const KernelSizes &s, const List &x,
                          const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels, k = s.at("k"), l = s.at("l");
  Image t = apply(mapChannels(input, w[0], channels), gelu);
  Image near = convolve(t, w[1], channels, channels, k, k);
  Image far = convolve(near, w[2], channels, channels, l, l, 3);
  Image gate = mapChannels(far, w[3], channels);
  Image gated = makeImage(channels, t, [&](int c, int h, int column) {
    return gate.at(c, h, column) * t.at(c, h, column);
  });
  return add(input, mapChannels(gated, w[4], channels)).values;
}

List mlpMixer(const KernelSizes &s, const List &x, const Weights &w) {
  Image z = getImage(s, x);
  int points = z.height * z.width;
  for (int c = 0; c < z.channels; ++c) {
    List row(z.values.begin() + c * points,
             z.values.begin() + (c + 1) * points);
    List hidden = multiply(w[0], row, s.at("x"));
    std::transform(hidden.begin(), hidden.end(), hidden.begin(), gelu);
    List mixed = multiply(w[1], hidden, points);
    for (int p = 0; p < points; ++p)
      z.values[c * points + p] += mixed[p];
  }
  Image hidden = apply(mapChannels(z, w[2], s.at("z")), gelu);
  return add(z, mapChannels(hidden, w[3], z.channels)).values;
}

//===----------------------------------------------------------------------===//
// Published kernels
//===----------------------------------------------------------------------===//

List figure6(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels;
  Image pairs = add(shift(input, 1, 1), input);
  Image windows =
      convolve(input, w[1], channels, channels, s.at("k"), s.at("k"));
  return add(windows, mapChannels(pairs, w[0], channels)).values;
}

List figure8(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int channels = input.channels;
  return convolve(add(shift(input, 0, 1), input), w[0], channels, channels,
                  s.at("k"), 1)
      .values;
}

List figure9a(const KernelSizes &s, const List &x, const Weights &w) {
  Image input = getImage(s, x);
  int points = input.height * input.width;
  List mask = multiply(w[0], getMeans(input), points);
  for (size_t i = 0; i < input.values.size(); ++i)
    input.values[i] *= mask[i % points];
  return input.values;
}

List figure9b(const KernelSizes &s, const List &x, const Weights &w) {
  Image hidden = mapChannels(shift(getImage(s, x), 1, 1), w[0], s.at("x"));
  return mapChannels(apply(hidden, rectify), w[1], s.at("C")).values;
}

/// A sequence is an image of one row.
Image getSequence(const KernelSizes &sizes, const List &input) {
  return {sizes.at("C"), 1, sizes.at("L"), input};
}

Image softmaxOfChannels(const Image &x) {
  return makeImage(x.channels, x, [&](int c, int h, int w) {
    double sum = 0;
    for (int d = 0; d < x.channels; ++d)
      sum += std::exp(x.at(d, h, w));
    return std::exp(x.at(c, h, w)) / sum;
  });
}

/// Every earlier position again.
List causalLinearAttention(const KernelSizes &sizes, const List &input,
                           const std::vector<List> &weights) {
  Image x = getSequence(sizes, input);
  Image q = softmaxOfChannels(mapChannels(x, weights[0], x.channels));
  Image k = softmaxOfChannels(mapChannels(x, weights[1], x.channels));
  Image v = mapChannels(x, weights[2], x.channels);
  return makeImage(x.channels, x,
                   [&](int c, int, int t) {
                     double sum = 0;
                     for (int s = 0; s <= t; ++s)
                       for (int d = 0; d < x.channels; ++d)
                         sum += v.at(c, 0, s) * k.at(d, 0, s) * q.at(d, 0, t);
                     return sum;
                   })
      .values;
}

/// Positions before the first one have a score of 0 and no value.
List causalWindowAttention(const KernelSizes &sizes, const List &input,
                           const std::vector<List> &weights) {
  Image x = getSequence(sizes, input);
  Image q = mapChannels(x, weights[0], x.channels);
  Image k = mapChannels(x, weights[1], x.channels);
  Image v = mapChannels(x, weights[2], x.channels);
  int size = sizes.at("k");
  return makeImage(x.channels, x,
                   [&](int c, int, int t) {
                     double sum = 0, total = 0;
                     for (int s = t - size + 1; s <= t; ++s) {
                       double score = 0;
                       for (int d = 0; d < x.channels; ++d)
                         score += q.at(d, 0, t) * k.at(d, 0, s) / x.channels;
                       sum += std::exp(score) * v.at(c, 0, s);
                       total += std::exp(score);
                     }
                     return sum / total;
                   })
      .values;
}

/// The products of gates are multiplied out.
List minimalGRU(const KernelSizes &sizes, const List &input,
                const std::vector<List> &weights) {
  Image x = getSequence(sizes, input);
  Image z = apply(mapChannels(x, weights[0], x.channels),
                  [](double g) { return 1 / (1 + std::exp(-g)); });
  Image candidate = mapChannels(x, weights[1], x.channels);
  return makeImage(x.channels, x,
                   [&](int c, int, int t) {
                     double sum = 0, kept = 1;
                     for (int s = t; s >= 0; --s) {
                       sum += kept * z.at(c, 0, s) * candidate.at(c, 0, s);
                       kept *= 1 - z.at(c, 0, s);
                     }
                     return sum;
                   })
      .values;
}

} // namespace

std::vector<KernelFormula> formulas::getKernelFormulas() {
  KernelSizes image = {{"C", 4}, {"H", 5}, {"W", 3}};
  KernelSizes layer = {{"C", 64}, {"H", 28}, {"W", 28}};
  // Costs in floating-point operations and parameters of a layer of 64 channels
  // at 28 x 28 points, windows of 3.
  auto with = [](KernelSizes sizes, KernelSizes more) {
    sizes.merge(more);
    return sizes;
  };
  constexpr int64_t points = 28 * 28, all = 64 * points;
  KernelSizes sequence = {{"C", 3}, {"L", 11}}, long64 = {{"C", 64}, {"L", 96}};
  constexpr int64_t whole = 64 * 96;
  auto windows = [&](KernelSizes more = {}) {
    return std::vector<KernelSizes>{with(with(image, {{"k", 3}}), more),
                                    with(with(image, {{"k", 4}}), more)};
  };
  auto window = [&](KernelSizes more = {}) {
    return with(with(layer, {{"k", 3}}), std::move(more));
  };
  return {
      {"canvas_figure6", windows(), figure6, window(), 7426048, 4672},
      {"canvas_figure8", windows(), figure8, window(), 351232, 192},
      {"canvas_figure9a", {image}, figure9a, layer, 200704, 50176},
      {"canvas_figure9b",
       {with(image, {{"x", 3}})},
       figure9b,
       with(layer, {{"x", 64}}),
       12895232,
       8192},
      {"causal_linear_attention",
       {sequence},
       causalLinearAttention,
       long64,
       // Three maps, two softmaxes (3 each), two products of all pairs of
       // channels, their sums along the sequence and over the keys.
       3 * 2 * 64 * whole + 2 * 3 * whole + 4 * 64 * whole,
       3 * 64 * 64},
      {"causal_window_attention",
       {with(sequence, {{"k", 4}}), with(sequence, {{"k", 11}})},
       causalWindowAttention,
       with(long64, {{"k", 8}}),
       // Three maps, two products and their sums, the softmax.
       3 * 2 * 64 * whole + 2 * 2 * 8 * whole + 3 * 8 * 96,
       3 * 64 * 64},
      {"convolution", windows(), convolution, window(), 57802752, 36864},
      {"depthwise_convolution", windows(), depthwise, window(), 903168, 576},
      {"grouped_convolution", windows({{"G", 2}}), grouped, window({{"G", 4}}),
       14450688, 9216},
      {"involution", windows({{"G", 2}, {"x", 3}}), involution,
       window({{"G", 4}, {"x", 16}}), 3424512, 1600},
      {"large_kernel_attention", windows({{"l", 5}}), largeKernelAttention,
       with(layer, {{"k", 5}, {"l", 5}}),
       // Three maps of the channels, two depthwise convolutions, the function
       // (4 each), the gate and the sum.
       3 * 2 * 64 * all + 2 * 2 * 25 * all + 4 * all + 2 * all,
       3 * 64 * 64 + 2 * 25 * 64},
      {"linear_attention",
       {image},
       linearAttention,
       layer,
       // Three maps, two softmaxes (3 each), two products.
       3 * 2 * 64 * all + 2 * 3 * all + 2 * 2 * 64 * all,
       3 * 64 * 64},
      {"minimal_gru",
       {sequence},
       minimalGRU,
       long64,
       // Two maps, two sigmoids (3 each), a sign, a product, the scan.
       2 * 2 * 64 * whole + 2 * 3 * whole + whole + whole + 2 * whole,
       2 * 64 * 64},
      {"mlp_mixer",
       {with(image, {{"x", 2}, {"z", 7}})},
       mlpMixer,
       with(layer, {{"x", 32}, {"z", 128}}),
       // Two maps and a function each over points and channels, two sums.
       2 * (2 * 32 * all) + 4 * 64 * 32 + 2 * (2 * 128 * all) +
           4 * 128 * points + 2 * all,
       2 * 32 * points + 2 * 128 * 64},
      {"multi_head_attention",
       {with(image, {{"G", 2}})},
       multiHeadAttention,
       with(layer, {{"G", 4}}),
       // Four maps, two products over all pairs of points, the softmax.
       4 * 2 * 64 * all + 2 * 2 * 64 * points * points +
           3 * 4 * points * points,
       4 * 64 * 64},
      {"residual_block", windows(), residual, window(), 57903104, 36864},
      {"self_attention",
       {image},
       selfAttention,
       layer,
       3 * 2 * 64 * all + 2 * 2 * 64 * points * points + 3 * points * points,
       3 * 64 * 64},
      {"separable_convolution", windows(), separable, window(),
       // The windows, the rectifier, the normalization, the map.
       903168 + all + 2 * all + 6422528, 576 + 4 * 64 + 4096},
      {"shift_convolution", {image}, shiftConvolution, layer, 6422528, 4096},
      {"spatially_separable_convolution", windows(), spatiallySeparable,
       window(), 38535168, 24576},
      {"squeeze_excite",
       {with(image, {{"x", 3}})},
       squeezeExcite,
       with(layer, {{"x", 16}}),
       // Means, two layers, the rectifier, the sigmoid (3 each), the product.
       all + 2 * 2 * 64 * 16 + 16 + 3 * 64 + all,
       2 * 64 * 16},
  };
}
