//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ScheduleModel.h"
#include "TuningModules.h"
#include <cmath>

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;

namespace {
struct Samples {
  std::vector<std::vector<float>> rows;
  std::vector<double> targets;

  Samples(size_t count, uint64_t seed, double (*function)(float, float)) {
    Random random(seed);
    for (size_t i = 0; i < count; ++i) {
      float x = random.uniform() * 2 - 1, y = random.uniform() * 2 - 1;
      rows.push_back({x, y, 1});
      targets.push_back(function(x, y));
    }
  }
};
} // namespace

static double getLinear(float x, float y) { return 3 * x - y + 5; }
static double getStep(float x, float y) { return (x > 0) == (y > 0) ? 1 : -1; }

TEST(ScheduleModel, RidgeLearnsSums) {
  Samples seen(200, 1, getLinear), others(50, 2, getLinear);
  RidgeRegression ridge;
  ridge.fit(seen.rows, seen.targets, 1e-6);
  for (auto [row, target] : llvm::zip_equal(others.rows, others.targets))
    EXPECT_NEAR(ridge.predict(row), target, 1e-3);
}

/// The kind that predicts better what it was not shown is taken.
TEST(ScheduleModel, TakesTheBetterKind) {
  Random random(3);
  ScheduleModel sums, steps;
  Samples linear(100, 4, getLinear), step(200, 5, getStep);
  sums.fit(linear.rows, linear.targets, random);
  EXPECT_EQ(sums.getKind(), "ridge");
  steps.fit(step.rows, step.targets, random);
  EXPECT_EQ(steps.getKind(), "forest");
  EXPECT_LT(steps.getForestError(), steps.getRidgeError());
  EXPECT_GT(steps.predict({0.5f, 0.5f, 1}), steps.predict({0.5f, -0.5f, 1}));
}

TEST(ScheduleModel, NeedsSamples) {
  Random random(6);
  Samples few(ScheduleModel::minSamples - 1, 7, getLinear);
  ScheduleModel model;
  model.fit(few.rows, few.targets, random);
  EXPECT_FALSE(model.isTrained());
}

/// All points of a kernel look different to a model, but for those whose
/// numbers stand for the same.
TEST(ScheduleModel, FeaturesAreFinite) {
  auto context = makeTuningContext();
  TuningModule module(*context, makeConvolution(8, 16, 14, 1));
  ScheduleSpace space = module.getSpace();
  size_t width = space.points.front().features.size();
  for (const SchedulePoint &point : space.points) {
    EXPECT_EQ(point.features.size(), width);
    for (float feature : point.features)
      EXPECT_TRUE(std::isfinite(feature));
  }
}

/// Without the cost model's times, only features that tell of them differ.
TEST(ScheduleModel, SpacesWithoutCostsAreAlike) {
  auto context = makeTuningContext();
  TuningModule module(*context, makeMatmul(16, 32, 8));
  ScheduleSpace space = module.getSpace(), blind = space.forgetCosts();
  ASSERT_EQ(blind.points.size(), space.points.size());
  EXPECT_EQ(blind.leastCost, 1);
  EXPECT_EQ(blind.fixed, space.fixed);
  for (auto [point, known] : llvm::zip_equal(blind.points, space.points)) {
    EXPECT_EQ(point.schedule, known.schedule);
    EXPECT_EQ(point.cost, ScheduleCost(1, 0));
    EXPECT_EQ(point.features.size(), known.features.size());
    EXPECT_EQ(space.getLoopDistance(point.features), 0);
  }
}
