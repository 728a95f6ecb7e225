//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search from start to end: searcher, evaluators, database, baselines and
// final round, for the pass and for the C interface.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Session.h"
#include "kas/Search/Core/FinalRound.h"
#include "kas/Support/Version.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

/// Order of construction: the objective is parsed first, since the searcher and
/// the report refer to it. It must not move afterwards, so the session is on
/// the heap.
Expected<std::unique_ptr<Session>>
Session::create(SessionSpace space, const SessionOptions &options) {
  std::unique_ptr<Session> session(new Session(options));
  session->print = std::move(space.print);
  Expected<Objective> objective = Objective::parse(options.objective);
  if (!objective)
    return objective.takeError();
  session->objective = std::move(*objective);
  SearcherSettings settings;
  settings.seed = options.seed;
  // Without an objective the searcher has the default reward.
  if (!session->objective.isDefault())
    // A reference into the session, which lives longer than its searcher.
    settings.objective = [&objective =
                              session->objective](const Metrics &metrics) {
      return objective.getCost(metrics);
    };
  settings.cost = std::move(space.cost);
  settings.space = space.options;
  settings.tree = std::move(space.tree);
  auto searcher = makeSearcher(options.algorithm, std::move(space.root),
                               settings, options.parameters);
  if (!searcher)
    return searcher.takeError();
  session->searcher = std::move(*searcher);
  session->report = std::make_unique<SearchReport>(
      llvm::errs(), options.report, session->objective, options.limits,
      [&searcher = *session->searcher] { return searcher.getStatistics(); });
  return session;
}

//===----------------------------------------------------------------------===//
// Evaluators
//===----------------------------------------------------------------------===//

/// Bounds are parsed again for each list of evaluators; each evaluator checks
/// all bounds on the metrics that it gives itself.
Error Session::makeEvaluators(llvm::ArrayRef<std::string> names,
                              MakeEvaluatorFn make, Evaluators &evaluators) {
  std::vector<MetricLimit> bounds;
  for (const std::string &text : options.bounds) {
    Expected<MetricLimit> bound = MetricLimit::parse(text);
    if (!bound)
      return bound.takeError();
    bounds.push_back(std::move(*bound));
  }
  for (llvm::StringRef name : names) {
    Expected<std::unique_ptr<Evaluator>> evaluator = make(name);
    if (!evaluator)
      return evaluator.takeError();
    evaluators.push_back(makeCheckedEvaluator(std::move(*evaluator), bounds));
  }
  return Error::success();
}

Error Session::makeEvaluators(llvm::ArrayRef<std::string> names,
                              MakeEvaluatorFn make) {
  return makeEvaluators(names, make, evaluators);
}

Error Session::makeFinalEvaluators(llvm::ArrayRef<std::string> names,
                                   MakeEvaluatorFn make) {
  return makeEvaluators(names, make, finalEvaluators);
}

/// Evaluators as others take them. The session owns them.
static llvm::SmallVector<Evaluator *>
borrow(llvm::ArrayRef<std::unique_ptr<Evaluator>> evaluators) {
  return llvm::map_to_vector(evaluators,
                             [](const std::unique_ptr<Evaluator> &evaluator) {
                               return evaluator.get();
                             });
}

//===----------------------------------------------------------------------===//
// The database
//===----------------------------------------------------------------------===//

/// A search of another seed, algorithm or objective proposes other candidates,
/// so these settings decide whether a file can go on.
Error Session::openStore(llvm::StringRef path, SearchSettings settings,
                         SearchSettings information) {
  settings["algorithm"] = options.algorithm;
  settings["seed"] = std::to_string(options.seed);
  if (!options.parameters.empty())
    settings["parameters"] = llvm::join(options.parameters, ",");
  if (!options.objective.empty())
    settings["objective"] = options.objective;
  // Kept for people: versions may differ as long as replay gives the same.
  information["kas_version"] = getVersion();
  Expected<std::unique_ptr<SearchStore>> opened =
      SearchStore::open(path, settings, information);
  if (!opened)
    return opened.takeError();
  store = std::move(*opened);
  // From here on `getSearcher()` is the searcher that records.
  stored = std::make_unique<StoredSearcher>(*searcher, *store, print);
  if (Error error = stored->replay())
    return error;
  report->addReplayed(stored->getReplayed());
  // Evaluators that compare candidates learn what earlier runs have found.
  // Failures have no metrics to learn from.
  for (const SearchResult &result : stored->getReplayed())
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      for (const std::unique_ptr<Evaluator> &evaluator : evaluators)
        evaluator->observe(*metrics);
  return Error::success();
}

SearchStore *Session::getStore() { return isClosed ? nullptr : store.get(); }

llvm::ArrayRef<SearchResult> Session::getReplayed() const {
  return stored ? stored->getReplayed() : llvm::ArrayRef<SearchResult>();
}

/// With a database all calls go through the recording searcher.
Searcher &Session::getSearcher() const {
  return stored ? static_cast<Searcher &>(*stored) : *searcher;
}

/// An error of the database ends the search, though the searcher itself could
/// go on: what is not recorded could not be replayed.
Error Session::takeStoreError() {
  return stored ? stored->takeError() : Error::success();
}

