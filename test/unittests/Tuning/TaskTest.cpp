//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningModules.h"
#include "kas/Support/Random.h"
#include "kas/Tuning/ForkedRunner.h"
#include "kas/Tuning/Transfer.h"
#include <cstdlib>

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;

/// Sizes and strides do not make classes; what is computed does.
TEST(Task, ClassesAreWithoutSizes) {
  auto context = makeTuningContext();
  auto getKey = [&](const std::string &text) {
    TuningModule module(*context, text);
    EXPECT_EQ(module.tasks.size(), 1u);
    return module.tasks.front().getClassKey();
  };
  std::string convolution = getKey(makeConvolution(8, 16, 16, 1));
  EXPECT_EQ(convolution, getKey(makeConvolution(16, 32, 14, 1)));
  EXPECT_EQ(convolution, getKey(makeConvolution(16, 32, 14, 2)));
  EXPECT_NE(convolution, getKey(makeMatmul(16, 16, 16)));
  EXPECT_NE(getKey(makeDepthwise(8, 18)), getKey(makeMatmul(16, 16, 16)));
  EXPECT_EQ(getKey(makeOperator(8, 16, 32)), getKey(makeOperator(4, 8, 64)));
}

static std::string replaceAll(std::string text, llvm::StringRef from,
                              llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Neither names of values, functions and operators nor notes are part of a
/// kernel.
TEST(Task, KeysAreWithoutNames) {
  auto context = makeTuningContext();
  auto expectEqual = [&](const std::string &text, const std::string &renamed) {
    ASSERT_NE(text, renamed);
    TuningModule one(*context, text), two(*context, renamed);
    ASSERT_EQ(one.tasks.size(), 1u);
    ASSERT_EQ(two.tasks.size(), 1u);
    EXPECT_EQ(one.tasks[0].classText, two.tasks[0].classText);
    EXPECT_EQ(one.tasks[0].shape, two.tasks[0].shape);
  };
  std::string line = makeOperator(8, 16, 32);
  expectEqual(line, replaceAll(line, "@conv1d", "@other"));
  expectEqual(line, replaceAll(line, "%c", "%channel"));
  expectEqual(line, replaceAll(line, "Cin", "Depth"));
  std::string image = makeConvolution(8, 16, 16, 1);
  expectEqual(image, replaceAll(image, "%p", "%padded"));
  expectEqual(image, replaceAll(image, "chw {", "chw {kas.layer = \"a.1\", "));
}

/// That an input is padded makes a class, and which one; where operands come
/// from does not.
TEST(Task, ClassesEndAtOperands) {
  auto context = makeTuningContext();
  std::string square = makeMatmul(16, 16, 16);
  TuningModule two(*context, square);
  TuningModule one(*context, replaceAll(square, "ins(%x, %w", "ins(%x, %x"));
  ASSERT_EQ(one.tasks.size(), 1u);
  ASSERT_EQ(two.tasks.size(), 1u);
  EXPECT_EQ(one.tasks[0].classText, two.tasks[0].classText);
  EXPECT_NE(one.tasks[0].shape, two.tasks[0].shape);

  std::string image = makeConvolution(8, 16, 16, 1);
  TuningModule padded(*context, image);
  std::string text = replaceAll(image, "%x: tensor<1x8x16x16xf32>",
                                "%x: tensor<1x8x16x16xf32>, "
                                "%q: tensor<1x8x18x18xf32>");
  TuningModule plain(*context, replaceAll(text, "ins(%p, %w", "ins(%q, %w"));
  ASSERT_EQ(padded.tasks.size(), 1u);
  ASSERT_EQ(plain.tasks.size(), 1u);
  EXPECT_NE(plain.tasks[0].classText, padded.tasks[0].classText);
}

/// Equal kernels of a network are one task, and other shapes others.
TEST(Task, CountsUses) {
  auto context = makeTuningContext();
  std::string layer = R"(
  %{0} = linalg.matmul ins(%{1}, %w : tensor<32x32xf32>, tensor<32x32xf32>)
    outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>)";
  std::string text = R"(
func.func @forward(%x: tensor<32x32xf32>, %w: tensor<32x32xf32>)
    -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>)
    -> tensor<32x32xf32>)" +
                     llvm::formatv(layer.c_str(), "y", "x").str() +
                     llvm::formatv(layer.c_str(), "z", "y").str() +
                     "\n  return %z : tensor<32x32xf32>\n}";
  TuningModule module(*context, text);
  ASSERT_EQ(module.tasks.size(), 1u);
  EXPECT_EQ(module.tasks.front().uses.size(), 2u);
}

