//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningModules.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Support/Random.h"
#include "kas/Tuning/ForkedRunner.h"
#include <cstdlib>
#include <set>

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
      std::vector<ScheduleAttrInterface> points;
      for (const SchedulePoint &point : task.space.points)
        if (point.strategy == static_cast<unsigned>(strategy))
          points.push_back(point.schedule);
      if (points.empty())
        continue;
      ScheduleAttrInterface schedule = points[random.below(points.size())];
      StoredMeasurement measured =
          runner->measure([&] { module.device->set(task.anchor, schedule); });
      std::string name = schedule.getText();
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
  std::set<std::string> seen;
  for (const SchedulePoint &point : space.points)
    EXPECT_TRUE(seen.insert(point.schedule.getText()).second);
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

  /// Rows, columns, vectors, tile, depth.
  using Numbers = std::array<int64_t, 5>;

  CPUScheduleAttr make(CPUStrategy strategy, const Numbers &numbers) {
    return CPUScheduleAttr::get(context.get(), strategy, numbers[0], numbers[1],
                                numbers[2], numbers[3], numbers[4]);
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
            space.add(
                make(CPUStrategy::Panels, {rows, 0, vectors, tile, depth}));
    for (int64_t columns : {1, 3, 5, 6})
      space.add(make(CPUStrategy::RowVectors, {0, columns, 2, 0, 0}));
  }
  void expect(CPUStrategy strategy, const Numbers &recorded, ScheduleFit fit,
              const Numbers &adapted) {
    AdaptedPoint result = space.adapt(make(strategy, recorded));
    EXPECT_EQ(result.fit, fit);
    EXPECT_EQ(space.points[result.point].schedule, make(strategy, adapted));
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
  EXPECT_EQ(space.adapt(make(CPUStrategy::Direct, {4, 2, 2, 0, 0})).fit,
            ScheduleFit::Invalid);
  // Tiles here have at least 12 columns.
  EXPECT_EQ(space.adapt(make(CPUStrategy::Panels, {4, 0, 2, 8, 1})).fit,
            ScheduleFit::Invalid);
  EXPECT_EQ(space.adapt(nullptr).fit, ScheduleFit::Invalid);
  // Schedules of another device have other strategies.
  context->loadDialect<KasGPUDialect>();
  auto other = GPUScheduleAttr::get(context.get(), GPUStrategy::Direct,
                                    /*threads=*/4, nullptr, nullptr, 0, 0, 1);
  EXPECT_EQ(space.adapt(other).fit, ScheduleFit::Invalid);
}

/// Schedules of all devices are read alike.
TEST_F(TransferTest, KnobsHaveNames) {
  context->loadDialect<KasGPUDialect>();
  using Knobs = llvm::SmallVector<ScheduleKnob>;
  ScheduleAttrInterface schedule = make(CPUStrategy::Panels, {6, 0, 3, 12, 4});
  EXPECT_EQ(schedule.getKnobs(), (Knobs{{"rows", 6},
                                        {"columns", 0},
                                        {"vectors", 3},
                                        {"tile", 12},
                                        {"depth", 4}}));
  EXPECT_EQ(schedule.getText(),
            "#kas_cpu.schedule<strategy = panels, rows = 6, vectors = 3, tile "
            "= 12, depth = 4>");
  schedule = GPUScheduleAttr::get(
      context.get(), GPUStrategy::Direct, /*threads=*/64,
      mlir::DenseI64ArrayAttr::get(context.get(), {1, 4}), nullptr, 0, 0, 1);
  EXPECT_EQ(schedule.getKnobs(), (Knobs{{"threads", 64},
                                        {"depth", 0},
                                        {"stages", 1},
                                        {"padding", 0},
                                        {"tile", 1},
                                        {"tile", 4}}));
  EXPECT_EQ(ScheduleAttrInterface().getText(), "");
}

/// What was recorded for one kernel gives a point of the same strategy in the
/// other's space, or is invalid; the kernel's own schedules always give one.
TEST(Transfer, AdaptedSchedulesArePoints) {
  auto context = makeTuningContext();
  TuningModule one(*context, makeConvolution(8, 16, 14, 1));
  TuningModule other(*context, makeConvolution(16, 48, 28, 2));
  ScheduleSpace from = one.getSpace();
  ScheduleSpace to = other.getSpace();
  int64_t valid = 0;
  for (const SchedulePoint &point : from.points) {
    ASSERT_NE(from.adapt(point.schedule).fit, ScheduleFit::Invalid);
    AdaptedPoint adapted = to.adapt(point.schedule);
    if (adapted.fit == ScheduleFit::Invalid)
      continue;
    ASSERT_LT(adapted.point, to.points.size());
    EXPECT_EQ(to.points[adapted.point].strategy, point.strategy);
    ++valid;
  }
  EXPECT_GT(valid * 2, static_cast<int64_t>(from.points.size()));
}
