//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to searches: spaces, membership of an operator, and a
// searcher from which any thread may request candidates and to which it may
// report outcomes.
// The core of a search is `Session` (Search/Core): this file adds operators and
// their texts. Candidates are requested and reported about in any order and by
// any thread; with a database a search that was interrupted replays what was
// reported.
//
//===----------------------------------------------------------------------===//

#include "kas-c/Search.h"
#include "Handles.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/Site.h"
#include "kas/Search/Core/Session.h"
#include "kas/Search/Operators/GraphState.h"
#include "kas/Search/Operators/Membership.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <shared_mutex>

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;

/// A search; each part refers to those before it.
struct KasSearcher {
  std::shared_ptr<const SearchProblem> problem;
  std::unique_ptr<OperatorPrinter> printer;
  std::unique_ptr<Session> session;
  /// Calls share it; closing takes it alone.
  std::shared_mutex mutex;
  bool isClosed = false;
};

/// For calls without a module, whose context is not locked.
static void reportError(const llvm::Twine &message,
                        KasDiagnostics diagnostics) {
  diagnostics.report(KasSeverityError, "", message.str().c_str(),
                     diagnostics.userData);
}

static bool reportError(llvm::Error error, KasDiagnostics diagnostics) {
  reportError(llvm::toString(std::move(error)), diagnostics);
  return false;
}

//===----------------------------------------------------------------------===//
// Spaces
//===----------------------------------------------------------------------===//

/// The space called `name`, or the only one of the module for null.
static SpaceOp lookupSpace(ModuleAccess &access, const char *name) {
  if (name) {
    Operation *symbol = access.getModule().lookupSymbol(name);
    auto space = dyn_cast_or_null<SpaceOp>(symbol);
    if (!space)
      access.report(llvm::Twine("the module has no space '") + name + "'");
    return space;
  }
  auto spaces = llvm::to_vector(access.getModule().getOps<SpaceOp>());
  if (spaces.size() == 1)
    return spaces.front();
  access.report("requires one kas.space in the module, or the name of one, "
                "got " +
                llvm::Twine(spaces.size()));
  return {};
}

static void writeNames(llvm::json::OStream &writer, StringRef key,
                       ArrayAttr names) {
  writer.attributeArray(key, [&] {
    for (StringAttr name : names.getAsRange<StringAttr>())
      writer.value(name.getValue());
  });
}

/// The sizes of one side of the space, and which of its dimensions are
/// unordered.
static void writeDimensions(llvm::json::OStream &writer, StringRef side,
                            ArrayRef<Dimension> dimensions,
                            const SymbolSet &symbols) {
  writer.attributeArray(side, [&] {
    for (const Dimension &dimension : dimensions)
      writer.value(toString(dimension.size, symbols));
  });
  writer.attributeArray("unordered_" + side.str(), [&] {
    for (const Dimension &dimension : dimensions)
      writer.value(dimension.isUnordered);
  });
}

/// All that Python shows of a space: sides, bindings with multiplicities,
/// budget, the layers' own costs, and the named operator that computes them.
bool kasSpaceDescribe(KasModule *module, const char *name, KasStream json,
                      KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  SpaceOp space = lookupSpace(access, name);
  if (!space)
    return false;
  SearchProblem problem = SearchProblem::get(space);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("name", space.getSymName());
    writeNames(writer, "primaries", space.getPrimaries());
    writeNames(writer, "coefficients", space.getCoefficients());
    writeDimensions(writer, "output", problem.outputs, problem.symbols);
    writeDimensions(writer, "input", problem.inputs, problem.symbols);
    writer.attributeArray("bindings", [&] {
      for (auto binding : space.getBindings().getAsRange<BindingAttr>())
        writer.object([&] {
          for (auto [symbol, value] :
               llvm::zip_equal(binding.getNames(), binding.getValues()))
            writer.attribute(symbol.getValue(), value);
        });
    });
    writer.attribute("multiplicities",
                     llvm::json::Array(space.getMultiplicities()));
    writer.attributeObject("budget", [&] {
      // Bounds that the space does not set are left out.
      auto write = [&](StringRef key, std::optional<double> bound) {
        if (bound)
          writer.attribute(key, *bound);
      };
      write("min_flops", problem.budget.minFlops);
      write("flops", problem.budget.maxFlops);
      write("params", problem.budget.maxParams);
    });
    writer.attributeObject("baseline", [&] {
      // Of the layers that the space was extracted from; absent from spaces
      // that users write.
      for (StringRef name : {"baseline_flops", "baseline_params"})
        if (std::optional<double> value = space.getBudgetValue(name))
          writer.attribute(name.drop_front(StringRef("baseline_").size()),
                           *value);
    });
    auto named =
        space->getAttrOfType<StringAttr>(KasDialect::namedOperatorAttrName);
    writer.attribute("named_operator", named ? named.getValue() : "");
  });
  return true;
}

