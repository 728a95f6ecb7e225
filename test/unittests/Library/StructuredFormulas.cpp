//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linear layers with structured weights. Those of several factors are computed
// factor by factor.
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

using namespace formulas;
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

static Shape inputFeatures(const Sizes &z) { return {z.N, z.Cin}; }
static Shape outputFeatures(const Sizes &z) { return {z.N, z.Cout}; }
static Shape features(const Sizes &z) { return {z.N, z.C}; }

static Formula getLowRank() {
  return {"linear_low_rank",
          {{.N = 2, .Cin = 8, .Cout = 6, .r = 3},
           {.N = 3, .Cin = 5, .Cout = 7, .r = 2}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) { return Shapes{{z.r, z.Cin}, {z.Cout, z.r}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            Array middle({z.N, z.r});
            nest({z.N, z.r, z.Cin}, [&](int64_t n, int64_t t, int64_t c) {
              middle(n, t) += x(n, c) * w[0](t, c);
            });
            nest({z.N, z.Cout, z.r}, [&](int64_t n, int64_t o, int64_t t) {
              y(n, o) += middle(n, t) * w[1](o, t);
            });
          }};
}

static Formula getBlockDiagonal() {
  return {
      "linear_block_diagonal",
      {{.N = 2, .Cin = 8, .Cout = 6, .g = 2},
       {.N = 3, .Cin = 9, .Cout = 15, .g = 3}},
      outputFeatures,
      inputFeatures,
      [](const Sizes &z) { return Shapes{{z.g, z.Cout / z.g, z.Cin / z.g}}; },
      [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
        int64_t blockOut = z.Cout / z.g, blockIn = z.Cin / z.g;
        nest({z.N, z.Cout, blockIn}, [&](int64_t n, int64_t o, int64_t c) {
          int64_t block = o / blockOut;
          y(n, o) += x(n, block * blockIn + c) * w[0](block, o % blockOut, c);
        });
      }};
}

// The product of matrices, element by element.
static Formula getKronecker() {
  return {"linear_kronecker",
          {{.N = 2, .Cin = 8, .Cout = 6, .p = 3, .g = 2},
           {.N = 3, .Cin = 9, .Cout = 35, .p = 5, .g = 3}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            return Shapes{{z.p, z.g}, {z.Cout / z.p, z.Cin / z.g}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rows = z.Cout / z.p, columns = z.Cin / z.g;
            nest({z.N, z.Cout, z.Cin}, [&](int64_t n, int64_t o, int64_t c) {
              y(n, o) += x(n, c) * w[0](o / rows, c / columns) *
                         w[1](o % rows, c % columns);
            });
          }};
}

// Two block-diagonal matrices, with the transposition of a matrix of g rows and
// p columns between them and that of one of p rows after them.
static Formula getMonarch() {
  return {"linear_monarch",
          {{.N = 2, .Cin = 8, .Cout = 6, .p = 3, .g = 2},
           {.N = 3, .Cin = 9, .Cout = 35, .p = 5, .g = 3}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            return Shapes{{z.g, z.p, z.Cin / z.g}, {z.p, z.Cout / z.p, z.g}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t columns = z.Cin / z.g, rows = z.Cout / z.p;
            Array first({z.N, z.g * z.p}), transposed({z.N, z.p * z.g}),
                second({z.N, z.Cout});
            nest({z.N, z.g, z.p, columns}, [&](int64_t n, int64_t g, int64_t t,
                                               int64_t c) {
              first(n, g * z.p + t) += x(n, g * columns + c) * w[0](g, t, c);
            });
            nest({z.N, z.g, z.p}, [&](int64_t n, int64_t g, int64_t t) {
              transposed(n, t * z.g + g) = first(n, g * z.p + t);
            });
            nest({z.N, z.p, rows, z.g},
                 [&](int64_t n, int64_t t, int64_t o, int64_t g) {
                   second(n, t * rows + o) +=
                       transposed(n, t * z.g + g) * w[1](t, o, g);
                 });
            nest({z.N, z.p, rows}, [&](int64_t n, int64_t t, int64_t o) {
              y(n, o * z.p + t) = second(n, t * rows + o);
            });
          }};
}

// Element by element: a Monarch matrix has one path from each input to each
// output, so its elements are products of two.
static Formula getMonarchTransposed() {
  return {"linear_monarch_transposed",
          {{.N = 2, .Cin = 6, .Cout = 8, .p = 3, .g = 2},
           {.N = 3, .Cin = 35, .Cout = 9, .p = 5, .g = 3}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            return Shapes{{z.p, z.g, z.Cin / z.p}, {z.g, z.Cout / z.g, z.p}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t rows = z.Cout / z.g;
            nest({z.N, z.Cout, z.Cin}, [&](int64_t n, int64_t o, int64_t c) {
              int64_t group = o / rows, lane = c % z.p;
              y(n, o) += x(n, c) * w[0](lane, group, c / z.p) *
                         w[1](group, o % rows, lane);
            });
          }};
}

static Formula getBlockTensorTrain() {
  return {"linear_block_tensor_train",
          {{.N = 2, .Cin = 8, .Cout = 6, .p = 3, .g = 2, .r = 2},
           {.N = 3, .Cin = 9, .Cout = 35, .p = 5, .g = 3, .r = 2}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            return Shapes{{z.g, z.p, z.r, z.Cin / z.g},
                          {z.p, z.Cout / z.p, z.g, z.r}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t columns = z.Cin / z.g, rows = z.Cout / z.p;
            Array middle({z.N, z.p, z.g, z.r});
            nest({z.N, z.g, z.p, z.r, columns},
                 [&](int64_t n, int64_t g, int64_t t, int64_t s, int64_t c) {
                   middle(n, t, g, s) +=
                       x(n, g * columns + c) * w[0](g, t, s, c);
                 });
            nest({z.N, rows, z.p, z.g, z.r},
                 [&](int64_t n, int64_t o, int64_t t, int64_t g, int64_t s) {
                   y(n, o * z.p + t) += middle(n, t, g, s) * w[1](t, o, g, s);
                 });
          }};
}

// The shuffle is that of the channels of ShuffleNet; its features come with the
// group as the inner position, the weight has it as the outer one.
static Formula getShuffledGroups() {
  return {"linear_shuffled_groups",
          {{.N = 2, .Cin = 6, .Cout = 8, .g = 2},
           {.N = 3, .Cin = 15, .Cout = 27, .g = 3}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            int64_t dealt = z.Cout / z.g / z.g;
            return Shapes{{z.g, z.g, dealt, z.Cin / z.g},
                          {z.g, z.Cout / z.g, z.g, dealt}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t groupIn = z.Cin / z.g, groupOut = z.Cout / z.g;
            int64_t dealt = groupOut / z.g;
            Array first({z.N, z.Cout}), shuffled({z.N, z.Cout});
            nest({z.N, z.g, groupOut, groupIn},
                 [&](int64_t n, int64_t g, int64_t m, int64_t c) {
                   first(n, g * groupOut + m) +=
                       x(n, g * groupIn + c) * w[0](g, m / dealt, m % dealt, c);
                 });
            nest({z.N, z.g, groupOut}, [&](int64_t n, int64_t g, int64_t m) {
              shuffled(n, m * z.g + g) = first(n, g * groupOut + m);
            });
            nest({z.N, z.g, groupOut, groupOut},
                 [&](int64_t n, int64_t g, int64_t o, int64_t m) {
                   y(n, g * groupOut + o) += shuffled(n, g * groupOut + m) *
                                             w[1](g, o, m % z.g, m / z.g);
                 });
          }};
}

static Formula getBlast() {
  return {"linear_blast",
          {{.N = 2, .Cin = 8, .Cout = 6, .r = 3, .b = 2},
           {.N = 3, .Cin = 9, .Cout = 15, .r = 2, .b = 3}},
          outputFeatures,
          inputFeatures,
          [](const Sizes &z) {
            return Shapes{{z.b, z.r, z.Cin / z.b},
                          {z.b, z.b, z.r},
                          {z.b, z.Cout / z.b, z.r}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t columns = z.Cin / z.b, rows = z.Cout / z.b;
            Array inputs({z.N, z.b, z.r}), outputs({z.N, z.b, z.r});
            nest({z.N, z.b, z.r, columns},
                 [&](int64_t n, int64_t j, int64_t t, int64_t c) {
                   inputs(n, j, t) += x(n, j * columns + c) * w[0](j, t, c);
                 });
            nest({z.N, z.b, z.b, z.r},
                 [&](int64_t n, int64_t i, int64_t j, int64_t t) {
                   outputs(n, i, t) += inputs(n, j, t) * w[1](i, j, t);
                 });
            nest({z.N, z.b, rows, z.r},
                 [&](int64_t n, int64_t i, int64_t o, int64_t t) {
                   y(n, i * rows + o) += outputs(n, i, t) * w[2](i, o, t);
                 });
          }};
}

static Formula getButterfly3() {
  return {"linear_butterfly3",
          {{.N = 2, .C = 8, .r = 2}, {.N = 3, .C = 45, .r = 3}},
          features,
          features,
          [](const Sizes &z) {
            int64_t last = z.C / z.r / z.r;
            return Shapes{{z.r, z.r, last, last},
                          {z.r, z.r, last, z.r},
                          {z.r, z.r, last, z.r}};
          },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            int64_t last = z.C / z.r / z.r, middle = z.C / z.r;
            Array first({z.N, z.C}), second({z.N, z.C});
            nest({z.N, z.r, z.r, last, last},
                 [&](int64_t n, int64_t a, int64_t b, int64_t d, int64_t c) {
                   int64_t block = a * middle + b * last;
                   first(n, block + d) += x(n, block + c) * w[0](a, b, d, c);
                 });
            nest({z.N, z.r, z.r, last, z.r},
                 [&](int64_t n, int64_t a, int64_t row, int64_t d, int64_t b) {
                   int64_t place = a * middle + d;
                   second(n, place + row * last) +=
                       first(n, place + b * last) * w[1](a, row, d, b);
                 });
            nest({z.N, z.r, z.r, last, z.r},
                 [&](int64_t n, int64_t row, int64_t b, int64_t d, int64_t a) {
                   int64_t place = b * last + d;
                   y(n, place + row * middle) +=
                       second(n, place + a * middle) * w[2](row, b, d, a);
                 });
          }};
}

static Formula getToeplitz() {
  return {"linear_toeplitz",
          {{.N = 2, .C = 8, .k = 3}, {.N = 3, .C = 11, .k = 5}},
          features,
          features,
          [](const Sizes &z) { return Shapes{{z.k}}; },
          [](const Sizes &z, const Array &x, const Weights &w, Array &y) {
            nest({z.N, z.C, z.k}, [&](int64_t n, int64_t o, int64_t i) {
              y(n, o) += x.orZero(n, o + i - z.k / 2) * w[0](i);
            });
          }};
}

std::vector<Formula> formulas::getStructuredFormulas() {
  return {getLowRank(),           getBlockDiagonal(),
          getKronecker(),         getMonarch(),
          getMonarchTransposed(), getBlockTensorTrain(),
          getShuffledGroups(),    getBlast(),
          getButterfly3(),        getToeplitz()};
}
