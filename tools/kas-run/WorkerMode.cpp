//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "Runnable.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/ReferenceTiming.h"
#include "kas/Support/Requests.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// The values of the symbols of `op` in `object`.
template <typename OpTy>
static Expected<Binding> readBinding(OpTy op,
                                     const llvm::json::Object &object) {
  SymbolSet symbols = op.getSymbolSet();
  Binding binding;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol) {
    std::optional<int64_t> value = object.getInteger(symbols.getName(symbol));
    if (!value || *value < 1 || *value > Size::maxInteger)
      return createStringError("requires a value from 1 on for " +
                               symbols.getName(symbol) + " in each binding");
    binding.push_back(*value);
  }
  return binding;
}

/// Milliseconds of `name` in `module`, as they were if the machine were as fast
/// as when the reference kernel took `nominal`.
static Expected<double> timeFunction(mlir::ModuleOp module,
                                     llvm::StringRef name,
                                     const RunSettings &settings,
                                     double nominal) {
  auto signature = FunctionSignature::get(module, name);
  if (!signature)
    return signature.takeError();
  auto arguments = signature->makeArguments({}, settings.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  if (isRuntimeDevice(settings.device)) {
    RunSettings timed = settings;
    timed.time = true;
    RunReport report;
    if (Error error =
            runOnDevice(module, name, timed, *arguments, *results, report))
      return error;
    return report.timing->median;
  }
  CPUPipelineOptions pipeline = getCPUOptions(settings);
  // A network's weights do not change: packing them costs it nothing.
  pipeline.prepackWeights = true;
  auto function = compileForCPU(module, name, pipeline);
  if (!function)
    return function.takeError();
  if (Error error = function->prepack(*arguments))
    return error;
  if (Error error = (*function)(*arguments, *results))
    return error;
  return measureAgainstReference(
      [&] { llvm::cantFail((*function)(*arguments, *results)); }, nominal,
      getTimingOptions(settings));
}

static Expected<double> timeCandidate(OperatorOp op, const Binding &binding,
                                      const RunSettings &settings,
                                      double nominal) {
  if (mlir::failed(verifyBinding(op, binding, [&] { return op.emitError(); })))
    return createStringError("the binding is not legal");
  mlir::OpBuilder builder(op);
  mlir::FailureOr<OperatorOp> concrete =
      specialize(builder, op, binding, (op.getSymName() + "_concrete").str(),
                 [&] { return op.emitError(); });
  if (mlir::failed(concrete))
    return createStringError("the operator has no concrete form");
  auto module = createOperatorModule(*concrete);
  concrete->erase();
  return timeFunction(*module, operatorFunctionName, settings, nominal);
}

static Expected<double> timeCandidate(KernelOp kernel, const Binding &binding,
                                      const RunSettings &settings,
                                      double nominal) {
  auto module = lowerKernel(kernel, binding);
  if (!module)
    return module.takeError();
  return timeFunction(**module, kernelFunctionName, settings, nominal);
}

static Expected<double> timeCandidate(SequenceOp op,
                                      const llvm::json::Object &values,
                                      const RunSettings &settings,
                                      double nominal) {
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>> entries;
  for (const auto &[name, value] : values) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 1 || *number > Size::maxInteger)
      return createStringError("requires a value from 1 on for " + name.str() +
                               " in each binding");
    entries.emplace_back(name, *number);
  }
  auto module =
      createSequenceModule(op, BindingAttr::getNormal(op.getContext(), entries),
                           [&] { return op.emitError(); });
  if (mlir::failed(module))
    return createStringError("the binding is not legal");
  return timeFunction(**module, sequenceFunctionName, settings, nominal);
}

template <typename OpTy>
static Expected<double> timeCandidate(OpTy op, const llvm::json::Object &values,
                                      const RunSettings &settings,
                                      double nominal) {
  Expected<Binding> binding = readBinding(op, values);
  if (!binding)
    return binding.takeError();
  return timeCandidate(op, *binding, settings, nominal);
}

