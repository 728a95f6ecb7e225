//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proposes every candidate once, the cheapest first where costs are known.
//
// With a tree, all candidates are ranked at the first proposal (one evaluation
// of the cost for each). Without one, an `Enumerator` runs just far enough
// ahead to have a candidate.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/ExhaustiveSearcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// O(n log n) for n candidates, with one replay of the path for each cost.
void ExhaustiveSearcher::sortTree(const LivingTree &tree) {
  std::vector<std::pair<double, uint64_t>> ranks;
  auto getNode = [&](uint64_t rank) {
    return tree.getSolutionNode(tree.getRoot(), rank);
  };
  for (uint64_t rank = 0; rank < tree.getNumSolutions(); ++rank) {
    // Without a cost all ranks tie, and canonical order remains.
    double cost = 0;
    if (options.cost)
      cost = options.cost(*space->getSolution(tree.getPath(getNode(rank))));
    ranks.emplace_back(cost, rank);
  }
  // Pairs: candidates of equal cost stay in canonical order.
  llvm::sort(ranks);
  for (auto [cost, rank] : ranks)
    order.push_back(getNode(rank));
}

ExhaustiveSearcher::Draw ExhaustiveSearcher::enumerate(Path &path) {
  if (!enumerator) {
    Enumerator::Options settings;
    // The order of the enumeration is enough; a tree of a space that was too
    // large for one would not fit either.
    settings.buildTree = false;
    enumerator =
        std::make_unique<Enumerator>(space->getRoot().clone(), settings);
  }
  // In pieces, as what is found is to be proposed soon.
  Enumerator::Limits limits;
  limits.expansions = 1000;
  limits.stopped = &getStopped();
  while (ahead.empty() && !isComplete) {
    if (isStopped())
      return Draw::GaveUp;
    auto status =
        enumerator->run(limits, [&](llvm::ArrayRef<Move> found, const State &) {
          ahead.emplace_back(found.begin(), found.end());
        });
    // More memory would be needed to know which candidates come twice. What was
    // found before the limit is still proposed.
    if (status == Enumerator::Status::OutOfMemory && ahead.empty())
      return Draw::GaveUp;
    isComplete = status == Enumerator::Status::Complete;
  }
  if (ahead.empty())
    return Draw::Exhausted;
  path = std::move(ahead.front());
  ahead.pop_front();
  return Draw::Found;
}

ExhaustiveSearcher::Draw ExhaustiveSearcher::propose(uint64_t id, Path &path) {
  const LivingTree *tree = space->getTree().get();
  if (!tree)
    return enumerate(path);
  if (id == 0)
    sortTree(*tree);
  if (id >= order.size())
    return Draw::Exhausted;
  path = tree->getPath(order[id]);
  // The base class takes the candidate, and rejects one that was taken.
  return Draw::Found;
}

/// Without a tree the base class cannot know it: the end of the enumeration
/// does.
bool ExhaustiveSearcher::hasProposedAll() const {
  return (isComplete && ahead.empty()) || SpaceSearcher::hasProposedAll();
}
