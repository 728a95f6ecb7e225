//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What loops load again and again.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SCHEDULE_LOOPMISSES_H
#define LIB_SCHEDULE_LOOPMISSES_H

#include "kas/Schedule/StageNest.h"

namespace kas::schedule {

/// How many times units of `unit` elements (a cache line, a page) are loaded
/// again when the loops of `nest` run in an order, because a cache does not
/// hold what the inner loops touch.
class LoopMisses {
public:
  /// `order`: outermost first. The results of the innermost `registerLoops`
  /// stay in registers.
  LoopMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
             int64_t unit, size_t registerLoops = 0);

  struct Count {
    /// Of long runs of units one after another, which the processor fetches
    /// ahead, and of others.
    double streamed = 0, scattered = 0;
  };
  /// For a cache of `capacity` units, in `sets` by their addresses: units at
  /// strides that have a factor in common with it share few of the sets.
  Count count(double capacity, int64_t sets = 1) const;

private:
  /// What the innermost loops touch.
  struct Footprint {
    double units = 1;
    /// Elements that lie together.
    int64_t run = 1;
    /// What divides the distances between these, in elements; 0 if there is
    /// nothing else.
    int64_t stride = 0;

    /// Units of the cache that these take, with those between them that others
    /// of this tensor cannot take.
    double getOccupied(int64_t unit, int64_t sets) const;
  };
  /// One tensor, by the number of innermost loops.
  struct Tensor {
    const StageNest::Access *access;
    /// How many innermost loops do without the cache.
    size_t registerLoops = 0;
    llvm::SmallVector<Footprint, 16> footprints;
  };
  Tensor makeTensor(const StageNest::Access &access,
                    size_t registerLoops = 0) const;
  double getMisses(const Tensor &tensor, size_t fitting) const;

  const StageNest &nest;
  llvm::ArrayRef<unsigned> order;
  int64_t unit;
  llvm::SmallVector<Tensor, 3> tensors;
};

} // namespace kas::schedule

#endif // LIB_SCHEDULE_LOOPMISSES_H