/// Not verified: limits that are changed together may not do one by one.
bool kasSpaceSetLimit(KasModule *module, const char *name, const char *limit,
                      const char *value, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  SpaceOp space = lookupSpace(access, name);
  if (!space)
    return false;
  NamedAttrList limits(space.getLimitsAttr());
  if (value) {
    Attribute attribute = parseAttribute(value, space.getContext());
    if (!attribute)
      return false;
    limits.set(limit, attribute);
  } else {
    limits.erase(limit);
  }
  space.setLimitsAttr(limits.getDictionary(space.getContext()));
  return true;
}

/// Keys are 64 bits, which JSON readers do not keep as numbers: 16 hexadecimal
/// digits.
static std::string toText(uint64_t key) {
  return llvm::utohexstr(key, /*LowerCase=*/true, 16);
}

/// The key of the operator in the space, or the reasons why it is no member.
bool kasSpaceFindMember(KasModule *module, const char *space,
                        KasModule *operators, const char *name, KasStream json,
                        KasDiagnostics diagnostics) {
  std::shared_ptr<const SearchProblem> problem;
  {
    // Both may be one module, and each access holds its lock.
    ModuleAccess access(module, diagnostics);
    SpaceOp found = lookupSpace(access, space);
    if (!found)
      return false;
    // A copy without references into the context, used after its lock is
    // released.
    problem = std::make_shared<const SearchProblem>(SearchProblem::get(found));
  }
  ModuleAccess access(operators, diagnostics);
  OperatorOp op = access.lookupOperator(name);
  if (!op)
    return false;
  Membership membership = getMembership(problem, op);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("key", membership.key
                                ? llvm::json::Value(toText(*membership.key))
                                : llvm::json::Value(nullptr));
    writer.attribute("reasons", llvm::json::Array(membership.reasons));
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Making a searcher
//===----------------------------------------------------------------------===//

/// All solutions of this space are graphs of operators.
static const OperatorGraph &getGraph(const Solution &solution) {
  return static_cast<const OperatorGraph &>(solution);
}

/// Connects the session with the space: the first state, the size of a
/// candidate for ties, and its text.
static llvm::Error makeSession(KasSearcher &result, SpaceOp space,
                               const KasSearchOptions &options) {
  SessionSpace searched{makeGraphState(result.problem),
                        [](const Solution &solution) {
                          return static_cast<double>(
                              getGraph(solution).cost.flops);
                        },
                        [&printer = *result.printer](const Solution &solution) {
                          return printer.print(getGraph(solution));
                        }};
  SessionOptions own;
  own.algorithm = options.algorithm;
  own.seed = options.seed;
  own.parameters.assign(options.parameters,
                        options.parameters + options.numParameters);
  own.objective = options.objective ? options.objective : "";
  llvm::Expected<std::unique_ptr<Session>> session =
      Session::create(std::move(searched), own);
  if (!session)
    return session.takeError();
  // The session before the database, which replays into it.
  result.session = std::move(*session);
  if (!options.database)
    return llvm::Error::success();
  // The name is that of -kas-search.
  // A database belongs to one search: settings are compared when it is opened
  // again.
  SearchSettings settings;
  llvm::raw_string_ostream(settings["space"]) << *space << "\n";
  settings["flops_of"] = flopsOfPreparedWeights;
  // Names and values alternate; a name without a value is left out.
  for (size_t index = 0; index + 1 < options.numSettings; index += 2)
    settings[options.settings[index]] = options.settings[index + 1];
  return result.session->openStore(options.database, settings);
}

/// The module may be destroyed afterwards: the problem has no references into
/// it.
KasSearcher *kasSearcherCreate(KasModule *module, const char *name,
                               KasSearchOptions options,
                               KasDiagnostics diagnostics) {
  auto result = std::make_unique<KasSearcher>();
  ModuleAccess access(module, diagnostics);
  SpaceOp space = lookupSpace(access, name);
  if (!space)
    return nullptr;
  result->problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  // A space that can have no member is an error before the search begins.
  if (std::optional<std::string> reason =
          findImpossibleProperty(*result->problem)) {
    space.emitOpError(*reason);
    return nullptr;
  }
  // Printing needs the problem, and a session prints: the order of the members.
  result->printer = std::make_unique<OperatorPrinter>(result->problem);
  if (llvm::Error error = makeSession(*result, space, options)) {
    access.report(std::move(error));
    return nullptr;
  }
  return result.release();
}

void kasSearcherDestroy(KasSearcher *searcher) { delete searcher; }

bool kasObjectiveDescribe(const char *text, KasStream json,
                          KasDiagnostics diagnostics) {
  llvm::Expected<Objective> objective = Objective::parse(text);
  if (!objective)
    return reportError(objective.takeError(), diagnostics);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (const Objective::Sum &axis : objective->getAxes())
      writer.array([&] {
        for (const Objective::Term &term : axis)
          writer.value(llvm::json::Array{term.factor, term.metric});
      });
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Asking and telling
//===----------------------------------------------------------------------===//

/// The members of a candidate, inside of an object.
/// As docs/guide/searching.md describes candidates.
static void writeCandidate(llvm::json::OStream &writer, KasSearcher &searcher,
                           const Candidate &candidate) {
  const OperatorGraph &graph = getGraph(*candidate.solution);
  writer.attribute("id", candidate.id);
  writer.attribute("parent", candidate.parent
                                 ? llvm::json::Value(*candidate.parent)
                                 : llvm::json::Value(nullptr));
  writer.attribute("key", toText(graph.key()));
  // As the text of a file, which evaluators parse.
  writer.attribute("operator", searcher.printer->print(graph));
  writer.attribute("flops", graph.cost.flops);
  writer.attribute("params", graph.cost.params);
}

/// Keeps a searcher open while a call uses it; false with an error when it is
/// closed.
static bool isOpen(KasSearcher *searcher,
                   const std::shared_lock<std::shared_mutex> &,
                   KasDiagnostics diagnostics) {
  if (!searcher->isClosed)
    return true;
  reportError("the search is closed; make another searcher on its database to "
              "go on",
              diagnostics);
  return false;
}

/// Fewer candidates than `count` mean that there are no more now: others may
/// follow when more has been reported.
bool kasSearcherAsk(KasSearcher *searcher, size_t count, KasStream json,
                    KasDiagnostics diagnostics) {
  // Shared: several threads may ask and tell at once, the session has its own
  // lock.
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  if (!isOpen(searcher, lock, diagnostics))
    return false;
  // So that a count that is a mistake asks for no memory of terabytes.
  constexpr size_t most = 1u << 20;
  llvm::Expected<std::vector<Candidate>> candidates =
      searcher->session->ask(static_cast<unsigned>(std::min(count, most)));
  if (!candidates)
    return reportError(candidates.takeError(), diagnostics);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (const Candidate &candidate : *candidates)
      writer.object([&] { writeCandidate(writer, *searcher, candidate); });
  });
  return true;
}

