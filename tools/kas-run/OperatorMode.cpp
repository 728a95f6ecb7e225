//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasRun.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Operators/Operators.h"
#include "kas/Pipelines/OperatorModule.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

/// The operator of the file, or of the library for `kas.NAME`.
struct LoadedOperator {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  OperatorOp op;
};

} // namespace

static Expected<LoadedOperator> loadOperator(mlir::MLIRContext &context,
                                             const RunSettings &settings) {
  StringRef name = settings.operatorName;
  LoadedOperator loaded;
  if (!settings.file.empty()) {
    auto module = parseModule(context, settings.file);
    if (!module)
      return module.takeError();
    loaded.module = std::move(*module);
    StringRef symbol = name;
    symbol.consume_front("@");
    loaded.op = loaded.module->lookupSymbol<OperatorOp>(symbol);
    if (loaded.op)
      return loaded;
  }
  if (settings.file.empty() || name.starts_with("kas.")) {
    if (lookupNamedOperator(name)) {
      loaded.module = parseNamedOperator(&context, name);
      loaded.op = *loaded.module->getOps<OperatorOp>().begin();
      return loaded;
    }
    return createStringError("no operator '" + name + "' in the library");
  }
  return createStringError("no operator '" + name + "' in '" + settings.file +
                           "'");
}

/// A concrete copy of the operator at the binding of the command line, beside
/// the original.
static Expected<OperatorOp>
makeConcrete(OperatorOp op, const RunSettings &settings, RunReport &report) {
  mlir::MLIRContext *context = op.getContext();
  auto attr = parseBinding(context, llvm::join(settings.bindings, ","));
  if (!attr)
    return attr.takeError();
  DiagnosticCollector diagnostics(context);
  auto emitError = [&] { return op.emitError(); };
  mlir::FailureOr<Binding> binding = getBinding(op, *attr, emitError);
  if (mlir::failed(binding))
    return diagnostics.takeError();
  mlir::FailureOr<Cost> cost = getCost(op, *binding, emitError);
  if (mlir::failed(cost))
    return diagnostics.takeError();
  report.params = cost->parameters;
  report.macs = cost->macs;
  std::string &bindingText = report.binding.emplace();
  SymbolSet symbols = op.getSymbolSet();
  for (auto [index, value] : llvm::enumerate(*binding))
    bindingText += (llvm::Twine(index ? "," : "") + symbols.getName(index) +
                    "=" + llvm::Twine(value))
                       .str();
  mlir::OpBuilder builder(op);
  mlir::FailureOr<OperatorOp> concrete = specialize(
      builder, op, *binding, (op.getSymName() + "_concrete").str(), emitError);
  if (mlir::failed(concrete))
    return diagnostics.takeError();
  return *concrete;
}

/// The arrays of `--input` and `--weight` by the names of the arguments.
static Expected<NamedTensors> readArrays(const RunSettings &settings,
                                         const FunctionSignature &signature) {
  size_t numWeights = signature.arguments.size() - 1;
  if (settings.inputs.size() > 1)
    return createStringError("an operator has 1 input, got " +
                             llvm::Twine(settings.inputs.size()));
  if (settings.weights.size() > numWeights)
    return createStringError("the operator has " + llvm::Twine(numWeights) +
                             " weights, got " +
                             llvm::Twine(settings.weights.size()));
  NamedTensors given;
  auto read = [&](StringRef path, const TensorSignature &argument) -> Error {
    auto tensor = readNpy(path);
    if (!tensor)
      return tensor.takeError();
    given.insert({argument.name, std::move(*tensor)});
    return Error::success();
  };
  for (StringRef path : settings.inputs)
    if (Error error = read(path, signature.arguments[0]))
      return error;
  for (auto [index, path] : llvm::enumerate(settings.weights))
    if (Error error = read(path, signature.arguments[index + 1]))
      return error;
  return given;
}

static Error evaluateReference(OperatorOp op, llvm::ArrayRef<Tensor> arguments,
                               Tensor &result) {
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  SmallVector<ReferenceTensor> weights;
  for (const Tensor &weight : arguments.drop_front())
    weights.push_back(view(weight));
  DiagnosticCollector diagnostics(op.getContext());
  if (mlir::failed(evaluateOperator(op, view(arguments.front()), weights,
                                    result.getValues(),
                                    [&] { return op.emitError(); })))
    return diagnostics.takeError();
  return Error::success();
}

/// Runs on `settings.device` and times it when asked.
static Error runOnDevice(mlir::ModuleOp module, OperatorOp op,
                         const RunSettings &settings,
                         llvm::ArrayRef<Tensor> arguments,
                         llvm::MutableArrayRef<Tensor> results,
                         RunReport &report) {
  if (settings.device == "reference") {
    if (Error error = evaluateReference(op, arguments, results.front()))
      return error;
    if (settings.time)
      report.timing = measure(
          [&] {
            llvm::cantFail(evaluateReference(op, arguments, results.front()));
          },
          getTimingOptions(settings));
    return Error::success();
  }
  ObjectCache cache(settings.cacheDirectory);
  JITOptions jit;
  jit.cache = &cache;
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  // Weights do not change between the runs.
  pipeline.prepareWeights = true;
  auto function = compileForCPU(module, operatorFunctionName, pipeline, jit);
  if (!function)
    return function.takeError();
  report.compileMilliseconds = function->getCompileMilliseconds();
  report.compileTimes = function->getTimes();
  report.preparedElements = function->getNumPreparedElements();
  function->prepare(arguments);
  (*function)(arguments, results);
  if (settings.time)
    report.timing = measure([&] { (*function)(arguments, results); },
                            getTimingOptions(settings));
  return Error::success();
}

Expected<RunReport> kas::runOperator(mlir::MLIRContext &context,
                                     const RunSettings &settings) {
  if (settings.device != "cpu" && settings.device != "reference")
    return createStringError("expected the device 'cpu' or 'reference', got '" +
                             settings.device + "'");
  if (!settings.checkFile.empty())
    return createStringError("an operator is checked against the reference, "
                             "got --check=" +
                             settings.checkFile);
  auto loaded = loadOperator(context, settings);
  if (!loaded)
    return loaded.takeError();
  RunReport report;
  report.kind = "operator";
  report.name = settings.operatorName;
  report.device = settings.device;
  auto concrete = makeConcrete(loaded->op, settings, report);
  if (!concrete)
    return concrete.takeError();
  auto module = createOperatorModule(*concrete);
  auto signature = FunctionSignature::get(*module, operatorFunctionName);
  if (!signature)
    return signature.takeError();
  // The cost alone needs no data.
  if (settings.cost && !settings.time && !settings.check &&
      settings.output.empty())
    return report;

  auto given = readArrays(settings, *signature);
  if (!given)
    return given.takeError();
  auto arguments = signature->makeArguments(*given, settings.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  if (Error error = runOnDevice(*module, *concrete, settings, *arguments,
                                *results, report))
    return error;
  if (!settings.output.empty())
    if (Error error = writeResults(settings.output, *signature, *results))
      return error;
  if (settings.check) {
    Tensor expected(results->front().getShape());
    if (Error error = evaluateReference(*concrete, *arguments, expected))
      return error;
    report.maxRelativeError = maxRelativeError(results->front(), expected);
    report.ok = *report.maxRelativeError <= settings.tolerance;
  }
  return report;
}
