//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

namespace {
/// What `--args` and `--input` say: the seed, and the arrays by name.
struct GivenArguments {
  uint64_t seed;
  NamedTensors tensors;
};
} // namespace

static Expected<GivenArguments>
readArguments(const RunSettings &settings, const FunctionSignature &signature) {
  GivenArguments given{settings.seed, {}};
  for (StringRef text : settings.args) {
    if (!text.getAsInteger(10, given.seed))
      continue;
    auto tensors = readNpz(text);
    if (!tensors)
      return tensors.takeError();
    bool used = false;
    for (auto &[name, tensor] : *tensors) {
      used |= llvm::is_contained(
          llvm::map_range(signature.arguments,
                          [](const TensorSignature &a) { return a.name; }),
          name);
      given.tensors[name] = std::move(tensor);
    }
    if (!used)
      return createStringError("no array of '" + text +
                               "' has the name of an argument of '" +
                               signature.name + "'");
  }
  if (settings.inputs.size() > signature.arguments.size())
    return createStringError("function '" + signature.name + "' has " +
                             llvm::Twine(signature.arguments.size()) +
                             " arguments, got " +
                             llvm::Twine(settings.inputs.size()) + " inputs");
  for (auto [index, path] : llvm::enumerate(settings.inputs)) {
    auto tensor = readNpy(path);
    if (!tensor)
      return tensor.takeError();
    given.tensors[signature.arguments[index].name] = std::move(*tensor);
  }
  return given;
}

namespace {
/// Multiply-adds, and those of them with no zero of a padding.
struct MacCount {
  int64_t all = 0, existing = 0;
};
} // namespace

/// Of the operators, their gradients and linalg operations in the function;
/// what is done once per point of a tensor, such as a rectifier, does not
/// count.
static MacCount countMACs(mlir::func::FuncOp function) {
  MacCount macs;
  function.walk([&](ApplyOp apply) {
    auto emitError = [&] { return apply.emitOpError(); };
    OperatorOp op = apply.getOperator();
    mlir::FailureOr<Cost> cost = getCost(apply);
    if (mlir::failed(cost))
      return;
    mlir::FailureOr<Binding> binding = inferBinding(apply, op, emitError);
    macs.all += cost->macs;
    macs.existing += *getExistingMacs(op, *binding, emitError);
  });
  // Each product of the operator gives one of the gradient.
  function.walk([&](ApplyGradientOp apply) {
    auto emitError = [&] { return apply.emitOpError(); };
    OperatorOp op = apply.getOperator();
    mlir::FailureOr<Cost> cost = getCost(op, Binding(), emitError);
    if (mlir::failed(cost))
      return;
    macs.all += cost->macs;
    macs.existing += *getExistingMacs(op, Binding(), emitError);
  });
  function.walk([&](mlir::linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    int64_t products = 0;
    for (mlir::Operation &inner : *op.getBlock())
      products += mlir::isa<mlir::arith::MulFOp>(inner);
    if (products == 0)
      return;
    int64_t points = 1;
    for (int64_t range : op.getStaticLoopRanges())
      points *= range;
    macs.all += points * products;
    macs.existing += codegen::countExistingIterations(op) * products;
  });
  return macs;
}

