//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that synthesis found or that were written for it by hand. Where an
// operator can be read as stages, it is computed in stages.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Shape inputImage(const Sizes &z) { return {z.N, z.Cin, z.H, z.W}; }
static Shape outputImage(const Sizes &z) { return {z.N, z.Cout, z.H, z.W}; }

/// Sizes with g groups and the rank Cout/(g*s).
static std::vector<Sizes> lowRankSizes() {
  return {
      {.N = 2, .Cin = 4, .Cout = 8, .H = 6, .W = 4, .k = 3, .s = 2, .g = 2},
      {.N = 1, .Cin = 6, .Cout = 6, .H = 7, .W = 5, .k = 5, .s = 1, .g = 3}};
}

static Formula getSynoOperator1() {
  return {"syno_operator1",
          lowRankSizes(),
          outputImage,
          inputImage,
          [](const Sizes &z) {
            int64_t rank = z.Cout / z.g / z.s;
            return Shapes{{z.Cin, z.k, rank}, {z.g, z.k, z.k, z.Cout, rank}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rank = z.Cout / z.g / z.s, perGroup = z.Cin / z.g;
            Array middle({z.N, z.g, z.H, z.W, z.k, rank});
            nest({z.N, z.g, z.H, z.W, z.k, rank, perGroup},
                 [&](int64_t n, int64_t g, int64_t h, int64_t v, int64_t j,
                     int64_t t, int64_t c) {
                   int64_t channel = g * perGroup + c;
                   middle(n, g, h, v, j, t) +=
                       x.orZero(n, channel, h, v + j - z.k / 2) *
                       w[0](channel, j, t);
                 });
            nest({z.N, z.Cout, z.H, z.W, z.g, z.k, z.k, rank},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t g,
                     int64_t i, int64_t j, int64_t t) {
                   y(n, o, h, v) +=
                       middle.orZero(n, g, h + i - z.k / 2, v, j, t) *
                       w[1](g, i, j, o, t);
                 });
          }};
}

static Formula getSynoOperator2() {
  return {"syno_operator2",
          lowRankSizes(),
          outputImage,
          inputImage,
          [](const Sizes &z) {
            int64_t rank = z.Cout / z.g / z.s;
            return Shapes{{z.Cin, z.k, rank}, {z.g, z.k, z.Cout, rank}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rank = z.Cout / z.g / z.s, perGroup = z.Cin / z.g;
            Array middle({z.N, z.g, z.H, z.W, rank});
            nest({z.N, z.g, z.H, z.W, rank, perGroup, z.k},
                 [&](int64_t n, int64_t g, int64_t h, int64_t v, int64_t t,
                     int64_t c, int64_t j) {
                   int64_t channel = g * perGroup + c;
                   middle(n, g, h, v, t) +=
                       x.orZero(n, channel, h, v + j - z.k / 2) *
                       w[0](channel, j, t);
                 });
            nest({z.N, z.Cout, z.H, z.W, z.g, z.k, rank},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t g,
                     int64_t i, int64_t t) {
                   int64_t row = h + i - z.k / 2;
                   if (row < 0 || row >= z.H)
                     return;
                   int64_t below = row + 1 < z.H ? row + 1 : 0;
                   y(n, o, h, v) +=
                       middle(n, g, below, v, t) * w[1](g, i, o, t);
                 });
          }};
}

static Formula getStackedConv2d() {
  return {"stacked_conv2d",
          lowRankSizes(),
          outputImage,
          inputImage,
          [](const Sizes &z) {
            int64_t rank = z.Cout / z.g / z.s;
            return Shapes{{z.Cin, z.k, rank}, {z.g, z.k, z.k, z.Cout, rank}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rank = z.Cout / z.g / z.s, perGroup = z.Cin / z.g;
            Array middle({z.N, z.g, z.H, z.W, rank});
            nest({z.N, z.g, z.H, z.W, rank, perGroup, z.k},
                 [&](int64_t n, int64_t g, int64_t h, int64_t v, int64_t t,
                     int64_t c, int64_t a) {
                   int64_t channel = g * perGroup + c;
                   middle(n, g, h, v, t) +=
                       x.orZero(n, channel, h, v + a - z.k / 2) *
                       w[0](channel, a, t);
                 });
            nest({z.N, z.Cout, z.H, z.W, z.g, z.k, z.k, rank},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t g,
                     int64_t i, int64_t b, int64_t t) {
                   y(n, o, h, v) += middle.orZero(n, g, h + i - z.k / 2,
                                                  v + b - z.k / 2, t) *
                                    w[1](g, i, b, o, t);
                 });
          }};
}

