//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All operators of a tiny search problem by brute force: no canonical form, no
// distance, only what the dialect allows within the limits of the problem.
// Independent of the search; what it is compared with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_BRUTEFORCE_H
#define KAS_TEST_LIB_BRUTEFORCE_H

#include "kas/Search/Operators/OperatorGraph.h"

namespace kas::test {

struct BruteForceOptions {
  /// Leave out weights with a coordinate that follows from their others, and
  /// weights whose coordinates another has, too: by definition they add nothing
  /// (see docs/internals/search-space-counts.md). Most of all graphs are of
  /// this kind.
  bool skipsRedundantWeights = true;
  /// Let weights index results of splits, shifts and strides, too. Those are
  /// one-to-one in what they are made of, so a weight that indexes that is the
  /// same.
  bool weightsIndexAll = false;
};

struct BruteForceStatistics {
  /// Sets of live coordinates, and complete operators.
  uint64_t states = 0, operators = 0;
};

/// Calls `visit(operator, steps)` for every operator of `problem`: reductions
/// of all sizes that a space may have; in any order splits of any two
/// coordinates, merges of any by any block, shifts of any by 1 and -1, expands
/// of any, unfolds of any by any odd window, strides of any by any factor; the
/// input's dimensions in any arrangement; and any sets of coordinates as
/// weights, as long as every other coordinate is in one. Graphs that differ
/// only in the order of ops come once.
///
/// The limits of the problem hold: steps of each kind, depth, occurrences.
/// Budgets must be absent. Parameters have the ranges that the search gives
/// them, listed in docs/internals/search-space-counts.md.
BruteForceStatistics enumerateByBruteForce(
    const search::SearchProblem &problem, const BruteForceOptions &options,
    llvm::function_ref<void(const search::OperatorGraph &, unsigned)> visit);

} // namespace kas::test

#endif // KAS_TEST_LIB_BRUTEFORCE_H
