//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every candidate in a fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_EXHAUSTIVESEARCHER_H
#define KAS_SEARCH_CORE_EXHAUSTIVESEARCHER_H

#include "kas/Search/Core/SpaceSearcher.h"
#include <deque>

namespace kas::search {

/// Proposes every candidate once: the cheapest first where the space has a tree
/// and there is a cost, else in canonical order. Outcomes change nothing.
class ExhaustiveSearcher final : public SpaceSearcher {
public:
  struct Options : SpaceSearcher::Options {
    /// The cost to order by; candidates of the same cost stay in canonical
    /// order. None: all are the same.
    std::function<double(const Solution &)> cost;
  };

  ExhaustiveSearcher(std::unique_ptr<CandidateSpace> space,
                     const Options &options)
      : SpaceSearcher(std::move(space), options), options(options) {}

private:
  Draw propose(uint64_t id, Path &path) override;
  bool hasProposedAll() const override;
  void sortTree(const LivingTree &tree);
  Draw enumerate(Path &path);

  Options options;
  /// With a tree: its solutions in the order of proposal.
  std::vector<LivingTree::NodeId> order;
  /// Without one: the enumeration and what it has found ahead.
  std::unique_ptr<Enumerator> enumerator;
  std::deque<Path> ahead;
  bool isComplete = false;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_EXHAUSTIVESEARCHER_H
