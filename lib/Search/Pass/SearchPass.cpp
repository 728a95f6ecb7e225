//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/FinalRound.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Core/Objective.h"
#include "kas/Search/Core/SearchReport.h"
#include "kas/Search/Core/StoredSearcher.h"
#include "kas/Search/Operators/Score.h"
#include "kas/Search/Pass/Passes.h"
#include "kas/Search/Pass/SearchTarget.h"
#include "kas/Support/Version.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kas;
using namespace kas::search;

namespace kas::search {
#define GEN_PASS_DEF_SEARCHPASS
#include "kas/Search/Pass/Passes.h.inc"
} // namespace kas::search

namespace {

class SearchPass : public kas::search::impl::SearchPassBase<SearchPass> {
public:
  using SearchPassBase::SearchPassBase;
  void runOnOperation() override;

private:
  /// What one run is made of; each part refers to those before it.
  struct Run {
    std::unique_ptr<SearchTarget> target;
    Objective objective;
    std::unique_ptr<Searcher> searcher;
    std::unique_ptr<SearchReport> report;
    std::vector<std::unique_ptr<Evaluator>> evaluators, finalEvaluators;
    /// Null without a database.
    std::unique_ptr<SearchStore> store;
  };

  InFlightDiagnostic emitError() {
    return mlir::emitError(getOperation().getLoc());
  }
  InFlightDiagnostic emitError(llvm::Error error) {
    return emitError() << llvm::toString(std::move(error));
  }

  FailureOr<SpaceOp> findSpace();
  /// The function of an option, with a body.
  FailureOr<Operation *> findFunction(StringRef option, StringRef name);
  FailureOr<std::unique_ptr<SearchTarget>> findNetworkTarget();
  /// What is searched: a space, kernels like that of the option `kernel`, or
  /// transformations of that of the option `network`.
  FailureOr<std::unique_ptr<SearchTarget>> findTarget();
  /// The operator of the option `imitate`; null without one.
  FailureOr<OperatorOp> findImitated();
  LogicalResult checkOptions();
  SearchLimits getLimits() const { return {evaluations, seconds, threads}; }
  SmallVector<std::string> getEvaluatorNames() const;
  LogicalResult makeSearcher(Run &run);
  void makeReport(Run &run);
  LogicalResult
  makeEvaluators(Run &run, ArrayRef<std::string> names,
                 std::vector<std::unique_ptr<Evaluator>> &evaluators);
  LogicalResult openDatabase(Run &run);
  /// All results by identifier, also those of earlier runs on the database.
  FailureOr<std::vector<SearchResult>> search(Run &run);
  /// Takes a closer look at the best of `results`, which come first then.
  LogicalResult lookCloser(Run &run, std::vector<SearchResult> &results);
  void warnOfNothing(Run &run, ArrayRef<SearchResult> failures);
  void append(Run &run, ArrayRef<SearchResult> results,
              const ParetoFront &front);
};

} // namespace

FailureOr<SpaceOp> SearchPass::findSpace() {
  StringRef name = space;
  name.consume_front("@");
  auto spaces = llvm::to_vector(getOperation().getOps<SpaceOp>());
  if (!name.empty()) {
    for (SpaceOp candidate : spaces)
      if (candidate.getSymName() == name)
        return candidate;
    return emitError() << "requires a kas.space @" << name
                       << " in the module, got none of that name";
  }
  if (spaces.size() != 1)
    return emitError()
           << "requires one kas.space in the module, or the option 'space', "
              "got "
           << spaces.size();
  return spaces.front();
}

FailureOr<Operation *> SearchPass::findFunction(StringRef option,
                                                StringRef name) {
  name.consume_front("@");
  Operation *found = SymbolTable::lookupSymbolIn(getOperation(), name);
  if (isa_and_nonnull<FunctionOpInterface>(found) &&
      !found->getRegion(0).empty())
    return found;
  return emitError() << "requires a function @" << name
                     << " with a body for the option '" << option
                     << "', got none of that name";
}

FailureOr<std::unique_ptr<SearchTarget>> SearchPass::findNetworkTarget() {
  if (!space.empty() || !kernel.empty())
    return emitError() << "requires one of the options 'space', 'kernel' and "
                          "'network', got several";
  FailureOr<Operation *> function = findFunction("network", network);
  if (failed(function))
    return failure();
  FailureOr<Operation *> scored =
      scoredNetwork.empty() ? function
                            : findFunction("scored-network", scoredNetwork);
  if (failed(scored))
    return failure();
  return makeNetworkTarget(
      {*function, *scored, llvm::to_vector(networkLimits)});
}

