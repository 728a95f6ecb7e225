//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What searchers that draw from a `CandidateSpace` have in common: locking,
// identifiers, rewards.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SpaceSearcher.h"
#include <cmath>

using namespace kas;
using namespace kas::search;

Solution::~Solution() = default;
Evaluator::~Evaluator() = default;
Searcher::~Searcher() = default;

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

std::vector<Candidate> SpaceSearcher::ask(unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  space->prepare();
  std::vector<Candidate> result;
  uint64_t end = space->getNumExpansions() + commonOptions.expansionsPerAsk;
  while (result.size() < count && space->getNumExpansions() < end && !stopped) {
    ++statistics.rollouts;
    uint64_t before = space->getNumExpansions();
    Path path;
    parent.reset();
    Draw draw = space->getRoot().isTerminal() ? space->draw(path, random)
                                              : propose(statistics.asked, path);
    if (draw == Draw::Exhausted)
      break;
    // A search that gives up without an expansion would do so for ever.
    if (draw == Draw::GaveUp && space->getNumExpansions() == before)
      break;
    if (draw == Draw::GaveUp)
      continue;
    std::shared_ptr<const Solution> solution = space->take(path);
    if (!solution)
      continue;
    proposed(statistics.asked, path, solution);
    result.push_back({statistics.asked++, std::move(solution), parent});
    hasOutcome.push_back(false);
  }
  return result;
}

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
