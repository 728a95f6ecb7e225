//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of narrow elements, several of which fill a VNNI group of 32 bits:
// which operations compute them, and how their inputs are laid out.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_DOTPRODUCTS_H
#define LIB_CODEGEN_CPU_STRATEGY_DOTPRODUCTS_H

#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <array>
#include <optional>

namespace kas::codegen {

/// What an operation multiplies that adds products of i8 or of signed i16,
/// widened to i32, to sums of i32, or products of bf16, widened to f32, to sums
/// of f32.
struct DotProduct {
  /// I8, i16 or bf16.
  mlir::Type element;
  /// Of each input, whether its bytes are unsigned.
  std::array<bool, 2> isUnsigned = {};

  static std::optional<DotProduct> match(mlir::linalg::LinalgOp op);

  bool isOfInt8() const { return element.isInteger(8); }
  bool isOfInt16() const { return element.isInteger(16); }
  /// How many elements fill a VNNI group.
  int64_t getVNNIGroupSize() const {
    return 32 / element.getIntOrFloatBitWidth();
  }
  /// The input whose bytes are unsigned where those of the other are signed.
  std::optional<unsigned> getUnsignedInput() const {
    if (isUnsigned[0] == isUnsigned[1])
      return std::nullopt;
    return isUnsigned[0] ? 0 : 1;
  }
};

/// The reduction that takes `size` elements that lie together in both inputs of
/// `op`, if there is one.
std::optional<unsigned> findVNNILoop(mlir::linalg::LinalgOp op, int64_t size);

/// The reduction to take `size` elements of that lie together: a dimension of
/// all inputs, the one that is filled up the least, and of these the longest.
std::optional<unsigned> chooseVNNILoop(const Contraction &contraction,
                                       int64_t size);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_DOTPRODUCTS_H
