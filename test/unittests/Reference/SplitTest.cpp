//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

// t = 3*i + j.
TEST(ReferenceSplit, JoinsOuterAndInner) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2, %j: 3) from [6] {
    %t = kas.split %i, %j : 2, 3
    kas.yield data(%t)
  })",
                     {10, 11, 12, 13, 14, 15}),
            Values({10, 11, 12, 13, 14, 15}));
}

// The outer coordinate of the split is the inner one of the output: t = 3*i + j
// for output (j, i), a transposition.
TEST(ReferenceSplit, OuterIsTheFirstOperand) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%j: 3, %i: 2) from [6] {
    %t = kas.split %i, %j : 2, 3
    kas.yield data(%t)
  })",
                     {10, 11, 12, 13, 14, 15}),
            Values({10, 13, 11, 14, 12, 15}));
}

// With a reduced inner coordinate: sums of blocks of three.
TEST(ReferenceSplit, ReducedInnerSumsBlocks) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 2) from [6] {
    %r = kas.reduce sum : 3
    %t = kas.split %i, %r : 2, 3
    kas.yield data(%t)
  })",
                     {10, 11, 12, 13, 14, 15}),
            Values({33, 42}));
}

TEST(ReferenceSplit, SizeOne) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3, %j: 1) from [3] {
    %t = kas.split %i, %j : 3, 1
    kas.yield data(%t)
  })",
                     {7, 8, 9}),
            Values({7, 8, 9}));
}
