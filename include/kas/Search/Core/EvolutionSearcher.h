//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regularized evolution.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_EVOLUTIONSEARCHER_H
#define KAS_SEARCH_CORE_EVOLUTIONSEARCHER_H

#include "kas/Search/Core/SpaceSearcher.h"
#include <deque>
#include <map>

namespace kas::search {

/// Regularized evolution (Real, Aggarwal, Huang, Le: "Regularized Evolution for
/// Image Classifier Architecture Search", AAAI 2019, algorithm 1): the best of
/// a random sample of the population has a child, and the oldest member dies.
///
/// A child differs from its parent in the move at one depth, chosen uniformly;
/// the parent's later moves are made again where they are possible, and the
/// rest is a random rollout. So children are in canonical form like all
/// candidates, and none is proposed twice.
class EvolutionSearcher final : public SpaceSearcher {
public:
  struct Options : SpaceSearcher::Options {
    /// Members of the population, which the first candidates, drawn at random,
    /// fill. The paper takes 100, for 20 000 evaluations; less is better for
    /// some hundreds (research/reports/search-algorithms.md).
    unsigned population = 30;
    /// Members that are compared for each child (the paper: 25 of 100).
    unsigned tournament = 12;
    /// Probability that a later move of the parent is made again.
    double keep = 0.9;
    /// Depths that are tried before a child is drawn at random instead.
    unsigned attempts = 16;
  };

  EvolutionSearcher(std::unique_ptr<CandidateSpace> space,
                    const Options &options)
      : SpaceSearcher(std::move(space), options), options(options) {}

private:
  struct Member {
    uint64_t id = 0;
    Path path;
    double reward = 0;
  };

  Draw propose(uint64_t id, Path &path) override;
  void proposed(uint64_t id, const Path &path,
                const std::shared_ptr<const Solution> &solution) override;
  void learn(uint64_t id, std::optional<double> reward) override;
  const Member &chooseParent();
  /// Moves like `moves` but for one.
  Draw mutate(llvm::ArrayRef<Move> moves, Path &path);

  Options options;
  /// The oldest first.
  std::deque<Member> population;
  /// By identifier: those without an outcome yet.
  std::map<uint64_t, Path> inFlight;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_EVOLUTIONSEARCHER_H
