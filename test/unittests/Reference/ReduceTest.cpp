//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

static const float infinity = std::numeric_limits<float>::infinity();
static const float quietNaN = std::numeric_limits<float>::quiet_NaN();

/// One reduction of `kind` over four elements.
static Values reduceFour(const std::string &kind, const Values &data) {
  return evaluate("kas.operator @f() from [4] {\n"
                  "  %r = kas.reduce " +
                      kind +
                      " : 4\n"
                      "  kas.yield data(%r)\n"
                      "}",
                  data);
}

TEST(ReferenceReduce, Kinds) {
  EXPECT_EQ(reduceFour("sum", {1, -2, 4, 8}), Values({11}));
  EXPECT_EQ(reduceFour("mean", {1, -2, 4, 8}), Values({2.75}));
  EXPECT_EQ(reduceFour("max", {1, -2, 8, 4}), Values({8}));
  EXPECT_EQ(reduceFour("max", {-4, -2, -8, -3}), Values({-2}));
}

TEST(ReferenceReduce, RowsOfAnArray) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [2, 3] {
    %r = kas.reduce max : 3
    kas.yield data(%i, %r)
  })",
                     {1, 5, 2, -3, -1, -2}),
            Values({5, -1}));
}

// A reduction that only a weight sees: y[i] = x[i] * (w[0] + w[1]).
TEST(ReferenceReduce, OnlyInAWeight) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [2] {
    %r = kas.reduce sum : 2
    kas.yield data(%i) weight(%r)
  })",
                     {5, 6}, {{10, 100}}),
            Values({550, 660}));
}

// The first reduction is outermost: max over rows of the sums of the rows is
// max(6, 5) = 6, the sum over columns of their maxima 1 + 2 + 9 = 12.
TEST(ReferenceReduce, NestInProgramOrder) {
  EXPECT_EQ(evaluate(R"(kas.operator @f() from [2, 3] {
    %i = kas.reduce max : 2
    %j = kas.reduce sum : 3
    kas.yield data(%i, %j)
  })",
                     {1, 2, 3, 0, -4, 9}),
            Values({6}));
  EXPECT_EQ(evaluate(R"(kas.operator @f() from [2, 3] {
    %j = kas.reduce sum : 3
    %i = kas.reduce max : 2
    kas.yield data(%i, %j)
  })",
                     {1, 2, 3, 0, -4, 9}),
            Values({12}));
}

// The mean of a maximum and the maximum of a mean.
TEST(ReferenceReduce, MeanAndMax) {
  EXPECT_EQ(evaluate(R"(kas.operator @f() from [2, 2] {
    %i = kas.reduce mean : 2
    %j = kas.reduce max : 2
    kas.yield data(%i, %j)
  })",
                     {1, 2, 3, -5}),
            Values({2.5}));
  EXPECT_EQ(evaluate(R"(kas.operator @f() from [2, 2] {
    %i = kas.reduce max : 2
    %j = kas.reduce mean : 2
    kas.yield data(%i, %j)
  })",
                     {1, 2, 3, -5}),
            Values({1.5}));
}

TEST(ReferenceReduce, SumsInDoublePrecision) {
  // In f32 each of the small terms would be lost.
  EXPECT_EQ(reduceFour("sum", {16777216, 1, 1, -16777216}), Values({2}));
}

TEST(ReferenceReduce, SpecialValuesPassThrough) {
  EXPECT_EQ(reduceFour("sum", {1, infinity, 2, 3}), Values({infinity}));
  EXPECT_TRUE(std::isnan(reduceFour("sum", {1, infinity, -infinity, 3})[0]));
  EXPECT_TRUE(std::isnan(reduceFour("sum", {1, quietNaN, 2, 3})[0]));
  EXPECT_TRUE(std::isnan(reduceFour("mean", {1, quietNaN, 2, 3})[0]));
  EXPECT_EQ(reduceFour("max", {1, -infinity, infinity, 3}), Values({infinity}));
  EXPECT_EQ(reduceFour("max", {-infinity, -infinity, -infinity, -infinity}),
            Values({-infinity}));
}

TEST(ReferenceReduce, MaxOfNanIsNanInEveryPlace) {
  EXPECT_TRUE(std::isnan(reduceFour("max", {quietNaN, 1, 2, 3})[0]));
  EXPECT_TRUE(std::isnan(reduceFour("max", {1, quietNaN, infinity, 3})[0]));
  EXPECT_TRUE(std::isnan(reduceFour("max", {1, 2, 3, quietNaN})[0]));
}

TEST(ReferenceReduce, MaxHasPositiveZeroAboveNegativeZero) {
  EXPECT_FALSE(std::signbit(reduceFour("max", {-0.0f, 0.0f, -0.0f, -1})[0]));
  EXPECT_FALSE(std::signbit(reduceFour("max", {0.0f, -0.0f, -0.0f, -1})[0]));
  EXPECT_TRUE(std::signbit(reduceFour("max", {-0.0f, -0.0f, -0.0f, -1})[0]));
}
