//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where operands of linalg operations come from, through views: padding,
// slices, transpositions, broadcasts and reshapes are index arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_TENSORACCESS_H
#define LIB_CODEGEN_GPU_STRATEGY_TENSORACCESS_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// How an operation reads an operand, in terms of its loops.
struct TensorAccess {
  /// What is read; null: the value is `fill` everywhere.
  mlir::Value source;
  /// The index of each dimension of the source. Dimension i is loop i.
  llvm::SmallVector<mlir::AffineExpr> indices;
  /// Where one does not hold the value is `fill`. The indices are inside of the
  /// source wherever all do.
  llvm::SmallVector<Guard> guards;
  /// Null: there is no such value, or any will do.
  mlir::TypedAttr fill;

  /// Goes from the operand back to what no view makes.
  static TensorAccess get(mlir::OpOperand &operand);
  static TensorAccess get(mlir::Value value, mlir::AffineMap map,
                          llvm::ArrayRef<int64_t> loops);

  bool isZero() const;
  /// Whether there is no `fill`, or it is zero.
  bool hasZeroFill() const;
};

/// Whether `op` is a view, which needs no kernel where it is read by one.
bool isTensorView(mlir::Operation *op);

/// Whether `op` is a view of a whole buffer in its order.
bool isReshape(mlir::Operation *op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_TENSORACCESS_H
