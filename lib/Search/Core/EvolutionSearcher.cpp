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
// A mutation works on the sequence of moves, not on the operator: change one
// move and replay the rest, which keeps children valid and in canonical form.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/EvolutionSearcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Tournament selection with replacement: the best of `tournament` random
/// members. Of equal ones the first that is drawn.
const EvolutionSearcher::Member &EvolutionSearcher::chooseParent() {
  const Member *best = nullptr;
  for (unsigned round = 0; round < std::max(options.tournament, 1u); ++round) {
    const Member &member = population[random.below(population.size())];
    if (!best || member.reward > best->reward)
      best = &member;
  }
  return *best;
}

/// Fails, and leaves a useless `path`, where the state at the drawn depth has
/// no other move, or none that leads to a candidate which is not taken.
EvolutionSearcher::Draw EvolutionSearcher::mutate(llvm::ArrayRef<Move> moves,
                                                  Path &path) {
  assert(!moves.empty() && "the root has no other candidate");
  // Uniform over depths: early moves, which change much, and late ones are
  // equally likely.
  size_t depth = random.below(moves.size());
  path.assign(moves.begin(), moves.begin() + depth);
  llvm::SmallVector<Move, 32> others;
  space->getMoves(path, others);
  // The child must differ from its parent, at least here.
  llvm::erase(others, moves[depth]);
  if (others.empty())
    return Draw::Exhausted;
  path.push_back(others[random.below(others.size())]);
  // Moves of the parent that are still possible are made with the probability
  // `keep`; the descent fills the rest at random.
  return space->drawNear(path, moves.drop_front(depth + 1), options.keep,
                         random);
}

EvolutionSearcher::Draw EvolutionSearcher::propose(uint64_t id, Path &path) {
  // The first `population` candidates are random, as in the paper. Later an
  // empty population means that everything so far has failed, or that no
  // outcome is known yet: go on at random.
  if (id >= options.population && !population.empty()) {
    const Member &chosen = chooseParent();
    // Most failures are dead depths; another depth of the same parent is tried.
    for (unsigned attempt = 0; attempt < options.attempts; ++attempt)
      if (mutate(chosen.path, path) == Draw::Found) {
        parent = chosen.id;
        return Draw::Found;
      }
  }
  // All attempts have failed: the neighbourhood of this parent is used up.
  path.clear();
  return space->draw(path, random);
}

/// Outcomes may arrive in any order and much later, so the path is kept until
/// then.
void EvolutionSearcher::proposed(uint64_t id, const Path &path,
                                 const std::shared_ptr<const Solution> &) {
  inFlight[id] = path;
}

void EvolutionSearcher::learn(uint64_t id, std::optional<double> reward) {
  auto found = inFlight.find(id);
  // What has failed has no children.
  if (reward) {
    // The oldest member leaves, not the worst: this is the regularization. A
    // member that was lucky in a noisy measurement does not stay for ever.
    population.push_back({id, std::move(found->second), *reward});
    if (population.size() > options.population)
      population.pop_front();
  }
  inFlight.erase(found);
}
