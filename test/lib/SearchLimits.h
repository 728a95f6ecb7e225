//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The limits of the search that are not part of sameness: operators that the
// rules of the search leave out although no other one is the same.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_SEARCHLIMITS_H
#define KAS_TEST_LIB_SEARCHLIMITS_H

#include "kas/Search/Operators/OperatorGraph.h"
#include <bitset>

namespace kas::test {

/// Those marked approximate leave out operators that differ from listed ones at
/// few points. See the table in docs/internals/search-space-counts.md.
enum SearchLimit : unsigned {
  /// F2: every weight is redundant.
  NoWeight,
  /// W2: in every order of the weights, one of them takes no coordinate from
  /// the data, or all that it has.
  WeightTakesNoneOrAll,
  /// W2: the coordinates of a weight are not there at the same time.
  WeightOverTime,
  /// W3: a weight takes the result of an unfold or stride from the data.
  WeightTakesView,
  /// W3, W15: a reduction that only weights have is too small or too large, or
  /// saves no elements.
  Rank,
  /// W13: a weight is indexed by what depends on an ordered output.
  WeightByPosition,
  /// P1.
  Pooling,
  /// M1: a merge of a split, a stride or a reduction.
  MergeOfView,
  /// M3, approximate: above a shift, by a large block.
  MergeOfShift,
  /// M4, M5, approximate: above an unfold, by a block that the window divides.
  MergeOfUnfold,
  /// S1: a split of a strided coordinate.
  SplitOfStride,
  /// H1: no output is below, or it can only end in an unordered dimension.
  ShiftOfChannel,
  /// H1: above a shift; amounts are 1 and -1.
  ShiftOfShift,
  /// H2, approximate: above a split with a large inner coordinate.
  ShiftOfSplit,
  /// U1: no output is below.
  UnfoldOfReduction,
  /// U1, approximate: above a shift or a split; those nearly commute.
  UnfoldOfView,
  /// U3: a reduction in the window that no weight has.
  WindowWithoutWeight,
  /// U4, approximate: above one with a larger window; those nearly commute.
  NestedWindows,
  /// T1: a stride of an unfold, a split or a stride.
  StrideOfView,
  /// T2, T3: neither a stride of the signature along a position, nor small and
  /// a window.
  StrideOutsideWindow,
  /// E1: an expand of anything but an output or a half of a merge.
  ExpandOfView,
  NumSearchLimits
};
using LimitSet = std::bitset<NumSearchLimits>;

llvm::StringRef getLimitName(SearchLimit limit);

/// The limits that `graph` does not keep to; `numWeights` of its weights are
/// not redundant.
LimitSet getViolatedLimits(const search::SearchProblem &problem,
                           const search::OperatorGraph &graph,
                           unsigned numWeights);

} // namespace kas::test

#endif // KAS_TEST_LIB_SEARCHLIMITS_H
