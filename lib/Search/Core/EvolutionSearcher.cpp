//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regularized evolution (Real et al., "Regularized Evolution for Image
// Classifier Architecture Search", AAAI 2019, algorithm 1).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/EvolutionSearcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

const EvolutionSearcher::Member &EvolutionSearcher::chooseParent() {
  const Member *best = nullptr;
  for (unsigned round = 0; round < std::max(options.tournament, 1u); ++round) {
    const Member &member = population[random.below(population.size())];
    if (!best || member.reward > best->reward)
      best = &member;
  }
  return *best;
}

EvolutionSearcher::Draw EvolutionSearcher::mutate(llvm::ArrayRef<Move> moves,
                                                  Path &path) {
  assert(!moves.empty() && "the root has no other candidate");
  size_t depth = random.below(moves.size());
  path.assign(moves.begin(), moves.begin() + depth);
  llvm::SmallVector<Move, 32> others;
  space->getMoves(path, others);
  llvm::erase(others, moves[depth]);
  if (others.empty())
    return Draw::Exhausted;
  path.push_back(others[random.below(others.size())]);
  return space->drawNear(path, moves.drop_front(depth + 1), options.keep,
                         random);
}

EvolutionSearcher::Draw EvolutionSearcher::propose(uint64_t id, Path &path) {
  if (id >= options.population && !population.empty()) {
    const Member &chosen = chooseParent();
    for (unsigned attempt = 0; attempt < options.attempts; ++attempt)
      if (mutate(chosen.path, path) == Draw::Found) {
        parent = chosen.id;
        return Draw::Found;
      }
  }
  path.clear();
  return space->draw(path, random);
}

void EvolutionSearcher::proposed(uint64_t id, const Path &path,
                                 const std::shared_ptr<const Solution> &) {
  inFlight[id] = path;
}

void EvolutionSearcher::learn(uint64_t id, std::optional<double> reward) {
  auto found = inFlight.find(id);
  // What has failed has no children.
  if (reward) {
    population.push_back({id, std::move(found->second), *reward});
    if (population.size() > options.population)
      population.pop_front();
  }
  inFlight.erase(found);
}
