//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Search by a model of the reward that is learned on the way.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SURROGATESEARCHER_H
#define KAS_SEARCH_CORE_SURROGATESEARCHER_H

#include "kas/Search/Core/RegressionForest.h"
#include "kas/Search/Core/SpaceSearcher.h"

namespace kas::search {

/// Proposes the candidate whose reward is expected to exceed the best one by
/// most (expected improvement), by a regression forest on features of all
/// candidates that are known (`RegressionForest` names the sources). Features
/// are those that the problem gives, how often each kind of move was made, the
/// move at each depth, and how often each move was made, hashed to some
/// buckets. Failures count as the least
/// reward.
///
/// If the space has a tree of at most `pool` candidates all are compared; else
/// a pool of random ones and of variations of the best.
class SurrogateSearcher final : public SpaceSearcher {
public:
  struct Options : SpaceSearcher::Options {
    /// Candidates that are drawn at random before there is a model.
    unsigned initial = 20;
    /// Candidates that are compared.
    unsigned pool = 4000;
    /// The share of proposals that are drawn at random even later, so that a
    /// model that is wrong does not keep a part of the space out for ever.
    double randomShare = 0.05;
    /// A new model is made when the number of outcomes has grown by this share.
    double refit = 0.03;
    /// Depths up to which kind and code of the move are features.
    unsigned places = 16;
    /// Buckets for counts of moves; more features that say little do harm.
    unsigned buckets = 0;
    RegressionForest::Options forest;
  };

  SurrogateSearcher(std::unique_ptr<CandidateSpace> space,
                    const Options &options)
      : SpaceSearcher(std::move(space), options), options(options) {}

private:
  struct Entry {
    Path path;
    std::vector<float> features;
    uint64_t key = 0;
    double improvement = 0;
  };

  Draw propose(uint64_t id, Path &path) override;
  void proposed(uint64_t id, const Path &path,
                const std::shared_ptr<const Solution> &solution) override;
  void learn(uint64_t id, std::optional<double> reward) override;

  std::vector<float> getFeatures(llvm::ArrayRef<Move> path,
                                 const Solution &solution) const;
  bool isWholeSpace() const;
  void fillPool();
  void addToPool(const Path &path);
  void rank();

  Options options;
  RegressionForest forest;
  RewardRange range;
  /// What was learned, by the order of learning.
  std::vector<std::vector<float>> rows;
  std::vector<double> targets;
  std::vector<Path> paths;
  /// Of proposals, by identifier; empty when learned.
  std::vector<Entry> inFlight;
  /// The most promising last.
  std::vector<Entry> pool;
  llvm::DenseSet<uint64_t> pooled;
  size_t numFitted = 0;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SURROGATESEARCHER_H
