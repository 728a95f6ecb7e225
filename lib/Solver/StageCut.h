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

#ifndef KAS_LIB_SOLVER_STAGECUT_H
#define KAS_LIB_SOLVER_STAGECUT_H

#include "kas/Solver/StagePlan.h"

namespace kas::solver {

/// The primitives above a cut, as a bit set, and the elements of the
/// intermediate: the product of the sizes of the coordinates that cross it.
struct StageCut {
  uint64_t primitives = 0;
  uint64_t elements = 1;
};

/// The cut with the smallest intermediate such that exactly the reductions and
/// weights in these bit sets are above it; among equal ones that with the
/// fewest coordinates, then that with the fewest primitives above, so that cuts
/// of nested sets are nested. None when a
/// weight below needs what is above. Several when nothing would have to cross:
/// one for each coordinate that can be made to. At least `primitives` are
/// above.
llvm::SmallVector<StageCut, 1> findCuts(const StageGraph &graph,
                                        uint32_t reductions, uint32_t weights,
                                        uint64_t primitives = 0);

/// Whether `coordinate` crosses a cut.
bool crosses(const StageGraph::Coordinate &coordinate, uint64_t primitives,
             uint32_t reductions, uint32_t weights);

} // namespace kas::solver

#endif // KAS_LIB_SOLVER_STAGECUT_H
