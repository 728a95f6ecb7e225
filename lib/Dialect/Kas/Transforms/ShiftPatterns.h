//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of kas-canonicalize on shifts, which have a file of their own.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_TRANSFORMS_SHIFTPATTERNS_H
#define KAS_LIB_DIALECT_KAS_TRANSFORMS_SHIFTPATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace kas {
void populateShiftPatterns(mlir::RewritePatternSet &patterns);
} // namespace kas

#endif // KAS_LIB_DIALECT_KAS_TRANSFORMS_SHIFTPATTERNS_H
