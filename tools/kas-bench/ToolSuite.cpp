//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

static TimingOptions getTimingOptions(const BenchSettings &settings) {
  TimingOptions options;
  options.seconds = settings.seconds;
  return options;
}

/// From the start of the process to its end, output thrown away.
static Error measureStartup(StringRef tool, const BenchSettings &settings,
                            BenchReport &report) {
  std::string name = ("startup/" + tool).str();
  if (!isSelected(settings, name))
    return Error::success();
  llvm::SmallString<128> path(llvm::sys::path::parent_path(settings.program));
  llvm::sys::path::append(path, tool);
  if (!llvm::sys::fs::can_execute(path))
    return createStringError("cannot run '" + path + "'");
  const StringRef arguments[] = {path, "--version"};
  const std::optional<StringRef> redirects[] = {StringRef(), StringRef(),
                                                StringRef()};
  bool failed = false;
  Timing timing = measure(
      [&] {
        failed |= llvm::sys::ExecuteAndWait(path, arguments, std::nullopt,
                                            redirects) != 0;
      },
      getTimingOptions(settings));
  if (failed)
    return createStringError("'" + path + " --version' failed");
  BenchLine line{name,   "startup_ms", timing.median, "ms",
                 timing, std::nullopt, std::nullopt};
  report.print(line);
  report.addToMean("startup", line);
  return Error::success();
}

/// From the module with one operator to the function that can be called, in a
/// process that has compiled before, without a cache.
static Error measureCompilation(mlir::MLIRContext &context, StringRef op,
                                StringRef binding,
                                const BenchSettings &settings,
                                BenchReport &report) {
  std::string name = ("compile/" + op).str();
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, op, binding);
  if (!loaded)
    return loaded.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  // As the latency evaluator of a search does.
  pipeline.prepackWeights = true;
  Error failure = Error::success();
  auto compile = [&] {
    auto function =
        compileForCPU(*loaded->module, operatorFunctionName, pipeline);
    if (!function)
      failure = llvm::joinErrors(std::move(failure), function.takeError());
  };
  // One attempt first: if it fails, so would all others.
  compile();
  if (failure)
    return failure;
  Timing timing = measure(compile, getTimingOptions(settings));
  if (failure)
    return failure;
  BenchLine line{name,   "compile_ms", timing.median, "ms",
                 timing, std::nullopt, std::nullopt};
  report.print(line);
  report.addToMean("compile", line);
  return Error::success();
}

Error kas::runToolSuite(mlir::MLIRContext &context,
                        const BenchSettings &settings, BenchReport &report) {
  for (StringRef tool : {"kas-opt", "kas-run"})
    if (Error error = measureStartup(tool, settings, report))
      return error;
  const std::pair<StringRef, StringRef> operators[] = {
      {"kas.conv2d", "N=1,Cin=64,Cout=64,H=56,W=56,k=3"},
      {"kas.conv1x1", "N=1,Cin=256,Cout=256,H=14,W=14"},
      {"kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=8"},
      {"kas.conv2d_depthwise", "N=1,C=64,H=56,W=56,k=3"},
      {"kas.matmul", "M=512,N=512,K=512"},
  };
  for (auto [op, binding] : operators)
    if (Error error =
            measureCompilation(context, op, binding, settings, report))
      return error;
  return Error::success();
}
