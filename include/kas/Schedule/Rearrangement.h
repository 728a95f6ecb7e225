//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Other layouts of the tensors of a contraction, in which tiles suit it
// that do not suit it as it is.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_REARRANGEMENT_H
#define KAS_SCHEDULE_REARRANGEMENT_H

#include "kas/Schedule/TileChoice.h"

namespace kas::schedule {

/// Copies of weights that have vectors along the output's last dimension, and
/// an output that is transposed after it was computed.
struct Rearrangement {
  /// A weight and the loops that are the dimensions of its copy.
  struct Copy {
    unsigned input;
    llvm::SmallVector<unsigned> loops;
    /// Whether it is made ahead of the calls.
    bool isPrepacked = true;
  };
  llvm::SmallVector<Copy> copies;
  /// The loops that are the dimensions of the output before it is transposed;
  /// empty where the output stays as it is.
  llvm::SmallVector<unsigned> outputLoops;
  /// Whether the first input is the one that vectors run along.
  bool isOfData = true;

  bool empty() const { return copies.empty() && outputLoops.empty(); }
  /// `nest` on what the copies and the output are then.
  LoopNest apply(const LoopNest &nest) const;
  /// What transposing, and copying what is not prepacked, takes at each call,
  /// in halves of a cycle.
  int64_t getTime(const LoopNest &nest) const;
};

/// The rearrangement in which `nest` takes the least time; nothing where that
/// is no less than `time`, that of how it is. `time` becomes the least one.
std::optional<Rearrangement> chooseRearrangement(const LoopNest &nest,
                                                 const TileTarget &target,
                                                 const TileOptions &options,
                                                 std::optional<int64_t> &time);

/// How a contraction is cut into tiles, in the layout in which that takes
/// the least time.
struct LayoutPlan {
  std::optional<Rearrangement> rearrangement;
  /// The nest in that layout.
  LoopNest nest;
  TileChoice tiles;
};

/// Nothing where no tiles suit.
std::optional<LayoutPlan> planLayout(const LoopNest &nest,
                                     const TileTarget &target,
                                     const TileOptions &options);

/// The same for a stage on one thread, with weights that are packed ahead: what
/// times are predicted from.
std::optional<LayoutPlan> planStage(const LoopNest &nest,
                                    const TileTarget &target);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_REARRANGEMENT_H
