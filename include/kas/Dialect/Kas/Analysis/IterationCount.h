//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many points of an iteration space exist.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_ITERATIONCOUNT_H
#define KAS_DIALECT_KAS_ANALYSIS_ITERATIONCOUNT_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"

namespace kas {

/// The points of loops with the extents of `axes` at which all `guards` hold.
/// Loops that no guard depends on, and guards on different loops, cost nothing.
int64_t countIterations(llvm::ArrayRef<Axis> axes,
                        llvm::ArrayRef<Guard> guards);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_ITERATIONCOUNT_H
