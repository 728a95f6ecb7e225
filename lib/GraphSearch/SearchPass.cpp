//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/Evaluators.h"
#include "kas/GraphSearch/GraphState.h"
#include "kas/GraphSearch/OperatorPrinter.h"
#include "kas/GraphSearch/Passes.h"
#include "kas/GraphSearch/Score.h"
#include "kas/Search/Driver.h"
#include "kas/Search/RandomSearcher.h"
#include "kas/SearchStore/StoredSearcher.h"
#include "kas/Support/Version.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_SEARCHPASS
#include "kas/GraphSearch/Passes.h.inc"
} // namespace kas

namespace {

class SearchPass : public kas::impl::SearchPassBase<SearchPass> {
public:
  using SearchPassBase::SearchPassBase;
  void runOnOperation() override;

private:
  FailureOr<SpaceOp> findSpace();
  LogicalResult checkOptions();
  FailureOr<std::vector<std::unique_ptr<Evaluator>>>
  makeEvaluators(std::shared_ptr<const SearchProblem> problem);
  FailureOr<std::unique_ptr<SearchStore>> openDatabase(SpaceOp space);
  /// All results, also those of earlier runs on the database.
  FailureOr<std::vector<SearchResult>>
  search(SpaceOp space, Searcher &searcher,
         std::shared_ptr<const SearchProblem> problem,
         ArrayRef<Evaluator *> judges);
  void report(const SearchResult &result);
  void append(SpaceOp space, const SearchProblem &problem,
              ArrayRef<SearchResult> results);
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
    return mlir::emitError(getOperation().getLoc(), "requires a kas.space @")
           << name << " in the module, got none of that name";
  }
  if (spaces.size() != 1)
    return mlir::emitError(
               getOperation().getLoc(),
               "requires one kas.space in the module, or the option 'space', "
               "got ")
           << spaces.size();
  return spaces.front();
}

LogicalResult SearchPass::checkOptions() {
  auto emitError = [&] { return mlir::emitError(getOperation().getLoc()); };
  if (evaluations < 1)
    return emitError() << "requires evaluations >= 1, got 0";
  if (threads < 1 || threads > 1024)
    return emitError() << "requires 1 <= threads <= 1024, got "
                       << unsigned(threads);
  // Written so that NaN fails.
  if (!(seconds >= 0) || seconds > 1e9)
    return emitError() << "requires 0 <= seconds <= 1e9, got "
                       << llvm::formatv("{0}", double(seconds)).str();
  if (workers > 1024)
    return emitError() << "requires workers <= 1024, got " << unsigned(workers);
  if (memoryLimit > uint64_t(1) << 40)
    return emitError() << "requires memory-limit <= 2^40, got "
                       << uint64_t(memoryLimit);
  if (!external.empty() && !llvm::is_contained(evaluators, "external"))
    return emitError() << "requires 'external' among the evaluators for the "
                          "option 'external'";
  if (!(timeLimit > 0) || timeLimit > 1e6)
    return emitError() << "requires 0 < time-limit <= 1e6, got "
                       << llvm::formatv("{0}", double(timeLimit)).str();
  return success();
}

FailureOr<std::vector<std::unique_ptr<Evaluator>>>
SearchPass::makeEvaluators(std::shared_ptr<const SearchProblem> problem) {
  EvaluatorSettings settings;
  settings.problem = std::move(problem);
  settings.runner = runner;
  settings.timeLimit = timeLimit;
  settings.memoryLimit = memoryLimit;
  settings.command = external;
  settings.workers = workers ? workers : threads;
  settings.retries = retries;
  settings.report = [](const std::string &message) {
    llvm::errs() << "kas-search: " + message + "\n";
  };
  SmallVector<std::string> names(evaluators.begin(), evaluators.end());
  if (names.empty())
    names = {"flops", "params"};
  std::vector<std::unique_ptr<Evaluator>> result;
  for (StringRef name : names) {
    llvm::Expected<std::unique_ptr<Evaluator>> evaluator =
        makeEvaluator(name, settings);
    if (!evaluator)
      return mlir::emitError(getOperation().getLoc())
             << llvm::toString(evaluator.takeError());
    result.push_back(std::move(*evaluator));
  }
  return result;
}

/// The settings that the sequence of candidates and their outcomes follow from,
/// and others that are good to know.
FailureOr<std::unique_ptr<SearchStore>>
SearchPass::openDatabase(SpaceOp space) {
  SearchSettings settings, information;
  llvm::raw_string_ostream(settings["space"]) << space << "\n";
  settings["algorithm"] = "random";
  settings["seed"] = std::to_string(seed);
  settings["evaluators"] =
      evaluators.empty() ? "flops,params" : llvm::join(evaluators, ",");
  if (!external.empty())
    settings["external"] = external;
  information["kas_version"] = getVersion();
  information["time_limit"] = std::to_string(timeLimit);
  llvm::Expected<std::unique_ptr<SearchStore>> store =
      SearchStore::open(database, settings, information);
  if (!store)
    return mlir::emitError(getOperation().getLoc())
           << llvm::toString(store.takeError());
  return std::move(*store);
}

