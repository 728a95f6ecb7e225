//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-search: options, target, session, and results as IR.
//
// The order of the steps: target, options, session, evaluators, baselines,
// database, run, results. Everything that can be wrong with the options is
// reported before the first candidate.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/Search/Core/Session.h"
#include "kas/Search/Evaluators/MetricNames.h"
#include "kas/Search/Operators/Score.h"
#include "kas/Search/Pass/Baselines.h"
#include "kas/Search/Pass/Passes.h"
#include "kas/Search/Pass/SearchTarget.h"
#include "kas/Support/FileLocation.h"
#include "kas/Support/NearName.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace kas;
using namespace kas::search;

namespace kas::search {
#define GEN_PASS_DEF_KASSEARCHPASS
#include "kas/Search/Pass/Passes.h.inc"
} // namespace kas::search

namespace {

/// The options are declared in Passes.td. The pass runs on a module: it reads
/// the space from it and appends the results to it.
class SearchPass : public kas::search::impl::KasSearchPassBase<SearchPass> {
public:
  using KasSearchPassBase::KasSearchPassBase;
  void runOnOperation() override;

private:
  /// At the module, as options have no location of their own.
  InFlightDiagnostic emitError() {
    return mlir::emitError(getFileLocation(getOperation()));
  }
  InFlightDiagnostic emitError(llvm::Error error) {
    return emitError() << llvm::toString(std::move(error));
  }

  /// A `kas.space` or a `kas.sequence_space`. By the option `space`, or the
  /// only one that is no part of another.
  FailureOr<Operation *> findSpace();
  /// The function of an option, with a body.
  FailureOr<Operation *> findFunction(StringRef option, StringRef name);
  /// Checks options; the target itself is made by a library that this one does
  /// not know, see `registerNetworkTarget`.
  FailureOr<std::unique_ptr<SearchTarget>> findNetworkTarget();
  /// What is searched: a space, kernels like that of the option `kernel`, or
  /// transformations of that of the option `network`.
  FailureOr<std::unique_ptr<SearchTarget>> findTarget();
  /// The operator of the option `imitate`; null without one.
  FailureOr<OperatorOp> findImitated();
  /// Options that contradict each other or are out of range.
  LogicalResult checkOptions();
  /// The option, or `flops` and `params`.
  SmallVector<std::string> getEvaluatorNames() const;
  /// The option, or 1, 3 and 6 epochs.
  std::vector<int64_t> getRungs() const;
  /// The session refers to `target`, which must outlive it.
  FailureOr<std::unique_ptr<Session>> makeSession(SearchTarget &target);
  /// What evaluators are made from, as far as options say it; the target adds
  /// the problem.
  FailureOr<EvaluatorSettings> makeSettings(Session &session);
  LogicalResult makeEvaluators(Session &session, SearchTarget &target);
  LogicalResult checkMetrics(const Session &session,
                             ArrayRef<std::string> finalNames);
  LogicalResult makeBaselines(Session &session, SearchTarget &target);
  LogicalResult openDatabase(Session &session, SearchTarget &target);
  /// A search without a result is not an error, but needs an explanation.
  void warnOfNothing(Session &session, SearchTarget &target,
                     ArrayRef<SearchResult> failures);
  /// Appends the operations of `results` to the module, with their scores as
  /// attributes.
  void append(Session &session, SearchTarget &target,
              ArrayRef<SearchResult> results, const ParetoFront &front);
};

} // namespace

/// The symbol of one of these operations that is near `name`, for a message.
/// Empty if nothing is near.
template <typename... OpTys>
static std::string suggestSymbol(ModuleOp module, StringRef name) {
  SmallVector<StringRef> symbols;
  for (Operation &op : *module.getBody())
    if (isa<OpTys...>(op))
      symbols.push_back(SymbolTable::getSymbolName(&op));
  return suggestNearName(name, symbols);
}

