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

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace kas {
/// The amount of one shift instead of two, of `size` points, by `a` and `b`; 0
/// when they are nothing together. None unless its magnitude is sure to be
/// below the size: when the signs differ, or when the size is a number.
std::optional<int64_t> addShifts(int64_t a, int64_t b, SizeAttr size);

/// The size is there and an integer at every binding, whatever the others are.
bool isIntegral(SizeAttr size);

void populateShiftPatterns(mlir::RewritePatternSet &patterns);
} // namespace kas

#endif // KAS_LIB_DIALECT_KAS_TRANSFORMS_SHIFTPATTERNS_H
