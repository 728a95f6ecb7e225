//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

TEST(ReferenceExpand, RepeatsTheInput) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%c: 2, %i: 3) from [3] {
    kas.expand %c : 2
    kas.yield data(%i)
  })",
                     {7, 8, 9}),
            Values({7, 8, 9, 7, 8, 9}));
}

// A coordinate that is expanded on the data side and kept by a weight:
// y[c, i] = x[i] * w[c].
TEST(ReferenceExpand, AfterShareKeepsTheWeight) {
  EXPECT_EQ(evaluate(R"(kas.operator @f(%c: 2, %i: 3) from [3] {
    %d, %w = kas.share %c : 2
    kas.expand %d : 2
    kas.yield data(%i) weight(%w)
  })",
                     {7, 8, 9}, {{1, 10}}),
            Values({7, 8, 9, 70, 80, 90}));
}
