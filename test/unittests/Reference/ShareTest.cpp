//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

// y[i] = x[i] * w[i].
TEST(ReferenceShare, ScalesElements) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %d, %w = kas.share %i : 3
    kas.yield data(%d) weight(%w)
  })",
                     {5, 6, 7}, {{1, 10, 100}}),
            Values({5, 60, 700}));
}

// Two weights over one coordinate: y[i] = x[i] * v[i] * w[i].
TEST(ReferenceShare, Twice) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %a, %v = kas.share %i : 3
    %d, %w = kas.share %a : 3
    kas.yield data(%d) weight(%v) weight(%w)
  })",
                     {5, 6, 7}, {{1, 10, 100}, {2, 3, 4}}),
            Values({10, 180, 2800}));
}

// A diagonal: y[i] = x[i] * w[i, i].
TEST(ReferenceShare, TwiceInOneWeightIsADiagonal) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [2] {
    %a, %v = kas.share %i : 2
    %d, %w = kas.share %a : 2
    kas.yield data(%d) weight(%v, %w)
  })",
                     {5, 6}, {{1, 2, 3, 4}}),
            Values({5, 24}));
}

// The weight may take a coordinate that the data never sees:
// y[o] = (5 + 6) * w[o].
TEST(ReferenceShare, DirectUseByAWeight) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%o: 3) from [2] {
    %r = kas.reduce sum : 2
    kas.yield data(%r) weight(%o)
  })",
                     {5, 6}, {{1, 2, 3}}),
            Values({11, 22, 33}));
}

// y[m, n] = sum over k of x[m, k] * w[k, n].
TEST(ReferenceShare, Matmul) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%m: 2, %n: 2) from [2, 3] {
    %k = kas.reduce sum : 3
    %kd, %kw = kas.share %k : 3
    kas.yield data(%m, %kd) weight(%kw, %n)
  })",
                     {1, 2, 3, 4, 5, 6}, {{1, 2, 3, 4, 5, 6}}),
            Values({22, 28, 49, 64}));
}
