//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of bytes: which operations compute them, and with which signs.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_BYTEPRODUCTS_H
#define LIB_CODEGEN_CPU_STRATEGY_BYTEPRODUCTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <array>
#include <optional>

namespace kas::codegen {

/// For each of the two inputs of `op` whether its elements are unsigned, if it
/// adds products of i8, widened to i32, to sums of i32.
std::optional<std::array<bool, 2>> getByteSigns(mlir::linalg::LinalgOp op);

/// The input whose bytes are unsigned where those of the other are signed.
std::optional<unsigned> findUnsignedBytes(mlir::linalg::LinalgOp op);

/// The reduction that takes four elements that lie together in both inputs of
/// `op`, if there is one.
std::optional<unsigned> findWordLoop(mlir::linalg::LinalgOp op);

/// Rewrites sums of products of bytes such that their innermost reduction takes
/// four that lie together, with unsigned bytes on one side and signed ones on
/// the other. Says why it does not.
mlir::LogicalResult
packBytes(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
          llvm::function_ref<void(const llvm::Twine &)> emitReason);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_BYTEPRODUCTS_H
