//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_COMMON_QUANTIZEDARITHMETIC_H
#define LIB_CODEGEN_COMMON_QUANTIZEDARITHMETIC_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace kas::codegen {

/// Rewrites what reads bytes as floats, exactly: bytes less a zero point in 32
/// bits, not in 64 or 16, for which vectors have no conversion or few lanes;
/// and, where a byte was made of a float that was rounded and clipped, that
/// float without the zero point. With `populateRoundingPatterns`.
void populateQuantizedArithmeticPatterns(mlir::RewritePatternSet &patterns);

/// Rewrites what is computed around the rounding of floats to bytes with fewer
/// operations: exactly but for the sign of zeros, and for where products with
/// steps are rounded, so that a value between two bytes may become the other
/// one.
void populateRoundingPatterns(mlir::RewritePatternSet &patterns);

/// Whether `op` makes an unsigned byte of each element of its only input, by
/// steps that never fall where the element rises: it may be applied before a
/// maximum as well as after it. Elements that are no numbers (NaN) are not
/// looked at.
bool isRisingQuantization(mlir::linalg::GenericOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_COMMON_QUANTIZEDARITHMETIC_H