/// Of metrics or a failure.
static bool tell(KasSearcher *searcher, uint64_t id, Outcome outcome,
                 KasDiagnostics diagnostics) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  if (!isOpen(searcher, lock, diagnostics))
    return false;
  llvm::Error error = searcher->session->tell(id, std::move(outcome));
  return !error || reportError(std::move(error), diagnostics);
}

/// Nothing, with an error, where one is no finite number.
static std::optional<Metrics> getMetrics(const char *const *names,
                                         const double *values, size_t count,
                                         KasDiagnostics diagnostics) {
  Metrics metrics;
  for (size_t index = 0; index < count; ++index) {
    // Objectives compare numbers; NaN would make the order of candidates depend
    // on when it came.
    if (!std::isfinite(values[index])) {
      reportError(llvm::Twine("requires finite metrics, got ") +
                      std::to_string(values[index]) + " for '" + names[index] +
                      "'",
                  diagnostics);
      return std::nullopt;
    }
    metrics[names[index]] = values[index];
  }
  return metrics;
}

/// `names` and `values` have `count` entries each; an id that was not requested
/// is an error.
bool kasSearcherTellMetrics(KasSearcher *searcher, uint64_t id,
                            const char *const *names, const double *values,
                            size_t count, KasDiagnostics diagnostics) {
  std::optional<Metrics> metrics =
      getMetrics(names, values, count, diagnostics);
  return metrics && tell(searcher, id, std::move(*metrics), diagnostics);
}

