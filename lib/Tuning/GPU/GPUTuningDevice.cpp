//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tuning on devices: prepares modules, lists schedules of kernels, names the
// environment of times.
// The counterpart of CPUTuningDevice.cpp: schedules are the attribute
// `kas_gpu.schedule`, and `prepare` runs the passes of the GPU pipelines up to
// where kernels are formed (docs/internals/gpu.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/GPU/GPUTuningDevice.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Codegen/GPU/Strategy/ScheduleSpace.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Support/RunPasses.h"
#include "kas/Tuning/GPU/DeviceRunner.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

namespace {

/// Has no baselines but the cost model: plain loops on a device are no code
/// that anybody would run.
class GPUTuningDevice : public TuningDevice {
public:
  GPUTuningDevice(llvm::StringRef name, const KasRtDeviceInfo &info)
      : name(name), info(info) {}

  llvm::StringRef getAttributeName() const override {
    return KasGPUDialect::scheduleName;
  }
  Error prepare(mlir::ModuleOp module) const override;
  Expected<ScheduleSpace> getSpace(mlir::Operation *op) const override;
  Expected<std::unique_ptr<KernelRunner>>
  createRunner(mlir::ModuleOp module, llvm::StringRef function,
               const MeasureOptions &options) const override {
    return DeviceRunner::create(module, function, name, info, options);
  }
  Expected<TuningEnvironment>
  getEnvironment(const MeasureOptions &options) const override;

private:
  std::string name;
  /// Read once: opening a device takes a worker.
  KasRtDeviceInfo info;
};

} // namespace

/// Kernels must be formed as the pipelines form them for this device, or their
/// keys would be others than those of the networks that are compiled later.
Error GPUTuningDevice::prepare(mlir::ModuleOp module) const {
  auto device = execution::getGPUDevice(module.getContext(), info);
  if (!device)
    return device.takeError();
  GPUFrontOptions front;
  front.device = device->getName().str();
  return runPasses(module, "the module cannot be tuned",
                   [&](mlir::OpPassManager &manager) {
                     buildGPUKernelFormation(manager, front);
                   });
}

/// The space depends on the device's limits (threads of a block, workgroup
/// memory).
Expected<ScheduleSpace> GPUTuningDevice::getSpace(mlir::Operation *op) const {
  auto device = execution::getGPUDevice(op->getContext(), info);
  if (!device)
    return device.takeError();
  return getGPUScheduleSpace(op, *device);
}

Expected<TuningEnvironment>
GPUTuningDevice::getEnvironment(const MeasureOptions &options) const {
  TuningEnvironment environment;
  environment.target = llvm::formatv(
      "{0}; {1} {2}", info.name,
      // The two APIs compile the same kernel to different code.
      info.backend == KAS_RT_CUDA ? "cuda" : "vulkan", info.architecture);
  environment.toolchain = TuningEnvironment::getToolchain();
  // By the clock of the device: launches of the host are left out.
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
