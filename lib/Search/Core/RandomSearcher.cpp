//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random search by rollouts, without a tree.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/RandomSearcher.h"

using namespace kas;
using namespace kas::search;

/// A space that never builds a tree, whatever its size.
static std::unique_ptr<CandidateSpace>
makeSpace(std::unique_ptr<State> root, const RandomSearcher::Options &options) {
  CandidateSpace::Options settings;
  settings.treeExpansions = 0;
  settings.expansionsPerRollout = options.expansionsPerRollout;
  settings.maxBytes = options.maxBytes;
  return std::make_unique<CandidateSpace>(std::move(root), settings);
}

RandomSearcher::RandomSearcher(std::unique_ptr<State> root,
                               const Options &options)
    : SpaceSearcher(
          makeSpace(std::move(root), options),
          {options.seed, getDefaultReward, options.expansionsPerAsk}) {}
