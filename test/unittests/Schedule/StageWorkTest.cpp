//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/MachineModel.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas;
using namespace kas::schedule;

namespace {

/// Eight lanes, as AVX2.
TileTarget getTarget8() {
  Target target;
  target.vectorBits = target.arithmeticBits = 256;
  target.vectorRegisters = 16;
  return TileTarget(target);
}

/// A tensor whose dimensions are indexed by a loop each.
LoopNest::Tensor makeTensor(llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<unsigned> loops,
                            bool isPrepacked = false) {
  LoopNest::Tensor tensor;
  tensor.shape.assign(shape.begin(), shape.end());
  for (unsigned loop : loops)
    tensor.indices.push_back(IndexExpr::getLoop(loop));
  tensor.isPrepacked = isPrepacked;
  return tensor;
}

/// A 1x1 convolution of `channels` to `rows` channels on `pixels` pixels.
LoopNest makePointwise(int64_t rows, int64_t pixels, int64_t channels) {
  LoopNest nest;
  nest.loops = {{rows, false}, {pixels, false}, {channels, true}};
  nest.output = makeTensor({rows, pixels}, {0, 1});
  nest.inputs = {makeTensor({channels, pixels}, {2, 1}),
                 makeTensor({rows, channels}, {0, 2}, /*isPrepacked=*/true)};
  return nest;
}

} // namespace

TEST(StageWork, PointwiseConvolutionsAreTiles) {
  StageWork work = getStageWork(makePointwise(64, 196, 64), getTarget8());
  double tiles =
      work[Work::RowProducts] + work[Work::PanelProducts] + work[Work::Direct];
  // Two vectors of eight products begin in a cycle, that is one in a half.
  EXPECT_GE(tiles, 64.0 * 196 * 64 / 8);
  EXPECT_LE(tiles, 1.5 * 64 * 196 * 64 / 8);
  EXPECT_EQ(work[Work::LoopSums], 0);
  EXPECT_EQ(work[Work::Stage], 1);
}

/// Direct tiles without products where lines stay lines.
TEST(StageWork, ViewsAreCopies) {
  LoopNest nest;
  nest.loops = {{6, false}, {32, false}};
  nest.output = makeTensor({6, 32}, {0, 1});
  nest.inputs = {makeTensor({6, 32}, {0, 1})};
  StageWork work = getStageWork(nest, getTarget8());
  EXPECT_GT(work[Work::Direct], 0);
  nest.inputs = {makeTensor({32, 6}, {1, 0})};
  work = getStageWork(nest, getTarget8());
  EXPECT_EQ(work[Work::Direct], 0);
  EXPECT_EQ(work[Work::CopyPoints], 192);
}

/// The innermost loop of the output has two steps only.
TEST(StageWork, NestsThatNoTileSuitsAreLoops) {
  LoopNest nest;
  nest.loops = {{4, false}, {2, false}, {5, true}};
  nest.output = makeTensor({4, 2}, {0, 1});
  nest.inputs = {makeTensor({2, 4, 5}, {1, 0, 2}),
                 makeTensor({4, 2, 5}, {0, 1, 2}, /*isPrepacked=*/true)};
  StageWork work = getStageWork(nest, getTarget8());
  EXPECT_EQ(work[Work::LoopSums], 40);
  // All of it fits the first-level cache.
  EXPECT_EQ(work[Work::ScatteredL1], 0);
}

/// A turned view of lines at a distance that takes all of them to one set of
/// the first-level cache, or to different ones.
TEST(StageWork, LinesOfOneSetDoNotStay) {
  LoopNest nest;
  nest.loops = {{64, false}, {100, false}};
  nest.output = makeTensor({64, 100}, {0, 1});
  auto getMisses = [&](int64_t distance) {
    nest.inputs = {makeTensor({100, distance}, {1, 0})};
    return getStageWork(nest, getTarget8())[Work::ScatteredL1];
  };
  double apart = getMisses(1040);
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, 1000);
  // Each of the 64 columns loads all of its elements again.
  EXPECT_GE(getMisses(1024), 6400);
  EXPECT_GT(getMisses(512), 2 * apart);
}

/// The rows of an output of 16x16 lie in four sets of the first-level cache,
/// which they fill: that is no reason to load the data and weights again at
/// each point.
TEST(StageWork, TilesThatFillSomeSetsLeaveTheOthers) {
  LoopNest nest;
  nest.loops = {{32, false}, {16, false}, {16, false},
                {32, true},  {3, true},   {3, true}};
  nest.output = makeTensor({32, 16, 16}, {0, 1, 2});
  LoopNest::Tensor data = makeTensor({32, 16, 16}, {3, 1, 2});
  for (unsigned dimension : {1, 2}) {
    IndexExpr &index = data.indices[dimension];
    index.add(IndexExpr::getLoop(3 + dimension), 1);
    index.constant = -1;
    nest.guards.push_back({index, 16});
  }
  nest.inputs = {data, makeTensor({32, 32, 3, 3}, {0, 3, 4, 5},
                                  /*isPrepacked=*/true)};
  Target target;
  target.vectorBits = 512;
  target.arithmeticBits = 256;
  target.vectorRegisters = 32;
  StageWork work = getStageWork(nest, TileTarget(target));
  EXPECT_GT(work[Work::RowProducts], 0);
  // A line holds 16 elements; each is loaded for some tiles at most.
  double lines = (2 * 32 * 256 + 32 * 288) / 16;
  EXPECT_LT(work[Work::ScatteredL1] + work[Work::StreamedL1], 64 * lines);
}

