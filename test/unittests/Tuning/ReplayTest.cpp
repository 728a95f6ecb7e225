//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Replay.h"
#include "TuningModules.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace kas;
using namespace kas::tuning;

namespace {

/// A kernel with times that no machine has: the further the logarithms of a
/// schedule's numbers from those of a hidden point, the longer.
class ReplayTest : public testing::Test {
protected:
  const TuningTask &getTask() const { return module.tasks.front(); }
  llvm::ArrayRef<SchedulePoint> getPoints() const {
    return getTask().space.points;
  }

  ScheduleTable makeTable(size_t hidden) const {
    const SchedulePoint &best = getPoints()[hidden];
    std::vector<std::optional<double>> times;
    for (auto [index, point] : llvm::enumerate(getPoints())) {
      double distance = point.strategy != best.strategy;
      for (auto [a, b] : llvm::zip_equal(best.knobs, point.knobs))
        distance += std::abs(std::log2(static_cast<double>(a.second + 1)) -
                             std::log2(static_cast<double>(b.second + 1)));
      // Some fail.
      if (index % 17 == 3 && index != hidden)
        times.push_back(std::nullopt);
      else
        times.push_back(1 + 0.2 * distance);
    }
    return ScheduleTable(std::move(times));
  }

  /// The median number of trials until 95 % of the best, or 150.
  int64_t getMedian(const ScheduleTable &table, ProposalAlgorithm algorithm) {
    std::vector<int64_t> counts;
    for (uint64_t seed = 0; seed < 7; ++seed)
      counts.push_back(
          countTrials(table,
                      replaySearch(getPoints(), table, algorithm, seed, 150),
                      0.95)
              .value_or(150));
    llvm::sort(counts);
    return counts[counts.size() / 2];
  }

  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
  /// The same space on every machine.
  TuningModule module{*context,
                      R"(module attributes {llvm.target = #llvm.target<
      triple = "x86_64-unknown-linux-gnu", chip = "x86-64-v3">} {)" +
                          makeMatmul(16, 32, 8) + "}"};
};

constexpr ProposalAlgorithm allAlgorithms[] = {ProposalAlgorithm::Evolution,
                                               ProposalAlgorithm::Random,
                                               ProposalAlgorithm::Exhaustive};

} // namespace

/// Each algorithm comes to each point, once, also to those that fail.
TEST_F(ReplayTest, VisitsAllOnce) {
  ScheduleTable table = makeTable(5);
  for (ProposalAlgorithm algorithm : allAlgorithms) {
    std::vector<size_t> points =
        replaySearch(getPoints(), table, algorithm, 1, 1 << 20);
    EXPECT_EQ(points.size(), getPoints().size());
    llvm::sort(points);
    EXPECT_TRUE(std::unique(points.begin(), points.end()) == points.end());
  }
}

TEST_F(ReplayTest, SeedsDecide) {
  ScheduleTable table = makeTable(5);
  for (ProposalAlgorithm algorithm :
       {ProposalAlgorithm::Evolution, ProposalAlgorithm::Random}) {
    auto search = [&](uint64_t seed) {
      return replaySearch(getPoints(), table, algorithm, seed, 40);
    };
    EXPECT_EQ(search(1).size(), 40u);
    EXPECT_EQ(search(1), search(1));
    EXPECT_NE(search(1), search(2));
  }
}

TEST_F(ReplayTest, CountsTrials) {
  ScheduleTable table({2.0, std::nullopt, 1.0, 1.05, 1.2});
  EXPECT_EQ(table.best, 1.0);
  EXPECT_EQ(countTrials(table, {0, 1, 4, 3, 2}, 0.99), 5);
  EXPECT_EQ(countTrials(table, {0, 1, 4, 3, 2}, 0.95), 4);
  EXPECT_EQ(countTrials(table, {0, 1, 4, 3, 2}, 0.8), 3);
  EXPECT_EQ(countTrials(table, {0, 1, 4}, 0.95), std::nullopt);
}

/// What was learned leads to the best in less than two thirds of the trials
/// that chance needs, on average of bests that the cost model does not know of.
TEST_F(ReplayTest, EvolutionLearns) {
  size_t all = getPoints().size();
  int64_t evolution = 0, random = 0;
  for (size_t hidden : {all / 7, all / 3, all / 2, 3 * all / 4, all - 1}) {
    ScheduleTable table = makeTable(hidden);
    evolution += getMedian(table, ProposalAlgorithm::Evolution);
    random += getMedian(table, ProposalAlgorithm::Random);
  }
  EXPECT_LT(3 * evolution, 2 * random);
}

/// A table is complete or none.
TEST_F(ReplayTest, ReadsTables) {
  llvm::SmallString<128> directory;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-replay", directory));
  llvm::SmallString<128> path = directory;
  llvm::sys::path::append(path, "t.db");
  auto store =
      llvm::cantFail(TuningStore::open(path, {"here", "kas", "least"}));
  const TuningTask &task = getTask();
  int64_t kernel = llvm::cantFail(
      store->addKernel({task.getClassKey(), task.classText, task.shape}));
  ScheduleTable table = makeTable(5);
  auto record = [&](size_t point) {
    StoredMeasurement row;
    row.schedule = getPoints()[point].schedule.getText();
    if (table.times[point])
      row.ratio = *table.times[point];
    else
      row.failure = "a test";
    llvm::cantFail(store->record(kernel, row));
  };
  for (size_t point = 1; point < table.times.size(); ++point)
    record(point);
  llvm::Expected<ScheduleTable> incomplete = readTable(task, *store);
  ASSERT_FALSE(incomplete);
  EXPECT_EQ(
      llvm::toString(incomplete.takeError()),
      llvm::formatv("requires measurements of all {0} schedules, found {1}",
                    table.times.size(), table.times.size() - 1)
          .str());
  record(0);
  EXPECT_EQ(llvm::cantFail(readTable(task, *store)).times, table.times);
  store.reset();
  llvm::sys::fs::remove_directories(directory);
}
