//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel of the tensor level, on one sample.
//
//===----------------------------------------------------------------------===//

#include "KasRun.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Operators/Operators.h"
#include "kas/Reference/KernelEvaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

namespace {
/// The kernel of the file, or of the library for `kas.NAME`.
struct LoadedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;
};
} // namespace

static Expected<LoadedKernel> loadKernel(mlir::MLIRContext &context,
                                         const RunSettings &settings) {
  StringRef name = settings.kernelName;
  LoadedKernel loaded;
  if (!settings.file.empty()) {
    auto module = parseModule(context, settings.file);
    if (!module)
      return module.takeError();
    loaded.module = std::move(*module);
    StringRef symbol = name;
    symbol.consume_front("@");
    loaded.kernel = loaded.module->lookupSymbol<KernelOp>(symbol);
    if (!loaded.kernel)
      return createStringError("no kernel '" + name + "' in '" + settings.file +
                               "'");
    return loaded;
  }
  loaded.module = parseNamedKernel(&context, name);
  if (!loaded.module)
    return createStringError("no kernel '" + name + "' in the library");
  loaded.kernel = *loaded.module->getOps<KernelOp>().begin();
  return loaded;
}

/// The values of the command line, then those of the kernel's first binding.
static Expected<Binding>
chooseBinding(KernelOp kernel, const RunSettings &settings, RunReport &report) {
  auto given =
      parseBinding(kernel.getContext(), llvm::join(settings.bindings, ","));
  if (!given)
    return given.takeError();
  SymbolSet symbols = kernel.getSymbolSet();
  for (mlir::StringAttr name : given->getNames())
    if (!symbols.lookup(name.getValue()))
      return createStringError("requires symbols of kernel '" +
                               settings.kernelName + "' in the binding, got '" +
                               name.getValue() + "'");
  BindingAttr own;
  if (!kernel.getBindings().empty())
    own = llvm::cast<BindingAttr>(kernel.getBindings()[0]);
  Binding binding;
  std::string &text = report.binding.emplace();
  for (unsigned index = 0; index < symbols.size(); ++index) {
    StringRef name = symbols.getName(index);
    std::optional<int64_t> value = given->lookup(name);
    if (!value && own)
      value = own.lookup(name);
    if (!value)
      return createStringError("requires a value for symbol '" + name +
                               "' of kernel '" + settings.kernelName +
                               "', got none");
    binding.push_back(*value);
    text += ((index ? "," : "") + name + "=" + llvm::Twine(*value)).str();
  }
  return binding;
}

/// Two operations per multiply-add; a function of an element is half a one.
static int64_t countMACs(KernelOp kernel, const Binding &binding) {
  SymbolSet symbols = kernel.getSymbolSet();
  int64_t flops = 0;
  for (auto op : kernel.getBody().getOps<DagOpInterface>())
    for (const SizeProduct &product : op.getFlops()) {
      int64_t points = product.factor;
      for (SizeAttr size : product.sizes)
        points *= evaluate(size, symbols, binding).value_or(0);
      flops += points;
    }
  return flops / 2;
}

static Expected<NamedTensors> readArrays(const RunSettings &settings,
                                         const FunctionSignature &signature,
                                         size_t numInputs) {
  NamedTensors given;
  auto read = [&](llvm::ArrayRef<std::string> paths, size_t first, size_t count,
                  StringRef what) -> Error {
    if (paths.size() > count)
      return createStringError("the kernel has " + llvm::Twine(count) + " " +
                               what + "s, got " + llvm::Twine(paths.size()));
    for (auto [index, path] : llvm::enumerate(paths)) {
      auto tensor = readNpy(path);
      if (!tensor)
        return tensor.takeError();
      given.insert(
          {signature.arguments[first + index].name, std::move(*tensor)});
    }
    return Error::success();
  };
  if (Error error = read(settings.inputs, 0, numInputs, "input"))
    return error;
  if (Error error = read(settings.weights, numInputs,
                         signature.arguments.size() - numInputs, "weight"))
    return error;
  return given;
}

/// Inputs and output have a batch of 1 in front, which the reference has not.
static Error evaluateReference(KernelOp kernel, const Binding &binding,
                               llvm::ArrayRef<Tensor> arguments,
                               Tensor &result) {
  DiagnosticCollector diagnostics(kernel.getContext());
  unsigned numInputs = kernel.getBody().getNumArguments();
  SmallVector<ReferenceTensor> inputs, weights;
  for (const Tensor &input : arguments.take_front(numInputs))
    inputs.push_back({llvm::ArrayRef<int64_t>(input.getShape()).drop_front(),
                      input.getValues()});
  for (const Tensor &weight : arguments.drop_front(numInputs))
    weights.push_back({weight.getShape(), weight.getValues()});
  if (mlir::failed(evaluateKernel(kernel, binding, inputs, weights,
                                  result.getValues(),
                                  [&] { return kernel.emitError(); })))
    return diagnostics.takeError();
  return Error::success();
}