FailureOr<std::unique_ptr<SearchTarget>> SearchPass::findTarget() {
  if (!network.empty())
    return findNetworkTarget();
  if (!networkLimits.empty() || !scoredNetwork.empty())
    return emitError() << "requires the option 'network' for the options "
                          "'network-limits' and 'scored-network'";
  if (kernel.empty()) {
    if (!kernelLimits.empty() || !groups.empty())
      return emitError() << "requires the option 'kernel' for the options "
                            "'kernel-limits' and 'groups'";
    FailureOr<SpaceOp> found = findSpace();
    if (failed(found))
      return failure();
    return makeSpaceTarget(*found);
  }
  StringRef name = kernel;
  name.consume_front("@");
  if (!space.empty())
    return emitError() << "requires one of the options 'space' and 'kernel', "
                          "got both";
  if (auto op = SymbolTable(getOperation()).lookup<KernelOp>(name))
    return makeKernelTarget(op, llvm::to_vector(kernelLimits), groups);
  return emitError() << "requires a kas.kernel @" << name
                     << " in the module, got none of that name";
}

FailureOr<OperatorOp> SearchPass::findImitated() {
  if (imitate.empty())
    return OperatorOp();
  StringRef name = imitate;
  name.consume_front("@");
  if (auto op = SymbolTable(getOperation()).lookup<OperatorOp>(name))
    return op;
  return emitError() << "requires a kas.operator @" << name
                     << " in the module, got none of that name";
}

LogicalResult SearchPass::checkOptions() {
  if (evaluations < 1)
    return emitError() << "requires evaluations >= 1, got 0";
  if (threads < 1 || threads > 1024)
    return emitError() << "requires 1 <= threads <= 1024, got "
                       << unsigned(threads);
  if (workers > 1024)
    return emitError() << "requires workers <= 1024, got " << unsigned(workers);
  if (memoryLimit > uint64_t(1) << 40)
    return emitError() << "requires memory-limit <= 2^40, got "
                       << uint64_t(memoryLimit);
  if (!external.empty() && !llvm::is_contained(evaluators, "external") &&
      !llvm::is_contained(finalEvaluators, "external"))
    return emitError() << "requires 'external' among the evaluators for the "
                          "option 'external'";
  if (!imitate.empty() && !llvm::is_contained(evaluators, "imitation") &&
      !llvm::is_contained(finalEvaluators, "imitation"))
    return emitError() << "requires 'imitation' among the evaluators for the "
                          "option 'imitate'";
  // Written so that NaN fails.
  if (!(seconds >= 0) || seconds > 1e9)
    return emitError() << "requires 0 <= seconds <= 1e9, got "
                       << llvm::formatv("{0}", double(seconds)).str();
  if (!(timeLimit > 0) || timeLimit > 1e6)
    return emitError() << "requires 0 < time-limit <= 1e6, got "
                       << llvm::formatv("{0}", double(timeLimit)).str();
  return success();
}

SmallVector<std::string> SearchPass::getEvaluatorNames() const {
  if (evaluators.empty())
    return {"flops", "params"};
  return SmallVector<std::string>(evaluators.begin(), evaluators.end());
}

LogicalResult SearchPass::makeSearcher(Run &run) {
  llvm::Expected<Objective> parsed = Objective::parse(objective);
  if (!parsed)
    return emitError(parsed.takeError()) << " as the option 'objective'";
  run.objective = std::move(*parsed);
  SearcherSettings settings;
  settings.seed = seed;
  if (!run.objective.isDefault())
    settings.objective = [&objective = run.objective](const Metrics &metrics) {
      return objective.getCost(metrics);
    };
  settings.cost = [&target = *run.target](const Solution &solution) {
    return target.getCost(solution);
  };
  settings.space.treeExpansions = run.target->getTreeExpansions();
  // Without a database nothing is to be repeated: half of the time may go into
  // the tree.
  if (database.empty() && seconds > 0)
    settings.space.treeSeconds = seconds / 2;
  llvm::Expected<std::unique_ptr<Searcher>> searcher =
      kas::search::makeSearcher(algorithm, run.target->makeState(), settings,
                                llvm::to_vector(parameters));
  if (!searcher)
    return emitError(searcher.takeError());
  run.searcher = std::move(*searcher);
  return success();
}

