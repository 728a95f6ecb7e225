//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions in the usual sense, with their compositions.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Shape inputImage(const Sizes &z) { return {z.N, z.Cin, z.H, z.W}; }
static Shape outputImage(const Sizes &z) { return {z.N, z.Cout, z.H, z.W}; }
static Shape stridedImage(const Sizes &z) {
  return {z.N, z.Cout, z.H / z.s, z.W / z.s};
}

static Formula getConv1d() {
  return {"conv1d",
          {{.N = 2, .L = 8, .Cin = 4, .Cout = 6, .k = 3},
           {.N = 1, .L = 9, .Cin = 3, .Cout = 5, .k = 5}},
          [](const Sizes &z) { return Shape{z.N, z.Cout, z.L}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin, z.L}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.L, z.Cin, z.k},
                 [&](int64_t n, int64_t o, int64_t l, int64_t c, int64_t i) {
                   y(n, o, l) +=
                       x.orZero(n, c, l + i - z.k / 2) * w[0](o, c, i);
                 });
          }};
}

static Formula getConv1dStrided() {
  return {"conv1d_strided",
          {{.N = 2, .L = 8, .Cin = 4, .Cout = 6, .k = 3, .s = 2},
           {.N = 1, .L = 15, .Cin = 3, .Cout = 5, .k = 5, .s = 3}},
          [](const Sizes &z) { return Shape{z.N, z.Cout, z.L / z.s}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin, z.L}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.L / z.s, z.Cin, z.k},
                 [&](int64_t n, int64_t o, int64_t l, int64_t c, int64_t i) {
                   y(n, o, l) +=
                       x.orZero(n, c, z.s * l + i - z.k / 2) * w[0](o, c, i);
                 });
          }};
}

static Formula getConv1dDilated() {
  return {"conv1d_dilated",
          {{.N = 2, .L = 8, .Cin = 4, .Cout = 6, .k = 3, .d = 2, .p = 4},
           {.N = 1, .L = 9, .Cin = 3, .Cout = 5, .k = 2, .d = 3, .p = 1}},
          [](const Sizes &z) { return Shape{z.N, z.Cout, z.L}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin, z.L}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.L, z.Cin, z.k},
                 [&](int64_t n, int64_t o, int64_t l, int64_t c, int64_t i) {
                   y(n, o, l) +=
                       x.orZero(n, c, l + z.d * i - z.p) * w[0](o, c, i);
                 });
          }};
}

static Formula getConv1dDepthwise() {
  return {"conv1d_depthwise",
          {{.N = 2, .L = 8, .C = 4, .k = 3}, {.N = 1, .L = 9, .C = 3, .k = 5}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.L}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.L}; },
          [](const Sizes &z) { return Shapes{{z.C, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.L, z.k},
                 [&](int64_t n, int64_t c, int64_t l, int64_t i) {
                   y(n, c, l) += x.orZero(n, c, l + i - z.k / 2) * w[0](c, i);
                 });
          }};
}

static Formula getConv1dDepthwiseCausal() {
  return {"conv1d_depthwise_causal",
          {{.N = 2, .L = 8, .C = 4, .k = 3}, {.N = 1, .L = 9, .C = 3, .k = 4}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.L}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.L}; },
          [](const Sizes &z) { return Shapes{{z.C, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.L, z.k},
                 [&](int64_t n, int64_t c, int64_t l, int64_t i) {
                   y(n, c, l) += x.orZero(n, c, l + i + 1 - z.k) * w[0](c, i);
                 });
          }};
}

static Formula getConv2d() {
  return {"conv2d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5},
           {.N = 1, .Cin = 2, .Cout = 3, .H = 5, .W = 4, .k = 1},
           {.N = 1, .Cin = 2, .Cout = 2, .H = 3, .W = 5, .k = 7}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   y(n, o, h, v) +=
                       x.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                       w[0](o, c, i, j);
                 });
          }};
}

static Formula getConv2dStrided() {
  return {"conv2d_strided",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 12, .k = 3, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 9, .W = 15, .k = 3, .s = 3},
           {.N = 1, .Cin = 3, .Cout = 2, .H = 14, .W = 10, .k = 7, .s = 2}},
          stridedImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H / z.s, z.W / z.s, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   y(n, o, h, v) += x.orZero(n, c, z.s * h + i - z.k / 2,
                                             z.s * v + j - z.k / 2) *
                                    w[0](o, c, i, j);
                 });
          }};
}

static Formula getConv2dDilated() {
  return {
      "conv2d_dilated",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .d = 2, .p = 2},
       {.N = 1, .Cin = 3, .Cout = 5, .H = 13, .W = 11, .k = 5, .d = 3, .p = 6},
       {.N = 1, .Cin = 3, .Cout = 2, .H = 7, .W = 9, .k = 2, .d = 2, .p = 1}},
      outputImage,
      inputImage,
      [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        nest({z.N, z.Cout, z.H, z.W, z.Cin, z.k, z.k},
             [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                 int64_t i, int64_t j) {
               y(n, o, h, v) +=
                   x.orZero(n, c, h + z.d * i - z.p, v + z.d * j - z.p) *
                   w[0](o, c, i, j);
             });
      }};
}