bool kasSearcherTellFailure(KasSearcher *searcher, uint64_t id,
                            const char *reason, KasDiagnostics diagnostics) {
  return tell(searcher, id, Failure{reason}, diagnostics);
}

/// The members `metrics` or `failure`.
static void writeOutcome(llvm::json::OStream &writer, const Outcome &outcome) {
  if (const auto *failed = std::get_if<Failure>(&outcome)) {
    writer.attribute("failure", failed->reason);
    return;
  }
  writer.attributeObject("metrics", [&] {
    for (const auto &[name, value] : std::get<Metrics>(outcome))
      writer.attribute(name, value);
  });
}

/// The outcomes that the database already had.
bool kasSearcherGetReplayed(KasSearcher *searcher, KasStream json,
                            KasDiagnostics diagnostics) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  if (!isOpen(searcher, lock, diagnostics))
    return false;
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    // In the order in which they were reported.
    for (const SearchResult &result : searcher->session->getReplayed())
      writer.object([&] {
        writeCandidate(writer, *searcher, result.candidate);
        writeOutcome(writer, result.outcome);
      });
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Further settings
//===----------------------------------------------------------------------===//

/// Calls `use` on the open database, alone.
/// Fails for a searcher that is closed or has no database.
static bool useStore(KasSearcher *searcher, KasDiagnostics diagnostics,
                     llvm::function_ref<llvm::Error(SearchStore &)> use) {
  // The store is not for several threads.
  std::unique_lock<std::shared_mutex> lock(searcher->mutex);
  SearchStore *store = searcher->session->getStore();
  if (searcher->isClosed || !store) {
    reportError(searcher->isClosed
                    ? "the search is closed"
                    : "requires a searcher with a database, got one without",
                diagnostics);
    return false;
  }
  llvm::Error error = use(*store);
  return !error || reportError(std::move(error), diagnostics);
}

/// The outcome of a candidate in the final round, which the search itself does
/// not use; `failure` is null for metrics.
bool kasSearcherRecordFinal(KasSearcher *searcher, uint64_t id,
                            const char *const *names, const double *values,
                            size_t count, const char *failure, double seconds,
                            KasDiagnostics diagnostics) {
  Outcome outcome = Failure{failure ? failure : ""};
  if (!failure) {
    std::optional<Metrics> metrics =
        getMetrics(names, values, count, diagnostics);
    if (!metrics)
      return false;
    outcome = std::move(*metrics);
  }
  return useStore(searcher, diagnostics, [&](SearchStore &store) {
    return store.recordFinal(id, outcome, seconds);
  });
}

