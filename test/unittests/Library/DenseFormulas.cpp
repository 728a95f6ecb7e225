//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products and linear layers.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Formula getMatmul() {
  return {"matmul",
          {{.N = 5, .M = 4, .K = 6}, {.N = 3, .M = 7, .K = 5}},
          [](const Sizes &z) { return Shape{z.M, z.N}; },
          [](const Sizes &z) { return Shape{z.M, z.K}; },
          [](const Sizes &z) { return Shapes{{z.K, z.N}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.M, z.N, z.K}, [&](int64_t m, int64_t n, int64_t k) {
              y(m, n) += x(m, k) * w[0](k, n);
            });
          }};
}

static Formula getBatchMatmul() {
  return {"batch_matmul",
          {{.N = 5, .B = 2, .M = 4, .K = 6}, {.N = 3, .B = 3, .M = 7, .K = 5}},
          [](const Sizes &z) { return Shape{z.B, z.M, z.N}; },
          [](const Sizes &z) { return Shape{z.B, z.M, z.K}; },
          [](const Sizes &z) { return Shapes{{z.B, z.K, z.N}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.B, z.M, z.N, z.K},
                 [&](int64_t b, int64_t m, int64_t n, int64_t k) {
                   y(b, m, n) += x(b, m, k) * w[0](b, k, n);
                 });
          }};
}

static Formula getLinear() {
  return {"linear",
          {{.N = 2, .Cin = 8, .Cout = 6}, {.N = 3, .Cin = 5, .Cout = 7}},
          [](const Sizes &z) { return Shape{z.N, z.Cout}; },
          [](const Sizes &z) { return Shape{z.N, z.Cin}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.Cout, z.Cin}, [&](int64_t n, int64_t o, int64_t c) {
              y(n, o) += x(n, c) * w[0](o, c);
            });
          }};
}

static Formula getBatchedLinear() {
  return {"batched_linear",
          {{.N = 2, .L = 4, .Cin = 8, .Cout = 6},
           {.N = 1, .L = 5, .Cin = 3, .Cout = 7}},
          [](const Sizes &z) { return Shape{z.N, z.L, z.Cout}; },
          [](const Sizes &z) { return Shape{z.N, z.L, z.Cin}; },
          [](const Sizes &z) { return Shapes{{z.Cout, z.Cin}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.L, z.Cout, z.Cin},
                 [&](int64_t n, int64_t l, int64_t o, int64_t c) {
                   y(n, l, o) += x(n, l, c) * w[0](o, c);
                 });
          }};
}

std::vector<Formula> formulas::getDenseFormulas() {
  return {getMatmul(), getBatchMatmul(), getLinear(), getBatchedLinear()};
}
