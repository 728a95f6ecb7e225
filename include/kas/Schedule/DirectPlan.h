//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// How a contraction is cut into register tiles that read the inputs directly.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_DIRECTPLAN_H
#define KAS_SCHEDULE_DIRECTPLAN_H

#include "kas/Schedule/LoopNest.h"
#include "kas/Schedule/TilePlan.h"

namespace kas::schedule {

/// How the sums of a contraction are kept in registers while its inputs are
/// read where they are: for operators that use a datum too few times to pay for
/// a copy, such as depthwise convolutions and those with many groups.
struct DirectPlan {
  /// The loop along the output's last dimension, the elements of its vectors,
  /// and how many of them are in registers at once.
  unsigned vectorLoop = 0;
  int64_t lanes = 1, registerVectors = 1;
  /// A loop of rows and one of columns, several iterations of which are in
  /// registers at once.
  std::optional<unsigned> rowLoop, columnLoop;
  int64_t registerRows = 1, registerColumns = 1;
  /// The reductions, from the outside: those that are loops, and those that are
  /// unrolled because neighbouring columns read the same data at their steps.
  llvm::SmallVector<unsigned> looped, unrolled;
  /// A reduction along the vectors that is unrolled, too: the places of a
  /// window along a line. Where data has stride 2 these share what is loaded.
  std::optional<unsigned> imageRowLoop;
  bool sharesImageRows = false;
  /// In how many groups rows and columns are cut, so that all threads find
  /// work.
  int64_t rowGroups = 1, columnGroups = 1;
  /// Estimated time, in halves of a cycle.
  int64_t time = 0;

  /// Whether the vectors that are loaded at an unrolled step are used up before
  /// the next column of registers; else before the next row.
  bool columnsOutside = false;
};

/// Cuts `nest` for `threads` threads, with the numbers that `given` has
/// if there are any, or says why they or its shape do not suit.
std::optional<DirectPlan>
makeDirectPlan(const TileNest &nest, const TileTarget &target, int64_t threads,
               const TileNumbers *given,
               llvm::function_ref<void(const llvm::Twine &)> emitReason);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_DIRECTPLAN_H
