//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/Features.h"
#include "kas/Support/OutputFile.h"
#include "kas/Support/Version.h"

using namespace kas;
using namespace kas::execution;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

bool kas::isRuntimeDevice(StringRef name) {
  StringRef word = name.split(':').first;
  return word == "cuda" || word == "vulkan";
}

bool kas::isEmulator(StringRef name) {
  return name.split(':').first == "emulator";
}

//===----------------------------------------------------------------------===//
// The CPU
//===----------------------------------------------------------------------===//

namespace {
class OnCPU : public LoadedFunction {
public:
  explicit OnCPU(CompiledFunction function) : function(std::move(function)) {}

  Error run(llvm::ArrayRef<Tensor> arguments,
            llvm::MutableArrayRef<Tensor> results) override {
    if (Error error = function.prepack(arguments))
      return error;
    return function(arguments, results);
  }

  Expected<Timing> measure(llvm::ArrayRef<Tensor> arguments,
                           llvm::MutableArrayRef<Tensor> results,
                           const TimingOptions &options) override {
    // On the same arguments the assertions hold again.
    return execution::measure(
        [&] { llvm::cantFail(function(arguments, results)); }, options);
  }

private:
  CompiledFunction function;
};
} // namespace

CPUPipelineOptions kas::getCPUOptions(const RunSettings &settings) {
  CPUPipelineOptions options;
  options.threads = settings.threads;
  if (settings.precision == GPUPrecision::BF16)
    options.precision = codegen::ContractionPrecision::BF16;
  return options;
}

/// Fills `report.profile`, and writes its trace.
static Error profileFunction(mlir::ModuleOp module, StringRef name,
                             const RunSettings &settings,
                             llvm::ArrayRef<Tensor> arguments,
                             llvm::MutableArrayRef<Tensor> results,
                             RunReport &report) {
  CPUPipelineOptions pipeline = getCPUOptions(settings);
  auto profile = profileOnCPU(module, name, arguments, results, pipeline, {},
                              getTimingOptions(settings));
  if (!profile)
    return profile.takeError();
  report.profile = std::move(*profile);
  if (settings.traceFile.empty())
    return Error::success();
  return writeFile(settings.traceFile, [&](llvm::raw_ostream &stream) {
    report.profile->writeTrace(stream);
    return Error::success();
  });
}

static Expected<std::unique_ptr<LoadedFunction>>
loadOnCPU(mlir::ModuleOp module, StringRef name, const RunSettings &settings,
          RunReport &report) {
  // That of the user, unless a directory is named.
  auto cache = settings.cacheDirectory.empty()
                   ? ObjectCache::openOfUser()
                   : std::make_unique<ObjectCache>(settings.cacheDirectory);
  if (!cache)
    return cache.takeError();
  JITOptions jit;
  jit.cache = cache->get();
  CPUPipelineOptions pipeline = getCPUOptions(settings);
  // Weights do not change between the runs.
  pipeline.prepackWeights = true;
  auto function = compileForCPU(module, name, pipeline, jit);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = function->getCompileMilliseconds();
  report.compileTimes = function->getTimes();
  report.prepackedElements = function->getNumPrepackedElements();
  return std::make_unique<OnCPU>(std::move(*function));
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

#if !KAS_ENABLE_GPU
// GPURun.cpp is left out.
Error kas::probeRuntimeDevice(StringRef name) {
  return requireGPU("--device=" + name);
}

Expected<std::unique_ptr<LoadedFunction>>
kas::loadOnGPU(mlir::ModuleOp, StringRef, const RunSettings &settings,
               RunReport &) {
  return requireGPU("--device=" + settings.device);
}
#endif

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<LoadedFunction>>
kas::loadOnDevice(mlir::ModuleOp module, StringRef function,
                  const RunSettings &settings, RunReport &report) {
  if (settings.elements != codegen::GPUElements::F32 &&
      !isRuntimeDevice(settings.device) && !isEmulator(settings.device))
    return llvm::createStringError("expected elements of f32 on the device '" +
                                   settings.device + "', got '" +
                                   codegen::toString(settings.elements) + "'");
  auto load = isRuntimeDevice(settings.device) || isEmulator(settings.device)
                  ? loadOnGPU
                  : loadOnCPU;
  return load(module, function, settings, report);
}

Error kas::runOnDevice(mlir::ModuleOp module, StringRef function,
                       const RunSettings &settings,
                       llvm::ArrayRef<Tensor> arguments,
                       llvm::MutableArrayRef<Tensor> results,
                       RunReport &report) {
  if (settings.profile)
    if (Error error = profileFunction(module, function, settings, arguments,
                                      results, report))
      return error;
  auto loaded = loadOnDevice(module, function, settings, report);
  if (!loaded)
    return loaded.takeError();
  if (Error error = (*loaded)->run(arguments, results))
    return error;
  if (settings.time) {
    auto timing =
        (*loaded)->measure(arguments, results, getTimingOptions(settings));
    if (!timing)
      return timing.takeError();
    report.timing = *timing;
  }
  return (*loaded)->close();
}