/// The `@` of a symbol is optional in options.
FailureOr<Operation *> SearchPass::findSpace() {
  StringRef name = space;
  name.consume_front("@");
  llvm::SmallSetVector<Operation *, 4> spaces;
  for (Operation &op : *getOperation().getBody())
    if (isa<SpaceOp, SequenceSpaceOp>(op))
      spaces.insert(&op);
  // A space that is named may be part of a sequence: then it is searched alone.
  if (!name.empty()) {
    for (Operation *candidate : spaces)
      if (SymbolTable::getSymbolName(candidate) == name)
        return candidate;
    return emitError() << "requires a kas.space @" << name
                       << " in the module, got none of that name"
                       << suggestSymbol<SpaceOp, SequenceSpaceOp>(
                              getOperation(), name);
  }
  // Those that sequences are made of are not searched themselves. A module with
  // a sequence space has spaces of its layers and stages as well; only the
  // sequence counts as the one to be searched.
  for (auto sequences : getOperation().getOps<SequenceSpaceOp>()) {
    spaces.remove(sequences.getLayerSpace());
    for (SpaceOp stage : sequences.getStageSpaces())
      spaces.remove(stage);
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
  // A declaration has no layers to transform.
  if (isa_and_nonnull<FunctionOpInterface>(found) &&
      !found->getRegion(0).empty())
    return found;
  return emitError() << "requires a function @" << name
                     << " with a body for the option '" << option
                     << "', got none of that name"
                     << suggestSymbol<FunctionOpInterface>(getOperation(),
                                                           name);
}

/// The scored network defaults to the network itself.
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

/// Three options exclude each other: `network`, `kernel`, `space`. Options of
/// one kind of search are errors in another, rather than ignored.
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
    FailureOr<Operation *> found = findSpace();
    if (failed(found))
      return failure();
    if (auto sequences = dyn_cast<SequenceSpaceOp>(*found))
      return makeSequenceTarget(sequences);
    auto single = cast<SpaceOp>(*found);
    // A property that no operator of these shapes can have is reported at once.
    if (std::optional<std::string> reason =
            findImpossibleProperty(SearchProblem::get(single)))
      return single.emitOpError(*reason);
    return makeSpaceTarget(single);
  }
  StringRef name = kernel;
  name.consume_front("@");
  if (!space.empty())
    return emitError() << "requires one of the options 'space' and 'kernel', "
                          "got both";
  if (auto op = SymbolTable(getOperation()).lookup<KernelOp>(name))
    return makeKernelTarget(op, llvm::to_vector(kernelLimits), groups);
  return emitError() << "requires a kas.kernel @" << name
                     << " in the module, got none of that name"
                     << suggestSymbol<KernelOp>(getOperation(), name);
}

/// Looked up twice, for the evaluator and for the database, which keeps its
/// text.
FailureOr<OperatorOp> SearchPass::findImitated() {
  if (imitate.empty())
    return OperatorOp();
  StringRef name = imitate;
  name.consume_front("@");
  if (auto op = SymbolTable(getOperation()).lookup<OperatorOp>(name))
    return op;
  return emitError() << "requires a kas.operator @" << name
                     << " in the module, got none of that name"
                     << suggestSymbol<OperatorOp>(getOperation(), name);
}

/// Ranges that the declarations of options cannot express.
LogicalResult SearchPass::checkOptions() {
  // 0 would be a search that proposes nothing and explains nothing.
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
  // An option without its evaluator is a mistake: the user believes that it has
  // an effect.
  if (!external.empty() && !llvm::is_contained(evaluators, "external") &&
      !llvm::is_contained(finalEvaluators, "external"))
    return emitError() << "requires 'external' among the evaluators for the "
                          "option 'external'";
  if (!training.empty() && !llvm::is_contained(evaluators, "training") &&
      !llvm::is_contained(finalEvaluators, "training"))
    return emitError() << "requires 'training' among the evaluators for the "
                          "option 'training'";
  if (!imitate.empty() && !llvm::is_contained(evaluators, "imitation") &&
      !llvm::is_contained(finalEvaluators, "imitation"))
    return emitError() << "requires 'imitation' among the evaluators for the "
                          "option 'imitate'";
  // Baselines are kept in the database only.
  if (!baselines.empty() && database.empty())
    return emitError() << "requires the option 'database' for the option "
                          "'baselines'";
  // Written so that NaN fails.
  if (!(seconds >= 0) || seconds > 1e9)
    return emitError() << "requires 0 <= seconds <= 1e9, got "
                       << llvm::formatv("{0}", double(seconds)).str();
  if (!(timeLimit >= 0) || timeLimit > 1e6)
    return emitError() << "requires 0 <= time-limit <= 1e6, got "
                       << llvm::formatv("{0}", double(timeLimit)).str();
  return success();
}

