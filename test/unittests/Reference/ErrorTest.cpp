//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "gtest/gtest.h"

static const std::string scale = R"(kas.operator @f(%i: 3) from [3] {
  %d, %w = kas.share %i : 3
  kas.yield data(%d) weight(%w)
})";

static std::string getErrors(const std::string &text, const Values &data,
                             const std::vector<Values> &weights) {
  std::string errors;
  EXPECT_TRUE(evaluate(text, data, weights, &errors).empty());
  return errors;
}

TEST(ReferenceError, Symbols) {
  EXPECT_EQ(getErrors(R"(kas.operator @f<N>(%i: N) from [N] {
    kas.yield data(%i)
  })",
                      {1}, {}),
            "requires an operator without symbols, got 'f': specialize it\n");
}

TEST(ReferenceError, NumberOfValues) {
  EXPECT_EQ(getErrors(scale, {1, 2}, {{1, 2, 3}}),
            "requires 3 values for the data, got 2\n");
  EXPECT_EQ(getErrors(scale, {1, 2, 3}, {{1, 2, 3, 4}}),
            "requires 3 values for weight 0, got 4\n");
}

TEST(ReferenceError, NumberOfWeights) {
  EXPECT_EQ(getErrors(scale, {1, 2, 3}, {}),
            "requires 1 weights for operator 'f', got 0\n");
  EXPECT_EQ(getErrors(scale, {1, 2, 3}, {{1, 2, 3}, {1}}),
            "requires 1 weights for operator 'f', got 2\n");
}

TEST(ReferenceError, TooManyPoints) {
  EXPECT_NE(getErrors(R"(kas.operator @f
        (%i: 2147483647, %j: 2147483647, %a: 1) from [1] {
    kas.expand %i : 2147483647
    kas.expand %j : 2147483647
    kas.yield data(%a)
  })",
                      {1}, {})
                .find("requires fewer than 2^58 points"),
            std::string::npos);
}