/// Safe to be called twice.
Error Session::close() {
  if (!store || isClosed)
    return Error::success();
  isClosed = true;
  // The counters of the searcher itself: replayed proposals are among them.
  Error error = store->recordStatistics(searcher->getStatistics());
  // Closed also after an error, which is then returned.
  store->close();
  return error;
}

Expected<int64_t> Session::addBaseline(llvm::StringRef name,
                                       llvm::StringRef text) {
  std::vector<StoredBaseline> known = added;
  if (store) {
    Expected<std::vector<StoredBaseline>> read = store->readBaselines();
    if (!read)
      return read.takeError();
    known = std::move(*read);
  }
  if (const StoredBaseline *found = findBaseline(name, known)) {
    if (found->text != text)
      return llvm::createStringError("the database has another baseline '" +
                                     name + "'; requires one of another name");
    return found->id;
  }
  StoredBaseline baseline = {numberBaseline(known), name.str(), text.str(), {}};
  if (!store)
    added.push_back(baseline);
  else if (Error error = store->recordBaseline(baseline))
    return error;
  return baseline.id;
}

/// By all evaluators of both rounds, each name once.
Error Session::recordBaselines() {
  llvm::SmallVector<Evaluator *> all = borrow(evaluators);
  if (options.finalCount)
    for (Evaluator *evaluator : borrow(finalEvaluators))
      if (llvm::none_of(all, [&](Evaluator *other) {
            return other->getName() == evaluator->getName();
          }))
        all.push_back(evaluator);
  return evaluateBaselines(baselines, all, options.limits.threads, options.seed,
                           *store, *report);
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// Candidates whose proposal could not be recorded are lost with the error.
Expected<std::vector<Candidate>> Session::ask(unsigned count) {
  std::vector<Candidate> candidates = getSearcher().ask(count);
  if (Error error = takeStoreError())
    return error;
  return candidates;
}

Error Session::tell(uint64_t id, Outcome outcome) {
  if (Error error = getSearcher().tell(id, std::move(outcome)))
    return error;
  return takeStoreError();
}

/// Single-threaded: for callers that drive the search themselves.
Expected<std::optional<SearchResult>> Session::step() {
  Expected<std::vector<Candidate>> candidates = ask(1);
  if (!candidates)
    return candidates.takeError();
  if (candidates->empty())
    return std::nullopt;
  SearchResult result{candidates->front(),
                      evaluate(candidates->front(), borrow(evaluators))};
  if (Error error = tell(result.candidate.id, result.outcome))
    return error;
  report->add(result);
  return result;
}

/// Replayed results count towards the limit of evaluations: a search that is
/// continued ends where one without interruption would.
Expected<std::vector<SearchResult>> Session::search() {
  std::vector<SearchResult> results = getReplayed().vec();
  SearchLimits limits = options.limits;
  limits.evaluations -= std::min<uint64_t>(results.size(), limits.evaluations);
  // Baselines first: their metrics may be the reference of evaluators, and
  // their errors show at once that an evaluator is set up wrongly.
  if (stored)
    if (Error error = recordBaselines())
      return error;
  if (limits.evaluations)
    llvm::append_range(
        results,
        runSearch(getSearcher(), borrow(evaluators), limits,
                  [&](const SearchResult &result) { report->add(result); }));
  if (!stored)
    return results;
  if (Error error = stored->takeError())
    return error;
  if (Error error = store->recordStatistics(stored->getStatistics()))
    return error;
  // Those that were in flight when an earlier run ended came last.
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  return results;
}

/// `results` are all evaluated candidates, without failures. The best
/// `finalCount` by the objective of the first round are evaluated again.
Error Session::runFinals(std::vector<SearchResult> &results) {
  objective.sort(results);
  // Final outcomes of earlier runs, so that a final round can be continued.
  std::map<uint64_t, Outcome> known;
  if (store) {
    auto candidates = store->readCandidates();
    if (!candidates)
      return candidates.takeError();
    for (const StoredCandidate &candidate : *candidates)
      if (candidate.finalOutcome)
        known[candidate.id] = *candidate.finalOutcome;
  }
  size_t count = std::min<uint64_t>(options.finalCount, results.size());
  // Reported before it is recorded: people see it even if the disk is full.
  auto record = [&](const SearchResult &result, double seconds) -> Error {
    report->addFinal(result, count);
    if (!store)
      return Error::success();
    return store->recordFinal(result.candidate.id, result.outcome, seconds);
  };
  return runFinalRound(llvm::MutableArrayRef(results).take_front(count),
                       borrow(finalEvaluators), options.limits.threads, known,
                       record);
}

/// Failures of both rounds end up in `failed`.
Expected<SessionResults> Session::run() {
  Expected<std::vector<SearchResult>> all = search();
  if (!all)
    return all.takeError();
  SessionResults results;
  auto divide = [&](std::vector<SearchResult> mixed) {
    for (SearchResult &result : mixed)
      (std::holds_alternative<Failure>(result.outcome) ? results.failed
                                                       : results.evaluated)
          .push_back(std::move(result));
  };
  divide(std::move(*all));
  if (options.finalCount) {
    // The final round may turn a candidate into a failure, so the list is
    // divided once more.
    std::vector<SearchResult> best = std::exchange(results.evaluated, {});
    if (Error error = runFinals(best))
      return error;
    divide(std::move(best));
  }
  if (Error error = close())
    return error;
  report->finish(results.evaluated, searcher->isExhausted());
  return results;
}