static Formula getConv2dGroupShared() {
  return {"conv2d_group_shared",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .g = 2},
           {.N = 1, .Cin = 6, .Cout = 9, .H = 7, .W = 5, .k = 5, .g = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) {
            return Shapes{{z.Cout / z.g, z.Cin / z.g, z.k, z.k}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t groupOut = z.Cout / z.g, groupIn = z.Cin / z.g;
            nest({z.N, z.g, groupOut, z.H, z.W, groupIn, z.k, z.k},
                 [&](int64_t n, int64_t g, int64_t o, int64_t h, int64_t v,
                     int64_t c, int64_t i, int64_t j) {
                   y(n, g * groupOut + o, h, v) +=
                       x.orZero(n, g * groupIn + c, h + i - z.k / 2,
                                v + j - z.k / 2) *
                       w[0](o, c, i, j);
                 });
          }};
}

static Formula getConv2dGroupOas() {
  return {"conv2d_group_oas",
          lowRankSizes(),
          outputImage,
          inputImage,
          [](const Sizes &z) {
            int64_t rank = z.Cout / z.g / z.s;
            return Shapes{{rank, z.Cin, z.k, z.k}, {z.Cout, z.g, rank}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rank = z.Cout / z.g / z.s, perGroup = z.Cin / z.g;
            Array middle({z.N, z.g, rank, z.H, z.W});
            nest({z.N, z.g, rank, z.H, z.W, perGroup, z.k, z.k},
                 [&](int64_t n, int64_t g, int64_t t, int64_t h, int64_t v,
                     int64_t c, int64_t i, int64_t j) {
                   int64_t channel = g * perGroup + c;
                   middle(n, g, t, h, v) +=
                       x.orZero(n, channel, h + i - z.k / 2, v + j - z.k / 2) *
                       w[0](t, channel, i, j);
                 });
            nest({z.N, z.Cout, z.H, z.W, z.g, rank},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t g,
                     int64_t t) {
                   y(n, o, h, v) += middle(n, g, t, h, v) * w[1](o, g, t);
                 });
          }};
}

static Formula getMultiQueryProjection() {
  return {"multi_query_projection",
          {{.N = 2, .L = 4, .H = 6, .t = 2}, {.N = 1, .L = 5, .H = 7, .t = 3}},
          [](const Sizes &z) { return Shape{z.N, z.L, z.t * z.H}; },
          [](const Sizes &z) { return Shape{z.N, z.L, z.H}; },
          [](const Sizes &z) { return Shapes{{z.H, z.H}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.L, z.t, z.H, z.H},
                 [&](int64_t n, int64_t l, int64_t r, int64_t o, int64_t c) {
                   y(n, l, r * z.H + o) += x(n, l, c) * w[0](c, o);
                 });
          }};
}

// In three stages: pool, convolve, repeat.
static Formula getPoolConv2d() {
  return {"pool_conv2d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 15, .W = 9, .k = 5, .s = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rows = z.H / z.s, columns = z.W / z.s;
            Array pooled({z.N, z.Cin, rows, columns});
            Array small({z.N, z.Cout, rows, columns});
            nest({z.N, z.Cin, z.H, z.W},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v) {
                   pooled(n, c, h / z.s, v / z.s) += x(n, c, h, v);
                 });
            nest({z.N, z.Cout, rows, columns, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   small(n, o, h, v) +=
                       pooled.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                       w[0](o, c, i, j);
                 });
            nest({z.N, z.Cout, z.H, z.W},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v) {
                   y(n, o, h, v) = small(n, o, h / z.s, v / z.s);
                 });
          }};
}

