//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/PrimeField.h"
#include "gtest/gtest.h"

using namespace kas;

namespace {

constexpr uint64_t largest = PrimeField::prime - 1;

TEST(PrimeFieldTest, MultipliesAndInverts) {
  // -1 times -1.
  EXPECT_EQ(PrimeField::multiply(largest, largest), 1u);
  // 2^61 is 1.
  EXPECT_EQ(PrimeField::multiply(uint64_t(1) << 60, 2), 1u);
  EXPECT_EQ(PrimeField::multiply(largest, 0), 0u);
  for (uint64_t value :
       {uint64_t(1), uint64_t(2), uint64_t(12345678901234567), largest})
    EXPECT_EQ(PrimeField::multiply(value, PrimeField::invert(value)), 1u)
        << value;
}

TEST(PrimeFieldTest, Adds) {
  uint64_t sum = largest;
  PrimeField::addTo(sum, 1);
  EXPECT_EQ(sum, 0u);
  PrimeField::addTo(sum, largest);
  PrimeField::addTo(sum, largest);
  EXPECT_EQ(sum, largest - 1);
}

TEST(PrimeFieldTest, FindsDependentRows) {
  PrimeField::Echelon rows;
  EXPECT_TRUE(rows.add({{0, 1}, {1, 2}}));
  EXPECT_TRUE(rows.add({{0, 2}, {2, 5}}));
  // Twice the first, less the second.
  EXPECT_FALSE(rows.add({{1, 4}, {2, PrimeField::prime - 5}}));
  EXPECT_TRUE(rows.add({{1, 4}, {2, 5}}));
  // There are three unknowns.
  EXPECT_FALSE(rows.add({{0, 7}, {1, largest}, {2, 3}}));
  EXPECT_FALSE(rows.add({}));
  EXPECT_FALSE(rows.add({{3, 0}}));
  EXPECT_TRUE(rows.add({{3, 1}}));
}

} // namespace
