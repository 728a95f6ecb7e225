//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator `training`: accuracy of the network with the candidate in its
// layers, trained by `kas-train --worker`.
//
// Each worker loads the network and the data once, then trains it again for
// every candidate. Which candidates are trained on is decided here (`Halving`)
// and sent along with the request.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/TrainingEvaluator.h"
#include "Program.h"
#include "kas/Search/Core/Halving.h"
#include "kas/Search/Evaluators/ExternalEvaluator.h"
#include "kas/Support/Bytecode.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// A wrapper of an external evaluator that adds milestones to requests.
class TrainingEvaluator final : public Evaluator {
public:
  TrainingEvaluator(std::unique_ptr<llvm::FileRemover> network,
                    std::shared_ptr<Halving> halving,
                    llvm::ArrayRef<int64_t> rungs,
                    std::unique_ptr<Evaluator> workers)
      : network(std::move(network)), halving(std::move(halving)), rungs(rungs),
        workers(std::move(workers)) {}

  llvm::StringRef getName() const override { return "training"; }
  // Whether a candidate is trained on depends on those before it.
  bool isDeterministic() const override { return false; }

  Expected<Metrics> evaluate(const Solution &solution) override {
    return workers->evaluate(solution);
  }

  Expected<Metrics> evaluateBaseline(const Baseline &baseline) override;

  /// Also called for candidates of an earlier run, so halving goes on where it
  /// stopped.
  void observe(const Metrics &metrics) override { halving->observe(metrics); }

private:
  /// Outlives the workers, which read the file.
  std::unique_ptr<llvm::FileRemover> network;
  std::shared_ptr<Halving> halving;
  std::vector<int64_t> rungs;
  std::unique_ptr<Evaluator> workers;
};

} // namespace

/// Writes `module` to a temporary file, which is `path` then, and removed with
/// the result or on failure. As bytecode, which the worker reads faster than
/// text.
static Expected<std::unique_ptr<llvm::FileRemover>>
writeTemporary(mlir::Operation *module, llvm::SmallString<128> &path) {
  int file = -1;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile(
          "kas-network", "mlirbc", file, path))
    return createStringError(code, "cannot make a file for the network");
  auto remover = std::make_unique<llvm::FileRemover>(path);
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << writeBytecode(module);
  stream.close();
  if (!stream.has_error())
    return remover;
  // The error of a stream that is destroyed unchecked would be fatal.
  std::error_code code = stream.error();
  stream.clear_error();
  return createStringError(code, "cannot write the network to '" + path + "'");
}

/// `[{"epoch": 3, "accuracy": 0.5}, ...]`.
static llvm::json::Array toJSON(llvm::ArrayRef<Halving::Milestone> milestones) {
  llvm::json::Array array;
  for (const Halving::Milestone &milestone : milestones)
    array.push_back(llvm::json::Object{{"epoch", milestone.epoch},
                                       {"accuracy", milestone.accuracy}});
  return array;
}

/// It is trained to the end, with its accuracy at each rung. An accuracy of -1
/// is exceeded by every training, so no milestone stops it.
Expected<Metrics>
TrainingEvaluator::evaluateBaseline(const Baseline &baseline) {
  llvm::SmallVector<Halving::Milestone> milestones;
  for (int64_t rung : rungs)
    milestones.push_back({rung, /*accuracy=*/-1});
  Baseline asked = baseline;
  asked.isNetwork = false;
  // The worker has the network already: the noun is enough.
  if (baseline.isNetwork)
    asked.text = {"network", "", {}, {}};
  asked.text.more["milestones"] = toJSON(milestones);
  return workers->evaluateBaseline(asked);
}

/// The options come first, then the file, which exists only if they are right;
/// it is removed with the evaluator.
Expected<std::unique_ptr<Evaluator>>
kas::search::makeTrainingEvaluator(const EvaluatorSettings &settings) {
  if (settings.training.empty())
    return createStringError(
        "requires the option 'training', options of kas-train, for the "
        "evaluator 'training'");
  if (!settings.space)
    return createStringError("training requires operators as candidates");
  // The rungs are checked here; `Halving` is shared with `describe`, which runs
  // on every thread.
  auto halving = Halving::create(settings.rungs);
  if (!halving)
    return halving.takeError();
  Expected<std::string> program = findProgram("", "kas-train");
  if (!program)
    return program.takeError();
  SpaceOp space = settings.space;
  llvm::SmallString<128> path;
  auto network = writeTemporary(space->getParentOfType<mlir::ModuleOp>(), path);
  if (!network)
    return network.takeError();

  std::shared_ptr<Halving> shared = std::move(*halving);
  EvaluatorSettings workers = settings;
  // The command ends with the user's options, so these win.
  workers.command = "exec " + quoteForShell(*program) + " " +
                    quoteForShell(path) +
                    " --worker --space=" + quoteForShell(space.getSymName()) +
                    " " + settings.training;
  // A week is as good as any. Trainings have no natural limit of time.
  if (workers.timeLimit == 0)
    workers.timeLimit = 7 * 24 * 3600;
  // Retrying a training of hours that has crashed its worker costs too much.
  workers.retries = 0;
  // It reads options and, where they say so, data first; trainings take longer.
  workers.probeSeconds = 1;
  if (!workers.describe)
    workers.describe = makeOperatorDescription(settings.problem);
  // Milestones are those of the moment when the request is made: outcomes that
  // arrive later do not count for this candidate.
  workers.describe = [shared, describe = std::move(workers.describe)](
                         const Solution &solution) -> Expected<CandidateText> {
    Expected<CandidateText> text = describe(solution);
    if (text)
      text->more["milestones"] = toJSON(shared->getMilestones());
    return text;
  };
  Expected<std::unique_ptr<Evaluator>> evaluator =
      makeExternalEvaluator(workers);
  if (!evaluator)
    return evaluator.takeError();
  return std::make_unique<TrainingEvaluator>(std::move(*network),
                                             std::move(shared), settings.rungs,
                                             std::move(*evaluator));
}
