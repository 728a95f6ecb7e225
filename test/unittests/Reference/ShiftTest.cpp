//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

// y[i] = x[(i + 1) mod 4].
TEST(ReferenceShift, ForwardWrapsAround) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4) from [4] {
    %t = kas.shift %i by 1 : 4
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({6, 7, 8, 5}));
}

// y[i] = x[(i - 1) mod 4] with a result in [0, 4).
TEST(ReferenceShift, BackwardWrapsAround) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4) from [4] {
    %t = kas.shift %i by -1 : 4
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({8, 5, 6, 7}));
}

TEST(ReferenceShift, LargestAmounts) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4) from [4] {
    %t = kas.shift %i by 3 : 4
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({8, 5, 6, 7}));
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4) from [4] {
    %t = kas.shift %i by -3 : 4
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({6, 7, 8, 5}));
}

// y[i, j] = x[(2*i + j + 1) mod 4].
TEST(ReferenceShift, OverSplit) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2, %j: 2) from [4] {
    %s = kas.split %i, %j : 2, 2
    %t = kas.shift %s by 1 : 4
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8}),
            Values({6, 7, 8, 5}));
}
