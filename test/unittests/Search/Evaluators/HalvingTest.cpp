//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Search/Evaluators/Halving.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>

using namespace kas::search;

namespace {

std::unique_ptr<Halving> make(llvm::ArrayRef<int64_t> rungs) {
  return llvm::cantFail(Halving::create(rungs));
}

TEST(HalvingTest, TrainsTheFirstToTheEnd) {
  auto halving = make({1, 3});
  auto milestones = halving->getMilestones();
  ASSERT_EQ(milestones.size(), 2u);
  EXPECT_EQ(milestones[0].epoch, 1);
  EXPECT_EQ(milestones[1].epoch, 3);
  EXPECT_LT(milestones[0].accuracy, -1e300);
  EXPECT_LT(milestones[1].accuracy, -1e300);
}

TEST(HalvingTest, TrainsTheBestThirdOn) {
  auto halving = make({1, 3});
  for (double accuracy : {0.5, 0.6, 0.4})
    halving->observe({{"accuracy_1", accuracy}});
  // Two of these and the next one: those above the second.
  EXPECT_EQ(halving->getMilestones()[0].accuracy, 0.5);
  EXPECT_LT(halving->getMilestones()[1].accuracy, -1e300);
  halving->observe({{"accuracy_1", 0.7}, {"accuracy_3", 0.8}, {"flops", 3}});
  EXPECT_EQ(halving->getMilestones()[0].accuracy, 0.6);
  EXPECT_EQ(halving->getMilestones()[1].accuracy, 0.8);
}

TEST(HalvingTest, DoesNotTrainEqualOnesOn) {
  auto halving = make({1});
  int trained = 0;
  for (int index = 0; index < 9; ++index) {
    trained += 0.1 > halving->getMilestones()[0].accuracy;
    halving->observe({{"accuracy_1", 0.1}});
  }
  // The first, and one whenever a third of the candidates grows by one.
  EXPECT_EQ(trained, 1);
}

TEST(HalvingTest, IsWhatCountingSays) {
  uint64_t seed = 20;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto halving = make({2});
  std::vector<double> known;
  for (int index = 0; index < 300; ++index) {
    double accuracy = double(random() % 1000) / 1000;
    // Equal ones count as better: they came before.
    size_t better =
        std::count_if(known.begin(), known.end(),
                      [&](double other) { return other >= accuracy; });
    bool isInThird = better < (known.size() + 1 + 2) / 3;
    EXPECT_EQ(accuracy > halving->getMilestones()[0].accuracy, isInThird);
    halving->observe({{"accuracy_2", accuracy}});
    known.push_back(accuracy);
  }
}

TEST(HalvingTest, RefusesRungsThatDoNotAscend) {
  auto message = [](llvm::ArrayRef<int64_t> rungs) {
    return llvm::toString(Halving::create(rungs).takeError());
  };
  EXPECT_EQ(message({0}), "requires rungs that are positive and ascend, got 0");
  EXPECT_EQ(message({1, 3, 3}),
            "requires rungs that are positive and ascend, got 3 after 3");
}

} // namespace
