//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Assembly.h"
#include "GpuCases.h"
#include "KasBench.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static std::string getName(const GPUCase &entry, const GPUVariant &variant) {
  return (entry.op + "<" + entry.binding + ">/" + variant.name).str();
}

//===----------------------------------------------------------------------===//
// Without a device
//===----------------------------------------------------------------------===//

static void printAssembly(StringRef name, const GPUCase &entry,
                          const KernelAssembly &kernel, int64_t threads,
                          BenchReport &report) {
  auto print = [&](StringRef metric, double value, StringRef unit = "") {
    BenchLine line{name.str(), metric.str(), value, unit.str()};
    report.print(line);
    if (metric == "products_bound")
      report.addToMean(entry.className, line);
  };
  print("registers", static_cast<double>(kernel.registers));
  print("spilled_bytes", static_cast<double>(kernel.spilledBytes), "B");
  print("shared_bytes", static_cast<double>(kernel.sharedBytes), "B");
  print("occupancy", kernel.getOccupancy(threads));
  const KernelLoop &loop = kernel.loop;
  if (loop.instructions == 0)
    return;
  print("loop_instructions", static_cast<double>(loop.instructions));
  print("loop_products", static_cast<double>(loop.products));
  print("loop_matrix_products", static_cast<double>(loop.matrixProducts));
  print("loop_product_cycles", loop.productCycles);
  print("loop_issue_cycles", loop.issueCycles);
  print("loop_memory_cycles", loop.memoryCycles);
  print("products_bound", loop.getBound());
}

