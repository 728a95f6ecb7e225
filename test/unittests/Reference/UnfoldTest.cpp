//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

// t = i + j - 1, zero outside [0, 4).
TEST(ReferenceUnfold, OddWindowIsCentred) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4, %j: 3) from [4] {
    %t = kas.unfold %i, %j : 4, 3
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({0, 5, 6, /**/ 5, 6, 7, /**/ 6, 7, 8, /**/ 7, 8, 0}));
}

// Even windows reach one further down: t = i + j - 1 for K = 2.
TEST(ReferenceUnfold, EvenWindow) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 2) from [3] {
    %t = kas.unfold %i, %j : 3, 2
    kas.yield data(%t)
  })",
                     {5, 6, 7}),
            Values({0, 5, /**/ 5, 6, /**/ 6, 7}));
}

TEST(ReferenceUnfold, LowZeroAndLowLargest) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 3) from [3] {
    %t = kas.unfold %i, %j low 0 : 3, 3
    kas.yield data(%t)
  })",
                     {5, 6, 7}),
            Values({5, 6, 7, /**/ 6, 7, 0, /**/ 7, 0, 0}));
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 3) from [3] {
    %t = kas.unfold %i, %j low 2 : 3, 3
    kas.yield data(%t)
  })",
                     {5, 6, 7}),
            Values({0, 0, 5, /**/ 0, 5, 6, /**/ 5, 6, 7}));
}

// The window may be wider than the coordinate: t = i + j - 2 for K = 5, N = 2.
TEST(ReferenceUnfold, WindowWiderThanTheCoordinate) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2, %j: 5) from [2] {
    %t = kas.unfold %i, %j : 2, 5
    kas.yield data(%t)
  })",
                     {5, 6}),
            Values({0, 0, 5, 6, 0, /**/ 0, 5, 6, 0, 0}));
}

// y[i] = sum over j of x[i + j - 1] * w[j], a convolution by hand:
// 0*1+5*2+6*3, 5*1+6*2+7*3, 6*1+7*2+0*3.
TEST(ReferenceUnfold, Convolution) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %j = kas.reduce sum : 3
    %jd, %jw = kas.share %j : 3
    %t = kas.unfold %i, %jd : 3, 3
    kas.yield data(%t) weight(%jw)
  })",
                     {5, 6, 7}, {{1, 2, 3}}),
            Values({28, 38, 20}));
}
