//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every point of the space of schedules of a GPU computes what the reference
// does.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Codegen/GPU/Strategy/ScheduleSpace.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Support/Random.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace kas;
using namespace kas::codegen;
using namespace kas::test;
using namespace mlir;

namespace {

/// Draws a strategy that suits, then one of its points, for each operator.
struct DrawSchedules : PassWrapper<DrawSchedules, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DrawSchedules)

  DrawSchedules(std::string device, GPUPrecision precision,
                std::set<GPUStrategy> &drawn)
      : device(std::move(device)), precision(precision), drawn(drawn) {}

  void runOnOperation() override {
    Random random(0);
    auto chosen = getGPUDevice(&getContext(), device);
    ASSERT_TRUE(bool(chosen)) << llvm::toString(chosen.takeError());
    getOperation().walk([&](ApplyOp apply) {
      auto space = getGPUScheduleSpace(apply, *chosen, precision);
      ASSERT_TRUE(bool(space)) << llvm::toString(space.takeError());
      ASSERT_FALSE(space->points.empty());
      std::map<GPUStrategy, std::vector<GPUScheduleAttr>> strategies;
      std::set<std::string> seen;
      for (const SchedulePoint &point : space->points) {
        EXPECT_GT(point.cost.first, 0);
        EXPECT_TRUE(seen.insert(point.schedule.getText()).second);
        auto schedule = cast<GPUScheduleAttr>(point.schedule);
        strategies[schedule.getStrategy()].push_back(schedule);
      }
      const auto &[strategy, points] =
          *std::next(strategies.begin(),
                     static_cast<ptrdiff_t>(random.below(strategies.size())));
      drawn.insert(strategy);
      apply->setAttr(KasGPUDialect::scheduleName,
                     points[random.below(points.size())]);
    });
  }

  std::string device;
  GPUPrecision precision;
  std::set<GPUStrategy> &drawn;
};

/// Returns the strategies that were drawn.
std::set<GPUStrategy> checkPoints(StringRef device, GPUPrecision precision,
                                  unsigned count) {
  std::set<GPUStrategy> drawn;
  CPUPipelineOptions serial;
  serial.threads = 1;
  bool isRounded = precision != GPUPrecision::F32;
  forEachBatch(count, {}, [&](Batch &batch) {
    batch.check(
        [&](OpPassManager &manager) {
          manager.addPass(createKasSpecializePass());
          manager.addPass(createKasRFactorPass());
          manager.addPass(
              std::make_unique<DrawSchedules>(device.str(), precision, drawn));
          buildGPUFrontHalf(manager,
                            {.device = device.str(), .precision = precision});
          manager.addPass(createKasGPUToCPULoopsPass());
        },
        {.pipeline = serial,
         .comparison = isRounded ? compareRounded("f16") : Comparison()});
  });
  return drawn;
}

/// Lets threads share the steps of each operator that has a sum for it, with a
/// depth, a tile and threads that are drawn.
struct ShareSteps : PassWrapper<ShareSteps, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShareSteps)

  explicit ShareSteps(unsigned &numShared) : numShared(numShared) {}

  void runOnOperation() override {
    Random random(0);
    getOperation().walk([&](ApplyOp apply) {
      if (GPUScheduleAttr schedule = draw(apply, random)) {
        apply->setAttr(KasGPUDialect::scheduleName, schedule);
        ++numShared;
      }
    });
  }

private:
  /// Null where the operator has no such sum, or a maximum.
  GPUScheduleAttr draw(ApplyOp apply, Random &random) {
    Coordinates coordinates = getCoordinates(apply.getOperator());
    SmallVector<int64_t> depths;
    for (int64_t depth : {2, 4, 8, 16, 32})
      if (llvm::any_of(
              ArrayRef(coordinates.axes).drop_front(coordinates.numOutputs),
              [&](const Axis &axis) { return axis.extent % depth == 0; }))
        depths.push_back(depth);
    if (depths.empty() || coordinates.hasMax())
      return nullptr;
    SmallVector<int64_t> tile(coordinates.numOutputs, 1);
    for (int64_t points = 1; int64_t &size : tile)
      if (points < 8)
        points *= size = int64_t(1) << random.below(3);
    DenseI64ArrayAttr tiles;
    if (!tile.empty())
      tiles = DenseI64ArrayAttr::get(&getContext(), tile);
    return GPUScheduleAttr::get(
        &getContext(), GPUStrategy::Direct, int64_t(32) << random.below(3),
        tiles, DenseI64ArrayAttr(), depths[random.below(depths.size())],
        /*padding=*/0, /*stages=*/1);
  }

  unsigned &numShared;
};

using LoweringPaths = std::set<GPUStrategy>;

} // namespace

TEST(GPUScheduleSpace, NeedsAConcreteOperatorOrAContraction) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(R"(
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
})",
                                            &context);
  ASSERT_TRUE(module);
  auto device = llvm::cantFail(getGPUDevice(&context, "vulkan"));
  unsigned count = 0;
  module->walk([&](linalg::GenericOp op) {
    auto space = getGPUScheduleSpace(op, device);
    ASSERT_FALSE(bool(space));
    EXPECT_EQ(llvm::toString(space.takeError()),
              "expected a concrete operator or a contraction on tensors, "
              "got 'linalg.generic'");
    ++count;
  });
  EXPECT_EQ(count, 1u);
}

TEST(GPUScheduleSpace, PointsForVulkanAgreeWithTheReference) {
  EXPECT_EQ(checkPoints("vulkan", GPUPrecision::F32, getNumOperators(50, 1000)),
            (LoweringPaths{GPUStrategy::Direct, GPUStrategy::Staged}));
}

TEST(GPUScheduleSpace, PointsForNVIDIAAgreeWithTheReference) {
  EXPECT_EQ(checkPoints("sm_90", GPUPrecision::F16, getNumOperators(50, 1000)),
            (LoweringPaths{GPUStrategy::Direct, GPUStrategy::Staged,
                           GPUStrategy::TensorCore}));
}

// Sums of a tile by several threads, at all edges and with guards. No two of
// them meet in workgroup memory without a barrier.
TEST(GPUScheduleSpace, SharedStepsAgreeWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  unsigned count = getNumOperators(50, 1000), numShared = 0;
  for (StringRef device : {"sm_90", "vulkan"})
    forEachBatch(count, {}, [&](Batch &batch) {
      batch.check(
          [&](OpPassManager &manager) {
            manager.addPass(createKasSpecializePass());
            manager.addPass(createKasRFactorPass());
            manager.addPass(std::make_unique<ShareSteps>(numShared));
            buildGPUFrontHalf(manager, {.device = device.str()});
            manager.addPass(createKasGPUToCPULoopsPass({/*checkRaces=*/true}));
          },
          {.pipeline = serial});
    });
  RecordProperty("shared", numShared);
  EXPECT_GE(numShared, count / 4);
}
