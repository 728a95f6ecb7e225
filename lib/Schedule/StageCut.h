//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where to cut the graph of an operator, given which reductions and weights
// are above the cut (on the side of the data).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_SCHEDULE_STAGECUT_H
#define KAS_LIB_SCHEDULE_STAGECUT_H

#include "kas/Schedule/StagePlan.h"
#include <optional>

namespace kas::schedule {

/// What is done above a cut: bit sets of reductions and weights, and whether
/// the data is there.
struct DoneSet {
  uint32_t reductions = 0, weights = 0;
  bool hasData = true;
};

/// The primitives above a cut, as a bit set, and the elements of the
/// intermediate: the product of the sizes of the coordinates that cross it.
struct StageCut {
  uint64_t primitives = 0;
  uint64_t elements = 1;
};

/// Finds where a graph can be cut.
class StageCuts {
public:
  explicit StageCuts(const StageGraph &graph);

  /// The cut with the smallest intermediate such that exactly `done` is above
  /// it; among equal ones that with the fewest coordinates, then that with the
  /// fewest primitives above, so that cuts of nested sets are nested. None when
  /// something below needs what is above. Several when nothing would have to
  /// cross: one for each coordinate that can be made to; none then without the
  /// data. At least `primitives` are above, and `below` are not.
  ///
  /// An intermediate that the data is part of is the data of another stage. A
  /// coordinate indexes it once (C8, C9), so the primitive that a coordinate is
  /// an operand of is above when a tensor is that it indexes.
  llvm::SmallVector<StageCut, 1>
  find(const DoneSet &done, uint64_t primitives = 0, uint64_t below = 0) const;

  /// Whether a coordinate (its position) crosses a cut.
  bool crosses(unsigned coordinate, const DoneSet &done,
               uint64_t primitives) const;

  /// The weights that a coordinate indexes, as a bit set.
  uint32_t getWeights(unsigned coordinate) const { return weights[coordinate]; }
  bool isData(unsigned coordinate) const { return data[coordinate]; }

private:
  /// The smallest cut, which may have no coordinate that crosses; the producer
  /// of `forced`, if any, is below.
  std::optional<StageCut> findSmallest(const DoneSet &done, uint64_t primitives,
                                       uint64_t below, unsigned forced,
                                       bool &hasFrontier) const;
  bool isProducedAbove(unsigned coordinate, const DoneSet &done,
                       uint64_t primitives) const;
  /// Whether a tensor that the coordinate indexes is above.
  bool isInTensorAbove(unsigned coordinate, const DoneSet &done) const;

  const StageGraph &graph;
  llvm::SmallVector<uint32_t> weights;
  llvm::SmallVector<bool> data;
  /// By coordinate, the logarithm of its size: cuts are products.
  llvm::SmallVector<int64_t> lengths;
};

} // namespace kas::schedule

#endif // KAS_LIB_SCHEDULE_STAGECUT_H
