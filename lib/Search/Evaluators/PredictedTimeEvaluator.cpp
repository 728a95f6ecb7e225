//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator `predicted_ms`: times by the machine model
// (docs/internals/predicted-times.md).
//
// A prediction describes the stages of the operator as loop nests, counts their
// work (arithmetic, vectors, cache lines, ...), and lets the model, a fit to
// measurements, turn counts into time.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "kas/Search/Operators/ReadOperator.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;
using schedule::MachineModel;
using schedule::StageWork;
using schedule::Work;

/// One element per binding: the counts of all stages added up. Times are not
/// additive in general, but the model is linear in the counts.
std::vector<StageWork> TimePredictor::getWork(const OperatorGraph &graph) {
  std::vector<StageWork> works;
  nests.describe(
      graph, [&](unsigned, llvm::ArrayRef<schedule::LoopNest> stages) {
        StageWork &sum = works.emplace_back();
        for (const schedule::LoopNest &stage : stages) {
          StageWork work = getStageWork(stage, target);
          for (auto [total, count] : llvm::zip_equal(sum.counts, work.counts))
            total += count;
        }
        // One call of the operator: the model has a constant for it.
        sum[Work::Operator] = 1;
      });
  return works;
}

/// Milliseconds. `predict` of the model is for one call at one binding.
double TimePredictor::predict(const OperatorGraph &graph) {
  double sum = 0;
  for (auto [work, multiplicity] :
       llvm::zip_equal(getWork(graph), problem->multiplicities))
    sum += model.predict(work) * static_cast<double>(multiplicity);
  return sum;
}

/// Never fails for a missing file: searches must run on machines that nobody
/// calibrated, and the order of candidates is what matters most.
Expected<MachineModel> kas::search::loadMachineModel(
    llvm::StringRef cpu, llvm::function_ref<void(const std::string &)> report) {
  std::string path = MachineModel::getPath(cpu);
  if (path.empty() || !llvm::sys::fs::exists(path)) {
    report("predicted_ms is that of a usual machine: there is no machine model "
           "in '" +
           path + "'; 'kas-bench calibrate' makes one");
    return MachineModel::getUsual(cpu);
  }
  // A broken file is an error, since its owner believes it to be in use.
  auto fail = [&](const llvm::Twine &reason) {
    return createStringError("machine model '" + path + "': " + reason +
                             "; 'kas-bench calibrate' makes a new one");
  };
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return fail(buffer.getError().message());
  Expected<MachineModel> model =
      MachineModel::parse((*buffer)->getBuffer(), cpu);
  if (!model)
    return fail(llvm::toString(model.takeError()));
  return model;
}

/// For the CPU that the compiler targets, which need not be the host.
Expected<TimePredictor>
TimePredictor::create(std::shared_ptr<const SearchProblem> problem,
                      llvm::function_ref<void(const std::string &)> report) {
  Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  Expected<MachineModel> model = loadMachineModel(target->cpu, report);
  if (!model)
    return model.takeError();
  return TimePredictor(std::move(problem), *target, std::move(*model));
}

/// For one operator outside of a search: it is read back into a graph.
Expected<double> kas::search::predictTime(OperatorOp op,
                                          const Binding &binding) {
  Expected<GivenOperator> given = readOperator(op, binding);
  if (!given)
    return given.takeError();
  // Without messages: the caller wants one number.
  Expected<TimePredictor> predictor =
      TimePredictor::create(given->problem, [](const std::string &) {});
  if (!predictor)
    return predictor.takeError();
  return predictor->predict(*given->graph);
}

namespace {
/// Locked, as a predictor keeps buffers between calls.
class PredictedTimeEvaluator final : public Evaluator {
public:
  explicit PredictedTimeEvaluator(TimePredictor predictor)
      : predictor(std::move(predictor)) {}

  llvm::StringRef getName() const override { return "predicted_ms"; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    std::lock_guard<std::mutex> lock(mutex);
    double time =
        predictor.predict(static_cast<const OperatorGraph &>(solution));
    // The quotient of a prediction and a bound that 99 % of the measured
    // operators exceed, from the calibration.
    return Metrics{{"predicted_ms", time},
                   {"predicted_least_ms", time / predictor.getModel().margin}};
  }

private:
  std::mutex mutex;
  TimePredictor predictor;
};
} // namespace

Expected<std::unique_ptr<Evaluator>>
kas::search::makePredictedTimeEvaluator(const EvaluatorSettings &settings) {
  if (!settings.problem)
    return createStringError("predicted_ms requires operators as candidates");
  // Called during this function only, so the reference to `settings` is safe.
  Expected<TimePredictor> predictor =
      TimePredictor::create(settings.problem, [&](const std::string &message) {
        if (settings.report)
          settings.report(message);
      });
  if (!predictor)
    return predictor.takeError();
  return std::make_unique<PredictedTimeEvaluator>(std::move(*predictor));
}
