//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The states of the search for operators: interfaces of live coordinates, and
// the rules that lead from one to the next.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_GRAPHSTATE_H
#define KAS_SEARCH_OPERATORS_GRAPHSTATE_H

#include "kas/Search/Core/State.h"
#include "kas/Search/Operators/OperatorGraph.h"

namespace kas::search {

struct GraphStateOptions {
  /// Cut by the shape distance. Off only to check that it loses nothing.
  bool useDistance = true;
  /// Cut what cannot meet the bounds on FLOPs any more. Off only to check.
  bool useBudget = true;
  /// Of the orders of moves that commute, take one. Off: a driver needs a table
  /// of keys to see each state once.
  bool useOrdering = true;
  /// Of coordinates that are interchangeable, take the first one first.
  bool useTwins = true;
  /// The most memory for answers of the shape distance; they are forgotten when
  /// they need more.
  size_t maxDistanceBytes = size_t(1) << 28;
};

/// The root of the search that `problem` states: the output coordinates are
/// live, nothing else is there. Its terminal states have `OperatorGraph`s as
/// solutions.
///
/// A state is the multiset of live coordinates, each an expression over outputs
/// and reductions, and the coordinates of each weight. Reductions come first,
/// then all other steps. One step is one primitive, or one weight with all its
/// coordinates. With `useOrdering` every state has one way to it but for
/// interchangeable coordinates; without, states that differ only in the order
/// of moves have one key. docs/internals/canonical-form.md lists the rules.
std::unique_ptr<State>
makeGraphState(std::shared_ptr<const SearchProblem> problem,
               const GraphStateOptions &options = {});

/// How often the shape distance was queried in a search, how many answers had
/// to be worked out, and the average time of an answer (one of 64 is timed).
struct DistanceStatistics {
  uint64_t queries = 0, computed = 0;
  double nanosecondsPerQuery = 0;
  size_t numBytes = 0;
};

/// Of the search that `state`, a state of `makeGraphState`, belongs to.
DistanceStatistics getDistanceStatistics(const State &state);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_GRAPHSTATE_H
