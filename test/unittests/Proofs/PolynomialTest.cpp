//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Polynomial.h"
#include "gtest/gtest.h"

using namespace kas::test;

static const Polynomial x = Polynomial::variable(0),
                        y = Polynomial::variable(1);

TEST(PolynomialTest, LikeTermsAreOne) {
  EXPECT_EQ(x * y + y * x, x * y * 2);
  EXPECT_TRUE((x * y - y * x).isZero());
  EXPECT_EQ((x + y) * (x - y), x * x - y * y);
  EXPECT_NE(x * x, x);
}

TEST(PolynomialTest, Constants) {
  EXPECT_EQ(Polynomial().getConstant(), 0);
  EXPECT_EQ((x + 3 - x).getConstant(), 3);
  EXPECT_EQ(x.getConstant(), std::nullopt);
  EXPECT_EQ((x * 2 + 1).getConstant(), std::nullopt);
}

TEST(PolynomialTest, DivisionLeavesWhatIsNoMultiple) {
  auto [quotient, rest] = (x * x * y + x * y * 3 + x * 2 + 5).divide(x * y);
  EXPECT_EQ(quotient, x + 3);
  EXPECT_EQ(rest, x * 2 + 5);
  EXPECT_EQ((x * 6 + y * 3).divide(Polynomial(2) * x).first, 3);
  EXPECT_EQ((x * 5).divide(Polynomial(2) * x).second, x * 5);
  // x divides x, but not twice.
  EXPECT_EQ(x.divide(x * x).second, x);
}