static Formula getConv2dStridedDilated() {
  return {"conv2d_strided_dilated",
          {{.N = 2,
            .Cin = 4,
            .Cout = 6,
            .H = 8,
            .W = 12,
            .k = 3,
            .s = 2,
            .d = 2,
            .p = 2},
           {.N = 1,
            .Cin = 3,
            .Cout = 5,
            .H = 9,
            .W = 15,
            .k = 2,
            .s = 3,
            .d = 3,
            .p = 1}},
          stridedImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H / z.s, z.W / z.s, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   y(n, o, h, v) += x.orZero(n, c, z.s * h + z.d * i - z.p,
                                             z.s * v + z.d * j - z.p) *
                                    w[0](o, c, i, j);
                 });
          }};
}

static Formula getConv2dStridedUnpadded() {
  return {
      "conv2d_strided_unpadded",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 12, .k = 2, .s = 2, .d = 1},
       {.N = 1, .Cin = 3, .Cout = 5, .H = 9, .W = 15, .k = 3, .s = 3, .d = 1},
       {.N = 1, .Cin = 3, .Cout = 5, .H = 10, .W = 15, .k = 2, .s = 5, .d = 7}},
      stridedImage,
      inputImage,
      [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        nest({z.N, z.Cout, z.H / z.s, z.W / z.s, z.Cin, z.k, z.k},
             [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                 int64_t i, int64_t j) {
               y(n, o, h, v) +=
                   x.orZero(n, c, z.s * h + z.d * i, z.s * v + z.d * j) *
                   w[0](o, c, i, j);
             });
      }};
}

static Formula getConv2dGrouped() {
  return {"conv2d_grouped",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .g = 2},
           {.N = 1, .Cin = 6, .Cout = 9, .H = 7, .W = 5, .k = 5, .g = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) {
            return Shapes{{z.g, z.Cout / z.g, z.Cin / z.g, z.k, z.k}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t groupOut = z.Cout / z.g, groupIn = z.Cin / z.g;
            nest({z.N, z.g, groupOut, z.H, z.W, groupIn, z.k, z.k},
                 [&](int64_t n, int64_t g, int64_t o, int64_t h, int64_t v,
                     int64_t c, int64_t i, int64_t j) {
                   y(n, g * groupOut + o, h, v) +=
                       x.orZero(n, g * groupIn + c, h + i - z.k / 2,
                                v + j - z.k / 2) *
                       w[0](g, o, c, i, j);
                 });
          }};
}

static Formula getConv2dGroupedStrided() {
  return {
      "conv2d_grouped_strided",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .s = 2, .g = 2},
       {.N = 1, .Cin = 6, .Cout = 9, .H = 9, .W = 15, .k = 5, .s = 3, .g = 3}},
      stridedImage,
      inputImage,
      [](const Sizes &z) {
        return Shapes{{z.g, z.Cout / z.g, z.Cin / z.g, z.k, z.k}};
      },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        int64_t groupOut = z.Cout / z.g, groupIn = z.Cin / z.g;
        nest({z.N, z.g, groupOut, z.H / z.s, z.W / z.s, groupIn, z.k, z.k},
             [&](int64_t n, int64_t g, int64_t o, int64_t h, int64_t v,
                 int64_t c, int64_t i, int64_t j) {
               y(n, g * groupOut + o, h, v) +=
                   x.orZero(n, g * groupIn + c, z.s * h + i - z.k / 2,
                            z.s * v + j - z.k / 2) *
                   w[0](g, o, c, i, j);
             });
      }};
}

static Formula getConv2dDepthwise() {
  return {"conv2d_depthwise",
          {{.N = 2, .C = 4, .H = 8, .W = 6, .k = 3},
           {.N = 1, .C = 3, .H = 7, .W = 5, .k = 5}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H, z.W}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.H, z.W}; },
          [](const Sizes &z) { return Shapes{{z.C, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.H, z.W, z.k, z.k},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c, h, v) +=
                       x.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                       w[0](c, i, j);
                 });
          }};
}

static Formula getConv2dDepthwiseStrided() {
  return {"conv2d_depthwise_strided",
          {{.N = 2, .C = 4, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .C = 3, .H = 15, .W = 9, .k = 5, .s = 3}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H / z.s, z.W / z.s}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.H, z.W}; },
          [](const Sizes &z) { return Shapes{{z.C, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.H / z.s, z.W / z.s, z.k, z.k},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c, h, v) += x.orZero(n, c, z.s * h + i - z.k / 2,
                                             z.s * v + j - z.k / 2) *
                                    w[0](c, i, j);
                 });
          }};
}

