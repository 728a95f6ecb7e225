//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Tuner.h"
#include "TuningModules.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kas;
using namespace kas::tuning;

namespace {

class TunerTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-tuner", directory));
    options.measure.runs = 1;
    options.measure.limitSeconds = 120;
    options.network = "net";
  }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  std::unique_ptr<TuningStore> open(llvm::StringRef name) {
    llvm::SmallString<128> path = directory;
    llvm::sys::path::append(path, name);
    return llvm::cantFail(TuningStore::open(path, {"here", "kas", "least"}));
  }
  TunedKernel tune(TuningStore &store) {
    TuningModule module(*context, makeMatmul(16, 32, 8));
    return llvm::cantFail(
        tuneKernel(module.tasks.front(), *module.device, store, options));
  }
  std::vector<std::string> getSchedules(TuningStore &store) {
    TuningModule module(*context, makeMatmul(16, 32, 8));
    const TuningTask &task = module.tasks.front();
    int64_t id = llvm::cantFail(
        store.addKernel({task.getClassKey(), task.classText, task.shape}));
    std::vector<std::string> schedules;
    for (const StoredMeasurement &row : llvm::cantFail(store.read(id)))
      schedules.push_back(row.schedule);
    return schedules;
  }

  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
  llvm::SmallString<128> directory;
  TunerOptions options;
};

} // namespace

/// The same seed proposes the same schedules, another one others.
TEST_F(TunerTest, SeedsDecide) {
  options.algorithm = ProposalAlgorithm::Random;
  options.trials = 3;
  auto one = open("one"), two = open("two"), three = open("three");
  tune(*one);
  tune(*two);
  options.seed = 1;
  tune(*three);
  EXPECT_EQ(getSchedules(*one).size(), 3u);
  EXPECT_EQ(getSchedules(*one), getSchedules(*two));
  EXPECT_NE(getSchedules(*one), getSchedules(*three));
}

/// What a database has is not measured again.
TEST_F(TunerTest, GoesOn) {
  auto store = open("one");
  options.trials = 2;
  EXPECT_EQ(tune(*store).measured, 2);
  EXPECT_EQ(tune(*store).measured, 0);
  options.trials = 3;
  EXPECT_EQ(tune(*store).measured, 1);
  EXPECT_EQ(getSchedules(*store).size(), 3u);
}

/// A schedule of another size of the class is adapted and measured; where
/// nothing was chosen, there is nothing to do.
TEST_F(TunerTest, TransfersWithinAClass) {
  auto store = open("one");
  TuningModule source(*context, makeOperator(8, 16, 32));
  TuningModule target(*context, makeOperator(4, 24, 64));
  TuningTask &from = source.tasks.front(), &to = target.tasks.front();
  ASSERT_EQ(from.getClassKey(), to.getClassKey());
  ASSERT_NE(from.shape, to.shape);
  EXPECT_EQ(
      llvm::cantFail(transferKernel(to, *target.device, *store, options, {}))
          .measured,
      0);

  int64_t id = llvm::cantFail(
      store->addKernel({from.getClassKey(), from.classText, from.shape}));
  llvm::cantFail(store->recordChoice(
      id, from.space.points.front().schedule.getText(), "a test"));
  llvm::cantFail(store->recordUse("source", id, 1));
  EXPECT_EQ(llvm::cantFail(transferKernel(to, *target.device, *store, options,
                                          {"source", 3}))
                .measured,
            1);
  // Not from another network.
  TuningModule third(*context, makeOperator(4, 16, 48));
  EXPECT_EQ(llvm::cantFail(transferKernel(third.tasks.front(), *third.device,
                                          *store, options, {"other", 3}))
                .measured,
            0);
}

/// With another baseline, what was fastest for another kernel is taken though
/// it was not chosen there, and what comes of it is no choice.
TEST_F(TunerTest, TransfersByItself) {
  auto store = open("one");
  TuningModule source(*context, makeOperator(8, 16, 32));
  TuningModule target(*context, makeOperator(4, 24, 64));
  TuningTask &from = source.tasks.front(), &to = target.tasks.front();
  int64_t id = llvm::cantFail(
      store->addKernel({from.getClassKey(), from.classText, from.shape}));
  llvm::cantFail(store->recordUse("source", id, 1));
  llvm::cantFail(store->recordChoice(id, "", "a test"));
  StoredMeasurement row;
  row.schedule = from.space.points.back().schedule.getText();
  row.ratio = 1.5;
  row.features = from.space.points.back().features;
  llvm::cantFail(store->record(id, row));

  auto transfer = [&](llvm::StringRef network) {
    return llvm::cantFail(transferKernel(to, *target.device, *store, options,
                                         {network.str(), 3}));
  };
  EXPECT_EQ(transfer("source").measured, 0);
  options.baseline = Baseline::Fixed;
  TunedKernel none = transfer("other");
  EXPECT_EQ(none.measured, 0);
  std::optional<size_t> fixed = to.space.fixed;
  ASSERT_TRUE(fixed);
  EXPECT_EQ(none.schedule, to.space.points[*fixed].schedule);
  EXPECT_EQ(none.ratio, none.baselineRatio);
  options.baseline = Baseline::Loops;
  TunedKernel plain = transfer("other");
  EXPECT_FALSE(plain.schedule);
  EXPECT_GT(plain.plainMs, 0);
  EXPECT_EQ(transfer("source").measured, 1);
  // What it measured is there; the choice is that of the first transfer.
  id = llvm::cantFail(
      store->addKernel({to.getClassKey(), to.classText, to.shape}));
  EXPECT_EQ(llvm::cantFail(store->read(id)).size(), 1u);
  EXPECT_EQ(llvm::cantFail(store->readChoices(to.getClassKey(), "net")),
            (std::vector<std::pair<std::string, std::string>>{{to.shape, ""}}));
}

/// One schedule for all: the nearest that suits.
TEST_F(TunerTest, FixedSchedulesArePanels) {
  for (const std::string &text :
       {makeMatmul(16, 32, 8), makeMatmul(3, 5, 7),
        makeConvolution(8, 16, 7, 1), makeDepthwise(4, 10)}) {
    TuningModule module(*context, text);
    const ScheduleSpace &space = module.tasks.front().space;
    auto isPanels = [](const SchedulePoint &point) {
      return point.strategy == static_cast<unsigned>(CPUStrategy::Panels);
    };
    std::optional<size_t> fixed = space.fixed;
    ASSERT_EQ(fixed.has_value(), llvm::any_of(space.points, isPanels));
    if (fixed)
      EXPECT_TRUE(isPanels(space.points[*fixed]));
  }
}
