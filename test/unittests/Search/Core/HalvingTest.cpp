//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Search/Core/Halving.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
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

using Job = std::pair<uint64_t, int64_t>;

/// Trains all candidates of a bracket one after the other: what was trained,
/// and what was out in which order.
std::pair<std::vector<Job>, std::vector<Job>>
train(Bracket bracket, llvm::function_ref<double(uint64_t)> score,
      std::set<uint64_t> failing = {}) {
  std::vector<Job> trained, out;
  while (auto job = bracket.take()) {
    trained.push_back(*job);
    auto [id, epochs] = *job;
    auto gone = failing.count(id) ? bracket.fail(id)
                                  : bracket.finish(id, epochs, score(id));
    for (uint64_t one : gone)
      out.emplace_back(one, bracket.getEpochs(one));
  }
  EXPECT_TRUE(bracket.isDone());
  return {trained, out};
}

TEST(BracketTest, WaitsForAllOfARung) {
  std::vector<uint64_t> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  auto [trained, out] = train(Bracket({}, {1, 3, 6, 20}, ids),
                              [](uint64_t id) { return double(id % 5); }, {3});
  // Of 0 1 2 4 5 6 7 8 the best two by id % 5 are 4 and 8; of two one is kept.
  std::vector<Job> expected;
  for (uint64_t id : ids)
    expected.emplace_back(id, 1);
  for (Job job : {Job(4, 3), Job(8, 3), Job(4, 6), Job(4, 20)})
    expected.push_back(job);
  EXPECT_EQ(trained, expected);
  std::vector<Job> gone = {{2, 1}, {7, 1}, {1, 1}, {6, 1},
                           {0, 1}, {5, 1}, {8, 3}, {4, 20}};
  EXPECT_EQ(out, gone);
}

TEST(BracketTest, DoesNotDependOnWhichEndsFirst) {
  uint64_t seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> ids(1 + random() % 12);
    std::map<uint64_t, double> scores;
    for (auto [index, id] : llvm::enumerate(ids))
      id = index, scores[id] = double(random() % 4);
    HalvingPolicy policy{ids.size(), {1, 2}, 0.25 + 0.25 * (round % 4)};
    auto getScore = [&](uint64_t id) { return scores[id]; };
    auto [trained, out] = train(Bracket(policy, {1, 2, 9}, ids), getScore);
    // All are taken before one ends, and they end in another order.
    Bracket bracket(policy, {1, 2, 9}, ids);
    std::vector<Job> others, gone;
    while (!bracket.isDone()) {
      std::vector<Job> running;
      while (auto job = bracket.take())
        running.push_back(*job);
      ASSERT_FALSE(running.empty());
      others.insert(others.end(), running.begin(), running.end());
      std::shuffle(running.begin(), running.end(), random);
      for (auto [id, epochs] : running)
        for (uint64_t one : bracket.finish(id, epochs, scores[id]))
          gone.emplace_back(one, bracket.getEpochs(one));
    }
    EXPECT_EQ(others, trained);
    EXPECT_EQ(gone, out);
    EXPECT_EQ(out.size(), ids.size());
  }
}

TEST(BracketTest, ComparesWithWhatAnInterruptionLeft) {
  auto getScore = [](uint64_t id) { return double(id); };
  // Of four the best one is trained on; it is known, and got further.
  Bracket late({4, {1}, 0.25}, {1, 5}, {2, 3}, {{0, {5, 0.1}}, {1, {1, 9}}});
  EXPECT_EQ(train(std::move(late), getScore).first,
            (std::vector<Job>{{2, 1}, {3, 1}}));
  // One that failed says nothing.
  Bracket failed({4, {1}, 0.25}, {1, 5}, {2, 3}, {{0, {0, -1}}, {1, {1, 1}}});
  EXPECT_EQ(train(std::move(failed), getScore).first,
            (std::vector<Job>{{2, 1}, {3, 1}, {3, 5}}));
}

TEST(HalvingPolicyTest, RefusesWhatIsNoPolicy) {
  auto message = [](HalvingPolicy policy) {
    return llvm::toString(policy.check());
  };
  EXPECT_EQ(message({0, {}, 1}),
            "requires a size of at least 1 for halving, got 0");
  for (double keep : {0.0, -1.0, 1.5, std::nan("")})
    EXPECT_NE(message({1, {}, keep}).find("requires a share to keep above 0"),
              std::string::npos);
  EXPECT_EQ(message({1, {3, 1}, 1}),
            "requires rungs that are positive and ascend, got 1 after 3");
  EXPECT_EQ(message({}), "");
}

} // namespace
