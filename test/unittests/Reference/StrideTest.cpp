//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

TEST(ReferenceStride, SkipsValues) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [6] {
    %t = kas.stride %i by 2 : 3
    kas.yield data(%t)
  })",
                     {5, 6, 7, 8, 9, 10}),
            Values({5, 7, 9}));
}

TEST(ReferenceStride, ByOneIsTheIdentity) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3] {
    %t = kas.stride %i by 1 : 3
    kas.yield data(%t)
  })",
                     {5, 6, 7}),
            Values({5, 6, 7}));
}

// A window of distance 2, t = i + 2*j - 1 with j < 2:
// y[i] = x[i-1]*1 + x[i+1]*10.
TEST(ReferenceStride, DilatesAWindow) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 4) from [4] {
    %j = kas.reduce sum : 2
    %jd, %jw = kas.share %j : 2
    %s = kas.stride %jd by 2 : 2
    %t = kas.unfold %i, %s low 1 : 4, 4
    kas.yield data(%t) weight(%jw)
  })",
                     {5, 6, 7, 8}, {{1, 10}}),
            Values({60, 75, 86, 7}));
}