void SearchPass::makeReport(Run &run) {
  auto mode = SearchReport::Mode::Quiet;
  if (progress)
    mode = llvm::errs().is_displayed() ? SearchReport::Mode::Line
                                       : SearchReport::Mode::Json;
  run.report = std::make_unique<SearchReport>(
      llvm::errs(), mode, run.objective, getLimits(),
      [&searcher = *run.searcher] { return searcher.getStatistics(); });
}

LogicalResult SearchPass::makeEvaluators(
    Run &run, ArrayRef<std::string> names,
    std::vector<std::unique_ptr<Evaluator>> &evaluators) {
  std::vector<MetricLimit> bounds;
  for (const std::string &text : limits) {
    llvm::Expected<MetricLimit> bound = MetricLimit::parse(text);
    if (!bound)
      return emitError(bound.takeError());
    bounds.push_back(std::move(*bound));
  }
  EvaluatorSettings settings;
  settings.runner = runner;
  settings.device = device;
  settings.timeLimit = timeLimit;
  settings.memoryLimit = memoryLimit;
  settings.command = external;
  settings.workers = workers ? workers : threads;
  settings.retries = retries;
  FailureOr<OperatorOp> imitated = findImitated();
  if (failed(imitated))
    return failure();
  settings.imitated = *imitated;
  settings.report = [&report = *run.report](const std::string &message) {
    report.message(message);
  };
  for (StringRef name : names) {
    llvm::Expected<std::unique_ptr<Evaluator>> evaluator =
        run.target->makeEvaluator(name, settings);
    if (!evaluator)
      return emitError(evaluator.takeError());
    evaluators.push_back(makeCheckedEvaluator(std::move(*evaluator), bounds));
  }
  return success();
}

/// The settings that the sequence of candidates and their outcomes follow from,
/// and others that are good to know.
LogicalResult SearchPass::openDatabase(Run &run) {
  SearchSettings settings, information;
  llvm::raw_string_ostream(settings["space"]) << *run.target->getOp() << "\n";
  if (std::string own = run.target->getSettings(); !own.empty())
    settings["kernel_search"] = own;
  if (FailureOr<OperatorOp> imitated = findImitated();
      succeeded(imitated) && *imitated)
    llvm::raw_string_ostream(settings["imitated"]) << *imitated << "\n";
  settings["algorithm"] = algorithm;
  settings["seed"] = std::to_string(seed);
  settings["evaluators"] = llvm::join(getEvaluatorNames(), ",");
  // A final round may be added to a search that is there, or enlarged.
  if (finalCount && !finalEvaluators.empty())
    information["final_evaluators"] = llvm::join(finalEvaluators, ",");
  for (const auto &[name, value] :
       {std::pair<const char *, std::string>("external", external),
        {"limits", llvm::join(limits, ",")},
        {"objective", objective},
        {"parameters", llvm::join(parameters, ",")}})
    if (!value.empty())
      settings[name] = value;
  information["kas_version"] = getVersion();
  information["time_limit"] = llvm::formatv("{0}", double(timeLimit)).str();
  llvm::Expected<std::unique_ptr<SearchStore>> store =
      SearchStore::open(database, settings, information);
  if (!store)
    return emitError(store.takeError());
  run.store = std::move(*store);
  return success();
}

/// Evaluators as others take them.
static SmallVector<Evaluator *>
borrow(ArrayRef<std::unique_ptr<Evaluator>> evaluators) {
  return llvm::map_to_vector(
      evaluators,
      [](const std::unique_ptr<Evaluator> &scorer) { return scorer.get(); });
}

FailureOr<std::vector<SearchResult>> SearchPass::search(Run &run) {
  SmallVector<Evaluator *> evaluators = borrow(run.evaluators);
  auto told = [&](const SearchResult &result) { run.report->add(result); };
  SearchLimits limits = getLimits();
  if (!run.store)
    return runSearch(*run.searcher, evaluators, limits, told);

  StoredSearcher stored(
      *run.searcher, *run.store,
      [&](const Solution &solution) { return run.target->print(solution); });
  if (llvm::Error error = stored.replay())
    return emitError(std::move(error));
  std::vector<SearchResult> results = stored.getReplayed().vec();
  numReplayed = results.size();
  run.report->addReplayed(results);
  limits.evaluations -= std::min<uint64_t>(results.size(), evaluations);
  if (limits.evaluations)
    llvm::append_range(results, runSearch(stored, evaluators, limits, told));
  if (llvm::Error error = stored.takeError())
    return emitError(std::move(error));
  if (llvm::Error error = run.store->recordStatistics(stored.getStatistics()))
    return emitError(std::move(error));
  // Those that were in flight when an earlier run ended came last.
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  return results;
}

