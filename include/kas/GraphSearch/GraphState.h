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
/// then all other steps in any order; states that differ only in that order
/// have one key. One step is one primitive, or one weight with all its
/// coordinates.
///
/// Rules, by kind of move; each says what it keeps out. The first source of
/// most is the Syno paper (sections 5 and 6).
/// * reduce: R1 in ascending order (permutations). R2 the loops alone are
///   within the FLOPs. R3 at most one primary symbol, in the first power; each
///   coefficient between the powers -2 and 2, three at most in all.
/// * contract: W1 a weight indexes outputs, reductions and halves of merges,
///   nothing made of them (those are reshaped weights). W2 at least one
///   reduction, and one coordinate that the data keeps. W3 the data lets go of
///   a reduction only when another weight has it (else that weight is a sum of
///   itself), and it is at most 32 (a low rank). W4 no weight's coordinates
///   contain another's (the smaller one is absorbed). W5 symbols occur as often
///   as allowed. W6 a reduction that only weights have is smaller than the
///   product of each weight's other coordinates (else they are one weight).
/// * merge: M1 only outputs and remainders that no weight indexes (others are
///   merged twice, or reshape a weight). M2 both halves are at least 2. M3 an
///   unordered one is merged by the larger factor (the other is a permutation).
/// * split: S1 the left operand is no split (associativity). S2 no two
///   reductions with the same weights (they are one). S3 not the halves of one
///   merge in order with the same weights, nor in any order when unordered
///   (nothing, or a permutation, happens). S4 the factors of an unordered
///   dimension are in ascending order.
/// * shift: H1 only by 1 or -1, of outputs, halves of merges and unfolds with a
///   position, not shared with a weight (shifts of channels and reductions
///   relabel; two shifts are one).
/// * unfold: U1 the base has a position and is an output, a half of a merge, a
///   stride or an unfold (channels have no neighbours; shifts and splits go
///   above). U2 the window is odd, between 3 and 30, at most half of the base.
///   U3 all of the window is indexed by weights. U4 no reduction of a nested
///   window has the weights of one in this window (they are one wide window).
/// * stride: T1 a position by a quotient of input and output sizes (others lead
///   nowhere). T2 or a reduction with a weight, to an odd size of at most 30.
///   T3 Such a one goes into an unfold (else data is skipped).
/// * expand: E1 an output or a half of a merge that no weight indexes.
/// * finish: F1 the live coordinates are the input's dimensions. F2 at least
///   one weight, unless the limit forbids any. F3 the reductions that no weight
///   indexes have at most 8 points together. F4 the budgets hold.
/// * all: of two equal reductions with the same weights the first is used first
///   (they are interchangeable). The shape distance is within the steps left.
std::unique_ptr<State>
makeGraphState(std::shared_ptr<const SearchProblem> problem,
               const GraphStateOptions &options = {});

} // namespace kas

#endif // KAS_GRAPHSEARCH_GRAPHSTATE_H
