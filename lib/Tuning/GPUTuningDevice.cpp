//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Device.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/ScheduleSpace.h"
#include "kas/Pipelines/GPU.h"
#include "kas/Support/RunPasses.h"
#include "kas/Tuning/DeviceRunner.h"
#include "kas/Tuning/TuningDevice.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

static std::vector<int64_t> getNumbers(GPUScheduleAttr schedule) {
  std::vector<int64_t> numbers = {schedule.getThreads(), schedule.getDepth(),
                                  schedule.getStages(), schedule.getPadding()};
  for (mlir::DenseI64ArrayAttr array :
       {schedule.getTile(), schedule.getBlock()})
    if (array)
      numbers.insert(numbers.end(), array.asArrayRef().begin(),
                     array.asArrayRef().end());
  return numbers;
}

static float getLog(double value) {
  return static_cast<float>(std::log2(std::max(1e-3, value)));
}

/// The strategy, the logarithms of the schedule's numbers, of its points and
/// bytes, and of the cost model's cycles, also relative to the least of the
/// space.
static std::vector<float> getFeatures(const PlannedGPUSchedule &point,
                                      double leastCycles) {
  GPUScheduleAttr schedule = point.schedule;
  std::vector<float> features;
  for (GPUStrategy strategy : {GPUStrategy::Direct, GPUStrategy::Staged,
                               GPUStrategy::TensorCore, GPUStrategy::Warpgroup})
    features.push_back(schedule.getStrategy() == strategy);
  auto getPoints = [](mlir::DenseI64ArrayAttr array) {
    double points = 1;
    if (array)
      for (int64_t entry : array.asArrayRef())
        points *= static_cast<double>(entry);
    return points;
  };
  // Neighbours in memory are along the last coordinate.
  mlir::DenseI64ArrayAttr tile = schedule.getTile();
  int64_t last = tile && !tile.empty() ? tile.asArrayRef().back() : 1;
  for (double number :
       {static_cast<double>(schedule.getThreads()), getPoints(tile),
        static_cast<double>(last), getPoints(schedule.getBlock()),
        static_cast<double>(schedule.getDepth()),
        static_cast<double>(schedule.getStages()),
        static_cast<double>(schedule.getSharedBytes()), point.cycles,
        point.cycles / leastCycles})
    features.push_back(getLog(number));
  return features;
}

namespace {

class GPUKernelSpace : public KernelSpace {
public:
  explicit GPUKernelSpace(std::vector<PlannedGPUSchedule> schedules);
  AdaptedPoint adapt(mlir::Attribute recorded) const override;
  std::unique_ptr<KernelSpace> forgetCostModel() const override;

private:
  std::vector<PlannedGPUSchedule> schedules;
};

class GPUTuningDevice : public TuningDevice {
public:
  GPUTuningDevice(llvm::StringRef name, const KasRtDeviceInfo &info)
      : name(name), info(info) {}

  llvm::StringRef getAttributeName() const override {
    return KasGPUDialect::scheduleName;
  }
  Error prepare(mlir::ModuleOp module) const override;
  Expected<std::unique_ptr<KernelSpace>>
  getSpace(mlir::Operation *op) const override;
  Expected<std::unique_ptr<KernelRunner>>
  createRunner(mlir::ModuleOp module, llvm::StringRef function,
               const MeasureOptions &options) const override {
    return DeviceRunner::create(module, function, name, info, options);
  }
  Expected<TuningEnvironment>
  getEnvironment(const MeasureOptions &options) const override;

private:
  std::string name;
  KasRtDeviceInfo info;
};

} // namespace

GPUKernelSpace::GPUKernelSpace(std::vector<PlannedGPUSchedule> given)
    : schedules(std::move(given)) {
  double least = schedules.front().cycles;
  for (const PlannedGPUSchedule &point : schedules)
    least = std::min(least, point.cycles);
  for (const PlannedGPUSchedule &point : schedules)
    points.push_back({point.schedule,
                      static_cast<unsigned>(point.schedule.getStrategy()),
                      getNumbers(point.schedule),
                      {point.cycles, 0},
                      getFeatures(point, least)});
}

/// Numbers are mostly powers of two: the nearest point is the one with the
/// least sum of the differences of their logarithms.
AdaptedPoint GPUKernelSpace::adapt(mlir::Attribute recorded) const {
  auto schedule = llvm::dyn_cast<GPUScheduleAttr>(recorded);
  if (!schedule)
    return {};
  std::vector<int64_t> wanted = getNumbers(schedule);
  auto strategy = static_cast<unsigned>(schedule.getStrategy());
  AdaptedPoint best;
  double bestDistance = 0;
  for (auto [index, point] : llvm::enumerate(points)) {
    if (point.strategy != strategy || point.numbers.size() != wanted.size())
      continue;
    double distance = 0;
    for (auto [a, b] : llvm::zip_equal(wanted, point.numbers))
      distance += std::abs(std::log2(static_cast<double>(a + 1)) -
                           std::log2(static_cast<double>(b + 1)));
    if (best.fit != ScheduleFit::Invalid && distance >= bestDistance)
      continue;
    best = {distance == 0 ? ScheduleFit::Exact : ScheduleFit::Masked, index};
    bestDistance = distance;
  }
  return best;
}

std::unique_ptr<KernelSpace> GPUKernelSpace::forgetCostModel() const {
  std::vector<PlannedGPUSchedule> alike = schedules;
  for (PlannedGPUSchedule &point : alike)
    point.cycles = 1;
  return std::make_unique<GPUKernelSpace>(std::move(alike));
}

Error GPUTuningDevice::prepare(mlir::ModuleOp module) const {
  return runPasses(
      module, "the module cannot be tuned",
      [](mlir::OpPassManager &manager) { buildGPUKernelFormation(manager); });
}

Expected<std::unique_ptr<KernelSpace>>
GPUTuningDevice::getSpace(mlir::Operation *op) const {
  auto device = execution::getGPUDevice(op->getContext(), info);
  if (!device)
    return device.takeError();
  auto schedules = getGPUScheduleSpace(op, *device);
  if (!schedules)
    return schedules.takeError();
  return std::make_unique<GPUKernelSpace>(std::move(*schedules));
}

Expected<TuningEnvironment>
GPUTuningDevice::getEnvironment(const MeasureOptions &options) const {
  TuningEnvironment environment;
  environment.target = llvm::formatv(
      "{0}; {1} {2}", info.name,
      info.backend == KAS_RT_CUDA ? "cuda" : "vulkan", info.architecture);
  environment.toolchain = TuningEnvironment::getToolchain();
  environment.protocol = llvm::formatv(
      "least time of {0} runs by the device's clock, in turn with no schedule",
      options.runs);
  return environment;
}

Expected<std::unique_ptr<TuningDevice>>
kas::tuning::makeGPUTuningDevice(llvm::StringRef name) {
  Expected<KasRtDeviceInfo> info = readDeviceInfo(name);
  if (!info)
    return info.takeError();
  return std::make_unique<GPUTuningDevice>(name, *info);
}
