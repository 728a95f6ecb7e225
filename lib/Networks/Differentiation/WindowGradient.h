//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients by what is read in windows, such as the data of convolutions: sums
// over what comes back, and no scatter.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_WINDOWGRADIENT_H
#define LIB_NETWORKS_DIFFERENTIATION_WINDOWGRADIENT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <optional>

namespace kas::networks {

/// A sum over windows of one of its inputs, along dimension d of it
///
///     index = stride * place + dilation * offset
///
/// where loop `place` is a dimension of the result, and maybe of other inputs,
/// and loop `offset` one of other inputs, and without stride and dilation maybe
/// of this one. Others may have the same index. Element y of the input, less
/// the padding before it, then gets something from the places (y + padding -
/// dilation * offset) / stride: for y of one remainder by the stride, from
/// every t-th offset, which is a sum over windows of the gradient (and of those
/// inputs that have places) again. Each combination of remainders is one
/// operation, whose results are put together.
class WindowGradient {
public:
  /// Makes a structured operation that sums the body's gradient: over these
  /// inputs of the operation and, last, the gradient, to a tensor of `type`.
  using MakeSumFn = llvm::function_ref<mlir::Value(
      mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
      mlir::RankedTensorType type)>;

  /// Nothing if `op` does not read `operand` so, or not with static shapes.
  static std::optional<WindowGradient> match(mlir::linalg::LinalgOp op,
                                             mlir::OpOperand &operand);

  /// What the gradient is by: the operand, or what was padded with zeros to be
  /// it.
  mlir::Value getTarget() const { return target; }
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Value gradient,
                   MakeSumFn makeSum) const;

private:
  struct Window {
    /// Of the operand.
    unsigned dim;
    unsigned place, offset;
    int64_t stride, dilation, padding;
  };
  /// Those elements of the target along a window's dimension that have one
  /// remainder: `first`, `first + stride`, ...
  struct Phase {
    int64_t first, count;
    /// The offsets that they get something from.
    int64_t firstOffset, offsetStep, numOffsets;
    /// Element number a and offset number j, counted from the last one, belong
    /// to place `start + a + step * j`.
    int64_t start, step;
  };

  WindowGradient(mlir::linalg::LinalgOp op, mlir::OpOperand &operand)
      : op(op), operand(operand) {}

  bool matchWindows();
  bool matchInputs();
  void takePadding();
  Phase getPhase(const Window &window, int64_t first) const;
  mlir::Value emitPhases(mlir::OpBuilder &builder, mlir::Value gradient,
                         llvm::ArrayRef<Phase> phases, MakeSumFn makeSum) const;
  llvm::SmallVector<int64_t> getOrder(mlir::AffineMap map) const;
  mlir::Value cutOffsets(mlir::OpBuilder &builder, mlir::Value input,
                         mlir::AffineMap &map,
                         llvm::ArrayRef<Phase> phases) const;
  mlir::Value cutPositions(mlir::OpBuilder &builder, mlir::Value tensor,
                           mlir::AffineMap map,
                           llvm::ArrayRef<Phase> phases) const;
  mlir::Value copy(mlir::OpBuilder &builder, mlir::Value tensor,
                   llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<mlir::AffineExpr> indices) const;
  mlir::Value turnKept(mlir::OpBuilder &builder, mlir::Value tensor) const;
  /// The number of the window whose index is `expr`, or -1.
  int findIndex(mlir::AffineExpr expr) const;
  /// The number of the window with `loop` as its `member`, or -1.
  int find(unsigned loop, unsigned Window::*member) const;

  /// Its methods are not const.
  mutable mlir::linalg::LinalgOp op;
  mlir::OpOperand &operand;
  llvm::SmallVector<Window> windows;
  mlir::Value target;
};

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_WINDOWGRADIENT_H
