//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index arithmetic of kernels: affine expressions of values whose ranges are
// known, in as few operations as possible and without signs where nothing can
// be negative.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_INDEXEMITTER_H
#define LIB_CODEGEN_GPU_EMIT_INDEXEMITTER_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {

/// Values are dimensions of affine expressions: `add` gives d0, d1, ... to the
/// block's id, the thread's id and loop variables; `emit` turns an expression
/// of these into operations of arith on `index`.
class IndexEmitter {
public:
  explicit IndexEmitter(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  /// The expression that stands for `value`, which lies in `range`. Values are
  /// to be added from the outermost loop to the innermost one: sums are ordered
  /// so that what an outer loop knows is added up there.
  mlir::AffineExpr add(mlir::Value value, Interval range);

  mlir::AffineExpr simplify(mlir::AffineExpr expr) const {
    return simplifyInRanges(expr, ranges);
  }
  Interval getRange(mlir::AffineExpr expr) const {
    return getInterval(expr, ranges);
  }

  /// The value of `expr`, computed at the insertion point.
  mlir::Value emit(mlir::AffineExpr expr);

  /// Whether `0 <= expr < extent`; null if that always holds.
  mlir::Value emitGuard(const Guard &guard);

  /// From now on, constants are added with the promise that nothing overflows:
  /// LLVM moves them into the addresses of instructions then, where other
  /// registers of addresses would be needed.
  void promiseRanges() { hasPromise = true; }

  mlir::Value createConstant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }

private:
  mlir::Value emitSimplified(mlir::AffineExpr expr);
  mlir::Value emitDivision(mlir::AffineBinaryOpExpr expr);
  unsigned getLevel(mlir::AffineExpr expr) const;
  /// `sum + constant`, of which `sum` is `expr` without its constant.
  mlir::Value addConstant(mlir::Value sum, mlir::AffineExpr expr,
                          int64_t constant);

  mlir::ImplicitLocOpBuilder &b;
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<Interval> ranges;
  bool hasPromise = false;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_INDEXEMITTER_H