/// Counting is free, so it is the default.
SmallVector<std::string> SearchPass::getEvaluatorNames() const {
  if (evaluators.empty())
    return {"flops", "params"};
  return SmallVector<std::string>(evaluators.begin(), evaluators.end());
}

/// By default each rung is two to three times the one before.
std::vector<int64_t> SearchPass::getRungs() const {
  if (rungs.empty())
    return {1, 3, 6};
  return {rungs.begin(), rungs.end()};
}

/// The text of the objective is checked first to name the option in the error.
FailureOr<std::unique_ptr<Session>>
SearchPass::makeSession(SearchTarget &target) {
  // Parsed again by the session.
  if (llvm::Error error = Objective::parse(objective).takeError())
    return emitError(std::move(error)) << " as the option 'objective'";
  SessionSpace space{
      target.makeState(),
      [&target](const Solution &solution) { return target.getCost(solution); },
      [&target](const Solution &solution) { return target.print(solution); }};
  space.options.treeExpansions = target.getTreeExpansions();
  // Without a database nothing is to be repeated: half of the time may go into
  // the tree. With a database the tree must not depend on the clock: replay
  // needs the same tree.
  if (database.empty() && seconds > 0)
    space.options.treeSeconds = seconds / 2;
  SessionOptions options;
  options.algorithm = algorithm;
  options.seed = seed;
  options.parameters.assign(parameters.begin(), parameters.end());
  options.objective = objective;
  options.limits = {evaluations, seconds, threads};
  options.bounds.assign(limits.begin(), limits.end());
  options.finalCount = finalCount;
  // A terminal gets a line that is written over, a file or pipe JSON lines.
  if (progress)
    options.report = llvm::errs().is_displayed() ? SearchReport::Mode::Line
                                                 : SearchReport::Mode::Json;
  llvm::Expected<std::unique_ptr<Session>> session =
      Session::create(std::move(space), options);
  if (!session)
    return emitError(session.takeError());
  return std::move(*session);
}

/// `workers` defaults to the number of threads: each thread waits for one.
FailureOr<EvaluatorSettings> SearchPass::makeSettings(Session &session) {
  EvaluatorSettings settings;
  settings.runner = runner;
  settings.device = device;
  settings.timeLimit = timeLimit;
  settings.memoryLimit = memoryLimit;
  settings.command = external;
  settings.workers = workers ? workers : threads;
  settings.retries = retries;
  settings.training = training;
  settings.rungs = getRungs();
  FailureOr<OperatorOp> imitated = findImitated();
  if (failed(imitated))
    return failure();
  settings.imitated = *imitated;
  settings.report = [&report =
                         session.getReport()](const std::string &message) {
    report.message(message);
  };
  return settings;
}

/// The final round takes `latency` if nothing else is requested.
LogicalResult SearchPass::makeEvaluators(Session &session,
                                         SearchTarget &target) {
  FailureOr<EvaluatorSettings> settings = makeSettings(session);
  if (failed(settings))
    return failure();
  // Evaluators are made by the target: it knows what candidates are.
  auto make = [&](StringRef name) {
    return target.makeEvaluator(name, *settings);
  };
  SmallVector<std::string> finalNames(finalEvaluators.begin(),
                                      finalEvaluators.end());
  if (finalCount && finalNames.empty())
    finalNames = {"latency"};
  if (llvm::Error error = session.makeEvaluators(getEvaluatorNames(), make))
    return emitError(std::move(error));
  if (llvm::Error error = session.makeFinalEvaluators(finalNames, make))
    return emitError(std::move(error));
  return checkMetrics(session, finalNames);
}