/// Nothing can be measured of sizes that are not known, nor of other elements.
TEST(Task, LeavesOutWhatCannotBeMeasured) {
  auto context = makeTuningContext();
  for (llvm::StringRef type : {"?x16xf32", "16x16xf64"}) {
    std::string text = makeMatmul(16, 16, 16);
    for (size_t at = 0; (at = text.find("16x16xf32", at)) != text.npos;
         at += type.size())
      text.replace(at, 9, type.str());
    if (type.contains("f64"))
      for (size_t at = 0; (at = text.find(" f32", at)) != text.npos; ++at)
        text.replace(at, 4, " f64");
    else
      text.replace(text.find("tensor.empty() :"), 16, "tensor.empty(%n) :");
    if (type.contains('?'))
      text.insert(text.find("%zero ="),
                  "%c = arith.constant 0 : index\n"
                  "  %n = tensor.dim %x, %c : tensor<?x16xf32>\n  ");
    TuningModule module(*context, text);
    EXPECT_TRUE(module.tasks.empty()) << text;
  }
}

/// Points of a space are valid by construction: random ones are compiled, and
/// compute what plain loops do.
TEST(ScheduleSpace, RandomPointsAreValidAndEqual) {
  auto context = makeTuningContext();
  bool isSlow = std::getenv("KAS_SLOW_TESTS");
  std::vector<std::string> texts = {
      makeMatmul(24, 40, 12), makeConvolution(8, 16, 14, 1),
      makeConvolution(3, 16, 15, 2), makeDepthwise(12, 18),
      makeOperator(6, 16, 40)};
  if (isSlow)
    texts.insert(texts.end(),
                 {makeMatmul(64, 64, 64), makeMatmul(33, 17, 5),
                  makeConvolution(16, 32, 7, 1), makeConvolution(5, 24, 28, 2),
                  makeConvolution(16, 16, 56, 1), makeDepthwise(32, 30),
                  makeOperator(16, 32, 56), makeOperator(8, 8, 17)});
  uint64_t seed = 1;
  std::map<CPUStrategy, int> strategies;
  for (const std::string &text : texts) {
    TuningModule module(*context, text);
    ASSERT_EQ(module.tasks.size(), 1u);
    TuningTask &task = module.tasks.front();
    MeasureOptions options;
    options.runs = 1;
    options.limitSeconds = 120;
    auto runner = llvm::cantFail(
        ForkedRunner::create(*task.module, taskFunctionName, options));
    Random random(seed++);
    for (int i = 0; i < (isSlow ? 60 : 3); ++i) {
      // Each strategy as often as the others.
      auto strategy = static_cast<CPUStrategy>(i % 3);
      std::vector<CPUScheduleAttr> points;
      for (const PlannedSchedule &point : module.getSpace().points)
        if (point.schedule.getStrategy() == strategy)
          points.push_back(point.schedule);
      if (points.empty())
        continue;
      CPUScheduleAttr schedule = points[random.below(points.size())];
      StoredMeasurement measured =
          runner->measure([&] { module.device->set(task.anchor, schedule); });
      std::string name;
      llvm::raw_string_ostream(name) << mlir::Attribute(schedule);
      EXPECT_EQ(measured.failure, "") << name << " of seed " << seed - 1 << "\n"
                                      << text;
      EXPECT_LE(measured.error, options.tolerance) << name;
      ++strategies[strategy];
    }
  }
  for (CPUStrategy strategy :
       {CPUStrategy::Panels, CPUStrategy::Direct, CPUStrategy::RowVectors})
    EXPECT_GT(strategies[strategy], 1);
}

/// What the cost model chooses is a point, too.
TEST(ScheduleSpace, HasNoDuplicates) {
  auto context = makeTuningContext();
  TuningModule module(*context, makeConvolution(8, 16, 14, 1));
  ScheduleSpace space = module.getSpace();
  for (auto [index, point] : llvm::enumerate(space.points))
    EXPECT_EQ(space.find(point.schedule), index);
}