FailureOr<std::vector<SearchResult>>
SearchPass::search(SpaceOp space, Searcher &searcher,
                   std::shared_ptr<const SearchProblem> problem,
                   ArrayRef<Evaluator *> judges) {
  auto progressed = [&](const SearchResult &result) { report(result); };
  llvm::function_ref<void(const SearchResult &)> callback;
  if (progress)
    callback = progressed;
  SearchLimits limits = {evaluations, seconds, threads};
  if (database.empty())
    return runSearch(searcher, judges, limits, callback);

  FailureOr<std::unique_ptr<SearchStore>> store = openDatabase(space);
  if (failed(store))
    return failure();
  OperatorPrinter printer(problem);
  StoredSearcher stored(searcher, **store, [&](const Solution &solution) {
    return printer.print(static_cast<const OperatorGraph &>(solution));
  });
  auto fail = [&](llvm::Error error) {
    return mlir::emitError(getOperation().getLoc())
           << llvm::toString(std::move(error));
  };
  if (llvm::Error error = stored.replay())
    return fail(std::move(error));
  std::vector<SearchResult> results = stored.getReplayed().vec();
  numReplayed = results.size();
  limits.evaluations -= std::min<uint64_t>(results.size(), evaluations);
  if (limits.evaluations)
    llvm::append_range(results, runSearch(stored, judges, limits, callback));
  if (llvm::Error error = stored.takeError())
    return fail(std::move(error));
  if (llvm::Error error = (*store)->recordStatistics(stored.getStatistics()))
    return fail(std::move(error));
  (*store)->close();
  // Those that were in flight when an earlier run ended came last.
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  return results;
}

/// One line per evaluation.
void SearchPass::report(const SearchResult &result) {
  llvm::errs() << "kas-search: candidate " << result.candidate.id << ":";
  if (const auto *failed = std::get_if<Failure>(&result.outcome)) {
    llvm::errs() << " failed: " << failed->reason;
  } else {
    for (const auto &[name, value] : std::get<Metrics>(result.outcome))
      llvm::errs() << " " << name << "=" << llvm::format("%.6g", value);
  }
  llvm::errs() << "\n";
}

/// Measured time first, then work, then size; what is unknown counts as most.
static std::array<double, 3> getRank(const SearchResult &result) {
  const Metrics &metrics = std::get<Metrics>(result.outcome);
  static constexpr std::array<const char *, 3> names = {"latency_ms", "flops",
                                                        "params"};
  std::array<double, 3> rank;
  for (auto [value, name] : llvm::zip_equal(rank, names)) {
    auto metric = metrics.find(name);
    value = metric == metrics.end() ? std::numeric_limits<double>::infinity()
                                    : metric->second;
  }
  return rank;
}

void SearchPass::append(SpaceOp space, const SearchProblem &problem,
                        ArrayRef<SearchResult> results) {
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  SymbolTable symbols(getOperation());
  unsigned count = 0;
  for (const SearchResult &result : results) {
    OperatorOp op = buildOperator(
        builder, space.getLoc(),
        (space.getSymName() + "_" + Twine(count++)).str(), problem,
        static_cast<const OperatorGraph &>(*result.candidate.solution));
    std::optional<uint64_t> id;
    if (!database.empty())
      id = result.candidate.id;
    setScore(op, std::get<Metrics>(result.outcome), space.getSymName(), id);
    symbols.insert(op); // Renames it where the name is taken.
  }
}

void SearchPass::runOnOperation() {
  FailureOr<SpaceOp> found = findSpace();
  if (failed(found) || failed(checkOptions()))
    return signalPassFailure();
  auto problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(*found));
  auto judges = makeEvaluators(problem);
  if (failed(judges))
    return signalPassFailure();

  RandomSearcher::Options options;
  options.seed = seed;
  RandomSearcher searcher(makeGraphState(problem), options);
  SmallVector<Evaluator *> borrowed = llvm::map_to_vector(
      *judges, [](std::unique_ptr<Evaluator> &judge) { return judge.get(); });
  FailureOr<std::vector<SearchResult>> all =
      search(*found, searcher, problem, borrowed);
  if (failed(all))
    return signalPassFailure();
  std::vector<SearchResult> &results = *all;

  SearchStatistics statistics = searcher.getStatistics();
  numAsked = statistics.asked;
  numFailed = statistics.failed;
  numExpanded = statistics.expansions;
  numDeadEnds = statistics.deadEnds;
  numDuplicates = statistics.duplicates;
  std::string reason;
  llvm::erase_if(results, [&](const SearchResult &result) {
    const auto *failed = std::get_if<Failure>(&result.outcome);
    if (failed && reason.empty())
      reason = failed->reason;
    return failed != nullptr;
  });
  if (results.empty()) {
    InFlightDiagnostic warning = found->emitWarning("found no operator: ");
    if (statistics.asked)
      warning << "all " << statistics.asked
              << " candidates failed, the first because " << reason;
    else
      warning << (searcher.isExhausted() ? "the space has none"
                                         : "the search ended too early");
  }
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return std::pair(getRank(a), a.candidate.id) <
           std::pair(getRank(b), b.candidate.id);
  });
  if (top && results.size() > top)
    results.resize(top);
  append(*found, *problem, results);
}