/// An object with the candidates' ids as keys.
bool kasSearcherGetFinals(KasSearcher *searcher, KasStream json,
                          KasDiagnostics diagnostics) {
  return useStore(
      searcher, diagnostics, [&](SearchStore &store) -> llvm::Error {
        llvm::Expected<std::vector<StoredCandidate>> candidates =
            store.readCandidates();
        if (!candidates)
          return candidates.takeError();
        CallbackStream stream(json);
        llvm::json::OStream writer(stream);
        writer.object([&] {
          for (const StoredCandidate &candidate : *candidates)
            if (candidate.finalOutcome)
              writer.attributeObject(std::to_string(candidate.id), [&] {
                writeOutcome(writer, *candidate.finalOutcome);
              });
        });
        return llvm::Error::success();
      });
}

/// The session numbers them, with a database or without.
bool kasSearcherAddBaseline(KasSearcher *searcher, const char *name,
                            const char *text, int64_t *number,
                            KasDiagnostics diagnostics) {
  // Alone: the store is not for several threads.
  std::unique_lock<std::shared_mutex> lock(searcher->mutex);
  if (searcher->isClosed) {
    reportError("the search is closed", diagnostics);
    return false;
  }
  llvm::Expected<int64_t> added = searcher->session->addBaseline(name, text);
  if (!added)
    return reportError(added.takeError(), diagnostics);
  *number = *added;
  return true;
}

/// Curves of trainings: entry i of the arrays is one value at one epoch.
bool kasSearcherRecordTraining(KasSearcher *searcher, int64_t candidate,
                               uint64_t seed, const uint64_t *epochs,
                               const char *const *names, const double *values,
                               size_t count, KasDiagnostics diagnostics) {
  std::vector<TrainingPoint> points;
  for (size_t index = 0; index < count; ++index)
    points.push_back(
        {candidate, seed, epochs[index], names[index], values[index]});
  return useStore(searcher, diagnostics, [&](SearchStore &store) {
    return store.recordTraining(points);
  });
}

/// Each entry is [candidate, seed, epoch, name, value].
bool kasSearcherGetTraining(KasSearcher *searcher, KasStream json,
                            KasDiagnostics diagnostics) {
  return useStore(
      searcher, diagnostics, [&](SearchStore &store) -> llvm::Error {
        llvm::Expected<std::vector<TrainingPoint>> points =
            store.readTraining();
        if (!points)
          return points.takeError();
        CallbackStream stream(json);
        llvm::json::OStream writer(stream);
        writer.array([&] {
          for (const TrainingPoint &point : *points)
            writer.value(llvm::json::Array{point.candidate, point.seed,
                                           point.epoch, point.name,
                                           point.value});
        });
        return llvm::Error::success();
      });
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

/// True when every candidate has been requested; some may not have been
/// reported yet.
bool kasSearcherIsExhausted(KasSearcher *searcher) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  return searcher->session->isExhausted();
}

/// Without the lock: `ask` may hold it, and this is what ends it.
void kasSearcherStop(KasSearcher *searcher) { searcher->session->stop(); }

void kasSearcherGetStatistics(KasSearcher *searcher, KasStream json) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  SearchStatistics statistics = searcher->session->getStatistics();
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("asked", statistics.asked);
    writer.attribute("evaluated", statistics.evaluated);
    writer.attribute("failed", statistics.failed);
    writer.attribute("expansions", statistics.expansions);
    writer.attribute("rollouts", statistics.rollouts);
    writer.attribute("dead_ends", statistics.deadEnds);
    writer.attribute("duplicates", statistics.duplicates);
  });
}

/// Waits for the calls that are running; further ones fail.
bool kasSearcherClose(KasSearcher *searcher, KasDiagnostics diagnostics) {
  std::unique_lock<std::shared_mutex> lock(searcher->mutex);
  searcher->isClosed = true;
  llvm::Error error = searcher->session->close();
  return !error || reportError(std::move(error), diagnostics);
}
