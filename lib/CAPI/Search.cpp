//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to searches: spaces, membership of an operator, and a
// searcher that any thread may ask for candidates and tell outcomes.
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
      auto write = [&](StringRef key, std::optional<double> bound) {
        if (bound)
          writer.attribute(key, *bound);
      };
      write("min_flops", problem.budget.minFlops);
      write("flops", problem.budget.maxFlops);
      write("params", problem.budget.maxParams);
    });
    writer.attributeObject("baseline", [&] {
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

static std::string toText(uint64_t key) {
  return llvm::utohexstr(key, /*LowerCase=*/true, 16);
}

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

static const OperatorGraph &getGraph(const Solution &solution) {
  return static_cast<const OperatorGraph &>(solution);
}

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
  result.session = std::move(*session);
  if (!options.database)
    return llvm::Error::success();
  // The name is that of -kas-search.
  SearchSettings settings;
  llvm::raw_string_ostream(settings["space"]) << *space << "\n";
  settings["flops_of"] = flopsOfPreparedWeights;
  for (size_t index = 0; index + 1 < options.numSettings; index += 2)
    settings[options.settings[index]] = options.settings[index + 1];
  return result.session->openStore(options.database, settings);
}

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
  if (std::optional<std::string> reason =
          findImpossibleProperty(*result->problem)) {
    space.emitOpError(*reason);
    return nullptr;
  }
  result->printer = std::make_unique<OperatorPrinter>(result->problem);
  if (llvm::Error error = makeSession(*result, space, options)) {
    access.report(std::move(error));
    return nullptr;
  }
  return result.release();
}

void kasSearcherDestroy(KasSearcher *searcher) { delete searcher; }

//===----------------------------------------------------------------------===//
// Asking and telling
//===----------------------------------------------------------------------===//

/// The members of a candidate, inside of an object.
static void writeCandidate(llvm::json::OStream &writer, KasSearcher &searcher,
                           const Candidate &candidate) {
  const OperatorGraph &graph = getGraph(*candidate.solution);
  writer.attribute("id", candidate.id);
  writer.attribute("parent", candidate.parent
                                 ? llvm::json::Value(*candidate.parent)
                                 : llvm::json::Value(nullptr));
  writer.attribute("key", toText(graph.key()));
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

bool kasSearcherAsk(KasSearcher *searcher, size_t count, KasStream json,
                    KasDiagnostics diagnostics) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  if (!isOpen(searcher, lock, diagnostics))
    return false;
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

bool kasSearcherGetReplayed(KasSearcher *searcher, KasStream json,
                            KasDiagnostics diagnostics) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  if (!isOpen(searcher, lock, diagnostics))
    return false;
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (const SearchResult &result : searcher->session->getReplayed())
      writer.object([&] {
        writeCandidate(writer, *searcher, result.candidate);
        writeOutcome(writer, result.outcome);
      });
  });
  return true;
}

//===----------------------------------------------------------------------===//
// What is kept beside
//===----------------------------------------------------------------------===//

/// Calls `use` on the open database, alone.
static bool useStore(KasSearcher *searcher, KasDiagnostics diagnostics,
                     llvm::function_ref<llvm::Error(SearchStore &)> use) {
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

bool kasSearcherRecordBaseline(KasSearcher *searcher, int64_t number,
                               const char *name, const char *text,
                               KasDiagnostics diagnostics) {
  if (number >= StoredBaseline::networkId) {
    reportError("requires a baseline with a number of -2 or less, got " +
                    llvm::Twine(number),
                diagnostics);
    return false;
  }
  return useStore(searcher, diagnostics, [&](SearchStore &store) {
    return store.recordBaseline({number, name, text, {}});
  });
}

bool kasSearcherGetBaselines(KasSearcher *searcher, KasStream json,
                             KasDiagnostics diagnostics) {
  return useStore(searcher, diagnostics,
                  [&](SearchStore &store) -> llvm::Error {
                    llvm::Expected<std::vector<StoredBaseline>> baselines =
                        store.readBaselines();
                    if (!baselines)
                      return baselines.takeError();
                    CallbackStream stream(json);
                    llvm::json::OStream writer(stream);
                    writer.array([&] {
                      for (const StoredBaseline &baseline : *baselines)
                        writer.object([&] {
                          writer.attribute("number", baseline.id);
                          writer.attribute("name", baseline.name);
                          writer.attribute("text", baseline.text);
                        });
                    });
                    return llvm::Error::success();
                  });
}

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

bool kasSearcherIsExhausted(KasSearcher *searcher) {
  std::shared_lock<std::shared_mutex> lock(searcher->mutex);
  return searcher->session->isExhausted();
}

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

bool kasSearcherClose(KasSearcher *searcher, KasDiagnostics diagnostics) {
  std::unique_lock<std::shared_mutex> lock(searcher->mutex);
  searcher->isClosed = true;
  llvm::Error error = searcher->session->close();
  return !error || reportError(std::move(error), diagnostics);
}
