//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Floats that are clipped by constant bounds, and which of them are integers.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_COMMON_CLIPPEDINTEGER_H
#define LIB_CODEGEN_COMMON_CLIPPEDINTEGER_H

#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace kas::codegen {

/// The largest magnitude of a byte less its zero point.
constexpr double mostBound = 255;

/// The number of `value`, if it is a constant.
std::optional<double> getConstant(mlir::Value value);

/// What `value` is clipped of by one integer from `least` to `most`, by a
/// maximum or a choice between the two; null if it is something else.
mlir::Value matchLowerClip(mlir::Value value, double least, double most);
/// The same for a minimum.
mlir::Value matchUpperClip(mlir::Value value, double least, double most);
/// The same for either, with an integer of at most `mostBound`.
mlir::Value matchClip(mlir::Value value);

/// The clip `like` of `value`, with `change` of its bound.
mlir::Value repeatClip(mlir::RewriterBase &rewriter, mlir::Value like,
                       mlir::Value value,
                       llvm::function_ref<double(double)> change);

/// Whether `value` is an integer from `least` to `most`, or NaN. Matches
/// min(max(round(x) + integer, least), most) in either order, as quantizing
/// writes it, also by comparisons.
bool isIntegerWithin(mlir::Value value, double least, double most);

} // namespace kas::codegen

#endif // LIB_CODEGEN_COMMON_CLIPPEDINTEGER_H
