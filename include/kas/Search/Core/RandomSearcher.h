//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random search: the plain samplers that every other algorithm is to be
// compared with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_RANDOMSEARCHER_H
#define KAS_SEARCH_CORE_RANDOMSEARCHER_H

#include "kas/Search/Core/SpaceSearcher.h"

namespace kas::search {

/// Goes from the root to a terminal state, choosing at each state a kind of
/// move uniformly, then a move of it uniformly; steps back at dead ends. A
/// state below which every candidate is known is marked and never entered
/// again, so no candidate comes twice and a finite space is enumerated to its
/// end. Builds no tree. The sequence depends on the seed only, not on outcomes
/// or when they are known.
class RandomSearcher final : public SpaceSearcher {
public:
  struct Options {
    uint64_t seed = 0;
    /// A rollout is given up after so many states: the part of the space it is
    /// in may be large and empty.
    uint64_t expansionsPerRollout = 2000;
    /// A call of `ask` returns what it has after so many states.
    uint64_t expansionsPerAsk = 2000000;
    /// No more states are marked when the marks take so much memory.
    size_t maxBytes = size_t(1) << 30;
  };

  RandomSearcher(std::unique_ptr<State> root, const Options &options);

private:
  Draw propose(uint64_t id, Path &path) override {
    return space->draw(path, random);
  }
};

/// Draws candidates without replacement; all that are left are equally
/// probable where the space has a tree. Else the same as a `RandomSearcher`.
/// The sequence depends on the seed only.
class UniformSearcher final : public SpaceSearcher {
public:
  UniformSearcher(std::unique_ptr<CandidateSpace> space,
                  const SpaceSearcher::Options &options)
      : SpaceSearcher(std::move(space), options) {}

private:
  Draw propose(uint64_t id, Path &path) override {
    return space->draw(path, random);
  }
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_RANDOMSEARCHER_H
