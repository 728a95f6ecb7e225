//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a search reports while it runs: a line for people, or JSON for programs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SEARCHREPORT_H
#define KAS_SEARCH_CORE_SEARCHREPORT_H

#include "kas/Search/Core/Objective.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <mutex>

namespace kas::search {

/// All functions may be called by any thread.
class SearchReport {
public:
  enum class Mode {
    /// Messages only.
    Quiet,
    /// One line that is written over ten times a second, for a terminal.
    Line,
    /// A JSON object per line and event: `baseline`, `candidate`, `final`,
    /// `message`, `front`, `end`. docs/guide/searching.md has their members.
    Json
  };

  /// `limits` are those of the whole search, of which `replayed` are results
  /// that were known before.
  SearchReport(llvm::raw_ostream &stream, Mode mode, const Objective &objective,
               const SearchLimits &limits,
               std::function<SearchStatistics()> getStatistics);

  SearchReport(const SearchReport &) = delete;
  SearchReport &operator=(const SearchReport &) = delete;
  /// Takes away the line of a search that did not come to its end.
  ~SearchReport();

  /// Counts results of earlier runs.
  void addReplayed(llvm::ArrayRef<SearchResult> results);

  /// One more candidate has an outcome.
  void add(const SearchResult &result);

  /// One of `wanted` candidates of the final round has an outcome.
  void addFinal(const SearchResult &result, uint64_t wanted);

  /// What candidates are compared with was evaluated.
  void addBaseline(llvm::StringRef name, const Metrics &metrics);

  void message(const std::string &text);

  /// The end: the front of `results`, and the numbers of the search. Nothing
  /// is to be called afterwards.
  void finish(llvm::ArrayRef<SearchResult> results, bool isExhausted);

private:
  void count(const SearchResult &result);
  void printCandidate(const SearchResult &result, llvm::StringRef event);
  void printLine();
  void clearLine();
  std::string getTimeLeft() const;

  llvm::raw_ostream &stream;
  Mode mode;
  const Objective &objective;
  SearchLimits limits;
  std::function<SearchStatistics()> getStatistics;
  std::mutex mutex;
  std::chrono::steady_clock::time_point start, printed;
  /// The metrics of the first result: the axes of the default front.
  std::vector<std::string> names;
  ParetoFront front;
  std::optional<SearchResult> best;
  bool hasLine = false;
  uint64_t evaluated = 0, failed = 0, replayed = 0, finals = 0;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SEARCHREPORT_H
