//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/DeviceFunction.h"
#include "kas/ExecutionEngine/GPUProgram.h"
#include "kas/Pipelines/GPU.h"
#include "kas/Support/RunPasses.h"

using namespace kas;
using namespace kas::codegen;
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

/// Loads, runs and times; what is made on the device is gone afterwards.
static Error run(const Device &device, const GPUProgram &program,
                 StringRef name, const RunSettings &settings,
                 llvm::ArrayRef<Tensor> arguments,
                 llvm::MutableArrayRef<Tensor> results, RunReport &report) {
  auto manifest = DeviceManifest::fromJSON(program.manifest);
  if (!manifest)
    return manifest.takeError();
  auto function = DeviceFunction::load(device, *manifest, program.binary, name);
  if (!function)
    return function.takeError();
  if (Error error = (*function)->run(arguments, results))
    return error;
  if (!settings.time)
    return Error::success();
  auto timing = (*function)->measure(getTimingOptions(settings));
  if (!timing)
    return timing.takeError();
  report.timing = *timing;
  return Error::success();
}

static Error runOnRuntimeDevice(mlir::ModuleOp module, StringRef function,
                                const RunSettings &settings,
                                llvm::ArrayRef<Tensor> arguments,
                                llvm::MutableArrayRef<Tensor> results,
                                RunReport &report) {
  auto device = Device::open(settings.device);
  if (!device)
    return device.takeError();
  double start = monotonicSeconds();
  auto program = compileForDevice(module, device->getInfo(), settings.precision,
                                  settings.elements);
  if (!program)
    return program.takeError();
  report.compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  if (Error error = run(*device, *program, function, settings, arguments,
                        results, report))
    return error;
  return device->close();
}

static Error runOnCPU(mlir::ModuleOp module, StringRef name,
                      const RunSettings &settings,
                      llvm::ArrayRef<Tensor> arguments,
                      llvm::MutableArrayRef<Tensor> results,
                      RunReport &report) {
  ObjectCache cache(settings.cacheDirectory);
  JITOptions jit;
  jit.cache = &cache;
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  // Weights do not change between the runs.
  pipeline.prepareWeights = true;
  auto function = compileForCPU(module, name, pipeline, jit);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = function->getCompileMilliseconds();
  report.compileTimes = function->getTimes();
  report.preparedElements = function->getNumPreparedElements();
  if (Error error = function->prepare(arguments))
    return error;
  if (Error error = (*function)(arguments, results))
    return error;
  // On the same arguments the assertions hold again.
  if (settings.time)
    report.timing =
        measure([&] { llvm::cantFail((*function)(arguments, results)); },
                getTimingOptions(settings));
  return Error::success();
}

/// What those assertions say whose position is the last result of `name`.
static std::vector<std::string> getAssertions(mlir::ModuleOp module,
                                              StringRef name) {
  std::vector<std::string> texts;
  if (auto function = module.lookupSymbol<mlir::func::FuncOp>(name))
    if (auto attribute = function->getAttrOfType<mlir::ArrayAttr>(
            KasGPUDialect::assertionsName))
      for (auto text : attribute.getAsRange<mlir::StringAttr>())
        texts.push_back(text.str());
  return texts;
}

/// What the kernels compute in their last form on tensors, before they are
/// lowered to a GPU's instructions: fragments of warps and copies through
/// workgroup memory included.
static Error runOnEmulator(mlir::ModuleOp module, StringRef name,
                           const RunSettings &settings,
                           llvm::ArrayRef<Tensor> arguments,
                           llvm::MutableArrayRef<Tensor> results,
                           RunReport &report) {
  mlir::DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  double start = monotonicSeconds();
  mlir::OwningOpRef<mlir::ModuleOp> clone = module.clone();
  auto takeAssertions = [](mlir::OpPassManager &manager) {
    manager.addNestedPass<mlir::func::FuncOp>(createGPUReturnAssertions());
  };
  if (Error error =
          runPasses(*clone, "the module cannot be compiled for the emulator",
                    takeAssertions))
    return error;
  std::vector<std::string> assertions = getAssertions(*clone, name);
  Error failure =
      runPasses(*clone, "the module cannot be compiled for the emulator",
                [&](mlir::OpPassManager &manager) {
                  GPUFrontOptions front;
                  front.device = StringRef(settings.device).split(':').second;
                  front.precision = settings.precision;
                  buildGPUFrontHalf(manager, front);
                  manager.addPass(createGPUToCPULoops());
                  CPUPipelineOptions pipeline;
                  pipeline.threads = settings.threads;
                  buildCPUPipeline(manager, pipeline);
                });
  if (failure)
    return failure;
  auto compiled = CompiledModule::compile(*clone);
  if (!compiled)
    return compiled.takeError();
  auto function = (*compiled)->lookup(name);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  llvm::SmallVector<void *> pointers;
  for (const Tensor &argument : arguments)
    pointers.push_back(const_cast<float *>(argument.getValues().data()));
  for (Tensor &result : results)
    pointers.push_back(result.getValues().data());
  uint32_t status = UINT32_MAX;
  pointers.push_back(&status);
  if (Error error = call(*function, pointers.data()))
    return error;
  if (status < assertions.size())
    return llvm::createStringError(assertions[status]);
  if (settings.time)
    report.timing = measure([&] { (*function)(pointers.data()); },
                            getTimingOptions(settings));
  return Error::success();
}

Error kas::runOnDevice(mlir::ModuleOp module, StringRef function,
                       const RunSettings &settings,
                       llvm::ArrayRef<Tensor> arguments,
                       llvm::MutableArrayRef<Tensor> results,
                       RunReport &report) {
  if (settings.elements != codegen::GPUElements::F32 &&
      !isRuntimeDevice(settings.device))
    return llvm::createStringError("expected elements of f32 on the device '" +
                                   settings.device + "', got '" +
                                   codegen::toString(settings.elements) + "'");
  auto run = isRuntimeDevice(settings.device) ? runOnRuntimeDevice
             : isEmulator(settings.device)    ? runOnEmulator
                                              : runOnCPU;
  return run(module, function, settings, arguments, results, report);
}
