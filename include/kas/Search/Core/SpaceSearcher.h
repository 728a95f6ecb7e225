//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the algorithms have in common: identifiers, outcomes, statistics.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SPACESEARCHER_H
#define KAS_SEARCH_CORE_SPACESEARCHER_H

#include "kas/Search/Core/CandidateSpace.h"
#include "kas/Search/Core/Searcher.h"
#include <functional>
#include <limits>
#include <mutex>

namespace kas::search {

/// Makes one number of the metrics of a candidate; more is better. A result
/// that is not finite counts as a failure.
using RewardFunction = std::function<double(const Metrics &)>;

/// The metric `reward` if there is one; else less is better in `latency_ms`,
/// else in `flops`, else in `params`.
double getDefaultReward(const Metrics &metrics);

/// An algorithm that draws from a `CandidateSpace`. A derived class proposes
/// paths and learns rewards, both under the lock.
class SpaceSearcher : public Searcher {
public:
  struct Options {
    uint64_t seed = 0;
    RewardFunction reward = getDefaultReward;
    /// A call of `ask` returns what it has after so many states (without a
    /// tree).
    uint64_t expansionsPerAsk = 2000000;
  };

  std::vector<Candidate> ask(unsigned count) final;
  llvm::Error tell(uint64_t id, Outcome outcome) final;
  bool isExhausted() const final;
  void stop() final;
  SearchStatistics getStatistics() const final;

  /// The space; for users that hold the searcher alone.
  const CandidateSpace &getSpace() const { return *space; }

protected:
  using Draw = CandidateSpace::Draw;

  SpaceSearcher(std::unique_ptr<CandidateSpace> space, const Options &options);

  /// Finds the path of the candidate `id`, which is taken afterwards. `path` is
  /// empty before; `parent` may be set.
  virtual Draw propose(uint64_t id, Path &path) = 0;
  /// The candidate `id` was proposed and has this solution.
  virtual void proposed(uint64_t id, const Path &path,
                        const std::shared_ptr<const Solution> &solution) {}
  /// Its outcome is known; failures have none.
  virtual void learn(uint64_t id, std::optional<double> reward) {}

  virtual bool hasProposedAll() const { return space->isExhausted(); }
  bool isStopped() const { return stopped; }
  const std::atomic<bool> &getStopped() const { return stopped; }

  std::unique_ptr<CandidateSpace> space;
  /// The candidate that the one being proposed is a variation of.
  std::optional<uint64_t> parent;
  const Options commonOptions;
  Random random;

private:
  mutable std::mutex mutex;
  std::atomic<bool> stopped = false;
  /// By identifier: whether the outcome is known.
  std::vector<bool> hasOutcome;
  SearchStatistics statistics;
};

/// The smallest and the largest reward so far, to bring rewards of any unit to
/// [0, 1]. Failures are 0.
class RewardRange {
public:
  void add(double reward) {
    lowest = std::min(lowest, reward);
    highest = std::max(highest, reward);
  }
  bool isEmpty() const { return lowest > highest; }
  double getWidth() const { return isEmpty() ? 0 : highest - lowest; }
  double getLowest() const { return isEmpty() ? 0 : lowest; }

private:
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SPACESEARCHER_H
