//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --check=exact: random integers for which nothing rounds, compared bit by bit
// with the reference.
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/Reference/ExactCheck.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using llvm::createStringError;
using llvm::Error;

static unsigned getBits(GPUPrecision precision) {
  switch (precision) {
  case GPUPrecision::F32:
    return 24;
  case GPUPrecision::BF16:
    return 8;
  case GPUPrecision::TF32:
  case GPUPrecision::F16:
    return 11;
  }
  llvm_unreachable("unknown precision");
}

static unsigned getBits(codegen::GPUElements elements) {
  switch (elements) {
  case codegen::GPUElements::F32:
    return 24;
  case codegen::GPUElements::F16:
    return 11;
  case codegen::GPUElements::BF16:
    return 8;
  }
  llvm_unreachable("unknown elements");
}

Error kas::checkExactSettings(const RunSettings &settings) {
  auto refuse = [](llvm::StringRef option) {
    return createStringError("--check=exact draws all values itself, from "
                             "--seed, got --" +
                             option);
  };
  if (!settings.inputs.empty())
    return refuse("input");
  if (!settings.weights.empty())
    return refuse("weight");
  if (!settings.args.empty())
    return refuse("args");
  if (!settings.output.empty())
    return createStringError("--check=exact has several results, got --output");
  return Error::success();
}

namespace {
/// What is checked, where it runs.
struct CheckedFunction {
  const ExactProblem &problem;
  /// Null: the reference itself.
  LoadedFunction *loaded;
  llvm::SmallVector<Tensor> arguments, results;

  Error allocate();
  Error run(const ExactCheck::Draw &draw,
            llvm::MutableArrayRef<TensorValues> values);
};
} // namespace

Error CheckedFunction::allocate() {
  auto add = [](llvm::ArrayRef<int64_t> shape,
                llvm::SmallVectorImpl<Tensor> &tensors) -> Error {
    auto tensor = Tensor::create(shape);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
    return Error::success();
  };
  for (const ExactProblem::Input &input : problem.inputs)
    if (Error error = add(input.shape, arguments))
      return error;
  for (const ExactProblem::Result &result : problem.results)
    if (Error error = add(result.shape, results))
      return error;
  return Error::success();
}

Error CheckedFunction::run(const ExactCheck::Draw &draw,
                           llvm::MutableArrayRef<TensorValues> values) {
  if (!loaded)
    return problem.evaluate(draw.inputs, values);
  for (auto [from, to] : llvm::zip_equal(draw.inputs, arguments))
    llvm::copy(from, to.getValues().begin());
  for (auto [from, to] : llvm::zip_equal(values, results))
    llvm::copy(from, to.getValues().begin());
  if (Error error = loaded->run(arguments, results))
    return error;
  for (auto [from, to] : llvm::zip_equal(results, values))
    llvm::copy(from.getValues(), to.begin());
  return Error::success();
}

Error kas::checkExactly(mlir::ModuleOp module, llvm::StringRef name,
                        const RunSettings &settings, RunReport &report) {
  auto problem = getExactProblem(module, name);
  if (!problem)
    return problem.takeError();
  CheckedFunction function{*problem, nullptr, {}, {}};
  if (Error error = function.allocate())
    return error;
  ExactOptions options;
  options.seed = settings.seed;
  options.draws = settings.draws;
  options.format.elementBits = getBits(settings.elements);
  options.format.factorBits =
      std::min(getBits(settings.precision), options.format.elementBits);
  auto check = ExactCheck::create(*problem, options);
  if (!check)
    return check.takeError();
  report.exact = check->describe();
  report.exactFields = check->toJSON();

  std::unique_ptr<LoadedFunction> loaded;
  if (settings.device != "reference") {
    auto program = loadOnDevice(module, name, settings, report);
    if (!program)
      return program.takeError();
    loaded = std::move(*program);
    function.loaded = loaded.get();
  }
  auto difference =
      check->findDifference([&](const ExactCheck::Draw &draw,
                                llvm::MutableArrayRef<TensorValues> values) {
        return function.run(draw, values);
      });
  if (!difference)
    return difference.takeError();
  report.difference = *difference;
  report.ok = !report.difference;
  if (!loaded)
    return Error::success();
  if (settings.time && report.ok) {
    auto timing = loaded->measure(function.arguments, function.results,
                                  getTimingOptions(settings));
    if (!timing)
      return timing.takeError();
    report.timing = *timing;
  }
  return loaded->close();
}
