//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

// q = i / 3, r = i mod 3 in a 2x3 input.
TEST(ReferenceMerge, QuotientThenRemainder) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 6) from [2, 3] {
    %q, %r = kas.merge %i by 3 : 6
    kas.yield data(%q, %r)
  })",
                     {10, 11, 12, 13, 14, 15}),
            Values({10, 11, 12, 13, 14, 15}));
}

// The input is [remainder, quotient]: element (i mod 3, i / 3) of a 3x2 input.
TEST(ReferenceMerge, SwappedTranspose) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 6) from [3, 2] {
    %q, %r = kas.merge %i by 3 : 6
    kas.yield data(%r, %q)
  })",
                     {10, 11, 12, 13, 14, 15}),
            Values({10, 12, 14, 11, 13, 15}));
}

// Nearest upsampling by 2: the remainder is dropped.
TEST(ReferenceMerge, DroppedRemainderRepeats) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 6) from [3] {
    %q, %r = kas.merge %i by 2 : 6
    kas.expand %r : 2
    kas.yield data(%q)
  })",
                     {7, 8, 9}),
            Values({7, 7, 8, 8, 9, 9}));
}

TEST(ReferenceMerge, BlockOfOneAndOfAll) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [3, 1] {
    %q, %r = kas.merge %i by 1 : 3
    kas.yield data(%q, %r)
  })",
                     {7, 8, 9}),
            Values({7, 8, 9}));
  EXPECT_EQ(evaluate(R"(kas.operator @f(%i: 3) from [1, 3] {
    %q, %r = kas.merge %i by 3 : 3
    kas.yield data(%q, %r)
  })",
                     {7, 8, 9}),
            Values({7, 8, 9}));
}
