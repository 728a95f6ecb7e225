//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random search: the plain sampler that every other algorithm is to be
// compared with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_RANDOMSEARCHER_H
#define KAS_SEARCH_RANDOMSEARCHER_H

#include "kas/Search/Searcher.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/DenseSet.h"
#include <atomic>
#include <mutex>

namespace kas {

/// Walks from the root to a terminal state, choosing at each state a kind of
/// move uniformly, then a move of it uniformly; steps back at dead ends. A
/// state below which every candidate is known is marked and never entered
/// again, so no candidate comes twice and a finite space is enumerated to its
/// end. The sequence depends on the seed only, not on what is told or when.
class RandomSearcher final : public Searcher {
public:
  struct Options {
    uint64_t seed = 0;
    /// A walk is given up after so many states: the part of the space it is in
    /// may be large and empty.
    uint64_t expansionsPerWalk = 2000;
    /// A call of `ask` returns what it has after so many states.
    uint64_t expansionsPerAsk = 2000000;
    /// No more states are marked after so many, which bounds the memory (16
    /// bytes for each).
    size_t maxMarks = size_t(1) << 26;
  };

  RandomSearcher(std::unique_ptr<State> root, const Options &options);

  std::vector<Candidate> ask(unsigned count) override;
  llvm::Error tell(uint64_t id, Outcome outcome) override;
  bool isExhausted() const override;
  void stop() override { stopped = true; }
  SearchStatistics getStatistics() const override;

private:
  /// What came of searching below a state.
  enum class Walk { Found, Exhausted, GaveUp };
  Walk descend(const State &state, uint64_t &budget);

  mutable std::mutex mutex;
  std::unique_ptr<State> root;
  Options options;
  Random random;
  std::atomic<bool> stopped = false;
  llvm::DenseSet<uint64_t> exhausted;
  std::shared_ptr<const Solution> found;
  /// By identifier: whether the outcome is known.
  std::vector<bool> told;
  SearchStatistics statistics;
};

} // namespace kas

#endif // KAS_SEARCH_RANDOMSEARCHER_H
