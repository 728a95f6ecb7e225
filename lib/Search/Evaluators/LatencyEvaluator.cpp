//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator `latency`: times compiled candidates in worker processes, in
// turn with a reference kernel.
//
// The measurement itself is in `kas-run --worker`; this file sets up the
// workers and checks their answers.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/LatencyEvaluator.h"
#include "Program.h"
#include "kas/Search/Evaluators/ExternalEvaluator.h"
#include "llvm/Support/Compiler.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// A thin wrapper: `workers` is an external evaluator.
class LatencyEvaluator final : public Evaluator {
public:
  LatencyEvaluator(std::unique_ptr<Evaluator> workers,
                   std::optional<double> budget)
      : workers(std::move(workers)), budget(budget) {}

  llvm::StringRef getName() const override { return "latency"; }
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    // The budget of the space is checked here, since only now the time is
    // known.
    Expected<Metrics> metrics = check(workers->evaluate(solution));
    if (metrics && budget && metrics->at("latency_ms") > *budget)
      return createStringError("over the latency budget");
    return metrics;
  }
  Expected<Metrics> evaluateBaseline(const Baseline &baseline) override {
    // A network whose layers have no operator is not there for the runner.
    if (!baseline.solution)
      return Metrics();
    // The runner gets the operators of the network like a candidate.
    Baseline asked = baseline;
    asked.isNetwork = false;
    return check(workers->evaluateBaseline(asked));
  }

private:
  /// A runner of somebody else may answer with other metrics only.
  static Expected<Metrics> check(Expected<Metrics> metrics) {
    if (metrics && !metrics->count("latency_ms"))
      return createStringError("the runner reports no latency_ms");
    return metrics;
  }

  std::unique_ptr<Evaluator> workers;
  std::optional<double> budget;
};

} // namespace

/// Whether the worker can open its device: without a driver each candidate
/// would fail, and the search would end well with nothing. The probe is a
/// request of its own kind that `kas-run` answers without a candidate.
static Error probeDevice(Evaluator &workers, llvm::StringRef device) {
  Baseline probe;
  probe.text.noun = "probe";
  if (Error error = workers.evaluateBaseline(probe).takeError())
    return createStringError(
        "requires the device '" + device +
        "' for the evaluator 'latency': " + llvm::toString(std::move(error)));
  return Error::success();
}

/// With a device, memory is not limited: see below.
Expected<std::unique_ptr<Evaluator>>
kas::search::makeLatencyEvaluator(const EvaluatorSettings &settings) {
  // `cuda:1` is device 1 of CUDA.
  llvm::StringRef device = llvm::StringRef(settings.device).split(':').first;
  bool isCPU = settings.device.empty() || settings.device == "cpu";
  if (!isCPU && device != "cuda" && device != "vulkan")
    return createStringError(
        "expected the device 'cpu', 'cuda' or 'vulkan', got '" +
        settings.device + "'");
  // An explicit path in the options, else the program of this build.
  Expected<std::string> runner = findProgram(settings.runner, "kas-run");
  if (!runner)
    return runner.takeError();
  EvaluatorSettings workers = settings;
  // One thread per worker: parallel measurements are up to `workers`. 7 runs,
  // of which the median counts.
  workers.command =
      "exec " + quoteForShell(*runner) + " --worker --threads=1 --runs=7";
  if (!isCPU)
    workers.command += " --device=" + quoteForShell(settings.device);
  // A candidate that crashes its worker would crash the next one, too.
  workers.retries = 0;
  // Sanitizers take terabytes of address space, though not memory, and so do
  // drivers of devices. With a limit of 8 GiB a candidate that allocates
  // without bound fails alone.
  constexpr bool isSanitized =
      LLVM_ADDRESS_SANITIZER_BUILD + LLVM_THREAD_SANITIZER_BUILD != 0;
  if (isCPU && !workers.memoryLimit && !isSanitized)
    workers.memoryLimit = 8192;
  Expected<std::unique_ptr<Evaluator>> evaluator =
      makeExternalEvaluator(workers);
  if (!evaluator)
    return evaluator.takeError();
  // Other programs need not know this request.
  if (!isCPU && settings.runner.empty())
    if (Error error = probeDevice(**evaluator, settings.device))
      return error;
  return std::make_unique<LatencyEvaluator>(
      std::move(*evaluator),
      settings.problem ? settings.problem->budget.maxLatencyMs : std::nullopt);
}