TEST(StageWork, MoreReductionsAreMoreWork) {
  MachineModel model = MachineModel::getUsual("cpu");
  for (int64_t rows : {1, 3, 16, 100})
    for (int64_t pixels : {7, 49, 196}) {
      double before = 0;
      for (int64_t channels : {2, 8, 32, 128, 512}) {
        double time = model.predict(
            getStageWork(makePointwise(rows, pixels, channels), getTarget8()));
        EXPECT_GT(time, before)
            << rows << " rows, " << pixels << " pixels, " << channels;
        before = time;
      }
    }
}

TEST(MachineModel, TimesAddUp) {
  MachineModel model = MachineModel::getUsual("cpu");
  StageWork a, b, sum;
  a[Work::Stage] = sum[Work::Stage] = 1;
  b[Work::LoopSums] = sum[Work::LoopSums] = 1000;
  EXPECT_DOUBLE_EQ(model.predict(a) + model.predict(b), model.predict(sum));
  EXPECT_DOUBLE_EQ(
      model.predict(b),
      1000 * model.milliseconds[static_cast<unsigned>(Work::LoopSums)]);
}

/// Samples of a machine that is three times slower than usual, in some kinds
/// even more so.
static std::vector<WorkSample> makeSamples(const MachineModel &machine) {
  std::vector<WorkSample> samples;
  Random random(1);
  for (unsigned number = 0; number < 300; ++number) {
    WorkSample sample;
    for (unsigned kind = 0; kind < numWorks; ++kind)
      if (random.below(3) == 0)
        sample.work.counts[kind] = std::exp(random.below(1000) * 0.003) * 1e-3 /
                                   machine.milliseconds[kind];
    sample.work[Work::Operator] = 1;
    sample.milliseconds = machine.predict(sample.work);
    samples.push_back(sample);
  }
  return samples;
}

TEST(MachineModel, IsLearnedFromSamples) {
  MachineModel machine = MachineModel::getUsual("cpu");
  for (unsigned kind = 0; kind < numWorks; ++kind)
    machine.milliseconds[kind] *= kind % 2 ? 3 : 5;
  std::vector<WorkSample> samples = makeSamples(machine);
  MachineModel model = fitMachineModel(samples, "cpu");
  for (const WorkSample &sample : samples)
    EXPECT_NEAR(model.predict(sample.work) / sample.milliseconds, 1, 0.05);
  EXPECT_GE(model.margin, 1);
  EXPECT_LE(model.margin, 1.05);
  EXPECT_EQ(model.milliseconds, fitMachineModel(samples, "cpu").milliseconds);
}

TEST(MachineModel, IsTheUsualOneWithoutSamples) {
  EXPECT_EQ(fitMachineModel({}, "cpu").milliseconds,
            MachineModel::getUsual("cpu").milliseconds);
}

TEST(MachineModel, OutliersCountLittle) {
  std::vector<WorkSample> samples = makeSamples(MachineModel::getUsual("cpu"));
  for (size_t index = 0; index < samples.size(); index += 50)
    samples[index].milliseconds *= 20;
  MachineModel model = fitMachineModel(samples, "cpu");
  EXPECT_NEAR(model.predict(samples[1].work) / samples[1].milliseconds, 1, 0.1);
}

TEST(MachineModel, FilesAreReadAsWritten) {
  MachineModel model = MachineModel::getUsual("cpu");
  model.margin = 1.75;
  auto read = MachineModel::parse(model.print(), "cpu");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->milliseconds, model.milliseconds);
  EXPECT_EQ(read->margin, model.margin);
}

static std::string getError(llvm::StringRef text, llvm::StringRef cpu) {
  auto model = MachineModel::parse(text, cpu);
  return model ? "" : llvm::toString(model.takeError());
}

TEST(MachineModel, FilesThatAreNoneAreErrors) {
  std::string text = MachineModel::getUsual("cpu").print();
  EXPECT_EQ(getError(text, "other"), "requires 'other' as 'cpu', got 'cpu'");
  EXPECT_EQ(getError("[]", "cpu"), "requires a JSON object");
  EXPECT_NE(getError("{", "cpu"), "");
  EXPECT_EQ(getError("{\"cpu\":\"cpu\"}", "cpu").substr(0, 9), "requires ");
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return getError(changed, "cpu");
  };
  EXPECT_EQ(replace("\"stage\": ", "\"stage\": -"),
            "requires a number from 0 on as 'stage' of 'milliseconds'");
  EXPECT_EQ(replace("\"margin\": 4", "\"margin\": 0.5"),
            "requires a number from 1 on as 'margin'");
}
