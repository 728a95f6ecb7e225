//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/RegressionForest.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas;
using namespace kas::search;

/// A step in the first of three features, a slope in the second.
static double getTarget(llvm::ArrayRef<float> row) {
  return (row[0] > 0.5f ? 10 : 0) + row[1];
}

static std::vector<std::vector<float>> makeRows(unsigned count, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<float>> rows;
  for (unsigned index = 0; index < count; ++index)
    rows.push_back({random.uniform(), random.uniform(), random.uniform()});
  return rows;
}

TEST(RegressionForest, LearnsAFunction) {
  std::vector<std::vector<float>> rows = makeRows(300, 1);
  std::vector<double> targets;
  for (const std::vector<float> &row : rows)
    targets.push_back(getTarget(row));
  RegressionForest forest;
  Random random(2);
  forest.fit(rows, targets, {}, random);
  double squares = 0;
  std::vector<std::vector<float>> others = makeRows(200, 3);
  for (const std::vector<float> &row : others) {
    RegressionForest::Prediction prediction = forest.predict(row);
    EXPECT_GE(prediction.variance, 0);
    squares += std::pow(prediction.mean - getTarget(row), 2);
  }
  // The standard deviation of the targets is 5.
  EXPECT_LT(std::sqrt(squares / 200), 1);
  // Both are functions of data and seed.
  RegressionForest again;
  Random same(2);
  again.fit(rows, targets, {}, same);
  for (const std::vector<float> &row : others)
    EXPECT_EQ(forest.predict(row).mean, again.predict(row).mean);
}

TEST(RegressionForest, TakesLittleData) {
  RegressionForest forest;
  Random random(1);
  forest.fit({}, {}, {}, random);
  EXPECT_EQ(forest.predict({1, 2, 3}).mean, 0);
  std::vector<std::vector<float>> rows = {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}};
  std::vector<double> targets = {4, 4, 4};
  forest.fit(rows, targets, {}, random);
  EXPECT_EQ(forest.predict({9, 9, 9}).mean, 4);
  EXPECT_EQ(forest.predict({9, 9, 9}).variance, 0);
}

TEST(ExpectedImprovement, IsThatOfANormalVariable) {
  EXPECT_EQ(getExpectedImprovement(3, 0, 2), 1);
  EXPECT_EQ(getExpectedImprovement(1, 0, 2), 0);
  // E max(X, 0) of a standard normal X is 1 / sqrt(2 pi).
  EXPECT_NEAR(getExpectedImprovement(0, 1, 0), 0.39894, 1e-5);
  EXPECT_NEAR(getExpectedImprovement(5, 1e-6, 2), 3, 1e-6);
  EXPECT_GT(getExpectedImprovement(0, 4, 1), getExpectedImprovement(0, 1, 1));
}
