//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The register tiles that a stage is cut into, and their work: the same choices
// as lib/Codegen/CPU/Strategy makes.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SOLVER_STAGETILES_H
#define LIB_SOLVER_STAGETILES_H

#include "kas/Solver/StageWork.h"
#include <optional>

namespace kas::solver {

struct TiledWork {
  StageWork work;
  /// By the cost model of the strategies, in halves of a cycle.
  int64_t time = 0;
};

/// The tiles that take the least time; nothing where none suit the nest as it
/// is.
std::optional<TiledWork> planTiles(const StageNest &nest,
                                   const TileTarget &target);

/// Adds what caches do not hold when the loops of `nest` run in `order`.
void addMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
               const TileTarget &target, StageWork &work);

} // namespace kas::solver

#endif // LIB_SOLVER_STAGETILES_H