/// What no evaluator gives counts as infinite and is within any limit: such an
/// objective orders nothing. Metrics of the final round count only when there
/// is one.
LogicalResult SearchPass::checkMetrics(const Session &session,
                                       ArrayRef<std::string> finalNames) {
  SmallVector<std::string> names = getEvaluatorNames();
  if (finalCount)
    llvm::append_range(names, finalNames);
  std::vector<std::string> limited;
  for (const std::string &text : limits)
    // The session has parsed them already, so this cannot fail.
    limited.push_back(llvm::cantFail(MetricLimit::parse(text)).metric);
  llvm::Error error = llvm::joinErrors(
      search::checkMetrics("objective", session.getObjective().getMetrics(),
                           names),
      search::checkMetrics("limits", limited, names));
  if (error)
    return emitError(std::move(error));
  return success();
}

/// Without a database there is no use for them. The network itself is a
/// baseline of every search for operators.
LogicalResult SearchPass::makeBaselines(Session &session,
                                        SearchTarget &target) {
  SpaceOp layers = target.getLayerSpace();
  if (!layers && !baselines.empty())
    return emitError() << "requires a search for operators for the option "
                          "'baselines', got one for "
                       << target.getNoun() << "s";
  // Kernels and networks have no layers to be compared with.
  if (!layers || database.empty())
    return success();
  FailureOr<EvaluatorSettings> settings = makeSettings(session);
  if (failed(settings))
    return failure();
  FailureOr<std::vector<Baseline>> made =
      kas::search::makeBaselines(layers, llvm::to_vector(baselines), *settings);
  if (failed(made))
    return failure();
  session.setBaselines(std::move(*made));
  return success();
}

/// The same for modules of the same text. 128 bits are enough to tell networks
/// apart; the text itself may be megabytes.
static std::string getDigest(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op->getParentOfType<ModuleOp>();
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) +
         llvm::utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

/// The settings that the sequence of candidates and their outcomes follow from,
/// and others that are good to know. Whatever changes the candidates or their
/// metrics is a setting; a run with other settings does not go on from the
/// file. The number of evaluations, threads and workers are not among them.
LogicalResult SearchPass::openDatabase(Session &session, SearchTarget &target) {
  SearchSettings settings = target.getSettings(), information;
  // The space with all that it refers to, as text.
  for (Operation *op : target.getOps())
    llvm::raw_string_ostream(settings["space"]) << *op << "\n";
  if (FailureOr<OperatorOp> imitated = findImitated();
      succeeded(imitated) && *imitated)
    llvm::raw_string_ostream(settings["imitated"]) << *imitated << "\n";
  settings["evaluators"] = llvm::join(getEvaluatorNames(), ",");
  // A final round may be added to a search that is there, or enlarged.
  if (finalCount && !finalEvaluators.empty())
    information["final_evaluators"] = llvm::join(finalEvaluators, ",");
  if (!external.empty())
    settings["external"] = external;
  if (!training.empty()) {
    settings["training"] = training;
    settings["rungs"] = llvm::join(
        llvm::map_range(getRungs(),
                        [](int64_t rung) { return std::to_string(rung); }),
        ",");
    // Training runs the whole network, so all of the module matters.
    settings["network"] = getDigest(target.getOp());
  }
  if (!limits.empty())
    settings["limits"] = llvm::join(limits, ",");
  // Changes which candidates fail, but a search may go on with another one.
  information["time_limit"] = llvm::formatv("{0}", double(timeLimit)).str();
  if (llvm::Error error = session.openStore(database, settings, information))
    return emitError(std::move(error));
  return success();
}

/// How many of `failures` each reason has, the most frequent first; what was
/// found (`, got 7`) differs from candidate to candidate. Of `..., got 7` and
/// `..., got 8` the part before `, got` is the reason.
static std::vector<std::pair<std::string, size_t>>
countReasons(ArrayRef<SearchResult> failures) {
  std::map<std::string, size_t> counts;
  for (const SearchResult &result : failures) {
    StringRef reason = std::get<Failure>(result.outcome).reason;
    // Without `, got` the position is npos, and all of the text is taken.
    ++counts[reason.take_front(reason.rfind(", got ")).str()];
  }
  std::vector<std::pair<std::string, size_t>> reasons(counts.begin(),
                                                      counts.end());
  // By descending count, then by text.
  llvm::sort(reasons, [](const auto &a, const auto &b) {
    return std::tie(b.second, a.first) < std::tie(a.second, b.first);
  });
  return reasons;
}

