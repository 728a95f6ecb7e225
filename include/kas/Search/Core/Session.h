//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One search from its options to its results: the algorithm, the database, the
// evaluators, the final round, and the report.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SESSION_H
#define KAS_SEARCH_CORE_SESSION_H

#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Core/SearchReport.h"
#include "kas/Search/Core/StoredSearcher.h"

namespace kas::search {

/// What is searched.
struct SessionSpace {
  std::unique_ptr<State> root;
  /// What `exhaustive` orders candidates by; may be empty.
  std::function<double(const Solution &)> cost = {};
  /// The IR of a candidate; needed with a database.
  StoredSearcher::Printer print = {};
  CandidateSpace::Options options = {};
  /// The complete tree of the root, if it is known.
  std::shared_ptr<const LivingTree> tree = {};
};

struct SessionOptions {
  /// See `makeSearcher`.
  std::string algorithm = "random";
  uint64_t seed = 0;
  std::vector<std::string> parameters = {};
  /// See `Objective::parse`.
  std::string objective = {};
  /// Of `run`.
  SearchLimits limits = {};
  /// See `MetricLimit::parse`: bounds that all evaluators check.
  std::vector<std::string> bounds = {};
  /// How many of the best the final round evaluates; 0: there is none.
  uint64_t finalCount = 0;
  SearchReport::Mode report = SearchReport::Mode::Quiet;
};

/// What a search found. Each candidate is in one of the lists.
struct SessionResults {
  /// By identifier; after a final round the best first.
  std::vector<SearchResult> evaluated, failed;
};

/// A search. `run` does all of it; `step`, and `ask` with `tell`, are for
/// drivers of their own. Those and what only reads may be called from any
/// thread, the rest by one at a time and before them.
class Session {
public:
  using MakeEvaluatorFn =
      llvm::function_ref<llvm::Expected<std::unique_ptr<Evaluator>>(
          llvm::StringRef)>;

  /// Errors: an objective, algorithm or parameter that there is not.
  static llvm::Expected<std::unique_ptr<Session>>
  create(SessionSpace space, const SessionOptions &options);

  /// Makes the evaluators of the search, or of its final round, by name. A
  /// candidate goes through them in this order until one fails.
  llvm::Error makeEvaluators(llvm::ArrayRef<std::string> names,
                             MakeEvaluatorFn make);
  llvm::Error makeFinalEvaluators(llvm::ArrayRef<std::string> names,
                                  MakeEvaluatorFn make);

  /// What `run` evaluates beside the candidates and keeps in the database;
  /// without a database nothing is.
  void setBaselines(std::vector<Baseline> given) {
    baselines = std::move(given);
  }

  /// A baseline that the caller evaluates: its number, by which the database
  /// has its curves, and which one of this name has already. An error where
  /// that has another text.
  llvm::Expected<int64_t> addBaseline(llvm::StringRef name,
                                      llvm::StringRef text);

  /// Opens the database at `path`, or makes it, and brings the search to where
  /// it ends. The algorithm, its seed and parameters and the objective are
  /// among the settings that must agree; `settings` are the others, and
  /// `information` is only kept. Nothing may have been proposed before, and the
  /// evaluators must have been made, which take note of what was found.
  llvm::Error openStore(llvm::StringRef path, SearchSettings settings,
                        SearchSettings information = {});
  /// Null without a database, and once it is closed.
  SearchStore *getStore();
  /// The results that the database already had, by identifier.
  llvm::ArrayRef<SearchResult> getReplayed() const;

  /// See `Searcher`. Errors are those of the algorithm and of the database.
  llvm::Expected<std::vector<Candidate>> ask(unsigned count);
  llvm::Error tell(uint64_t id, Outcome outcome);
  /// Proposes and evaluates one candidate; nothing when there is none.
  llvm::Expected<std::optional<SearchResult>> step();

  /// Searches up to the limits, evaluates the best in the final round, closes
  /// the database and ends the report.
  llvm::Expected<SessionResults> run();

  /// Records the statistics, and closes the database. Nothing may be proposed
  /// afterwards.
  llvm::Error close();

  bool isExhausted() const { return getSearcher().isExhausted(); }
  void stop() { getSearcher().stop(); }
  SearchStatistics getStatistics() const { return searcher->getStatistics(); }
  const Objective &getObjective() const { return objective; }
  SearchReport &getReport() { return *report; }

private:
  using Evaluators = std::vector<std::unique_ptr<Evaluator>>;

  explicit Session(const SessionOptions &options) : options(options) {}
  llvm::Error makeEvaluators(llvm::ArrayRef<std::string> names,
                             MakeEvaluatorFn make, Evaluators &evaluators);
  Searcher &getSearcher() const;
  llvm::Error takeStoreError();
  /// Evaluates the baselines as far as the database does not have them.
  llvm::Error recordBaselines();
  /// All results by identifier, also those of earlier runs on the database.
  llvm::Expected<std::vector<SearchResult>> search();
  /// Takes a closer look at the best of `results`, which come first then.
  llvm::Error runFinals(std::vector<SearchResult> &results);

  // Each refers to those before it.
  SessionOptions options;
  Objective objective;
  StoredSearcher::Printer print;
  std::unique_ptr<Searcher> searcher;
  std::unique_ptr<SearchReport> report;
  Evaluators evaluators, finalEvaluators;
  std::vector<Baseline> baselines;
  /// Those of `addBaseline` without a database.
  std::vector<StoredBaseline> added;
  /// Both null without a database.
  std::unique_ptr<SearchStore> store;
  std::unique_ptr<StoredSearcher> stored;
  bool isClosed = false;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SESSION_H
