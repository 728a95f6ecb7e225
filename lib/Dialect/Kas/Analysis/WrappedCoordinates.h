//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an operator would read if its windows went on at the other end.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_ANALYSIS_WRAPPEDCOORDINATES_H
#define KAS_LIB_DIALECT_KAS_ANALYSIS_WRAPPEDCOORDINATES_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"

namespace kas {

/// As `getCoordinates`, with windows that are not clipped at the ends of what
/// they are on but go on at the other end: all points exist.
Coordinates getWrappedCoordinates(OperatorOp op);

} // namespace kas

#endif // KAS_LIB_DIALECT_KAS_ANALYSIS_WRAPPEDCOORDINATES_H
