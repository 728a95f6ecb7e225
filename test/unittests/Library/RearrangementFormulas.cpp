//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shifts, pooling and rearrangements.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

#include <algorithm>
#include <limits>

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Shape image(const Sizes &z) { return {z.N, z.C, z.H, z.W}; }
static Shapes noWeights(const Sizes &) { return {}; }

static Formula getShiftConv2d() {
  return {"shift_conv2d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9}},
          [](const Sizes &z) { return Shape{z.N, z.Cout, z.H, z.W}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin, z.H, z.W}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c) {
                   int64_t below = h + 1 < z.H ? h + 1 : 0;
                   y(n, o, h, v) += x(n, c, below, v) * w[0](o, c);
                 });
          }};
}

static Formula getShift2d() {
  return {"shift2d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9}},
          [](const Sizes &z) { return Shape{z.N, z.Cout, z.H, z.W}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin, z.H, z.W}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c) {
                   int64_t below = h + 1 < z.H ? h + 1 : 0;
                   int64_t right = v + 1 < z.W ? v + 1 : 0;
                   y(n, o, h, v) += x(n, c, below, right) * w[0](o, c);
                 });
          }};
}

static Formula getAveragePool2d() {
  return {"average_pool2d",
          {{.N = 2, .C = 4, .H = 8, .W = 6, .s = 2},
           {.N = 1, .C = 3, .H = 9, .W = 15, .s = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H / z.s, z.W / z.s}; },
          image,
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.C, z.H, z.W}, [&](int64_t n, int64_t c, int64_t h,
                                           int64_t v) {
              y(n, c, h / z.s, v / z.s) += x(n, c, h, v) / double(z.s * z.s);
            });
          }};
}

static Formula getGlobalAveragePool2d() {
  return {"global_average_pool2d",
          {{.N = 2, .C = 4, .H = 8, .W = 6}, {.N = 1, .C = 3, .H = 7, .W = 9}},
          [](const Sizes &z) { return Shape{z.N, z.C}; },
          image,
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.C, z.H, z.W},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v) {
                   y(n, c) += x(n, c, h, v) / double(z.H * z.W);
                 });
          }};
}

static Formula getMaxPool2d() {
  return {"max_pool2d",
          {{.N = 2, .C = 4, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .C = 3, .H = 9, .W = 15, .k = 5, .s = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H / z.s, z.W / z.s}; },
          image,
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            std::fill(y.values.begin(), y.values.end(),
                      -std::numeric_limits<double>::infinity());
            nest({z.N, z.C, z.H / z.s, z.W / z.s, z.k, z.k},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   int64_t row = z.s * h + i - z.k / 2;
                   int64_t column = z.s * v + j - z.k / 2;
                   if (x.contains({n, c, row, column}))
                     y(n, c, h, v) =
                         std::max(y(n, c, h, v), x(n, c, row, column));
                 });
          }};
}

static Formula getPixelShuffle() {
  return {"pixel_shuffle",
          {{.N = 2, .C = 3, .H = 4, .W = 6, .r = 2},
           {.N = 1, .C = 2, .H = 5, .W = 3, .r = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H * z.r, z.W * z.r}; },
          [](const Sizes &z) { return Shape{z.N, z.C * z.r * z.r, z.H, z.W}; },
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.C, z.H, z.W, z.r, z.r},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c, z.r * h + i, z.r * v + j) =
                       x(n, c * z.r * z.r + i * z.r + j, h, v);
                 });
          }};
}

static Formula getPixelUnshuffle() {
  return {"pixel_unshuffle",
          {{.N = 2, .C = 3, .H = 4, .W = 6, .r = 2},
           {.N = 1, .C = 2, .H = 5, .W = 3, .r = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C * z.r * z.r, z.H, z.W}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.H * z.r, z.W * z.r}; },
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.C, z.H, z.W, z.r, z.r},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c * z.r * z.r + i * z.r + j, h, v) =
                       x(n, c, z.r * h + i, z.r * v + j);
                 });
          }};
}

static Formula getChannelShuffle() {
  return {"channel_shuffle",
          {{.N = 2, .C = 6, .H = 4, .W = 2, .g = 2},
           {.N = 1, .C = 12, .H = 5, .W = 3, .g = 3}},
          image,
          image,
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.g, z.C / z.g, z.H, z.W},
                 [&](int64_t n, int64_t g, int64_t c, int64_t h, int64_t v) {
                   y(n, c * z.g + g, h, v) = x(n, g * (z.C / z.g) + c, h, v);
                 });
          }};
}

static Formula getNearestUpsample2d() {
  return {"nearest_upsample2d",
          {{.N = 2, .C = 3, .H = 4, .W = 6, .s = 2},
           {.N = 1, .C = 2, .H = 5, .W = 3, .s = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H * z.s, z.W * z.s}; },
          image,
          noWeights,
          [](const Sizes &z, const Array &x, const Weights &, Array &y) {
            nest({z.N, z.C, z.H, z.W, z.s, z.s},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c, z.s * h + i, z.s * v + j) = x(n, c, h, v);
                 });
          }};
}

std::vector<Formula> formulas::getRearrangementFormulas() {
  return {
      getShiftConv2d(),         getShift2d(),        getAveragePool2d(),
      getGlobalAveragePool2d(), getMaxPool2d(),      getPixelShuffle(),
      getPixelUnshuffle(),      getChannelShuffle(), getNearestUpsample2d()};
}
