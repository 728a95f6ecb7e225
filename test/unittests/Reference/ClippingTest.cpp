//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"
#include <limits>

// The mean divides by the whole window, 3, at the border too.
TEST(ReferenceClipping, MeanDividesByTheWholeSize) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %j = kas.reduce mean : 3
    %t = kas.unfold %i, %j : 3, 3
    kas.yield data(%t)
  })",
                     {3, 6, 9}),
            Values({3, 6, 5}));
}

// The maximum skips what is outside instead of counting it as zero.
TEST(ReferenceClipping, MaxSkipsMissingPoints) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %j = kas.reduce max : 3
    %t = kas.unfold %i, %j : 3, 3
    kas.yield data(%t)
  })",
                     {-3, -6, -9}),
            Values({-3, -3, -6}));
}

// The result of the unfold is dropped, its range still counts: y[i, j] is 5
// where 0 <= i + j - 1 < 3.
TEST(ReferenceClipping, HoldsWhereTheResultIsExpanded) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 3, %a: 1) from [1] {
    %t = kas.unfold %i, %j : 3, 3
    kas.expand %t : 3
    kas.yield data(%a)
  })",
                     {5}),
            Values({0, 5, 5, /**/ 5, 5, 5, /**/ 5, 5, 0}));
  // y[i] = 5 * sum of w[j] over the j in range.
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %a: 1) from [1] {
    %j = kas.reduce sum : 3
    %jd, %jw = kas.share %j : 3
    %t = kas.unfold %i, %jd : 3, 3
    kas.expand %t : 3
    kas.yield data(%a) weight(%jw)
  })",
                     {5}, {{1, 10, 100}}),
            Values({550, 555, 55}));
}

// The result of the unfold indexes a weight: y[i] = 5 * sum of w[i + j - 1].
TEST(ReferenceClipping, HoldsWhereTheResultGoesToAWeight) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %a: 1) from [1] {
    %j = kas.reduce sum : 3
    %t = kas.unfold %i, %j : 3, 3
    kas.yield data(%a) weight(%t)
  })",
                     {5}, {{1, 10, 100}}),
            Values({55, 555, 550}));
}

// The window variable is the outer reduction: where it leaves the range the
// inner reduction has no points, hence no value, and the outer one skips it.
TEST(ReferenceClipping, ReductionWithoutPoints) {
  // t = i + 2*q for q < 2 and 0 <= t < 3. The mean still divides by 2.
  // i = 0: t = 0, 2; i = 1: t = 1, 3 (outside); i = 2: t = 2, 4 (outside).
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %q = kas.reduce mean : 2
    %m = kas.reduce max : 2
    %s = kas.stride %q by 2 : 2
    %t = kas.unfold %i, %s low 0 : 3, 4
    kas.yield data(%t) weight(%m)
  })",
                     {-1, -2, -3}, {{1, 1}}),
            Values({-2, -1, -1.5}));
  // An outer maximum skips the inner sum that has no points: it is not zero.
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %q = kas.reduce max : 2
    %m = kas.reduce sum : 2
    %s = kas.stride %q by 2 : 2
    %t = kas.unfold %i, %s low 0 : 3, 4
    kas.yield data(%t) weight(%m)
  })",
                     {-1, -2, -3}, {{1, 1}}),
            Values({-2, -4, -6}));
}

// y[i, j] = x[i + 2*j]: outputs outside are zero, whatever the reduction.
TEST(ReferenceClipping, OutputWithoutPointsIsZero) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 2, %k: 2) from [3] {
    %m = kas.reduce max : 2
    %s = kas.stride %j by 2 : 2
    %t = kas.unfold %i, %s low 0 : 3, 4
    kas.yield data(%t) weight(%m, %k)
  })",
                     {-1, -2, -3}, {{1, 2, 1, 2}}),
            Values({-1, -2, -3, -6, /**/ -2, -4, 0, 0, /**/ -3, -6, 0, 0}));
}

// Windows on windows: zero padding at each of the two coordinates. The inner
// sums are s = {0+1+2, 1+2+4, 2+4+0} = {3, 7, 6}, padded by zeros again. This
// differs from one window of 5 with weights {1, 2, 3, 2, 1}.
TEST(ReferenceClipping, UnfoldOfUnfoldPadsTwice) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %j = kas.reduce sum : 3
    %k = kas.reduce sum : 3
    %s = kas.unfold %i, %j : 3, 3
    %t = kas.unfold %s, %k : 3, 3
    kas.yield data(%t)
  })",
                     {1, 2, 4}),
            Values({10, 16, 13}));
}

// Padding is at the coordinate of the unfold, not at the input: 3 rows of 2
// read as one of 6; x[2*(i + j - 1) + h].
TEST(ReferenceClipping, AtTheUnfoldBelowASplit) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %h: 2) from [6] {
    %j = kas.reduce sum : 3
    %s = kas.unfold %i, %j : 3, 3
    %t = kas.split %s, %h : 3, 2
    kas.yield data(%t)
  })",
                     {1, 2, 10, 20, 100, 200}),
            Values({11, 22, 111, 222, 110, 220}));
  // Here every second element is a coordinate of its own: 2*i + (h + j - 1)
  // stays within the pair.
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %h: 2) from [6] {
    %j = kas.reduce sum : 3
    %s = kas.unfold %h, %j : 2, 3
    %t = kas.split %i, %s : 3, 2
    kas.yield data(%t)
  })",
                     {1, 2, 10, 20, 100, 200}),
            Values({3, 3, 30, 30, 300, 300}));
}

// What is outside is never read: no 0 * NaN comes from it.
TEST(ReferenceClipping, MissingPointsDoNotSpreadNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [2] {
    %j = kas.reduce sum : 3
    %jd, %jw = kas.share %j : 3
    %t = kas.unfold %i, %jd low 2 : 2, 3
    kas.yield data(%t) weight(%jw)
  })",
                     {5, 6}, {{nan, 2, 3}})[0],
            15.0f);
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [2] {
    %j = kas.reduce max : 3
    %jd, %jw = kas.share %j : 3
    %t = kas.unfold %i, %jd low 2 : 2, 3
    kas.yield data(%t) weight(%jw)
  })",
                     {5, 6}, {{infinity, nan, 3}})[0],
            15.0f);
}
