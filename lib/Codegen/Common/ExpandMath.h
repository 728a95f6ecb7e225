//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_COMMON_EXPANDMATH_H
#define LIB_CODEGEN_COMMON_EXPANDMATH_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/PatternMatch.h"

namespace kas::codegen {

/// What `expandMath` writes as arithmetic.
struct MathExpansions {
  /// Whether an operation of the math dialect, by its full name, becomes a
  /// polynomial.
  llvm::function_ref<bool(llvm::StringRef)> approximated;
  /// Operations of the math dialect, by mnemonic, that become simpler ones.
  llvm::ArrayRef<llvm::StringRef> expanded = {};
  /// Divisions of integers that round up or down.
  bool divisions = false;
  /// `math.log1p` and `math.expm1`, exact near zero.
  bool differences = false;
  /// Roundings of f32 to integers.
  bool roundings = false;
};

/// Rewrites all operations below `root`.
mlir::LogicalResult expandMath(mlir::Operation *root,
                               const MathExpansions &expansions);

/// Rewrites `math.erf` on f32 as a quotient of polynomials: at most 5.5 units
/// in the last place and 3.3e-7 off, odd, at most 1.0000002; NaN
/// stays so.
void populateErfPatterns(mlir::RewritePatternSet &patterns);

/// Rewrites `math.exp` on f32 as a polynomial times a power of two: at most one
/// unit in the last place off; zero in place of results below the least normal
/// number; NaN stays so.
void populateExpPatterns(mlir::RewritePatternSet &patterns);

} // namespace kas::codegen

#endif // LIB_CODEGEN_COMMON_EXPANDMATH_H
