//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a nest and how its tensors step with them, as what caches hold
// of them is counted from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_STAGENEST_H
#define KAS_SCHEDULE_STAGENEST_H

#include "kas/Schedule/LoopNest.h"
#include <array>

namespace kas::schedule {

/// `output += data * weight`, summed over the reductions. Loops of one
/// iteration are left out.
struct StageNest {
  /// Sets of loops are bits of a word.
  using LoopSet = uint32_t;
  static constexpr unsigned maxLoops = 24;

  /// The address of a tensor's element at each point of the loops.
  struct Access {
    /// Elements per step; 0 for loops that it does not depend on. For loops in
    /// `opaque`, those of the dimension.
    std::array<int64_t, maxLoops> strides = {};
    /// The loops that it is no linear function of.
    LoopSet opaque = 0;
    int64_t elements = 1;

    bool dependsOn(unsigned loop) const {
      return strides[loop] != 0 || (opaque >> loop & 1);
    }
    LoopSet getLoops(unsigned numLoops) const;
  };

  /// Those of the output, outermost first, then the reductions.
  llvm::SmallVector<Loop, 12> loops;
  Access output, data;
  /// The product of the weights, as it was prepared; none for a view or a sum
  /// of the data alone.
  Access weight;
  bool hasWeight = false;
  /// The loops of `nest` and how it steps with them.
  static StageNest get(const LoopNest &nest);

  int64_t getExtent(LoopSet set) const;
  /// Points of the loops: its multiply-adds.
  int64_t getPoints() const { return getExtent(~LoopSet(0)); }
};

} // namespace kas::schedule

#endif // KAS_SCHEDULE_STAGENEST_H