static Error runStaticCase(mlir::MLIRContext &context, const GPUCase &entry,
                           const GPUVariant &variant,
                           const BenchSettings &settings, BenchReport &report) {
  std::string name = getName(entry, variant);
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, entry.op, entry.binding);
  if (!loaded)
    return loaded.takeError();
  NVVMPipelineOptions options;
  options.chip = settings.chip;
  options.front.precision = variant.getPrecision();
  options.front.elements = variant.getElements();
  auto program = compileForNVVM(*loaded->module, options);
  if (!program)
    return program.takeError();
  auto manifest = DeviceManifest::fromJSON(program->manifest);
  if (!manifest)
    return manifest.takeError();
  auto kernels =
      readAssembly(program->binary, settings.chip, settings.disassembler);
  if (!kernels)
    return kernels.takeError();
  for (const DeviceManifest::Kernel &kernel : manifest->kernels) {
    auto assembly = llvm::find_if(*kernels, [&](const KernelAssembly &other) {
      return other.name == kernel.name;
    });
    if (assembly == kernels->end())
      return createStringError("ptxas does not tell of the kernel '" +
                               kernel.name + "'");
    std::string suffix = manifest->kernels.size() == 1 ? "" : "/" + kernel.name;
    assembly->sharedBytes += kernel.dynamicSharedBytes;
    printAssembly(name + suffix, entry, *assembly, kernel.block[0], report);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// On a device
//===----------------------------------------------------------------------===//

namespace {

/// A compiled function several times, each with buffers of its own, so that
/// none finds its inputs in a cache.
struct RotatedFunction {
  std::vector<std::unique_ptr<DeviceFunction>> copies;

  /// The device's clock around the kernels, copy after copy.
  Expected<Timing> measure(double seconds) {
    std::vector<double> times;
    double end = monotonicSeconds() + seconds;
    // The first round warms up.
    for (int round = 0; round < 6 || (monotonicSeconds() < end && round < 1000);
         ++round)
      for (std::unique_ptr<DeviceFunction> &copy : copies) {
        TimingOptions once;
        once.minRuns = once.maxRuns = 1;
        once.warmUpRuns = 0;
        auto timing = copy->measure(once);
        if (!timing)
          return timing.takeError();
        if (round > 0)
          times.push_back(timing->median);
      }
    return Timing::summarize(times);
  }
};

} // namespace

static Expected<RotatedFunction> load(const Device &device,
                                      const GPUProgram &program,
                                      llvm::ArrayRef<Tensor> arguments) {
  auto manifest = DeviceManifest::fromJSON(program.manifest);
  if (!manifest)
    return manifest.takeError();
  RotatedFunction function;
  for (int i = 0; i < 3; ++i) {
    auto copy = DeviceFunction::load(device, *manifest, program.binary,
                                     operatorFunctionName);
    if (!copy)
      return copy.takeError();
    if (Error error = (*copy)->upload(arguments))
      return error;
    function.copies.push_back(std::move(*copy));
  }
  return function;
}

/// The largest error of the function's result; nothing where the reference
/// would take minutes.
static Expected<std::optional<double>>
check(const BenchOperator &loaded, DeviceFunction &function,
      llvm::ArrayRef<Tensor> arguments, llvm::MutableArrayRef<Tensor> results) {
  if (Error error = function.run(arguments, results))
    return error;
  if (loaded.macs > int64_t(1) << 31)
    return std::nullopt;
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  llvm::SmallVector<ReferenceTensor> weights;
  for (const Tensor &weight : arguments.drop_front())
    weights.push_back(view(weight));
  Tensor expected(results.front().getShape());
  OperatorOp op = loaded.op;
  if (mlir::failed(evaluateOperator(op, view(arguments.front()), weights,
                                    expected.getValues(),
                                    [&] { return op.emitError(); })))
    return createStringError("the reference rejects the operator");
  return std::optional<double>(maxRelativeError(results.front(), expected));
}

/// Bytes per second of a kernel that copies, both ways counted.
static Expected<double> measureCopies(mlir::MLIRContext &context,
                                      const Device &device, double seconds) {
  int64_t elements = device.getInfo().backend == KAS_RT_CUDA ? int64_t(1) << 27
                                                             : int64_t(1) << 22;
  std::string text = "kas.operator @copy(%n: " + std::to_string(elements) +
                     ") from [" + std::to_string(elements) +
                     "] { kas.yield data(%n) }";
  mlir::OwningOpRef<mlir::ModuleOp> source =
      mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      createOperatorModule(source->lookupSymbol<OperatorOp>("copy"));
  auto program = compileForDevice(*module, device.getInfo());
  if (!program)
    return program.takeError();
  llvm::SmallVector<Tensor> inputs;
  inputs.emplace_back(llvm::ArrayRef<int64_t>(elements));
  auto function = load(device, *program, inputs);
  if (!function)
    return function.takeError();
  auto timing = function->measure(seconds);
  if (!timing)
    return timing.takeError();
  return 8.0 * static_cast<double>(elements) / (timing->median * 1e-3);
}

static Error runDeviceCase(mlir::MLIRContext &context, const GPUCase &entry,
                           const GPUVariant &variant, const Device &device,
                           const BenchSettings &settings, BenchReport &report) {
  std::string name = getName(entry, variant);
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, entry.op, entry.binding);
  if (!loaded)
    return loaded.takeError();
  auto program =
      compileForDevice(*loaded->module, device.getInfo(),
                       variant.getPrecision(), variant.getElements());
  if (!program)
    return program.takeError();
  auto signature =
      FunctionSignature::get(*loaded->module, operatorFunctionName);
  if (!signature)
    return signature.takeError();
  auto arguments = signature->makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  auto function = load(device, *program, *arguments);
  if (!function)
    return function.takeError();
  auto error = check(*loaded, *function->copies.front(), *arguments, *results);
  if (!error)
    return error.takeError();
  auto timing = function->measure(settings.seconds);
  if (!timing)
    return timing.takeError();
  BenchLine time{name, "time_ms", timing->median, "ms"};
  time.timing = *timing;
  time.maxRelativeError = *error;
  if (*error)
    time.ok = **error <= variant.tolerance;
  report.print(time);
  if (loaded->macs == 0)
    return Error::success();
  double gflops =
      2e-6 * static_cast<double>(loaded->existingMacs) / timing->median;
  BenchLine rate{name, "gflops", gflops, "GFLOP/s"};
  report.print(rate);
  report.addToMean((entry.className + "/" + variant.name).str(), rate);
  return Error::success();
}

static Error runOnDevice(mlir::MLIRContext &context,
                         const BenchSettings &settings, BenchReport &report) {
  auto device = Device::open(settings.device);
  if (!device)
    return device.takeError();
  bool isCuda = device->getInfo().backend == KAS_RT_CUDA;
  auto bandwidth = measureCopies(context, *device, settings.seconds);
  if (!bandwidth)
    return bandwidth.takeError();
  report.print({"copy", "bandwidth", *bandwidth * 1e-9, "GB/s"});
  for (const GPUCase &entry : gpuCases)
    for (const GPUVariant &variant : gpuVariants)
      if (isCuda || variant.name == "f32")
        if (Error error = runDeviceCase(context, entry, variant, *device,
                                        settings, report))
          return error;
  return device->close();
}

Error kas::runGPUSuite(mlir::MLIRContext &context,
                       const BenchSettings &settings, BenchReport &report) {
  if (!settings.isStatic)
    return runOnDevice(context, settings, report);
  for (const GPUCase &entry : gpuCases)
    for (const GPUVariant &variant : gpuVariants)
      if (Error error =
              runStaticCase(context, entry, variant, settings, report))
        return error;
  return Error::success();
}