static Formula getConv2dDepthwiseDilated() {
  return {"conv2d_depthwise_dilated",
          {{.N = 2, .C = 4, .H = 8, .W = 6, .k = 3, .d = 2, .p = 2},
           {.N = 1, .C = 3, .H = 13, .W = 9, .k = 5, .d = 3, .p = 6}},
          [](const Sizes &z) { return Shape{z.N, z.C, z.H, z.W}; },
          [](const Sizes &z) { return Shape{z.N, z.C, z.H, z.W}; },
          [](const Sizes &z) { return Shapes{{z.C, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.H, z.W, z.k, z.k},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v, int64_t i,
                     int64_t j) {
                   y(n, c, h, v) +=
                       x.orZero(n, c, h + z.d * i - z.p, v + z.d * j - z.p) *
                       w[0](c, i, j);
                 });
          }};
}

// In two stages, with zeros around the middle image too.
static Formula getConv2dDepthwiseSeparable() {
  return {
      "conv2d_depthwise_separable",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3},
       {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5}},
      outputImage,
      inputImage,
      [](const Sizes &z) { return Shapes{{z.Cin, z.k, z.k}, {z.Cout, z.Cin}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        Array middle({z.N, z.Cin, z.H, z.W});
        nest({z.N, z.Cin, z.H, z.W, z.k, z.k}, [&](int64_t n, int64_t c,
                                                   int64_t h, int64_t v,
                                                   int64_t i, int64_t j) {
          middle(n, c, h, v) +=
              x.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) * w[0](c, i, j);
        });
        nest({z.N, z.Cout, z.H, z.W, z.Cin},
             [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c) {
               y(n, o, h, v) += middle(n, c, h, v) * w[1](o, c);
             });
      }};
}

// In two stages, with zeros around the middle image too.
static Formula getConv2dSpatiallySeparable() {
  return {"conv2d_spatially_separable",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5}},
          outputImage,
          inputImage,
          [](const Sizes &z) {
            return Shapes{{z.Cout, z.Cin, z.k}, {z.Cout, z.Cout, z.k}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            Array middle({z.N, z.Cout, z.H, z.W});
            nest({z.N, z.Cout, z.H, z.W, z.Cin, z.k},
                 [&](int64_t n, int64_t m, int64_t h, int64_t v, int64_t c,
                     int64_t i) {
                   middle(n, m, h, v) +=
                       x.orZero(n, c, h + i - z.k / 2, v) * w[0](m, c, i);
                 });
            nest({z.N, z.Cout, z.H, z.W, z.Cout, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t m,
                     int64_t j) {
                   y(n, o, h, v) +=
                       middle.orZero(n, m, h, v + j - z.k / 2) * w[1](o, m, j);
                 });
          }};
}

static Formula getConv1x1() {
  return {"conv1x1",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c) {
                   y(n, o, h, v) += x(n, c, h, v) * w[0](o, c);
                 });
          }};
}

static Formula getConv1x1Strided() {
  return {"conv1x1_strided",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 15, .W = 9, .s = 3}},
          stridedImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H / z.s, z.W / z.s, z.Cin},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c) {
                   y(n, o, h, v) += x(n, c, z.s * h, z.s * v) * w[0](o, c);
                 });
          }};
}

// In three stages.
static Formula getBottleneck() {
  return {"bottleneck",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .r = 2},
           {.N = 1, .Cin = 3, .Cout = 6, .H = 7, .W = 9, .k = 5, .r = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) {
            int64_t m = z.Cout / z.r;
            return Shapes{{m, z.Cin}, {m, m, z.k, z.k}, {z.Cout, m}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t m = z.Cout / z.r;
            Array first({z.N, m, z.H, z.W}), second({z.N, m, z.H, z.W});
            nest({z.N, m, z.H, z.W, z.Cin},
                 [&](int64_t n, int64_t p, int64_t h, int64_t v, int64_t c) {
                   first(n, p, h, v) += x(n, c, h, v) * w[0](p, c);
                 });
            nest({z.N, m, z.H, z.W, m, z.k, z.k},
                 [&](int64_t n, int64_t q, int64_t h, int64_t v, int64_t p,
                     int64_t i, int64_t j) {
                   second(n, q, h, v) +=
                       first.orZero(n, p, h + i - z.k / 2, v + j - z.k / 2) *
                       w[1](q, p, i, j);
                 });
            nest({z.N, z.Cout, z.H, z.W, m},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t q) {
                   y(n, o, h, v) += second(n, q, h, v) * w[2](o, q);
                 });
          }};
}

std::vector<Formula> formulas::getConvolutionFormulas() {
  return {getConv1d(),
          getConv1dStrided(),
          getConv1dDilated(),
          getConv1dDepthwise(),
          getConv1dDepthwiseCausal(),
          getConv2d(),
          getConv2dStrided(),
          getConv2dDilated(),
          getConv2dStridedDilated(),
          getConv2dStridedUnpadded(),
          getConv2dGrouped(),
          getConv2dGroupedStrided(),
          getConv2dDepthwise(),
          getConv2dDepthwiseStrided(),
          getConv2dDepthwiseDilated(),
          getConv2dDepthwiseSeparable(),
          getConv2dSpatiallySeparable(),
          getConv1x1(),
          getConv1x1Strided(),
          getBottleneck()};
}
