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

#include "kas/GraphSearch/OperatorGraph.h"
#include <bitset>

namespace kas::test {

/// See the table in docs/SearchSpaceCounts.md.
enum SearchLimit : unsigned {
  WeightWithoutReduction,
  WeightWithoutData,
  WeightOfUnfold,
  HighRank,
  Pooling,
  MergeOfView,
  ShiftOfView,
  ShiftOfChannel,
  UnfoldOfChannel,
  UnfoldOfView,
  WindowOfPosition,
  WindowWithoutWeight,
  NestedWindows,
  StrideOfView,
  StrideOfPosition,
  ExpandOfView,
  NumSearchLimits
};
using LimitSet = std::bitset<NumSearchLimits>;

llvm::StringRef getLimitName(SearchLimit limit);

/// The limits that `graph` does not keep to.
LimitSet getViolatedLimits(const SearchProblem &problem,
                           const OperatorGraph &graph);

} // namespace kas::test

#endif // KAS_TEST_LIB_SEARCHLIMITS_H
