//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/CPU/ScheduleSpace.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Support/RunPasses.h"
#include "kas/Tuning/ForkedRunner.h"
#include "kas/Tuning/ScheduleModel.h"
#include "kas/Tuning/Transfer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

namespace {

class CPUKernelSpace : public KernelSpace {
public:
  explicit CPUKernelSpace(ScheduleSpace given);
  AdaptedPoint adapt(mlir::Attribute recorded) const override;
  std::optional<size_t> getFixed() const override;
  double getLoopDistance(llvm::ArrayRef<float> features) const override {
    return kas::tuning::getLoopDistance(features, points.front().features);
  }
  std::unique_ptr<KernelSpace> forgetCostModel() const override;

private:
  ScheduleSpace space;
};

class CPUTuningDevice : public TuningDevice {
public:
  explicit CPUTuningDevice(unsigned threads) : threads(threads) {}

  llvm::StringRef getAttributeName() const override {
    return KasCPUDialect::scheduleName;
  }
  bool hasBaselines() const override { return true; }
  Error prepare(mlir::ModuleOp module) const override;
  Expected<std::unique_ptr<KernelSpace>>
  getSpace(mlir::Operation *op) const override;
  Expected<std::unique_ptr<KernelRunner>>
  createRunner(mlir::ModuleOp module, llvm::StringRef function,
               const MeasureOptions &options) const override {
    return ForkedRunner::create(module, function, options);
  }
  Expected<TuningEnvironment>
  getEnvironment(const MeasureOptions &options) const override;

private:
  unsigned threads;
};

} // namespace

CPUKernelSpace::CPUKernelSpace(ScheduleSpace given) : space(std::move(given)) {
  for (const PlannedSchedule &point : space.points) {
    ScheduleNumbers numbers = getNumbers(point.schedule);
    points.push_back(
        {point.schedule,
         static_cast<unsigned>(point.schedule.getStrategy()),
         {numbers.begin(), numbers.end()},
         {static_cast<double>(point.time), static_cast<double>(point.stepTime)},
         getFeatures(space, point)});
  }
}

AdaptedPoint CPUKernelSpace::adapt(mlir::Attribute recorded) const {
  auto schedule = llvm::dyn_cast<CPUScheduleAttr>(recorded);
  if (!schedule)
    return {};
  AdaptedSchedule adapted = adaptSchedule(schedule, space);
  if (adapted.fit == ScheduleFit::Invalid)
    return {};
  std::optional<size_t> point = find(adapted.schedule);
  assert(point && "adapted schedules are points of the space");
  return {adapted.fit, *point};
}

/// Panels of two vectors of elements that lie together, over all of the
/// reduction, in tiles of six rows; the nearest of them that suits.
std::optional<size_t> CPUKernelSpace::getFixed() const {
  constexpr int64_t rows = 6, vectors = 2;
  int64_t width = vectors * space.lanes;
  auto getDistance = [&](CPUScheduleAttr schedule) {
    int64_t tile = schedule.getTile();
    // A tile that is too wide is better than one that is too narrow.
    return std::tuple(tile < width, std::abs(tile - width),
                      -schedule.getDepth(),
                      std::abs(schedule.getVectors() - vectors),
                      std::abs(schedule.getRows() - rows));
  };
  CPUScheduleAttr nearest;
  for (const PlannedSchedule &point : space.points)
    if (point.schedule.getStrategy() == CPUStrategy::Panels &&
        (!nearest || getDistance(point.schedule) < getDistance(nearest)))
      nearest = point.schedule;
  return nearest ? find(nearest) : std::nullopt;
}

std::unique_ptr<KernelSpace> CPUKernelSpace::forgetCostModel() const {
  ScheduleSpace alike = space;
  for (PlannedSchedule &point : alike.points) {
    point.time = 1;
    point.stepTime = 0;
  }
  return std::make_unique<CPUKernelSpace>(std::move(alike));
}

Error CPUTuningDevice::prepare(mlir::ModuleOp module) const {
  return runPasses(
      module, "the module cannot be tuned", [](mlir::OpPassManager &manager) {
        manager.addPass(createAttachCPUTarget());
        manager.addPass(createKasSpecializePass());
        manager.addPass(createKasRFactorPass());
        manager.addNestedPass<mlir::func::FuncOp>(createFuseElementwise());
      });
}

Expected<std::unique_ptr<KernelSpace>>
CPUTuningDevice::getSpace(mlir::Operation *op) const {
  ScheduleSpaceOptions options;
  options.threads = threads;
  auto space = getScheduleSpace(op, options);
  if (!space)
    return space.takeError();
  return std::make_unique<CPUKernelSpace>(std::move(*space));
}

Expected<TuningEnvironment>
CPUTuningDevice::getEnvironment(const MeasureOptions &options) const {
  Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  return TuningEnvironment::get(*target, options.getProtocol());
}

std::unique_ptr<TuningDevice>
kas::tuning::makeCPUTuningDevice(unsigned threads) {
  return std::make_unique<CPUTuningDevice>(threads);
}

std::optional<size_t> KernelSpace::find(mlir::Attribute schedule) const {
  auto found = llvm::find_if(points, [&](const SchedulePoint &point) {
    return point.schedule == schedule;
  });
  if (found == points.end())
    return std::nullopt;
  return std::distance(points.begin(), found);
}
