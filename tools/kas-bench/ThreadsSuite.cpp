//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gain by more threads: each operator is compiled for one thread and for
// several, and both are timed interleaved.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "Peak.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include <thread>

using namespace kas;
using namespace kas::execution;
using llvm::Error;
using llvm::StringRef;

/// Layers of more than 50 MFLOP, of all kinds: less work is not worth sharing.
static constexpr std::pair<StringRef, StringRef> cases[] = {
    {"kas.conv2d", "N=1,Cin=64,Cout=64,H=56,W=56,k=3"},
    {"kas.conv2d", "N=1,Cin=128,Cout=128,H=28,W=28,k=3"},
    {"kas.conv2d", "N=1,Cin=256,Cout=256,H=14,W=14,k=3"},
    {"kas.conv2d", "N=1,Cin=512,Cout=512,H=7,W=7,k=3"},
    {"kas.conv2d_strided", "N=1,Cin=64,Cout=128,H=56,W=56,k=3,s=2"},
    {"kas.conv2d_strided", "N=1,Cin=3,Cout=64,H=224,W=224,k=7,s=2"},
    {"kas.conv1x1", "N=1,Cin=64,Cout=256,H=56,W=56"},
    {"kas.conv1x1", "N=1,Cin=256,Cout=64,H=56,W=56"},
    {"kas.conv1x1", "N=1,Cin=512,Cout=128,H=28,W=28"},
    {"kas.conv1x1", "N=1,Cin=1024,Cout=256,H=14,W=14"},
    {"kas.conv1x1", "N=1,Cin=2048,Cout=512,H=7,W=7"},
    {"kas.matmul", "M=512,N=512,K=512"},
    {"kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2"},
    {"kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=4"},
    {"kas.conv2d_dilated", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,d=2,p=2"},
    {"kas.syno_operator1", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
    {"kas.syno_operator2", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
};

static TimingOptions getTimingOptions(const BenchSettings &settings) {
  TimingOptions options;
  options.seconds = settings.seconds;
  return options;
}

static std::string getMetricName(const BenchSettings &settings) {
  return "scaling_" + std::to_string(settings.threads) + "_threads";
}

/// What the machine itself gives: multiply-adds in registers on all threads.
static Error measurePeak(mlir::MLIRContext &context,
                         const BenchSettings &settings, BenchReport &report) {
  if (!isSelected(settings, "peak"))
    return Error::success();
  std::vector<TimedFunction> kernels;
  for (unsigned thread = 0; thread < settings.threads; ++thread) {
    auto kernel = compilePeak(context);
    if (!kernel)
      return kernel.takeError();
    kernels.push_back(std::move(*kernel));
  }
  // Long enough that starting threads does not count.
  constexpr int repetitions = 100;
  auto repeat = [](TimedFunction &kernel) {
    for (int i = 0; i < repetitions; ++i)
      kernel.run();
  };
  auto timings = measureInterleaved(
      {[&] { repeat(kernels.front()); },
       [&] {
         std::vector<std::thread> others;
         for (TimedFunction &kernel : llvm::drop_begin(kernels))
           others.emplace_back([&] { repeat(kernel); });
         repeat(kernels.front());
         for (std::thread &thread : others)
           thread.join();
       }},
      getTimingOptions(settings));
  report.print({"peak", getMetricName(settings),
                settings.threads * timings[0].median / timings[1].median, ""});
  return Error::success();
}

static Error measureOperator(mlir::MLIRContext &context, StringRef op,
                             StringRef binding, const BenchSettings &settings,
                             BenchReport &report) {
  std::string name = (op + "<" + binding + ">").str();
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, op, binding);
  if (!loaded)
    return loaded.takeError();
  std::vector<CompiledFunction> functions;
  for (unsigned threads : {1u, settings.threads}) {
    CPUPipelineOptions pipeline;
    pipeline.threads = threads;
    pipeline.prepackWeights = true;
    auto function =
        compileForCPU(*loaded->module, operatorFunctionName, pipeline);
    if (!function)
      return function.takeError();
    functions.push_back(std::move(*function));
  }
  const FunctionSignature &signature = functions.front().getSignature();
  auto arguments = signature.makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  for (CompiledFunction &function : functions)
    if (Error error = function.prepack(*arguments))
      return error;
  auto run = [&](const CompiledFunction &function) {
    llvm::cantFail(function(*arguments, *results));
  };
  auto timings = measureInterleaved(
      {[&] { run(functions[0]); }, [&] { run(functions[1]); }},
      getTimingOptions(settings));
  BenchLine line{name, getMetricName(settings),
                 timings[0].median / timings[1].median, ""};
  report.print({name, "time_ms", timings[1].median, "ms", timings[1]});
  report.print(line);
  report.addToMean("threads", line);
  return Error::success();
}

Error kas::runThreadsSuite(mlir::MLIRContext &context,
                           const BenchSettings &given, BenchReport &report) {
  BenchSettings settings = given;
  settings.threads = std::max(2u, settings.threads);
  if (Error error = measurePeak(context, settings, report))
    return error;
  for (auto [op, binding] : cases)
    if (Error error = measureOperator(context, op, binding, settings, report))
      return error;
  return Error::success();
}