LogicalResult SearchPass::lookCloser(Run &run,
                                     std::vector<SearchResult> &results) {
  run.objective.sort(results);
  std::map<uint64_t, Outcome> known;
  if (run.store) {
    auto candidates = run.store->readCandidates();
    if (!candidates)
      return emitError(candidates.takeError());
    for (const StoredCandidate &candidate : *candidates)
      if (candidate.finalOutcome)
        known[candidate.id] = *candidate.finalOutcome;
  }
  size_t count = std::min<uint64_t>(finalCount, results.size());
  auto record = [&](const SearchResult &result, double seconds) -> llvm::Error {
    run.report->addFinal(result, count);
    if (!run.store)
      return llvm::Error::success();
    return run.store->recordFinal(result.candidate.id, result.outcome, seconds);
  };
  if (llvm::Error error =
          runFinalRound(llvm::MutableArrayRef(results).take_front(count),
                        borrow(run.finalEvaluators), threads, known, record))
    return emitError(std::move(error));
  return success();
}

void SearchPass::warnOfNothing(Run &run, ArrayRef<SearchResult> failures) {
  mlir::Operation *op = run.target->getOp();
  InFlightDiagnostic warning = op->emitWarning("found no ")
                               << run.target->getNoun() << ": ";
  if (!failures.empty()) {
    warning << "all " << failures.size()
            << " candidates failed, the first because "
            << std::get<Failure>(failures.front().outcome).reason;
    return;
  }
  if (!run.searcher->isExhausted()) {
    warning << "the search ended too early";
    return;
  }
  warning << "the space has none";
  for (const std::string &reason : run.target->explainEmpty())
    warning.attachNote(op->getLoc()) << reason;
}

void SearchPass::append(Run &run, ArrayRef<SearchResult> results,
                        const ParetoFront &front) {
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  SymbolTable symbols(getOperation());
  unsigned count = 0;
  for (const SearchResult &result : results) {
    StringRef origin = run.target->getName();
    Operation *op =
        run.target->build(builder, (origin + "_" + Twine(count++)).str(),
                          *result.candidate.solution);
    std::optional<uint64_t> id;
    if (!database.empty())
      id = result.candidate.id;
    setScore(op, std::get<Metrics>(result.outcome), origin, id);
    if (run.objective.isPareto() && front.contains(result.candidate.id))
      op->setAttr(KasDialect::frontAttrName, builder.getUnitAttr());
    symbols.insert(op); // Renames it where the name is taken.
  }
}

void SearchPass::runOnOperation() {
  Run run;
  FailureOr<std::unique_ptr<SearchTarget>> found = findTarget();
  if (failed(found) || failed(checkOptions()))
    return signalPassFailure();
  run.target = std::move(*found);
  if (failed(makeSearcher(run)))
    return signalPassFailure();
  makeReport(run);
  SmallVector<std::string> finalNames(finalEvaluators.begin(),
                                      finalEvaluators.end());
  if (finalCount && finalNames.empty())
    finalNames = {"latency"};
  if (failed(makeEvaluators(run, getEvaluatorNames(), run.evaluators)) ||
      failed(makeEvaluators(run, finalNames, run.finalEvaluators)) ||
      (!database.empty() && failed(openDatabase(run))))
    return signalPassFailure();
  FailureOr<std::vector<SearchResult>> results = search(run);
  if (failed(results))
    return signalPassFailure();

  SearchStatistics statistics = run.searcher->getStatistics();
  numAsked = statistics.asked;
  numFailed = statistics.failed;
  numExpanded = statistics.expansions;
  numDeadEnds = statistics.deadEnds;
  numDuplicates = statistics.duplicates;
  std::vector<SearchResult> evaluated, failures;
  auto divide = [&](std::vector<SearchResult> &mixed) {
    for (SearchResult &result : mixed)
      (std::holds_alternative<Failure>(result.outcome) ? failures : evaluated)
          .push_back(std::move(result));
  };
  divide(*results);
  if (finalCount) {
    std::vector<SearchResult> mixed = std::move(evaluated);
    evaluated.clear();
    if (failed(lookCloser(run, mixed)))
      return signalPassFailure();
    divide(mixed);
  }
  if (run.store)
    run.store->close();
  run.report->finish(evaluated, run.searcher->isExhausted());
  if (evaluated.empty())
    warnOfNothing(run, failures);
  ParetoFront front = getFront(run.objective, evaluated);
  numFront = front.size();
  run.objective.sort(evaluated);
  if (top && evaluated.size() > top)
    evaluated.resize(top);
  append(run, evaluated, front);
}
