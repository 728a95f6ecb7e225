//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What plain loops load again and again.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SOLVER_LOOPMISSES_H
#define LIB_SOLVER_LOOPMISSES_H

#include "kas/Solver/StageNest.h"

namespace kas::solver {

/// How many times a unit of `unit` elements (a cache line, a page) is loaded
/// again when the loops of `nest` run in `order`, outermost first, because a
/// cache of `capacity` units does not hold what the inner loops touch.
double countMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
                   int64_t unit, double capacity);

} // namespace kas::solver

#endif // LIB_SOLVER_LOOPMISSES_H
