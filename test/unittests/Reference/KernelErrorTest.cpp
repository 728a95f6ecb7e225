//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvaluateKernel.h"
#include "gtest/gtest.h"

namespace {

/// The diagnostics of an evaluation that must fail.
std::string errorsOf(const std::string &text, const std::vector<Values> &inputs,
                     const std::vector<Values> &weights = {}) {
  std::string errors;
  EXPECT_TRUE(evaluateKernel(text, inputs, weights, &errors).empty());
  return errors;
}

const char *const identity = R"(kas.kernel @f(%in: [2]) -> [2] {
  kas.dag.output %in : [2]
})";

TEST(ReferenceKernelError, Tensors) {
  EXPECT_EQ(errorsOf(identity, {}), "requires 1 inputs, got 0\n");
  EXPECT_EQ(errorsOf(identity, {{1, 2, 3}}),
            "requires input 0 of shape [2], got [2] with 3 values\n");
  EXPECT_EQ(errorsOf(identity, {{1, 2}}, {{1}}), "requires 0 weights, got 1\n");
}

/// Without a binding, all symbols are 1 here.
TEST(ReferenceKernelError, SizesAtTheBinding) {
  std::string errors = errorsOf(R"(
    kas.kernel @f<C | G | x> where [G divides C] (%in: [C]) -> [C] {
      %a = kas.dag.fc %in to x/2 : [C]
      kas.dag.output %a : [x/2]
    })",
                                {{1}}, {{1}});
  EXPECT_NE(errors.find("requires sizes that are integers (K3)"),
            std::string::npos)
      << errors;
  EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<C | | x> (%in: [2*C]) -> [2*C] {
      %a = kas.dag.fc %in to x : [2*C]
      kas.dag.output %a : [x]
    })",
                     {{1, 2}}, {{1, 2}}),
            "requires 2 elements in the output (K4), got 1\n");
}

TEST(ReferenceKernelError, ImpliedSizesAtTheBinding) {
  EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<| | x> (%in: [2]) -> [1] {
      %a = kas.dag.fc %in groups 1 to x : [2]
      kas.dag.output %a : [x]
    })",
                     {{1, 2}}, {{1}}),
            "requires groups that divide 1 (K3), got 2\n");
  EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<| | x> (%in: [3*x]) -> [3*x] {
      %a = kas.dag.shuffle %in dim 0 by 2 : [3*x]
      kas.dag.output %a : [3*x]
    })",
                     {{1, 2, 3}}),
            "requires groups that divide 3 (K3), got 2\n");
  EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<| | x> (%a: [2], %b: [x]) -> [x] {
      %y = kas.dag.broadcast add %a, %b common [0, 0] : [2], [x]
      kas.dag.output %y : [x]
    })",
                     {{1, 2}, {1}}),
            "requires a left block that divides 1 (K3), got 2\n");
}

TEST(ReferenceKernelError, BlocksAtTheBinding) {
  EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<| | x> (%in: [4]) -> [2*x] {
      %a = kas.dag.amplify %in by x of 2 : [4]
      kas.dag.output %a : [x, 2]
    })",
                     {{1, 2, 3, 4}}),
            "requires at most as many blocks as copies, 1 (D15), got 2\n");
}

/// A causal shift as well as a rotation; INT64_MIN has no magnitude.
TEST(ReferenceKernelError, ShiftsAtTheBinding) {
  for (std::string amount :
       {"2", "-3", "-2 causal", "-9 causal", "-9223372036854775808"})
    EXPECT_EQ(errorsOf(R"(
    kas.kernel @f<| | x> (%in: [2*x]) -> [2*x] {
      %a = kas.dag.shift %in dim 0 by )" +
                           amount +
                           R"( : [2*x]
      kas.dag.output %a : [2*x]
    })",
                       {{1, 2}}),
              "requires a shift amount d with 0 < |d| < 2 (D4), got " +
                  amount.substr(0, amount.find(' ')) + "\n");
}

TEST(ReferenceKernelError, TooLarge) {
  std::string errors = errorsOf(R"(
    kas.kernel @f(%in: [2147483647, 2147483647, 2147483647]) -> [1] {
      %y = kas.dag.fc %in to 1 : [2147483647, 2147483647, 2147483647]
      kas.dag.output %y : [1]
    })",
                                {{1}});
  EXPECT_NE(errors.find("requires at most 268435456 elements in each tensor"),
            std::string::npos)
      << errors;
  // A step between that no input or output shows.
  errors = errorsOf(R"(
    kas.kernel @f(%in: [1]) -> [1] {
      %y = kas.dag.fc %in to 2147483647 : [1]
      %z = kas.dag.fold sum %y dims [0] : [2147483647]
      kas.dag.output %z : []
    })",
                    {{1}}, {{1}});
  EXPECT_NE(errors.find("requires at most 268435456 elements in each tensor"),
            std::string::npos)
      << errors;
}

} // namespace
