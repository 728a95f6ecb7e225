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
#include "KernelModel.h"
#include "kas/Codegen/GPU/Toolkit.h"
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

namespace {

/// Prints the facts about one kernel of a case.
class StaticCase {
public:
  StaticCase(std::string name, const GPUCase &entry, BenchReport &report)
      : name(std::move(name)), entry(entry), report(report) {}

  void print(const KernelModel &model, int64_t processors);
  void print(const KernelAssembly &kernel, int64_t threads);
  void print(const NarrowAccesses &narrow, StringRef suffix = "");

private:
  void print(StringRef metric, double value, StringRef unit = "") {
    BenchLine line{name, metric.str(), value, unit.str()};
    report.print(line);
    if (metric == "products_bound" || metric == "modelled_us")
      report.addToMean(entry.className, line);
  }

  std::string name;
  const GPUCase &entry;
  BenchReport &report;
};

} // namespace

void StaticCase::print(const NarrowAccesses &narrow, StringRef suffix) {
  print(("narrow_loads" + suffix).str(), static_cast<double>(narrow.loads));
  print(("narrow_stores" + suffix).str(), static_cast<double>(narrow.stores));
}

void StaticCase::print(const KernelModel &model, int64_t processors) {
  print("modelled_read_bytes", model.readBytes, "B");
  print("modelled_written_bytes", model.writtenBytes, "B");
  print("modelled_us", model.getTime(processors), "us");
}

void StaticCase::print(const KernelAssembly &kernel, int64_t threads) {
  print("registers", static_cast<double>(kernel.registers));
  print("spilled_bytes", static_cast<double>(kernel.spilledBytes), "B");
  print("serialized", kernel.isSerialized);
  print("shared_bytes", static_cast<double>(kernel.sharedBytes), "B");
  print("occupancy", kernel.getOccupancy(threads));
  if (kernel.narrow)
    print(*kernel.narrow, "_of_machine_code");
  const KernelLoop &loop = kernel.loop;
  if (loop.instructions == 0)
    return;
  print("loop_instructions", static_cast<double>(loop.instructions));
  print("loop_products", static_cast<double>(loop.products));
  print("loop_matrix_products", static_cast<double>(loop.matrixProducts));
  print("loop_matrix_products_per_instruction",
        static_cast<double>(loop.matrixProducts) /
            static_cast<double>(loop.instructions));
  print("loop_product_cycles", loop.productCycles);
  print("loop_issue_cycles", loop.issueCycles);
  print("loop_memory_cycles", loop.memoryCycles);
  print("products_bound", loop.getBound());
}

/// The machine code of the kernels of `program`; none where there is no
/// `ptxas`.
static Expected<std::vector<KernelAssembly>>
readAssembly(const GPUProgram &program, const BenchSettings &settings) {
  if (Expected<std::string> toolkit = codegen::findCUDAToolkit(); !toolkit) {
    llvm::consumeError(toolkit.takeError());
    return std::vector<KernelAssembly>();
  }
  return readAssembly(program.binary, settings.chip, settings.disassembler);
}

/// Prints whether a library is expected to be faster than the case's kernels.
static Error printLibraries(mlir::ModuleOp module, GPUFrontOptions options,
                            const std::string &name, BenchReport &report) {
  options.libraries = codegen::GPULibraries::Auto;
  auto models = modelKernels(module, options);
  if (!models)
    return models.takeError();
  for (StringRef library : {"cuBLASLt", "cuDNN"}) {
    auto count = llvm::count_if(*models, [&](const KernelModel &model) {
      return model.library == library;
    });
    report.print({name, ("left_to_" + library).str(),
                  static_cast<double>(count), "kernels"});
  }
  return Error::success();
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
  options.front.device = settings.chip;
  options.front.precision = variant.getPrecision();
  options.front.elements = variant.getElements();
  auto device = codegen::getGPUDevice(&context, settings.chip);
  if (!device)
    return device.takeError();
  auto models = modelKernels(*loaded->module, options.front);
  if (!models)
    return models.takeError();
  if (Error error =
          printLibraries(*loaded->module, options.front, name, report))
    return error;
  auto program = compileForNVVM(*loaded->module, options);
  if (!program)
    return program.takeError();
  auto manifest = DeviceManifest::fromJSON(program->manifest);
  if (!manifest)
    return manifest.takeError();
  auto assemblies = readAssembly(*program, settings);
  if (!assemblies)
    return assemblies.takeError();
  llvm::StringMap<NarrowAccesses> narrow = readNarrowAccesses(program->binary);
  for (const DeviceManifest::Kernel &kernel : manifest->kernels) {
    auto hasName = [&](const auto &other) { return other.name == kernel.name; };
    auto model = llvm::find_if(*models, hasName);
    if (model == models->end())
      return createStringError("the front half makes no kernel '" +
                               kernel.name + "'");
    std::string suffix = manifest->kernels.size() == 1 ? "" : "/" + kernel.name;
    StaticCase facts(name + suffix, entry, report);
    facts.print(*model, device->getProcessors());
    facts.print(narrow.lookup(kernel.name));
    if (assemblies->empty())
      continue;
    auto assembly = llvm::find_if(*assemblies, hasName);
    if (assembly == assemblies->end())
      return createStringError("ptxas does not tell of the kernel '" +
                               kernel.name + "'");
    assembly->sharedBytes += kernel.dynamicSharedBytes;
    facts.print(*assembly, kernel.block[0]);
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
