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

/// The time of the tiles that take the least, by the cost model of the
/// strategies, in halves of a cycle; nothing where none suit the nest as it is.
std::optional<int64_t> getTileTime(const StageNest &nest,
                                   const TileTarget &target);

/// Their work.
std::optional<StageWork> getTileWork(const StageNest &nest,
                                     const TileTarget &target);

/// Adds what caches do not hold when the loops of `nest` run in `order`. The
/// results of the innermost `registerLoops` stay in registers.
void addMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
               const TileTarget &target, StageWork &work,
               size_t registerLoops = 0);

} // namespace kas::solver

#endif // LIB_SOLVER_STAGETILES_H
