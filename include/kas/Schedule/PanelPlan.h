//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a contraction is cut into tiles, panels and registers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_PANELPLAN_H
#define KAS_SCHEDULE_PANELPLAN_H

#include "kas/Schedule/LoopNest.h"
#include "kas/Schedule/TilePlan.h"

namespace kas::schedule {

/// How a contraction is cut.
struct PanelPlan {
  /// Position in `columns` of the loop that is cut into blocks; the loops
  /// after it are in the tile as a whole, those before it outside.
  unsigned blockedColumn = 0;
  int64_t columnBlock = 1;
  /// Columns of a tile, and with those that fill the last vector.
  int64_t tileColumns = 1, paddedColumns = 1;
  /// Iterations of the outermost reduction that are packed at once.
  int64_t reductionBlock = 1;
  /// All reductions of one block.
  int64_t panelDepth = 1;
  /// Registers: rows times vectors.
  int64_t registerRows = 1, registerVectors = 1;
  /// How many whole vectors of a tile are taken `registerVectors` at a time;
  /// the others, the last of which may be narrower, are in registers together.
  int64_t loopedVectors = 0;
  /// Whether all panels are packed ahead of the calls: they hold weights.
  bool isPrepacked = false;
  /// How panels are copied.
  PanelCopy copy = PanelCopy::Vectors;
  /// In how many groups the rows are cut, so that all threads find work.
  int64_t rowGroups = 1;
  /// Estimated time, in halves of a cycle.
  int64_t time = 0;
  /// The part of it that the choice of registers decides: one step of all rows
  /// of a tile.
  int64_t stepTime = 0;
};

/// Cuts `nest` for `threads` threads, with the numbers that `given` has
/// if there are any, or says why they or its shape do not suit.
std::optional<PanelPlan>
makePanelPlan(const TileNest &nest, const TileTarget &target, int64_t threads,
              const TileNumbers *given,
              llvm::function_ref<void(const llvm::Twine &)> emitReason);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_PANELPLAN_H
