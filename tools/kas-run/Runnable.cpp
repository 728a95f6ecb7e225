//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by running an operator and running a kernel: devices, data,
// the comparison with the reference.
//
//===----------------------------------------------------------------------===//

#include "Runnable.h"
#include "DeviceRun.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static bool isReference(const RunSettings &settings) {
  return settings.device == "reference";
}

/// `an operator` or `a kernel`.
static std::string getNoun(StringRef kind) {
  return ((StringRef("aeiou").contains(kind.front()) ? "an " : "a ") + kind)
      .str();
}

std::string kas::formatBinding(const SymbolSet &symbols,
                               const Binding &binding) {
  std::string text;
  for (auto [index, value] : llvm::enumerate(binding))
    text += (llvm::Twine(index ? "," : "") + symbols.getName(index) + "=" +
             llvm::Twine(value))
                .str();
  return text;
}

Error kas::checkSettings(StringRef kind, const RunSettings &settings) {
  if (settings.device != "cpu" && !isReference(settings) &&
      !isEmulator(settings.device) && !isRuntimeDevice(settings.device))
    return createStringError("expected the device 'cpu', 'reference', 'cuda', "
                             "'vulkan' or 'emulator', got '" +
                             settings.device + "'");
  if (!settings.checkFile.empty())
    return createStringError(
        getNoun(kind) +
        " is checked against the reference, got --check=" + settings.checkFile);
  return settings.exact ? checkExactSettings(settings) : Error::success();
}

/// The arrays of `--input` and `--weight` by the names of the arguments.
static Expected<NamedTensors> readArrays(const Runnable &runnable,
                                         const RunSettings &settings,
                                         const FunctionSignature &signature) {
  NamedTensors given;
  auto read = [&](llvm::ArrayRef<std::string> paths, size_t first, size_t count,
                  StringRef what) -> Error {
    if (paths.size() > count)
      return createStringError(
          "the " + runnable.kind + " has " + llvm::Twine(count) + " " + what +
          (count == 1 ? "" : "s") + ", got " + llvm::Twine(paths.size()));
    for (auto [index, path] : llvm::enumerate(paths)) {
      auto tensor = readNpy(path);
      if (!tensor)
        return tensor.takeError();
      given.insert(
          {signature.arguments[first + index].name, std::move(*tensor)});
    }
    return Error::success();
  };
  size_t numInputs = runnable.numInputs;
  if (Error error = read(settings.inputs, 0, numInputs, "input"))
    return error;
  if (Error error = read(settings.weights, numInputs,
                         signature.arguments.size() - numInputs, "weight"))
    return error;
  return given;
}

static Error run(const Runnable &runnable, const RunSettings &settings,
                 llvm::ArrayRef<Tensor> arguments,
                 llvm::MutableArrayRef<Tensor> results, RunReport &report) {
  if (!isReference(settings))
    return runOnDevice(runnable.module, runnable.function, settings, arguments,
                       results, report);
  auto evaluate = [&] { return runnable.evaluate(arguments, results.front()); };
  if (Error error = evaluate())
    return error;
  if (settings.time)
    report.timing = measure([&] { llvm::cantFail(evaluate()); },
                            getTimingOptions(settings));
  return Error::success();
}

Error kas::runAndCheck(const Runnable &runnable, const RunSettings &settings,
                       RunReport &report) {
  // The cost alone needs no data.
  if (settings.cost && !settings.time && !settings.check &&
      settings.output.empty())
    return Error::success();
  if (settings.exact)
    return checkExactly(runnable.module, runnable.function, settings, report);
  auto signature = FunctionSignature::get(runnable.module, runnable.function);
  if (!signature)
    return signature.takeError();
  auto given = readArrays(runnable, settings, *signature);
  if (!given)
    return given.takeError();
  auto arguments = signature->makeArguments(*given, settings.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  if (Error error = run(runnable, settings, *arguments, *results, report))
    return error;
  if (!settings.output.empty())
    if (Error error = writeResults(settings.output, *signature, *results))
      return error;
  if (!settings.check)
    return Error::success();
  Tensor expected(results->front().getShape());
  if (Error error = runnable.evaluate(*arguments, expected))
    return error;
  report.maxRelativeError = maxRelativeError(results->front(), expected);
  report.ok = *report.maxRelativeError <= settings.tolerance;
  return Error::success();
}
