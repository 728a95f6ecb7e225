//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work of the register tiles that a nest is cut into.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SCHEDULE_STAGETILES_H
#define LIB_SCHEDULE_STAGETILES_H

#include "kas/Schedule/StageNest.h"
#include "kas/Schedule/StageWork.h"
#include "kas/Schedule/TileChoice.h"

namespace kas::schedule {

/// The work of `tiles`, into which `nest` is cut.
StageWork getTileWork(const LoopNest &nest, const TileChoice &tiles,
                      const TileTarget &target);

/// Adds what caches do not hold when the loops of `nest` run in `order`. The
/// results of the innermost `registerLoops` stay in registers.
void addMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
               const TileTarget &target, StageWork &work,
               size_t registerLoops = 0);

} // namespace kas::schedule

#endif // LIB_SCHEDULE_STAGETILES_H
