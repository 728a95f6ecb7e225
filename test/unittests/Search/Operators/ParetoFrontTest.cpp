//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/ParetoFront.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"
#include <limits>

using namespace kas;
using namespace kas::search;

static std::vector<ObjectivePoint> makePoints(uint64_t seed, unsigned count,
                                              unsigned axes, unsigned grid) {
  Random random(seed);
  std::vector<ObjectivePoint> points(count);
  for (ObjectivePoint &point : points)
    for (unsigned axis = 0; axis < axes; ++axis)
      point.push_back(static_cast<double>(random.below(grid)));
  return points;
}

/// Counts the unit cells of the grid that a point covers.
static double countCells(llvm::ArrayRef<ObjectivePoint> points, unsigned axes,
                         unsigned grid) {
  unsigned cells = 1;
  for (unsigned axis = 0; axis < axes; ++axis)
    cells *= grid;
  double count = 0;
  for (unsigned cell = 0; cell < cells; ++cell) {
    auto covers = [&](const ObjectivePoint &point) {
      for (unsigned axis = 0, rest = cell; axis < axes; ++axis, rest /= grid)
        if (point[axis] > rest % grid)
          return false;
      return true;
    };
    count += llvm::any_of(points, covers);
  }
  return count;
}

TEST(ParetoFront, Dominates) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 3}, {1, 2}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
}

TEST(ParetoFront, KeepsWhatNothingDominates) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<ObjectivePoint> points = makePoints(seed, 40, 3, 6);
    ParetoFront front;
    for (size_t index = 0; index < points.size(); ++index)
      front.insert(index, points[index]);
    size_t expected = 0;
    for (size_t index = 0; index < points.size(); ++index) {
      bool isDominated = llvm::any_of(points, [&](const auto &other) {
        return dominates(other, points[index]);
      });
      EXPECT_EQ(front.contains(index), !isDominated) << index;
      expected += !isDominated;
    }
    EXPECT_EQ(front.size(), expected);
    auto members = front.getMembers();
    EXPECT_TRUE(llvm::is_sorted(members, [](const auto &a, const auto &b) {
      return std::tie(a.point, a.id) < std::tie(b.point, b.id);
    }));
  }
}

TEST(ParetoFront, HypervolumeIsTheMeasure) {
  for (unsigned axes : {1, 2, 3, 4})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << axes << " axes, seed " << seed);
      unsigned grid = axes == 4 ? 6 : 9;
      // Some lie on the border, where they cover nothing.
      auto points = makePoints(seed, 1 + seed, axes, grid + 1);
      EXPECT_EQ(getHypervolume(points, ObjectivePoint(axes, grid)),
                countCells(points, axes, grid));
    }
  EXPECT_EQ(getHypervolume({}, {1, 1}), 0);
}

TEST(ParetoFront, NormalizesTheHypervolume) {
  EXPECT_EQ(getNormalizedHypervolume({}), 0);
  EXPECT_EQ(getNormalizedHypervolume({{3, 5}}), 1);
  // The corners alone cover nothing; one in the middle covers a quarter.
  EXPECT_EQ(getNormalizedHypervolume({{0, 20}, {10, 0}}), 0);
  EXPECT_EQ(getNormalizedHypervolume({{0, 20}, {10, 0}, {5, 10}}), 0.25);
  EXPECT_EQ(getNormalizedHypervolume({{0, 20}, {10, 0}, {0, 0}}), 1);
  // An axis without choice, and a point of which something is unknown.
  double unknown = std::numeric_limits<double>::infinity();
  EXPECT_EQ(getNormalizedHypervolume(
                {{0, 7, 20}, {10, 7, 0}, {5, 7, 10}, {0, unknown, 0}}),
            0.25);
}