/// One of three reasons: all candidates failed; none was proposed in time; or
/// the space is empty, which is explained (Explain.h).
void SearchPass::warnOfNothing(Session &session, SearchTarget &target,
                               ArrayRef<SearchResult> failures) {
  mlir::Operation *op = target.getOp();
  InFlightDiagnostic warning = mlir::emitWarning(op->getLoc(), "found no ")
                               << target.getNoun() << ": ";
  if (!failures.empty()) {
    warning << "all " << failures.size()
            << " candidates failed, the first because "
            << std::get<Failure>(failures.front().outcome).reason;
    auto reasons = countReasons(failures);
    // More kinds of failures than that are noise.
    constexpr size_t most = 5;
    if (reasons.size() > 1)
      for (const auto &[reason, count] :
           llvm::ArrayRef(reasons).take_front(most))
        warning.attachNote(op->getLoc())
            << count << " of " << failures.size() << ": " << reason;
    return;
  }
  // The searcher has not proven that the space is empty.
  if (!session.isExhausted()) {
    std::string limit;
    llvm::raw_string_ostream(limit)
        << "no candidate was proposed within seconds="
        << llvm::format("%g", double(seconds));
    warning << (seconds > 0 ? limit : "the search was stopped");
    return;
  }
  warning << "the space has none";
  for (const std::string &reason : target.explainEmpty())
    warning.attachNote(op->getLoc()) << reason;
}

/// Names are `SPACE_0`, `SPACE_1`, ... from the best on.
void SearchPass::append(Session &session, SearchTarget &target,
                        ArrayRef<SearchResult> results,
                        const ParetoFront &front) {
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  SymbolTable symbols(getOperation());
  unsigned count = 0;
  for (const SearchResult &result : results) {
    StringRef origin = target.getName();
    Operation *op = target.build(builder, (origin + "_" + Twine(count++)).str(),
                                 *result.candidate.solution);
    // The row of the database, so that the result can be found there.
    std::optional<uint64_t> id;
    if (!database.empty())
      id = result.candidate.id;
    setScore(op, std::get<Metrics>(result.outcome), origin, id);
    // A default objective has a front, too, but nobody requested it.
    if (session.getObjective().isPareto() &&
        front.contains(result.candidate.id))
      op->setAttr(KasDialect::frontAttrName, builder.getUnitAttr());
    symbols.insert(op); // Renames it where the name is taken.
  }
}

/// The counters at the end are statistics of the pass
/// (`-mlir-pass-statistics`).
void SearchPass::runOnOperation() {
  FailureOr<std::unique_ptr<SearchTarget>> target = findTarget();
  if (failed(target) || failed(checkOptions()))
    return signalPassFailure();
  FailureOr<std::unique_ptr<Session>> made = makeSession(**target);
  if (failed(made))
    return signalPassFailure();
  Session &session = **made;
  if (failed(makeEvaluators(session, **target)) ||
      failed(makeBaselines(session, **target)) ||
      (!database.empty() && failed(openDatabase(session, **target))))
    return signalPassFailure();
  // Set before the run, which may fail.
  numReplayed = session.getReplayed().size();
  llvm::Expected<SessionResults> results = session.run();
  if (!results) {
    emitError(results.takeError());
    return signalPassFailure();
  }
  SearchStatistics statistics = session.getStatistics();
  numAsked = statistics.asked;
  numFailed = statistics.failed;
  numExpanded = statistics.expansions;
  numDeadEnds = statistics.deadEnds;
  numDuplicates = statistics.duplicates;
  std::vector<SearchResult> &evaluated = results->evaluated;
  // A search that found nothing still succeeds, with a warning.
  if (evaluated.empty())
    warnOfNothing(session, **target, results->failed);
  // Over all candidates, before `top` cuts the list.
  ParetoFront front = getFront(session.getObjective(), evaluated);
  numFront = front.size();
  session.getObjective().sort(evaluated);
  if (top && evaluated.size() > top)
    evaluated.resize(top);
  append(session, **target, evaluated, front);
}
