//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by searchers that draw from a `CandidateSpace`: locking,
// identifiers, rewards.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SpaceSearcher.h"
#include <cmath>

using namespace kas;
using namespace kas::search;

// Anchors of the vtables of the interfaces, whose headers define no function.
Solution::~Solution() = default;
Evaluator::~Evaluator() = default;
Searcher::~Searcher() = default;

/// Fixed and searched in this order: a measured time before what only estimates
/// it.
double kas::search::getDefaultReward(const Metrics &metrics) {
  if (auto reward = metrics.find("reward"); reward != metrics.end())
    return reward->second;
  for (const char *name : {"latency_ms", "flops", "params"})
    if (auto cost = metrics.find(name); cost != metrics.end())
      return -cost->second;
  return 0;
}

SpaceSearcher::SpaceSearcher(std::unique_ptr<CandidateSpace> space,
                             const Options &options)
    : space(std::move(space)), commonOptions(options), random(options.seed) {}

/// One candidate at a time, under the lock: proposals are a function of the
/// sequence of calls.
std::vector<Candidate> SpaceSearcher::ask(unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  // Builds the tree at the first call, in the thread that needs it.
  space->prepare();
  std::vector<Candidate> result;
  // The effort of one call is limited, so a driver can look at its limits of
  // time.
  uint64_t end = space->getNumExpansions() + commonOptions.expansionsPerAsk;
  while (result.size() < count && space->getNumExpansions() < end && !stopped) {
    ++statistics.rollouts;
    uint64_t before = space->getNumExpansions();
    Path path;
    parent.reset();
    // A root that is a candidate has no moves to propose.
    Draw draw = space->getRoot().isTerminal() ? space->draw(path, random)
                                              : propose(statistics.asked, path);
    if (draw == Draw::Exhausted)
      break;
    // A search that gives up without an expansion would do so for ever.
    if (draw == Draw::GaveUp && space->getNumExpansions() == before)
      break;
    if (draw == Draw::GaveUp)
      continue;
    // Null: another path led to the same candidate before. Not an error, draw
    // again.
    std::shared_ptr<const Solution> solution = space->take(path);
    if (!solution)
      continue;
    proposed(statistics.asked, path, solution);
    result.push_back({statistics.asked++, std::move(solution), parent});
    hasOutcome.push_back(false);
  }
  return result;
}

/// Outcomes of failed candidates go to `learn` without a reward.
llvm::Error SpaceSearcher::tell(uint64_t id, Outcome outcome) {
  std::lock_guard<std::mutex> lock(mutex);
  if (id >= hasOutcome.size())
    return llvm::createStringError("candidate %llu was not proposed",
                                   static_cast<unsigned long long>(id));
  if (hasOutcome[id])
    return llvm::createStringError("candidate %llu has an outcome already",
                                   static_cast<unsigned long long>(id));
  hasOutcome[id] = true;
  std::optional<double> reward;
  if (const auto *metrics = std::get_if<Metrics>(&outcome)) {
    ++statistics.evaluated;
    // A reward that is not finite counts as a failure for the algorithm, though
    // the metrics are reported.
    double value = commonOptions.reward(*metrics);
    if (std::isfinite(value))
      reward = value;
  } else {
    ++statistics.failed;
  }
  learn(id, reward);
  return llvm::Error::success();
}

bool SpaceSearcher::isExhausted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return hasProposedAll();
}

/// Without the lock: `ask`, which holds it, is what is to be stopped. Both
/// flags are atomic.
void SpaceSearcher::stop() {
  stopped = true;
  space->stop();
}

SearchStatistics SpaceSearcher::getStatistics() const {
  std::lock_guard<std::mutex> lock(mutex);
  SearchStatistics result = statistics;
  result.expansions = space->getNumExpansions();
  result.deadEnds = space->getNumDeadEnds();
  result.duplicates = space->getNumDuplicates();
  return result;
}
