//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A searcher that records all it does, and goes on where a killed one stopped.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_STOREDSEARCHER_H
#define KAS_SEARCH_CORE_STOREDSEARCHER_H

#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/SearchStore.h"
#include "llvm/ADT/DenseMap.h"
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>

namespace kas::search {

/// Wraps a searcher: each proposal is in the store before it is handed out,
/// each outcome before `tell` returns. Candidates are requested one by one, so
/// the searcher's sequence must be a function of the sequence of calls.
class StoredSearcher final : public Searcher {
public:
  /// The IR of a candidate.
  using Printer = std::function<std::string(const Solution &)>;

  StoredSearcher(Searcher &searcher, SearchStore &store, Printer print);

  /// Brings the searcher, which must be new, to where the file ends, by the
  /// same calls in the same order. Candidates without an outcome are the first
  /// that `ask` then hands out. An error when the searcher does not propose
  /// what it did: it, or the space, is not what the file was made with.
  llvm::Error replay();

  /// The results that the file already had, by identifier.
  llvm::ArrayRef<SearchResult> getReplayed() const { return replayed; }

  /// The first thing that could not be written, once. After it no candidates
  /// are proposed; the file is as it was before.
  llvm::Error takeError();

  std::vector<Candidate> ask(unsigned count) override;
  llvm::Error tell(uint64_t id, Outcome outcome) override;
  bool isExhausted() const override;
  void stop() override;
  SearchStatistics getStatistics() const override;

private:
  using Clock = std::chrono::steady_clock;
  llvm::Error replayAsk(const StoredCandidate &stored,
                        llvm::DenseMap<uint64_t, Candidate> &inFlight);
  /// Keeps `error` for `takeError` and ends the search.
  void fail(llvm::Error error);

  Searcher &searcher;
  SearchStore &store;
  Printer print;
  mutable std::mutex mutex;
  std::vector<SearchResult> replayed;
  /// Proposed by a run that did not live to hear of them.
  std::deque<Candidate> pending;
  llvm::DenseMap<uint64_t, Clock::time_point> started;
  Clock::time_point statisticsRecorded = Clock::now();
  std::optional<std::string> failure;
  std::atomic<bool> stopped = false;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_STOREDSEARCHER_H