/// The expected results: of a .npy or .npz file, or of another module's
/// function of the same name, run on the same arguments.
static Expected<SmallVector<Tensor>>
getExpected(mlir::MLIRContext &context, const RunSettings &settings,
            const GivenArguments &given, const FunctionSignature &signature) {
  StringRef path = settings.checkFile;
  SmallVector<Tensor> expected;
  if (path.ends_with(".npy")) {
    auto tensor = readNpy(path);
    if (!tensor)
      return tensor.takeError();
    expected.push_back(std::move(*tensor));
    return expected;
  }
  if (path.ends_with(".npz")) {
    auto tensors = readNpz(path);
    if (!tensors)
      return tensors.takeError();
    for (const TensorSignature &result : signature.results) {
      auto *found = tensors->find(result.name);
      if (found == tensors->end() && signature.results.size() == 1)
        found = tensors->find("output");
      if (found == tensors->end())
        return createStringError("'" + path + "' has no array '" + result.name +
                                 "'");
      expected.push_back(std::move(found->second));
    }
    return expected;
  }

  auto module = parseModule(context, path);
  if (!module)
    return module.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  auto function = compileForCPU(**module, settings.function, pipeline);
  if (!function)
    return function.takeError();
  auto arguments =
      function->getSignature().makeArguments(given.tensors, given.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = function->getSignature().makeResults();
  if (!results)
    return results.takeError();
  if (llvm::Error error = (*function)(*arguments, *results))
    return error;
  return results;
}

static llvm::Error compare(const FunctionSignature &signature,
                           llvm::ArrayRef<Tensor> actual,
                           llvm::ArrayRef<Tensor> expected,
                           double &maxRelativeError) {
  if (actual.size() != expected.size())
    return createStringError("function '" + signature.name + "' has " +
                             llvm::Twine(actual.size()) +
                             " results, the one to compare with has " +
                             llvm::Twine(expected.size()));
  maxRelativeError = 0;
  for (auto [a, e] : llvm::zip(actual, expected)) {
    if (a.getShape() != e.getShape())
      return createStringError("the result to compare with must have shape " +
                               shapeToString(a.getShape()) + ", got " +
                               shapeToString(e.getShape()));
    maxRelativeError =
        std::max(maxRelativeError, kas::execution::maxRelativeError(a, e));
  }
  return llvm::Error::success();
}

static llvm::Error checkSettings(const RunSettings &settings) {
  if (settings.device != "cpu" && !isEmulator(settings.device) &&
      !isRuntimeDevice(settings.device))
    return createStringError("expected the device 'cpu', 'cuda', 'vulkan' or "
                             "'emulator' for a function, got '" +
                             settings.device + "'");
  if (settings.exact)
    return checkExactSettings(settings);
  if (settings.check && settings.checkFile.empty())
    return createStringError(
        "--check of a function needs a file (--check=other.mlir or "
        "--check=expected.npy), or --check=exact where it consists of "
        "kas.apply alone");
  return llvm::Error::success();
}

Expected<RunReport> kas::runFunction(mlir::MLIRContext &context,
                                     const RunSettings &settings) {
  if (llvm::Error error = checkSettings(settings))
    return error;
  auto module = parseModule(context, settings.file);
  if (!module)
    return module.takeError();
  auto signature = FunctionSignature::get(**module, settings.function);
  if (!signature)
    return signature.takeError();
  RunReport report;
  report.kind = "function";
  report.name = settings.function;
  report.device = settings.device;
  MacCount macs =
      countMACs((*module)->lookupSymbol<mlir::func::FuncOp>(settings.function));
  report.macs = macs.all;
  report.existingMacs = macs.existing;
  report.params = countParameters(*signature);
  if (settings.exact) {
    if (llvm::Error error =
            checkExactly(**module, settings.function, settings, report))
      return error;
    return report;
  }
  auto given = readArguments(settings, *signature);
  if (!given)
    return given.takeError();
  auto arguments = signature->makeArguments(given->tensors, given->seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();

  if (llvm::Error error = runOnDevice(**module, settings.function, settings,
                                      *arguments, *results, report))
    return error;
  if (!settings.output.empty())
    if (llvm::Error error = writeResults(settings.output, *signature, *results))
      return error;
  if (!settings.check)
    return report;
  auto expected = getExpected(context, settings, *given, *signature);
  if (!expected)
    return expected.takeError();
  double error = 0;
  if (llvm::Error failure = compare(*signature, *results, *expected, error))
    return failure;
  report.maxRelativeError = error;
  report.ok = error <= settings.tolerance;
  return report;
}
