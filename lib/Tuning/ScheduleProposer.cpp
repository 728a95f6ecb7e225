//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proposes schedules to measure: random ones, all, or mutations of the best
// ranked by a learned model.
// Three algorithms in one function. `evolution` (docs/guide/tuning.md): the
// best of each strategy by the cost model, then single-knob neighbours of the
// best that were measured, ranked by `ScheduleModel`, with some random ones so
// that an error of the model does not hide a region. Proposals depend on the
// seed and on results only.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ScheduleProposer.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::tuning;

llvm::StringRef kas::tuning::getName(ProposalAlgorithm algorithm) {
  switch (algorithm) {
  case ProposalAlgorithm::Evolution:
    return "evolution";
  case ProposalAlgorithm::Random:
    return "random";
  case ProposalAlgorithm::Exhaustive:
    return "exhaustive";
  }
  llvm_unreachable("all algorithms are handled");
}

ScheduleProposer::ScheduleProposer(llvm::ArrayRef<SchedulePoint> points,
                                   ProposalAlgorithm algorithm, uint64_t seed)
    : points(points), algorithm(algorithm), random(seed),
      known(points.size(), 0) {}

/// Tells of a result. A time of nothing is a schedule that failed: it is not
/// proposed again, and the model does not learn from it.
void ScheduleProposer::add(size_t point, std::optional<double> time) {
  numKnown += !known[point];
  known[point] = 1;
  if (!time)
    return;
  std::pair<double, size_t> entry(*time, point);
  // Sorted by time, ties by position in the space.
  timed.insert(llvm::upper_bound(timed, entry), entry);
}

std::vector<size_t> ScheduleProposer::propose(size_t count) {
  switch (algorithm) {
  case ProposalAlgorithm::Random:
    return proposeRandom(count);
  case ProposalAlgorithm::Exhaustive:
    return proposeInOrder(count);
  case ProposalAlgorithm::Evolution:
    return timed.size() < ScheduleModel::minSamples ? proposeFirst(count)
                                                    : proposeEvolved(count);
  }
  llvm_unreachable("all algorithms are handled");
}

std::vector<size_t> ScheduleProposer::proposeInOrder(size_t count) const {
  std::vector<size_t> chosen;
  for (size_t point = 0; point < known.size() && chosen.size() < count; ++point)
    if (!known[point])
      chosen.push_back(point);
  return chosen;
}

/// Uniform among the strategies, then among their schedules: panels have by far
/// the most, and are not that much better.
std::vector<size_t> ScheduleProposer::proposeRandom(size_t count) {
  // Strategy -> positions that were not measured yet. An ordered map, for the
  // same draws on every machine.
  std::map<unsigned, std::vector<size_t>> fresh;
  for (auto [index, point] : llvm::enumerate(points))
    if (!known[index])
      fresh[point.strategy].push_back(index);
  std::vector<size_t> chosen;
  for (;;) {
    std::erase_if(fresh,
                  [](const auto &strategy) { return strategy.second.empty(); });
    if (chosen.size() == count || fresh.empty())
      return chosen;
    std::vector<size_t> &strategy =
        std::next(fresh.begin(),
                  static_cast<ptrdiff_t>(random.below(fresh.size())))
            ->second;
    size_t at = random.below(strategy.size());
    chosen.push_back(strategy[at]);
    // Removal in constant time; the order within does not matter for a uniform
    // draw.
    strategy[at] = strategy.back();
    strategy.pop_back();
  }
}

/// Random ones until there are `count`.
void ScheduleProposer::fill(std::vector<size_t> &chosen, size_t count) {
  // All that are drawn are looked at, since some may be in `chosen` already.
  for (size_t point : proposeRandom(count))
    if (chosen.size() < count && !llvm::is_contained(chosen, point))
      chosen.push_back(point);
}

/// The best of each strategy by the cost model, in its order, then random ones.
std::vector<size_t> ScheduleProposer::proposeFirst(size_t count) {
  // The cost (the model's time, then a tie-breaker) and the position.
  using Ranked = std::pair<std::pair<double, double>, size_t>;
  std::map<unsigned, std::vector<Ranked>> strategies;
  for (auto [index, point] : llvm::enumerate(points))
    if (!known[index])
      strategies[point.strategy].emplace_back(point.cost, index);
  std::vector<Ranked> best;
  for (auto &[strategy, ranked] : strategies) {
    llvm::sort(ranked);
    // Where all take the same time, nothing is known.
    if (ranked.size() > 1 &&
        ranked.front().first.first == ranked.back().first.first)
      continue;
    // At most a quarter of the batch for each strategy, so that no strategy
    // takes all and random ones are left room for.
    ranked.resize(std::min<size_t>(ranked.size(), count / 4));
    llvm::append_range(best, ranked);
  }
  llvm::sort(best);
  std::vector<size_t> chosen;
  for (const Ranked &entry : best)
    chosen.push_back(entry.second);
  fill(chosen, count);
  return chosen;
}

/// Schedules that differ from that of `point` in one knob.
void ScheduleProposer::addNeighbours(size_t point,
                                     std::vector<char> &found) const {
  const SchedulePoint &from = points[point];
  for (auto [index, other] : llvm::enumerate(points)) {
    if (known[index] || other.strategy != from.strategy)
      continue;
    // Schedules of one strategy have the same knobs in the same order.
    int different = 0;
    for (auto [a, b] : llvm::zip_equal(from.knobs, other.knobs))
      different += a != b;
    if (different == 1)
      found[index] = 1;
  }
}

/// Logarithms: errors count relative to the time, for fast schedules as for
/// slow ones.
void ScheduleProposer::learn() {
  std::vector<std::vector<float>> rows;
  std::vector<double> targets;
  for (auto [time, point] : timed) {
    rows.push_back(points[point].features);
    targets.push_back(std::log(time));
  }
  model.fit(rows, targets, random);
}

/// Neighbours of the best, the most promising ones by the model, and a random
/// one.
std::vector<size_t> ScheduleProposer::proposeEvolved(size_t count) {
  // From docs/guide/tuning.md; `pool` is how many random candidates the model
  // ranks besides neighbours.
  constexpr size_t parents = 6, pool = 200;
  learn();
  std::vector<char> candidates(known.size(), 0);
  for (size_t i = 0; i < std::min(parents, timed.size()); ++i)
    addNeighbours(timed[i].second, candidates);
  for (size_t point : proposeRandom(pool))
    candidates[point] = 1;
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t point = 0; point < candidates.size(); ++point)
    if (candidates[point])
      ranked.emplace_back(model.predict(points[point].features), point);
  llvm::sort(ranked);
  std::vector<size_t> chosen;
  for (auto [time, point] : ranked)
    // Three of four by the model, the rest random.
    if (chosen.size() < count - count / 4)
      chosen.push_back(point);
  fill(chosen, count);
  return chosen;
}