/// Runs on `settings.device` and times it when asked. `module` has the function
/// `name` in the kernel's stead.
static Error runOnDevice(mlir::ModuleOp module, StringRef name, KernelOp kernel,
                         const Binding &binding, const RunSettings &settings,
                         llvm::ArrayRef<Tensor> arguments,
                         llvm::MutableArrayRef<Tensor> results,
                         RunReport &report) {
  if (settings.device == "reference") {
    auto run = [&] {
      return evaluateReference(kernel, binding, arguments, results.front());
    };
    if (Error error = run())
      return error;
    if (settings.time)
      report.timing =
          measure([&] { llvm::cantFail(run()); }, getTimingOptions(settings));
    return Error::success();
  }
  ObjectCache cache(settings.cacheDirectory);
  JITOptions jit;
  jit.cache = &cache;
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  auto function = compileForCPU(module, name, pipeline, jit);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = function->getCompileMilliseconds();
  report.compileTimes = function->getTimes();
  (*function)(arguments, results);
  if (settings.time)
    report.timing = measure([&] { (*function)(arguments, results); },
                            getTimingOptions(settings));
  return Error::success();
}

/// A module in which the kernels are the one function `run`.
static Expected<mlir::OwningOpRef<mlir::ModuleOp>>
lower(KernelOp kernel, const Binding &binding) {
  mlir::MLIRContext *context = kernel.getContext();
  context->loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      kernel->getParentOfType<mlir::ModuleOp>().clone();
  auto copy = module->lookupSymbol<KernelOp>(kernel.getSymName());
  DiagnosticCollector diagnostics(context);
  canonicalizeKernel(copy);
  mlir::OpBuilder builder(copy);
  mlir::FailureOr<mlir::func::FuncOp> function =
      createKernelFunction(builder, copy, binding, "run");
  if (mlir::failed(function))
    return diagnostics.takeError();
  for (KernelOp other : llvm::make_early_inc_range(module->getOps<KernelOp>()))
    other.erase();
  return module;
}

Expected<RunReport> kas::runKernel(mlir::MLIRContext &context,
                                   const RunSettings &settings) {
  if (settings.device != "cpu" && settings.device != "reference")
    return createStringError("expected the device 'cpu' or 'reference', got '" +
                             settings.device + "'");
  if (!settings.checkFile.empty())
    return createStringError("a kernel is checked against the reference, got "
                             "--check=" +
                             settings.checkFile);
  auto loaded = loadKernel(context, settings);
  if (!loaded)
    return loaded.takeError();
  KernelOp kernel = loaded->kernel;
  RunReport report;
  report.kind = "kernel";
  report.name = settings.kernelName;
  report.device = settings.device;
  auto binding = chooseBinding(kernel, settings, report);
  if (!binding)
    return binding.takeError();
  auto module = lower(kernel, *binding);
  if (!module)
    return module.takeError();
  auto signature = FunctionSignature::get(**module, "run");
  if (!signature)
    return signature.takeError();
  size_t numInputs = kernel.getBody().getNumArguments();
  report.macs = countMACs(kernel, *binding);
  report.params = 0;
  for (const TensorSignature &weight :
       llvm::ArrayRef(signature->arguments).drop_front(numInputs))
    *report.params += llvm::cantFail(numElements(weight.shape));
  // The cost alone needs no data.
  if (settings.cost && !settings.time && !settings.check &&
      settings.output.empty())
    return report;

  auto given = readArrays(settings, *signature, numInputs);
  if (!given)
    return given.takeError();
  auto arguments = signature->makeArguments(*given, settings.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  if (Error error = runOnDevice(**module, "run", kernel, *binding, settings,
                                *arguments, *results, report))
    return error;
  if (!settings.output.empty())
    if (Error error = writeResults(settings.output, *signature, *results))
      return error;
  if (settings.check) {
    Tensor expected(results->front().getShape());
    if (Error error = evaluateReference(kernel, *binding, *arguments, expected))
      return error;
    report.maxRelativeError = maxRelativeError(results->front(), expected);
    report.ok = *report.maxRelativeError <= settings.tolerance;
  }
  return report;
}
