//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an operator reads: affine expressions of the iteration axes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_COORDINATES_H
#define KAS_DIALECT_KAS_ANALYSIS_COORDINATES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Schedule/IndexExpr.h"
#include "mlir/IR/AffineExpr.h"

namespace kas {

/// One loop of an operator's iteration space: 0 <= value < extent.
struct Axis {
  int64_t extent;
  /// How the loop combines its values; nothing for an output axis.
  std::optional<ReduceKind> kind;
  /// The coordinate that the loop makes: an output or the result of a reduce.
  mlir::Value coordinate;
};

/// A point of the iteration space exists only where 0 <= expr < extent.
struct Guard {
  mlir::AffineExpr expr;
  int64_t extent;
};

/// A concrete operator as a loop nest: for each output point, the reductions
/// over data[...] * weight[...] * ... at the points that exist.
struct Coordinates {
  /// The outputs in order, then the reductions, the outermost first. Axis i is
  /// dimension i of every expression below.
  llvm::SmallVector<Axis> axes;
  unsigned numOutputs = 0;
  /// The index of each dimension of the data and of each weight. They are in
  /// bounds wherever all guards hold.
  llvm::SmallVector<mlir::AffineExpr> data;
  llvm::SmallVector<llvm::SmallVector<mlir::AffineExpr>> weights;
  /// Guards that the extents of the axes do not prove, in program order.
  llvm::SmallVector<Guard> guards;
  /// What sums are divided by beside their means. 1 for an operator.
  double divisor = 1;

  /// A `max` over more than one value: with one it is the same as a sum.
  bool hasMax() const;
  /// The divisor times the product of the sizes of all `mean` reductions.
  double getMeanDivisor() const;
};

/// The coordinates of the concrete operator `op`, simplified with the extents
/// of the axes. The expressions of tensors assume that all guards hold, that of
/// a guard that all earlier guards do.
Coordinates getCoordinates(OperatorOp op);

using schedule::IndexExpr;
using schedule::IndexTerm;
using schedule::Interval;

/// `expr`, whose dimensions are loops, as plain data, and back.
IndexExpr getIndexExpr(mlir::AffineExpr expr);
mlir::AffineExpr getAffineExpr(const IndexExpr &expr,
                               mlir::MLIRContext *context);

/// Bounds of `expr` where dimension i is in `ranges[i]`. Sound; tight for sums
/// in which each dimension occurs once.
Interval getInterval(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);

/// Simplifies `expr` where dimension i is in `ranges[i]`: expressions of one
/// value become constants, floordiv and mod that cannot matter go away, and
/// `c * (e floordiv c) + e mod c` becomes `e`.
mlir::AffineExpr simplifyInRanges(mlir::AffineExpr expr,
                                  llvm::ArrayRef<Interval> ranges);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_COORDINATES_H
