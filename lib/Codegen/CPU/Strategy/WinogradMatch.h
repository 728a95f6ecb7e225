//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which convolutions suit Winograd's algorithm.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_WINOGRADMATCH_H
#define LIB_CODEGEN_CPU_STRATEGY_WINOGRADMATCH_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// Outputs of a tile, and places of the window, along one axis.
constexpr int64_t winogradTile = 4, winogradWindow = 3;

/// A convolution of 3x3 with stride 1: what its window reads before the first
/// output of a line and of a column is `before` elements outside.
struct WinogradConvolution {
  mlir::Value data, weight;
  int64_t batches, groups, inputs, outputs, height, width;
  int64_t outHeight, outWidth;
  int64_t rowsBefore, columnsBefore;
  /// The index of the weight, of the group, the output and the input in it, and
  /// the two places of the window.
  llvm::SmallVector<mlir::AffineExpr> weightIndex;
};

/// The gradient of such a convolution of one group by its weight, whose output
/// has the gradient `gradient`. Its dimensions are outputs, inputs, lines and
/// columns of the window.
struct WinogradGradient {
  mlir::Value data, gradient;
  int64_t batches, inputs, outputs, height, width;
  int64_t outHeight, outWidth;
  int64_t rowsBefore, columnsBefore;
};

/// `apply` of a concrete operator, or `op`, if it is such a convolution.
llvm::FailureOr<WinogradConvolution> matchWinograd(ApplyOp apply);
llvm::FailureOr<WinogradConvolution>
matchWinograd(mlir::linalg::Conv2DNchwFchwOp op);
/// The same as one contraction over images, channels and places in any
/// order of its loops, as gradients by the data are.
llvm::FailureOr<WinogradConvolution> matchWinograd(mlir::linalg::GenericOp op);
/// `op` if it is such a gradient, its loops in any order.
llvm::FailureOr<WinogradGradient>
matchWinogradGradient(mlir::linalg::GenericOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_WINOGRADMATCH_H
