//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/NearName.h"
#include "gtest/gtest.h"

using namespace kas;

TEST(NearName, TakesTheNameWithTheFewestEdits) {
  EXPECT_EQ(findNearName("con2d", {"conv1d", "conv2d", "linear"}), "conv2d");
  EXPECT_EQ(findNearName("flpos", {"params", "flops"}), "flops");
  EXPECT_EQ(findNearName("abcd", {"abcx", "abcy"}), "abcx");
  EXPECT_EQ(suggestNearName("con2d", {"conv2d"}), " (did you mean 'conv2d'?)");
}

TEST(NearName, LeavesOutWhatIsFarAway) {
  EXPECT_EQ(findNearName("beauty", {"params", "flops"}), "");
  EXPECT_EQ(findNearName("kl", {"mn"}), "");
  EXPECT_EQ(findNearName("", {}), "");
  EXPECT_EQ(suggestNearName("beauty", {"flops"}), "");
}