namespace {

struct Adaptation {
  llvm::StringRef recorded;
  ScheduleFit fit;
  llvm::StringRef adapted;
};

class TransferTest : public testing::Test {
protected:
  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
  ScheduleSpace space;

  CPUScheduleAttr make(CPUStrategy strategy, const ScheduleNumbers &numbers) {
    return getSchedule(context.get(), strategy, numbers);
  }
  void SetUp() override {
    context->loadDialect<KasCPUDialect>();
    // 24 rows, 60 columns, a reduction of 12: lanes of 4.
    space.rows = space.innermostRows = 24;
    space.columns = space.innermostColumns = 60;
    space.outermostReduction = 12;
    space.lanes = 4;
    for (int64_t tile : {12, 20, 60})
      for (int64_t depth : {1, 2, 3, 4, 6, 12})
        for (int64_t rows = 1; rows <= 9; ++rows)
          for (int64_t vectors = 1; vectors <= 4; ++vectors)
            space.points.push_back(
                {make(CPUStrategy::Panels, {rows, 0, vectors, tile, depth})});
    for (int64_t columns : {1, 3, 5, 6})
      space.points.push_back(
          {make(CPUStrategy::RowVectors, {0, columns, 2, 0, 0})});
  }
  void expect(CPUStrategy strategy, const ScheduleNumbers &recorded,
              ScheduleFit fit, const ScheduleNumbers &adapted) {
    AdaptedSchedule result = adaptSchedule(make(strategy, recorded), space);
    EXPECT_EQ(result.fit, fit);
    ASSERT_TRUE(result.schedule);
    EXPECT_EQ(getNumbers(result.schedule), adapted);
  }
};

} // namespace

TEST_F(TransferTest, KeepsExactFactors) {
  expect(CPUStrategy::Panels, {6, 0, 3, 12, 4}, ScheduleFit::Exact,
         {6, 0, 3, 12, 4});
}

TEST_F(TransferTest, TakesTheLargestDivisor) {
  // 14 does not divide the columns, 8 not the reduction, 7 rows not 24.
  expect(CPUStrategy::Panels, {7, 0, 1, 14, 8}, ScheduleFit::Divisors,
         {6, 0, 1, 12, 6});
}

TEST_F(TransferTest, MasksWhatNoDivisorIsNear) {
  // Of 15 vectors no divisor between 3 and 4 but 3 is one; of 24 rows 5 has 4.
  expect(CPUStrategy::Panels, {5, 0, 4, 60, 12}, ScheduleFit::Divisors,
         {4, 0, 3, 60, 12});
  // 5 vectors of a tile of 20: neither 2 nor 3 nor 4 divide, 2 is masked.
  expect(CPUStrategy::Panels, {6, 0, 2, 20, 12}, ScheduleFit::Masked,
         {6, 0, 2, 20, 12});
}

TEST_F(TransferTest, SaysWhatIsInvalid) {
  AdaptedSchedule direct =
      adaptSchedule(make(CPUStrategy::Direct, {4, 2, 2, 0, 0}), space);
  EXPECT_EQ(direct.fit, ScheduleFit::Invalid);
  EXPECT_FALSE(direct.schedule);
  // Tiles here have at least 12 columns.
  EXPECT_EQ(
      adaptSchedule(make(CPUStrategy::Panels, {4, 0, 2, 8, 1}), space).fit,
      ScheduleFit::Invalid);
}

/// Whatever was recorded for one kernel gives a point of the other's space, or
/// is invalid; its own schedules stay as they are.
TEST(Transfer, AdaptedSchedulesArePoints) {
  auto context = makeTuningContext();
  TuningModule one(*context, makeConvolution(8, 16, 14, 1));
  TuningModule other(*context, makeConvolution(16, 48, 28, 2));
  ScheduleSpace from = one.getSpace();
  ScheduleSpace to = other.getSpace();
  int64_t valid = 0;
  for (const PlannedSchedule &point : from.points) {
    AdaptedSchedule same = adaptSchedule(point.schedule, from);
    ASSERT_TRUE(same.schedule);
    AdaptedSchedule adapted = adaptSchedule(point.schedule, to);
    EXPECT_EQ(adapted.fit == ScheduleFit::Invalid, !adapted.schedule);
    if (adapted.schedule) {
      EXPECT_TRUE(to.find(adapted.schedule));
      ++valid;
    }
  }
  EXPECT_GT(valid * 2, static_cast<int64_t>(from.points.size()));
}
