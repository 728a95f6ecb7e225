//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What takes time in the code for CPUs of a stage, by kind.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_STAGEWORK_H
#define KAS_SCHEDULE_STAGEWORK_H

#include "kas/Schedule/LoopNest.h"
#include "kas/Schedule/TilePlan.h"
#include <array>

namespace kas::schedule {

/// The kinds of work that a stage consists of. Each is a count, in halves of a
/// cycle by the cost model of the strategies where it says so, and takes a time
/// per count that depends on the machine.
enum class Work : uint8_t {
  /// The operator itself, and each of its stages.
  Operator,
  Stage,
  /// Vectors along the rows: products and loads, transposed stores (halves of a
  /// cycle).
  RowProducts,
  RowStores,
  /// Elements that are packed at each call, because the data takes the place of
  /// the weights.
  RowPacking,
  /// Panels: products (halves of a cycle); elements that are copied in vectors,
  /// in vectors of every other element, and one by one.
  PanelProducts,
  PanelCopies,
  PanelStridedCopies,
  PanelSingleCopies,
  /// Tiles of panels times blocks of rows: stores and loads of sums.
  PanelStores,
  /// Direct tiles (halves of a cycle), and those with borders or strides.
  Direct,
  DirectBorders,
  /// Plain loops: points in vectors, one by one, and of sums that wait for
  /// each other.
  LoopVectors,
  LoopPoints,
  LoopSums,
  /// Points of loops that only move data, in vectors and one by one, and
  /// elements of a transposed output.
  CopyVectors,
  CopyPoints,
  Transposed,
  /// Cache lines that the first-, second- and third-level cache do not hold
  /// from one use to the next: in long runs, and others.
  StreamedL1,
  StreamedL2,
  StreamedL3,
  ScatteredL1,
  ScatteredL2,
  ScatteredL3,
  /// The same for pages and the table of pages.
  Pages,
};
constexpr unsigned numWorks = static_cast<unsigned>(Work::Pages) + 1;

/// Counts by kind.
struct StageWork {
  std::array<double, numWorks> counts = {};
  double &operator[](Work work) { return counts[static_cast<unsigned>(work)]; }
  double operator[](Work work) const {
    return counts[static_cast<unsigned>(work)];
  }
};

/// Of `nest` on one thread, with prepacked weights.
StageWork getStageWork(const LoopNest &nest, const TileTarget &target);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_STAGEWORK_H
