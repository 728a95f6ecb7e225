//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions after transformations of their loop nest.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Shape inputImage(const Sizes &z) { return {z.N, z.Cin, z.H, z.W}; }
static Shape outputImage(const Sizes &z) { return {z.N, z.Cout, z.H, z.W}; }

// Slab by slab, each copied out and convolved by itself.
static Formula getConv2dSlabs() {
  return {"conv2d_slabs",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 15, .W = 9, .k = 5, .s = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.s, z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rows = z.H / z.s;
            for (int64_t slab = 0; slab < z.s; ++slab) {
              Array part({z.N, z.Cin, rows, z.W});
              nest({z.N, z.Cin, rows, z.W},
                   [&](int64_t n, int64_t c, int64_t h, int64_t v) {
                     part(n, c, h, v) = x(n, c, slab * rows + h, v);
                   });
              nest({z.N, z.Cout, rows, z.W, z.Cin, z.k, z.k},
                   [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                       int64_t i, int64_t j) {
                     y(n, o, slab * rows + h, v) +=
                         part.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                         w[0](slab, o, c, i, j);
                   });
            }
          }};
}

static Formula getConv2dInputBottleneck() {
  return {
      "conv2d_input_bottleneck",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .b = 2},
       {.N = 1, .Cin = 6, .Cout = 5, .H = 7, .W = 9, .k = 5, .b = 3}},
      outputImage,
      inputImage,
      [](const Sizes &z) { return Shapes{{z.Cout, z.Cin / z.b, z.k, z.k}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        nest({z.N, z.Cout, z.H, z.W, z.Cin / z.b, z.k, z.k},
             [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                 int64_t i, int64_t j) {
               y(n, o, h, v) +=
                   x.orZero(n, c * z.b, h + i - z.k / 2, v + j - z.k / 2) *
                   w[0](o, c, i, j);
             });
      }};
}

static Formula getConv2dOutputBottleneck() {
  return {
      "conv2d_output_bottleneck",
      {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .b = 2},
       {.N = 1, .Cin = 5, .Cout = 6, .H = 7, .W = 9, .k = 5, .b = 3}},
      outputImage,
      inputImage,
      [](const Sizes &z) { return Shapes{{z.Cout / z.b, z.Cin, z.k, z.k}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        nest({z.N, z.Cout / z.b, z.b, z.H, z.W, z.Cin, z.k, z.k},
             [&](int64_t n, int64_t o, int64_t copy, int64_t h, int64_t v,
                 int64_t c, int64_t i, int64_t j) {
               y(n, o * z.b + copy, h, v) +=
                   x.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                   w[0](o, c, i, j);
             });
      }};
}

static Formula getConv2dSpatialBottleneck() {
  return {"conv2d_spatial_bottleneck",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .b = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 15, .W = 9, .k = 5, .b = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   y(n, o, h, v) += x.orZero(n, c, h - h % z.b + i - z.k / 2,
                                             v - v % z.b + j - z.k / 2) *
                                    w[0](o, c, i, j);
                 });
          }};
}

std::vector<Formula> formulas::getTransformationFormulas() {
  return {getConv2dSlabs(), getConv2dInputBottleneck(),
          getConv2dOutputBottleneck(), getConv2dSpatialBottleneck()};
}
