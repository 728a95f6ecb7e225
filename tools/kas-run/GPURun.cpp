//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-run on GPUs: through kas-rt, and their kernels on the CPU. Only in builds
// with KAS_ENABLE_GPU.
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/ExecutionEngine/Elements.h"
#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Support/RunPasses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Devices of kas-rt
//===----------------------------------------------------------------------===//

Error kas::probeRuntimeDevice(StringRef name) {
  auto device = Device::open(name);
  return device ? device->close() : device.takeError();
}

namespace {
/// What is made on the device goes before the device.
class OnRuntimeDevice : public LoadedFunction {
public:
  OnRuntimeDevice(Device device, RunReport &report)
      : device(std::move(device)), report(report) {}

  Error load(const GPUProgram &program, StringRef name) {
    auto manifest = DeviceManifest::fromJSON(program.manifest);
    if (!manifest)
      return manifest.takeError();
    auto loaded = DeviceFunction::load(device, *manifest, program.binary, name);
    if (!loaded)
      return loaded.takeError();
    function = std::move(*loaded);
    return Error::success();
  }

  Error run(llvm::ArrayRef<Tensor> arguments,
            llvm::MutableArrayRef<Tensor> results) override {
    return function->run(arguments, results);
  }

  Expected<Timing> measure(llvm::ArrayRef<Tensor>,
                           llvm::MutableArrayRef<Tensor>,
                           const TimingOptions &options) override {
    return function->measure(options);
  }

  Error close() override {
    // After all runs, in which a library may have failed.
    if (function)
      for (const std::string &library : function->getLibraries())
        if (library != "kernel")
          ++report.libraries[library];
    function.reset();
    return device.close();
  }

  Device device;

private:
  RunReport &report;
  std::unique_ptr<DeviceFunction> function;
};
} // namespace

static Expected<std::unique_ptr<LoadedFunction>>
loadOnRuntimeDevice(mlir::ModuleOp module, StringRef function,
                    const RunSettings &settings, RunReport &report) {
  auto device = Device::open(settings.device);
  if (!device)
    return device.takeError();
  report.deviceName = device->getInfo().name;
  auto loaded = std::make_unique<OnRuntimeDevice>(std::move(*device), report);
  double start = monotonicSeconds();
  auto program =
      compileForDevice(module, loaded->device.getInfo(), settings.precision,
                       settings.elements, settings.libraries);
  if (!program)
    return program.takeError();
  report.compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  if (Error error = loaded->load(*program, function))
    return error;
  return loaded;
}

//===----------------------------------------------------------------------===//
// The kernels of a GPU on the CPU
//===----------------------------------------------------------------------===//

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

namespace {
class OnEmulator : public LoadedFunction {
public:
  OnEmulator(std::unique_ptr<CompiledModule> compiled,
             CompiledModule::Function function,
             std::vector<std::string> assertions, GPUElements elements)
      : compiled(std::move(compiled)), function(function),
        assertions(std::move(assertions)), elements(elements) {}

  Error run(llvm::ArrayRef<Tensor> arguments,
            llvm::MutableArrayRef<Tensor> results) override {
    Buffers buffers(arguments, results, elements);
    if (Error error = call(function, buffers.pointers.data()))
      return error;
    if (buffers.status < assertions.size())
      return llvm::createStringError(assertions[buffers.status]);
    buffers.widenResults(results);
    return Error::success();
  }

  Expected<Timing> measure(llvm::ArrayRef<Tensor> arguments,
                           llvm::MutableArrayRef<Tensor> results,
                           const TimingOptions &options) override {
    Buffers buffers(arguments, results, elements);
    return execution::measure([&] { function(buffers.pointers.data()); },
                              options);
  }

private:
  /// What the function takes: the tensors, or copies of 16 bits.
  struct Buffers {
    Buffers(llvm::ArrayRef<Tensor> arguments,
            llvm::MutableArrayRef<Tensor> results, GPUElements elements)
        : elements(elements) {
      bool isNarrow = elements != GPUElements::F32;
      for (const Tensor &argument : arguments) {
        if (isNarrow)
          narrowed.push_back(narrow(argument.getValues(), toString(elements)));
        pointers.push_back(isNarrow
                               ? static_cast<void *>(narrowed.back().data())
                               : const_cast<float *>(argument.data()));
      }
      for (Tensor &result : results) {
        if (isNarrow)
          narrowed.emplace_back(result.getNumElements());
        pointers.push_back(isNarrow
                               ? static_cast<void *>(narrowed.back().data())
                               : result.data());
      }
      pointers.push_back(&status);
    }

    void widenResults(llvm::MutableArrayRef<Tensor> results) const {
      if (narrowed.empty())
        return;
      for (auto [result, values] : llvm::zip_equal(
               results, llvm::ArrayRef(narrowed).take_back(results.size())))
        widen(values, toString(elements), result.getValues());
    }

    GPUElements elements;
    std::vector<std::vector<uint16_t>> narrowed;
    llvm::SmallVector<void *> pointers;
    uint32_t status = UINT32_MAX;
  };

  std::unique_ptr<CompiledModule> compiled;
  CompiledModule::Function function;
  std::vector<std::string> assertions;
  GPUElements elements;
};
} // namespace

/// What the kernels compute in their last form on tensors, before they are
/// lowered to a GPU's instructions: fragments of warps and copies through
/// workgroup memory included.
static Expected<std::unique_ptr<LoadedFunction>>
loadOnEmulator(mlir::ModuleOp module, StringRef name,
               const RunSettings &settings, RunReport &report) {
  mlir::DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  double start = monotonicSeconds();
  mlir::OwningOpRef<mlir::ModuleOp> clone = module.clone();
  auto takeAssertions = [](mlir::OpPassManager &manager) {
    manager.addNestedPass<mlir::func::FuncOp>(
        createKasGPUReturnAssertionsPass());
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
                  front.elements = settings.elements;
                  buildGPUFrontHalf(manager, front);
                  manager.addPass(createKasGPUToCPULoopsPass());
                  CPUPipelineOptions pipeline;
                  pipeline.threads = settings.threads;
                  buildCPUPipeline(manager, pipeline);
                });
  if (failure)
    return std::move(failure);
  auto compiled = CompiledModule::compile(*clone);
  if (!compiled)
    return compiled.takeError();
  auto function = (*compiled)->lookup(name);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  return std::make_unique<OnEmulator>(std::move(*compiled), *function,
                                      std::move(assertions), settings.elements);
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<LoadedFunction>>
kas::loadOnGPU(mlir::ModuleOp module, StringRef function,
               const RunSettings &settings, RunReport &report) {
  auto load =
      isEmulator(settings.device) ? loadOnEmulator : loadOnRuntimeDevice;
  return load(module, function, settings, report);
}
