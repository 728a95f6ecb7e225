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
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/ExhaustiveSearcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

void ExhaustiveSearcher::sortTree(const LivingTree &tree) {
  std::vector<std::pair<double, uint64_t>> ranks;
  auto getNode = [&](uint64_t rank) {
    return tree.getSolutionNode(tree.getRoot(), rank);
  };
  for (uint64_t rank = 0; rank < tree.getNumSolutions(); ++rank) {
    double cost = 0;
    if (options.cost)
      cost = options.cost(*space->getSolution(tree.getPath(getNode(rank))));
    ranks.emplace_back(cost, rank);
  }
  llvm::sort(ranks);
  for (auto [cost, rank] : ranks)
    order.push_back(getNode(rank));
}

ExhaustiveSearcher::Draw ExhaustiveSearcher::enumerate(Path &path) {
  if (!enumerator) {
    Enumerator::Options settings;
    settings.buildTree = false;
    enumerator =
        std::make_unique<Enumerator>(space->getRoot().clone(), settings);
  }
  Enumerator::Limits limits;
  limits.expansions = 1000;
  while (ahead.empty() && !isComplete) {
    if (isStopped())
      return Draw::GaveUp;
    auto status =
        enumerator->run(limits, [&](llvm::ArrayRef<Move> found, const State &) {
          ahead.emplace_back(found.begin(), found.end());
        });
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
  return Draw::Found;
}

bool ExhaustiveSearcher::hasProposedAll() const {
  return (isComplete && ahead.empty()) || SpaceSearcher::hasProposedAll();
}
