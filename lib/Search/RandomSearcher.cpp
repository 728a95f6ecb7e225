//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/RandomSearcher.h"
#include "KeyMark.h"
#include "llvm/ADT/SmallVector.h"

using namespace kas;

Solution::~Solution() = default;
Evaluator::~Evaluator() = default;
Searcher::~Searcher() = default;

RandomSearcher::RandomSearcher(std::unique_ptr<State> root,
                               const Options &options)
    : root(std::move(root)), options(options), random(options.seed) {}

RandomSearcher::Walk RandomSearcher::descend(const State &state,
                                             uint64_t &budget) {
  uint64_t mark = getMark(state.key());
  if (exhausted.contains(mark)) {
    statistics.duplicates += state.isTerminal();
    return Walk::Exhausted;
  }
  auto markExhausted = [&] {
    if (exhausted.size() < options.maxMarks)
      exhausted.insert(mark);
  };
  if (state.isTerminal()) {
    found = state.getSolution();
    exhausted.insert(mark);
    return Walk::Found;
  }
  if (budget == 0 || stopped)
    return Walk::GaveUp;
  --budget;
  ++statistics.expansions;

  llvm::SmallVector<llvm::SmallVector<Move, 8>, 8> kinds;
  for (unsigned kind = 0; kind < state.getNumKinds(); ++kind) {
    llvm::SmallVector<Move, 8> moves;
    for (auto move = state.nextMove(kind); move;
         move = state.nextMove(kind, move))
      moves.push_back(*move);
    if (!moves.empty())
      kinds.push_back(std::move(moves));
  }
  statistics.deadEnds += kinds.empty();
  while (!kinds.empty()) {
    size_t kind = random.below(kinds.size());
    llvm::SmallVector<Move, 8> &moves = kinds[kind];
    std::swap(moves[random.below(moves.size())], moves.back());
    std::unique_ptr<State> child = state.clone();
    child->apply(moves.pop_back_val());
    if (Walk walk = descend(*child, budget); walk != Walk::Exhausted)
      return walk;
    if (kinds[kind].empty())
      kinds.erase(kinds.begin() + kind);
  }
  markExhausted();
  return Walk::Exhausted;
}

std::vector<Candidate> RandomSearcher::ask(unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Candidate> result;
  uint64_t end = statistics.expansions + options.expansionsPerAsk;
  while (result.size() < count && statistics.expansions < end && !stopped) {
    ++statistics.walks;
    uint64_t budget = options.expansionsPerWalk;
    Walk walk = descend(*root, budget);
    if (walk == Walk::Exhausted)
      break;
    if (walk == Walk::Found) {
      result.push_back({statistics.asked++, std::move(found)});
      told.push_back(false);
    }
  }
  return result;
}

llvm::Error RandomSearcher::tell(uint64_t id, Outcome outcome) {
  std::lock_guard<std::mutex> lock(mutex);
  if (id >= told.size())
    return llvm::createStringError("candidate %llu was not proposed",
                                   static_cast<unsigned long long>(id));
  if (told[id])
    return llvm::createStringError("candidate %llu was told before",
                                   static_cast<unsigned long long>(id));
  told[id] = true;
  ++(std::holds_alternative<Metrics>(outcome) ? statistics.evaluated
                                              : statistics.failed);
  return llvm::Error::success();
}

bool RandomSearcher::isExhausted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return exhausted.contains(getMark(root->key()));
}

SearchStatistics RandomSearcher::getStatistics() const {
  std::lock_guard<std::mutex> lock(mutex);
  return statistics;
}
