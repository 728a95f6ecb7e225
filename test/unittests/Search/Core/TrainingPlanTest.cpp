//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Search/Core/TrainingPlan.h"
#include "gtest/gtest.h"

using namespace kas::search;

namespace {

TrainingPlan make(size_t workers = 2, size_t candidates = 1000,
                  double trainings = 1000) {
  return llvm::cantFail(TrainingPlan::create(
      {HalvingPolicy(), 20, workers, 5, 3, candidates, trainings}));
}

/// Trains a bracket whose jobs take `fixed + n * epoch` seconds.
void train(TrainingPlan &plan, llvm::ArrayRef<uint64_t> ids, double fixed,
           double epoch) {
  plan.open(ids);
  std::map<uint64_t, int64_t> before;
  while (auto job = plan.take()) {
    auto [id, end] = *job;
    double seconds = fixed + epoch * static_cast<double>(end - before[id]);
    before[id] = end;
    llvm::cantFail(plan.finish(id, end, 0, seconds));
  }
}

TEST(TrainingPlanTest, PredictsByALine) {
  TrainingPlan plan = make();
  EXPECT_EQ(plan.predict(20), 0);
  EXPECT_FALSE(plan.hasLearned());
  plan.learn(20, 40);
  EXPECT_TRUE(plan.hasLearned());
  EXPECT_NEAR(plan.predict(10), 20, 1e-9);
  // From here on candidates count.
  train(plan, {0, 1, 2}, 1, 2);
  EXPECT_EQ(plan.predict(0), 0);
  EXPECT_NEAR(plan.predict(1), 3, 1e-9);
  EXPECT_NEAR(plan.predict(20), 41, 1e-9);
  // Five candidates, three seeds, two at a time.
  EXPECT_NEAR(plan.predictFinal(9), 8 * 41, 1e-9);
  EXPECT_NEAR(plan.predictFinal(1), 2 * 41, 1e-9);
  // 9 jobs of an epoch, three of two, one of three, one of 14; or one candidate
  // through all.
  double work = 9 * 3 + 3 * 5 + 7 + 29;
  EXPECT_NEAR(plan.predictBrackets(9), std::max(work / 2, 3.0 + 5 + 7 + 29),
              1e-9);
  double alone = plan.predictBrackets(9);
  plan.open({10, 11, 12, 13, 14, 15, 16, 17, 18});
  EXPECT_NEAR(plan.predictBrackets(0), alone, 1e-9);
  // What is running is not over.
  plan.take();
  EXPECT_NEAR(plan.predictBrackets(0), alone, 1e-9);
}

TEST(TrainingPlanTest, NoiseNeverMakesAnEpochCostLessThanNothing) {
  TrainingPlan plan = make();
  plan.learn(1, 9);
  plan.learn(3, 5);
  EXPECT_NEAR(plan.predict(1), 7, 1e-9);
  EXPECT_NEAR(plan.predict(20), 7, 1e-9);
}

TEST(TrainingPlanTest, ABracketHasAsManyAsFit) {
  TrainingPlan plan = make(/*workers=*/1);
  plan.learn(1, 1);
  auto getRoom = [&](double seconds) { return plan.getRoom({seconds, 0, 0}); };
  EXPECT_EQ(getRoom(1e6), 9u);
  EXPECT_EQ(getRoom(32 + 60), 9u);
  // Of fewer as many go on.
  EXPECT_GE(getRoom(32 + 60 - 5), 1u);
  EXPECT_LT(getRoom(32 + 60 - 5), 9u);
  EXPECT_EQ(getRoom(20 + 60), 1u);
  EXPECT_EQ(getRoom(20 + 60 - 1), 0u);
  // Those that were trained to the end are trained again, too.
  EXPECT_EQ(plan.getRoom({20 + 60, 1, 1}), 0u);
  EXPECT_EQ(plan.getRoom({20 + 120, 1, 1}), 1u);
}

TEST(TrainingPlanTest, ABudgetOfCandidatesAndOfEffortIsKept) {
  TrainingPlan plan = make(1, /*candidates=*/12);
  EXPECT_EQ(plan.getRoom({}), 9u);
  EXPECT_EQ(plan.getRoom({}, /*others=*/4), 5u);
  plan.open({0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(plan.getRoom({}), 3u);
  plan.open({9, 10});
  // No more than two brackets at once.
  EXPECT_EQ(plan.getRoom({}), 0u);
  EXPECT_EQ(make(1, 12).getRoom({1e9, 12, 0}), 0u);

  TrainingPlan short_ = make(1, 1000, /*trainings=*/1.25);
  train(short_, {0, 1, 2}, 0, 1);
  // Three for an epoch, and one of them for 19 more.
  EXPECT_NEAR(short_.getEffort(), 22 / 20.0, 1e-12);
  EXPECT_EQ(short_.getRoom({1e9, 3, 1}), 9u);
  train(short_, {3, 4, 5}, 0, 1);
  EXPECT_EQ(short_.getRoom({1e9, 6, 2}), 0u);
}

TEST(TrainingPlanTest, BaselinesAreTrainedAsOftenAsThereIsTime) {
  TrainingPlan plan = make(/*workers=*/2);
  EXPECT_EQ(plan.countBaselineSeeds(1, 10), 3u);
  plan.learn(20, 10);
  EXPECT_EQ(plan.countBaselineSeeds(1, std::numeric_limits<double>::infinity()),
            3u);
  // A third of 60 s are two rounds of two.
  EXPECT_EQ(plan.countBaselineSeeds(1, 60), 3u);
  EXPECT_EQ(plan.countBaselineSeeds(2, 60), 2u);
  EXPECT_EQ(plan.countBaselineSeeds(2, 30), 1u);
  EXPECT_EQ(plan.countBaselineSeeds(2, -5), 1u);
}

TEST(TrainingPlanTest, RefusesWhatWasNotTaken) {
  TrainingPlan plan = make();
  plan.open({7});
  EXPECT_EQ(llvm::toString(plan.finish(7, 1, 0, 0).takeError()),
            "requires the number of a candidate in training, got 7");
  plan.take();
  EXPECT_EQ(llvm::cantFail(plan.fail(7)), std::vector<uint64_t>());
  EXPECT_EQ(llvm::toString(plan.fail(7).takeError()),
            "requires the number of a candidate in training, got 7");
  EXPECT_EQ(
      llvm::toString(TrainingPlan::create({HalvingPolicy(), 0, 1}).takeError()),
      "requires at least one epoch and one worker, got 0 and 1");
}

} // namespace
