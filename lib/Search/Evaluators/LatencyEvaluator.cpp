//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/LatencyEvaluator.h"
#include "kas/Search/Evaluators/ExternalEvaluator.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

namespace {

class LatencyEvaluator final : public Evaluator {
public:
  LatencyEvaluator(std::unique_ptr<Evaluator> workers,
                   std::optional<double> budget)
      : workers(std::move(workers)), budget(budget) {}

  llvm::StringRef getName() const override { return "latency"; }
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    Expected<Metrics> metrics = workers->evaluate(solution);
    if (!metrics)
      return metrics;
    auto latency = metrics->find("latency_ms");
    if (latency == metrics->end())
      return createStringError("the runner reports no latency_ms");
    if (budget && latency->second > *budget)
      return createStringError("over the latency budget");
    return metrics;
  }

private:
  std::unique_ptr<Evaluator> workers;
  std::optional<double> budget;
};

} // namespace

/// `kas-run` beside the running executable, else on the path.
static Expected<std::string> findRunner(llvm::StringRef name) {
  bool isPath = name.contains('/');
  if (name.empty()) {
    static int anchor;
    llvm::SmallString<128> beside(llvm::sys::path::parent_path(
        llvm::sys::fs::getMainExecutable(nullptr, &anchor)));
    llvm::sys::path::append(beside, "kas-run");
    if (llvm::sys::fs::can_execute(beside))
      return beside.str().str();
    name = "kas-run";
  }
  if (isPath) {
    if (llvm::sys::fs::can_execute(name))
      return name.str();
  } else if (llvm::ErrorOr<std::string> found =
                 llvm::sys::findProgramByName(name)) {
    return *found;
  }
  return createStringError("requires a program that runs candidates, found no "
                           "executable '" +
                           name + "'");
}

/// `text` as one word of the shell.
static std::string quote(llvm::StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

Expected<std::unique_ptr<Evaluator>>
kas::search::makeLatencyEvaluator(const EvaluatorSettings &settings) {
  llvm::StringRef device = llvm::StringRef(settings.device).split(':').first;
  bool isCPU = settings.device.empty() || settings.device == "cpu";
  if (!isCPU && device != "cuda" && device != "vulkan")
    return createStringError(
        "requires a device of cpu, cuda and vulkan, got '" + settings.device +
        "'");
  Expected<std::string> runner = findRunner(settings.runner);
  if (!runner)
    return runner.takeError();
  EvaluatorSettings workers = settings;
  workers.command = "exec " + quote(*runner) + " --worker --threads=1 --runs=7";
  if (!isCPU)
    workers.command += " --device=" + quote(settings.device);
  workers.retries = 0;
  // Sanitizers take terabytes of address space, though not memory, and so do
  // drivers of devices.
  if (isCPU && !workers.memoryLimit && !LLVM_ADDRESS_SANITIZER_BUILD &&
      !LLVM_THREAD_SANITIZER_BUILD)
    workers.memoryLimit = 8192;
  Expected<std::unique_ptr<Evaluator>> evaluator =
      makeExternalEvaluator(workers);
  if (!evaluator)
    return evaluator.takeError();
  return std::make_unique<LatencyEvaluator>(
      std::move(*evaluator),
      settings.problem ? settings.problem->budget.maxLatencyMs : std::nullopt);
}
