//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the code for CPUs computes the loops of a stage, and what takes its time:
// the same choices as lib/Codegen/CPU/Strategy makes, in a microsecond.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_STAGEWORK_H
#define KAS_SOLVER_STAGEWORK_H

#include "kas/Solver/StageNest.h"
#include "kas/Support/Target.h"

namespace kas::solver {

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
  /// Points of loops that only move data, in vectors and one by one.
  CopyVectors,
  CopyPoints,
  /// Plain loops: cache lines and pages that are not in the first-level cache,
  /// the second-level one, the table of pages.
  LoopMissesL1,
  LoopMissesL2,
  LoopMissesPages,
  /// Bytes that come from beyond the first- and the second-level cache.
  BytesL2,
  BytesL3,
};
constexpr unsigned numWorks = static_cast<unsigned>(Work::BytesL3) + 1;

/// Counts by kind.
struct StageWork {
  std::array<double, numWorks> counts = {};
  double &operator[](Work work) { return counts[static_cast<unsigned>(work)]; }
  double operator[](Work work) const {
    return counts[static_cast<unsigned>(work)];
  }
};

/// What a target offers, in elements.
struct WorkTarget {
  explicit WorkTarget(const Target &target);
  int64_t lanes, arithmeticLanes, registers, l1, l2;

  int64_t getLanes(int64_t elements) const;
  int64_t getOperationTime(int64_t count) const {
    return count > arithmeticLanes ? 2 : 1;
  }
};

StageWork getStageWork(const StageNest &nest, const WorkTarget &target);

} // namespace kas::solver

#endif // KAS_SOLVER_STAGEWORK_H
