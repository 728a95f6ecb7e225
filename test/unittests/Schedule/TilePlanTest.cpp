//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/TilePlan.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::schedule;

namespace {

/// Of all row tiles of a product of 128 rows and 50 272 columns.
int64_t getTime(int64_t rows, int64_t dataElements, const TileTarget &target) {
  RowTileShape shape{
      1, 1, /*width=*/50272, rows, 768, /*mayOverlap=*/true, dataElements};
  return chooseRowTile(shape, target, [](int64_t, int64_t) { return true; })
      .getTime();
}

TEST(TilePlanTest, DataThatNoCacheHolds) {
  TileTarget target{Target()};
  int64_t kept = 8 * target.l2Elements;
  EXPECT_EQ(getTime(128, 0, target), getTime(128, kept, target));
  int64_t more = getTime(128, kept + 1, target) - getTime(128, kept, target);
  EXPECT_GT(more, 0);
  // All of it is read for each tile of rows.
  EXPECT_EQ(getTime(256, kept + 1, target) - getTime(256, kept, target),
            2 * more);
}

} // namespace
