//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times a schedule on the CPU in a forked process, in turn with the cost
// model's choice, and compares results with plain loops.
// The parent compiles the unscheduled module once; each candidate is a child
// that inherits it, compiles its own and times both, so a crash or an endless
// loop costs one candidate. Time of the processor is used for one thread: what
// else runs on the machine takes wall-clock time from it, but little of this.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ForkedRunner.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <time.h>

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

/// Seconds that this thread has run; with more threads, those of the clock.
static double getSeconds(unsigned threads) {
  timespec now = {};
  if (threads != 1 || ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
    return monotonicSeconds();
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

Expected<std::unique_ptr<ForkedRunner>>
ForkedRunner::create(mlir::ModuleOp module, llvm::StringRef function,
                     const MeasureOptions &options) {
  std::unique_ptr<ForkedRunner> runner(new ForkedRunner(options));
  runner->module = module;
  runner->name = function.str();
  runner->pipeline.threads = options.threads;
  // Weights are packed before times are taken, as they are in inference.
  runner->pipeline.prepackWeights = true;
  auto compiled = compileForCPU(module, function, runner->pipeline);
  if (!compiled)
    return compiled.takeError();
  const FunctionSignature &signature = compiled->getSignature();
  auto arguments = signature.makeArguments({}, options.seed);
  if (!arguments)
    return arguments.takeError();
  // Random values by the seed: the same for all candidates of a kernel.
  runner->arguments = std::move(*arguments);
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  if (Error error = compiled->prepack(runner->arguments))
    return error;
  if (Error error = (*compiled)(runner->arguments, *results))
    return error;
  // The first run is the reference for results, too.
  runner->unchanged = std::make_unique<CompiledFunction>(std::move(*compiled));
  runner->expected = std::move(*results);
  if (options.plainLoops)
    if (Error error = runner->compareWithLoops())
      return error;
  return runner;
}

/// Takes the results of plain loops as the expected ones, and checks the cost
/// model's code against them. Loops are slow: this runs only where the caller
/// asks for them as a baseline.
Error ForkedRunner::compareWithLoops() {
  CPUPipelineOptions plain = pipeline;
  // No register tiles, so no emitter of tiles can be wrong in both.
  plain.prepackWeights = false;
  plain.registerTiles = false;
  auto reference = compileForCPU(module, name, plain);
  if (!reference)
    return reference.takeError();
  auto results = reference->getSignature().makeResults();
  if (!results)
    return results.takeError();
  double start = getSeconds(options.threads);
  if (Error error = (*reference)(arguments, *results))
    return error;
  plainMs = (getSeconds(options.threads) - start) * 1e3;
  // The order of sums differs, so the comparison is within the tolerance.
  llvm::SmallVector<Tensor> tiled =
      std::exchange(expected, std::move(*results));
  Expected<double> error = check(tiled);
  return error ? Error::success() : error.takeError();
}

/// Interleaves runs of both, `pairs` times, and takes the least of each: what
/// else runs on the machine makes times longer, never shorter. Short ones run
/// several times at once.
static void comparePairs(llvm::function_ref<void()> base,
                         llvm::function_ref<void()> variant, int64_t pairs,
                         unsigned threads, StoredMeasurement &measurement) {
  auto time = [threads](llvm::function_ref<void()> function, int64_t times) {
    double start = getSeconds(threads);
    for (int64_t i = 0; i < times; ++i)
      function();
    return (getSeconds(threads) - start) * 1e3 / static_cast<double>(times);
  };
  // Long against the resolution of the clock and the cost of a call; the upper
  // bound keeps kernels of a few nanoseconds from taking forever.
  constexpr double leastMs = 0.1, mostTimes = 1000;
  // A run each before: caches, page faults, threads that start.
  time(variant, 1);
  double first = time(base, 1);
  auto times = static_cast<int64_t>(
      std::clamp(std::ceil(leastMs / std::max(first, 1e-6)), 1., mostTimes));
  measurement.ms = measurement.defaultMs =
      std::numeric_limits<double>::infinity();
  // One after the other, so that a change of the clock frequency meets both
  // alike: the ratio is steadier than either time.
  for (int64_t pair = 0; pair < pairs; ++pair) {
    measurement.defaultMs = std::min(measurement.defaultMs, time(base, times));
    measurement.ms = std::min(measurement.ms, time(variant, times));
  }
  measurement.ratio = measurement.ms / measurement.defaultMs;
}

/// Compiles the module as it is now, checks and times it.
Expected<StoredMeasurement> ForkedRunner::compileAndTime(int64_t scale) {
  auto function = compileForCPU(module, name, pipeline);
  if (!function)
    return function.takeError();
  auto results = function->getSignature().makeResults();
  if (!results)
    return results.takeError();
  // Packs the weights in the layout of this schedule.
  if (Error error = function->prepack(arguments))
    return error;
  if (Error error = (*function)(arguments, *results))
    return error;
  Expected<double> error = check(*results);
  if (!error)
    return error.takeError();
  StoredMeasurement measurement;
  measurement.compileMs = function->getCompileMilliseconds();
  measurement.error = *error;
  // Both have run on these arguments: their assertions hold.
  comparePairs([&] { llvm::cantFail((*unchanged)(arguments, *results)); },
               [&] { llvm::cantFail((*function)(arguments, *results)); },
               options.runs * scale, options.threads, measurement);
  return measurement;
}