// In three stages: pool, convolve, repeat.
static Formula getPoolConv1d() {
  return {"pool_conv1d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 15, .W = 7, .k = 5, .s = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rows = z.H / z.s;
            Array pooled({z.N, z.Cin, rows, z.W});
            Array small({z.N, z.Cout, rows, z.W});
            nest({z.N, z.Cin, z.H, z.W},
                 [&](int64_t n, int64_t c, int64_t h, int64_t v) {
                   pooled(n, c, h / z.s, v) += x(n, c, h, v);
                 });
            nest({z.N, z.Cout, rows, z.W, z.Cin, z.k, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i, int64_t j) {
                   small(n, o, h, v) +=
                       pooled.orZero(n, c, h + i - z.k / 2, v + j - z.k / 2) *
                       w[0](o, c, i, j);
                 });
            nest({z.N, z.Cout, z.H, z.W},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v) {
                   y(n, o, h, v) = small(n, o, h / z.s, v);
                 });
          }};
}

static Formula getConv1dShift1d() {
  return {"conv1d_shift1d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.Cin, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t c,
                     int64_t i) {
                   int64_t right = v + 1 < z.W ? v + 1 : 0;
                   y(n, o, h, v) +=
                       x.orZero(n, c, h + i - z.k / 2, right) * w[0](o, c, i);
                 });
          }};
}

static Formula getKernel07923() {
  return {"kernel_07923",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .s = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5, .s = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.s, z.Cout, z.k, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W, z.s, z.Cin, z.k},
                 [&](int64_t n, int64_t o, int64_t h, int64_t v, int64_t r,
                     int64_t c, int64_t j) {
                   int64_t q = h * z.s + r + 1;
                   if (q == z.s * z.H)
                     q = 0;
                   y(n, o, h, v) += x.orZero(n, c, q / z.s, v + j - z.k / 2) *
                                    w[0](q % z.s, o, j, c);
                 });
          }};
}

static Formula getConv1dPatch1d() {
  return {"conv1d_patch1d",
          {{.N = 2, .Cin = 4, .Cout = 6, .H = 8, .W = 6, .k = 3, .p = 2},
           {.N = 1, .Cin = 3, .Cout = 5, .H = 7, .W = 9, .k = 5, .p = 3}},
          outputImage,
          inputImage,
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin, z.k, z.p, z.p}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.H, z.W / z.p, z.p, z.Cin, z.k, z.p},
                 [&](int64_t n, int64_t o, int64_t h, int64_t block, int64_t q,
                     int64_t c, int64_t i, int64_t b) {
                   y(n, o, h, block * z.p + q) +=
                       x.orZero(n, c, h + i - z.k / 2, block * z.p + b) *
                       w[0](o, c, i, b, q);
                 });
          }};
}

static Formula getGpt2Projection() {
  return {"gpt2_projection",
          {{.N = 2, .L = 4, .H = 48, .k = 2, .t = 3},
           {.N = 1, .L = 5, .H = 64, .k = 2, .t = 2},
           {.N = 1, .L = 3, .H = 81, .k = 3, .t = 1}},
          [](const Sizes &z) { return Shape{z.N, z.L, z.t * z.H}; },
          [](const Sizes &z) { return Shape{z.N, z.L, z.H}; },
          [](const Sizes &z) {
            return Shapes{{z.k * z.k * z.k * z.t * z.t, z.H / z.k,
                           z.H / (z.k * z.k * z.k * z.k * z.t)}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t outer = z.H / (z.k * z.k * z.k * z.t);
            int64_t inner = outer / z.k, slice = z.H / z.k;
            nest({z.N, z.L, z.t * z.H, slice},
                 [&](int64_t n, int64_t l, int64_t i, int64_t r) {
                   y(n, l, i) += x(n, l, ((i % outer) / inner) * slice + r) *
                                 w[0](i / outer, r, i % inner);
                 });
          }};
}

std::vector<Formula> formulas::getSynthesizedFormulas() {
  return {
      getSynoOperator1(),     getSynoOperator2(),  getStackedConv2d(),
      getConv2dGroupShared(), getConv2dGroupOas(), getMultiQueryProjection(),
      getPoolConv2d(),        getPoolConv1d(),     getConv1dShift1d(),
      getKernel07923(),       getConv1dPatch1d(),  getGpt2Projection()};
}