/// The sum over all bindings of a request, times their multiplicities, for the
/// one op of this kind in its `text`.
template <typename OpTy>
static Expected<double>
timeText(mlir::MLIRContext &context, llvm::StringRef noun, llvm::StringRef text,
         const llvm::json::Array &bindings, const llvm::json::Array &counts,
         const RunSettings &settings, double nominal) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module || module->getOps<OpTy>().empty())
    return createStringError("requires one kas." + noun + " as '" + noun + "'");
  OpTy op = *module->template getOps<OpTy>().begin();
  double sum = 0;
  for (auto [object, count] : llvm::zip_equal(bindings, counts)) {
    const llvm::json::Object *values = object.getAsObject();
    std::optional<int64_t> multiplicity = count.getAsInteger();
    if (!values || !multiplicity)
      return createStringError("requires bindings that are objects and "
                               "multiplicities that are integers");
    Expected<double> time = timeCandidate(op, *values, settings, nominal);
    if (!time)
      return time.takeError();
    sum += *time * static_cast<double>(*multiplicity);
  }
  return sum;
}

/// The first function of `text`, a network.
static Expected<double> timeNetwork(mlir::MLIRContext &context,
                                    llvm::StringRef text,
                                    const RunSettings &settings,
                                    double nominal) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module || module->getOps<mlir::func::FuncOp>().empty())
    return createStringError("requires a function as 'function'");
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  return timeFunction(*module, function.getSymName(), settings, nominal);
}

static Expected<double> timeRequest(mlir::MLIRContext &context,
                                    const llvm::json::Object &request,
                                    const RunSettings &settings,
                                    double nominal) {
  if (auto function = request.getString("function"))
    return timeNetwork(context, *function, settings, nominal);
  auto op = request.getString("operator"), kernel = request.getString("kernel"),
       sequence = request.getString("sequence");
  const llvm::json::Array *bindings = request.getArray("bindings");
  const llvm::json::Array *counts = request.getArray("multiplicities");
  if (op.has_value() + kernel.has_value() + sequence.has_value() != 1 ||
      !bindings || !counts || bindings->size() != counts->size())
    return createStringError(
        "requires 'function', or 'operator', 'kernel' or 'sequence' with "
        "'bindings' and as many 'multiplicities'");
  if (op)
    return timeText<OperatorOp>(context, "operator", *op, *bindings, *counts,
                                settings, nominal);
  if (sequence)
    return timeText<SequenceOp>(context, "sequence", *sequence, *bindings,
                                *counts, settings, nominal);
  return timeText<KernelOp>(context, "kernel", *kernel, *bindings, *counts,
                            settings, nominal);
}

/// Whether the device can be opened at all: without it all candidates fail.
static Error probeDevice(const RunSettings &settings) {
  if (!isRuntimeDevice(settings.device))
    return Error::success();
  return probeRuntimeDevice(settings.device);
}

Error kas::runWorker(mlir::MLIRContext &context, const RunSettings &settings) {
  if (settings.device != "cpu" && !isRuntimeDevice(settings.device))
    return createStringError(
        "expected the device 'cpu', 'cuda' or 'vulkan' for a worker, got '" +
        settings.device + "'");
  double nominal = calibrateReferenceKernel();
  return answerRequests(
      llvm::json::Object{{"reference_ms", nominal}},
      [&](const llvm::json::Object &request) -> Expected<llvm::json::Object> {
        if (request.get("probe")) {
          if (Error error = probeDevice(settings))
            return error;
          return llvm::json::Object();
        }
        // One scale for all workers of a search, if it says so.
        Expected<double> time =
            timeRequest(context, request, settings,
                        request.getNumber("reference_ms").value_or(nominal));
        if (!time)
          return time.takeError();
        return llvm::json::Object{{"latency_ms", *time}};
      });
}
