//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proposes the candidate of the largest expected improvement by a regression
// forest (sources: RegressionForest.h).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SurrogateSearcher.h"
#include "KeyMark.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// The vector has, in this order: the features of the problem, the number of
/// moves of each kind, kind and code of the move at each of the first `places`
/// depths, and counts of moves by hash. 0 stands for no move, so kinds are
/// counted from 1 there.
std::vector<float>
SurrogateSearcher::getFeatures(llvm::ArrayRef<Move> path,
                               const Solution &solution) const {
  llvm::SmallVector<double, 64> given;
  solution.getFeatures(given);
  std::vector<float> features(given.begin(), given.end());
  // The offsets at which the groups start.
  size_t kinds = features.size();
  size_t places = kinds + space->getRoot().getNumKinds();
  size_t buckets = places + 2 * size_t(options.places);
  features.resize(buckets + options.buckets);
  for (auto [depth, move] : llvm::enumerate(path)) {
    ++features[kinds + move.kind];
    if (depth < options.places) {
      features[places + 2 * depth] = static_cast<float>(move.kind + 1);
      features[places + 2 * depth + 1] = static_cast<float>(move.code);
    }
    // One-hot features of all moves would be too many; hashed counts merge
    // some.
    if (options.buckets) {
      uint64_t hash = mixBits(uint64_t(move.kind) << 32 | move.code);
      ++features[buckets + hash % options.buckets];
    }
  }
  return features;
}

/// Small enough to score all candidates: no sampling is needed.
bool SurrogateSearcher::isWholeSpace() const {
  const LivingTree *tree = space->getTree().get();
  return tree && tree->getNumSolutions() <= options.pool;
}

/// Costs a replay of the path and the features; each key is in the pool once.
void SurrogateSearcher::addToPool(const Path &path) {
  auto solution = space->getSolution(path);
  uint64_t key = solution->key();
  if (pooled.insert(getMark(key)).second)
    pool.push_back({path, getFeatures(path, *solution), key, 0});
}

/// Drops what was taken, then adds: the whole space once, or random and near
/// candidates until the pool is full.
void SurrogateSearcher::fillPool() {
  // `erase` gives true for a key in the set, so the conjunction also keeps the
  // set in step with the pool.
  llvm::erase_if(pool, [&](const Entry &entry) {
    return !space->isAlive(entry.path) && pooled.erase(getMark(entry.key));
  });
  if (isWholeSpace()) {
    const LivingTree &tree = *space->getTree();
    // The pool is filled once; later it only shrinks.
    if (numFitted == 0)
      for (uint64_t rank = 0; rank < tree.getNumSolutions(); ++rank) {
        auto id = tree.getSolutionNode(tree.getRoot(), rank);
        if (space->getNumLeft(id))
          addToPool(tree.getPath(id));
      }
    return;
  }
  // A quarter of the pool is new each time: half of it near the best. The pool
  // is sorted by promise, the best last: a quarter of it, the worst, is
  // replaced.
  size_t size = options.pool - options.pool / 4;
  if (pool.size() > size) {
    for (const Entry &entry : llvm::ArrayRef(pool).drop_back(size))
      pooled.erase(getMark(entry.key));
    pool.erase(pool.begin(), pool.end() - size);
  }
  llvm::SmallVector<size_t, 64> best;
  for (size_t index = 0; index < targets.size(); ++index)
    best.push_back(index);
  // Higher rewards first, earlier outcomes first among equals.
  llvm::sort(best, [&](size_t a, size_t b) {
    return std::pair(-targets[a], a) < std::pair(-targets[b], b);
  });
  // Parents of variations: the ten best.
  best.truncate(std::min<size_t>(best.size(), 10));
  // Where little is left most draws are known already. 50 draws in a row
  // without a new candidate end the loop.
  for (unsigned attempt = 0, failures = 0;
       failures < 50 && pool.size() < options.pool && !isStopped(); ++attempt) {
    size_t before = pool.size();
    Path path;
    // Alternately a variation and a random candidate. A variation keeps a
    // random prefix of the parent and each later move with the probability 0.8.
    if (attempt % 2) {
      const Path &near = paths[best[random.below(best.size())]];
      path.assign(near.begin(), near.begin() + random.below(near.size()));
      if (space->drawNear(path, llvm::ArrayRef(near).drop_front(path.size()),
                          0.8, random) == Draw::Found)
        addToPool(path);
    } else if (space->draw(path, random) == Draw::Found) {
      addToPool(path);
    }
    failures = pool.size() > before ? 0 : failures + 1;
  }
}

/// Fits the model and scores the pool. The forest takes O(trees * features * n
/// log n), so this is not done after every outcome (`Options::refit`).
void SurrogateSearcher::rank() {
  forest.fit(rows, targets, options.forest, random);
  fillPool();
  // Nonzero from here on: also says that the pool was filled.
  numFitted = targets.size();
  double best = *llvm::max_element(targets);
  for (Entry &entry : pool) {
    auto [mean, variance] = forest.predict(entry.features);
    entry.improvement = getExpectedImprovement(mean, variance, best);
  }
  // The key breaks ties, so the order is the same on every machine.
  llvm::sort(pool, [](const Entry &a, const Entry &b) {
    return std::pair(a.improvement, a.key) < std::pair(b.improvement, b.key);
  });
}

/// The best of the pool by the last model. Scores are not updated between fits:
/// the model would change little.
SurrogateSearcher::Draw SurrogateSearcher::propose(uint64_t id, Path &path) {
  // Random at first, when nothing was learned, and for a share later.
  if (id < options.initial || targets.empty() ||
      random.uniform() < options.randomShare)
    return space->draw(path, random);
  auto due = static_cast<double>(numFitted) * (1 + options.refit);
  // The number of outcomes has grown by the share `refit`, or the pool has run
  // out.
  if (numFitted == 0 || static_cast<double>(targets.size()) > due ||
      (pool.empty() && !isWholeSpace()))
    rank();
  while (!pool.empty()) {
    Entry entry = std::move(pool.back());
    pool.pop_back();
    pooled.erase(getMark(entry.key));
    // Taken by a random draw since it was scored.
    if (!space->isAlive(entry.path))
      continue;
    path = std::move(entry.path);
    return Draw::Found;
  }
  // Nothing left in the pool: all of it was proposed.
  return space->draw(path, random);
}

/// Identifiers count up from 0, so the index in `inFlight` is the identifier.
void SurrogateSearcher::proposed(
    uint64_t id, const Path &path,
    const std::shared_ptr<const Solution> &solution) {
  inFlight.push_back({path, getFeatures(path, *solution), solution->key(), 0});
}

/// A failure is a sample with the worst reward so far, so that the model avoids
/// its neighbourhood.
void SurrogateSearcher::learn(uint64_t id, std::optional<double> reward) {
  if (reward)
    range.add(*reward);
  // Moved out: an outcome comes once.
  rows.push_back(std::move(inFlight[id].features));
  paths.push_back(std::move(inFlight[id].path));
  targets.push_back(reward.value_or(range.getLowest()));
}
