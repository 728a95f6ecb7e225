//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times a schedule on a device in a worker process, and compares results with
// plain loops on the CPU.
// A device that hangs or a driver that crashes takes the worker with it, and
// not the search: even the device's description is read in a worker, because a
// process that has opened CUDA must not fork (the children of the runner open
// it themselves).
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/GPU/DeviceRunner.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/ChildProcess.h"
#include <cstring>
#include <limits>

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

/// `name` is what `Device::open` takes; an error if there is no such device.
Expected<KasRtDeviceInfo> kas::tuning::readDeviceInfo(llvm::StringRef name) {
  Expected<std::string> bytes = runForked([&]() -> Expected<std::string> {
    Expected<Device> device = Device::open(name);
    if (!device)
      return device.takeError();
    // A plain struct of the C interface: its bytes are the answer.
    KasRtDeviceInfo info = device->getInfo();
    return std::string(reinterpret_cast<const char *>(&info), sizeof(info));
  });
  if (!bytes)
    return bytes.takeError();
  KasRtDeviceInfo info;
  assert(bytes->size() == sizeof(info) && "a worker writes all or nothing");
  std::memcpy(&info, bytes->data(), sizeof(info));
  return info;
}

/// Compiles the module as it is, and computes the expected results on the CPU;
/// the device is not opened in this process.
Expected<std::unique_ptr<DeviceRunner>>
DeviceRunner::create(mlir::ModuleOp module, llvm::StringRef function,
                     llvm::StringRef device, const KasRtDeviceInfo &info,
                     const MeasureOptions &options) {
  std::unique_ptr<DeviceRunner> runner(new DeviceRunner(options));
  runner->module = module;
  runner->name = function.str();
  runner->deviceName = device.str();
  runner->info = info;
  Expected<GPUProgram> program = runner->compile();
  if (!program)
    return program.takeError();
  runner->unchanged = std::move(*program);
  if (Error error = runner->computeExpected())
    return error;
  return runner;
}

Expected<GPUProgram> DeviceRunner::compile() const {
  // Needs the description of the device only, not the device.
  return compileForDevice(module, info);
}

/// By plain loops or, where kernels were compared before, by the CPU's tiles,
/// which are many times as fast.
Error DeviceRunner::computeExpected() {
  CPUPipelineOptions pipeline;
  // The reference runs once; threads would have to survive the forks.
  pipeline.threads = 1;
  pipeline.registerTiles = !options.plainLoops;
  auto reference = compileForCPU(module, name, pipeline);
  if (!reference)
    return reference.takeError();
  // Host tensors: the same for the reference and for the device's function.
  signature = reference->getSignature();
  auto made = signature.makeArguments({}, options.seed);
  if (!made)
    return made.takeError();
  arguments = std::move(*made);
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  expected = std::move(*results);
  return (*reference)(arguments, expected);
}

static Expected<std::unique_ptr<DeviceFunction>>
load(const Device &device, const GPUProgram &program, llvm::StringRef name) {
  auto manifest = DeviceManifest::fromJSON(program.manifest);
  if (!manifest)
    return manifest.takeError();
  return DeviceFunction::load(device, *manifest, program.binary, name);
}

/// The least time of one run, and `least`.
/// A run by itself, for alternating with the other function.
static Error timeOnce(DeviceFunction &function, double &least) {
  Expected<Timing> timing = function.measure(
      {.minRuns = 1, .maxRuns = 1, .seconds = 0, .warmUpRuns = 0});
  if (!timing)
    return timing.takeError();
  least = std::min(least, timing->min);
  return Error::success();
}

/// In the worker: opens the device, loads both programs, checks the schedule's
/// results, and times both in alternation.
Expected<StoredMeasurement> DeviceRunner::compileAndTime(int64_t scale) {
  double start = monotonicSeconds();
  Expected<GPUProgram> program = compile();
  if (!program)
    return program.takeError();
  StoredMeasurement measurement;
  // Before the device is opened, which takes long the first time.
  measurement.compileMs = (monotonicSeconds() - start) * 1e3;
  Expected<Device> device = Device::open(deviceName);
  if (!device)
    return device.takeError();
  auto base = load(*device, unchanged, name);
  if (!base)
    return base.takeError();
  auto variant = load(*device, *program, name);
  if (!variant)
    return variant.takeError();
  // Both compute into the same tensors; those of the schedule are checked.
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  // Base first: what it leaves in `results` is overwritten and not checked.
  if (Error error = (*base)->run(arguments, *results))
    return error;
  if (Error error = (*variant)->run(arguments, *results))
    return error;
  Expected<double> error = check(*results);
  if (!error)
    return error.takeError();
  measurement.error = *error;
  measurement.ms = measurement.defaultMs =
      std::numeric_limits<double>::infinity();
  // The first launches of both may compile; they were made above.
  for (int64_t run = 0; run < options.runs * scale; ++run) {
    if (Error error = timeOnce(**base, measurement.defaultMs))
      return error;
    if (Error error = timeOnce(**variant, measurement.ms))
      return error;
  }
  return measurement;
}
