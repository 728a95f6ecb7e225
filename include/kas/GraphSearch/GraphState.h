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

#ifndef KAS_GRAPHSEARCH_GRAPHSTATE_H
#define KAS_GRAPHSEARCH_GRAPHSTATE_H

#include "kas/GraphSearch/OperatorGraph.h"
#include "kas/Search/State.h"

namespace kas {

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
/// of moves have one key. docs/CanonicalForm.md lists the rules.
std::unique_ptr<State>
makeGraphState(std::shared_ptr<const SearchProblem> problem,
               const GraphStateOptions &options = {});

} // namespace kas

#endif // KAS_GRAPHSEARCH_GRAPHSTATE_H
