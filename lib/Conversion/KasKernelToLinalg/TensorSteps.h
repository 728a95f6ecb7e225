//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that the lowering of kernels is made of: views, windows, slices,
// element-wise operations and reductions of tensors of static shape.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CONVERSION_KASKERNELTOLINALG_TENSORSTEPS_H
#define KAS_LIB_CONVERSION_KASKERNELTOLINALG_TENSORSTEPS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas {

/// Builds tensor and linalg ops on tensors of static shape. All of them have
/// the element type of their operands.
class TensorSteps {
public:
  using Shape = llvm::SmallVector<int64_t>;
  /// Makes the value of a point from those of the operands.
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange)>;

  explicit TensorSteps(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  static llvm::ArrayRef<int64_t> getShape(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }

  /// `value` in another shape of as many elements, in row-major order.
  mlir::Value view(mlir::Value value, llvm::ArrayRef<int64_t> shape);

  /// The value at each point of `shape`; `maps` say where each operand is read.
  mlir::Value map(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<mlir::Value> operands,
                  llvm::ArrayRef<mlir::AffineMap> maps, Body body);
  /// The same of operands of one shape, point by point.
  mlir::Value map(llvm::ArrayRef<mlir::Value> operands, Body body);

  /// `value` times `factor`.
  mlir::Value scale(mlir::Value value, double factor);

  /// A contraction of two operands. The loops are those of the result, of
  /// shape `shape`, then the reductions, whose extents the operands tell.
  mlir::Value contract(llvm::ArrayRef<int64_t> shape, unsigned numReductions,
                       mlir::Value left, mlir::AffineMap leftMap,
                       mlir::Value right, mlir::AffineMap rightMap);

  /// The sum or the maximum over `dims`, which disappear.
  mlir::Value reduce(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                     bool isMax);

  /// `value` with dimension i read from dimension `permutation[i]`.
  mlir::Value permute(mlir::Value value, llvm::ArrayRef<int64_t> permutation);

  /// Zeros around `value`; nothing to do when all widths are 0.
  mlir::Value pad(mlir::Value value, llvm::ArrayRef<int64_t> low,
                  llvm::ArrayRef<int64_t> high);

  /// Copies `count` elements along `dim` from position `from` on, each `step`
  /// after the last, to position `to` on of a tensor, in steps of `toStep`.
  struct Slice {
    int64_t from = 0, step = 1, to = 0, toStep = 1, count = 0;
  };
  /// A tensor of the same shape, made of slices along `dim`.
  mlir::Value rearrange(mlir::Value value, int64_t dim,
                        llvm::ArrayRef<Slice> slices);

  /// `count` positions along `dim` from position `from` on.
  mlir::Value take(mlir::Value value, int64_t dim, int64_t from, int64_t count);

  /// `value` with `part` in place of its positions along `dim` from `to` on.
  mlir::Value put(mlir::Value part, mlir::Value value, int64_t dim, int64_t to);

  /// A constant of one dimension.
  mlir::Value constant(llvm::ArrayRef<float> values);

  mlir::ImplicitLocOpBuilder &getBuilder() { return b; }

private:
  mlir::Value createEmpty(llvm::ArrayRef<int64_t> shape, mlir::Value like);
  mlir::Value createFilled(llvm::ArrayRef<int64_t> shape, mlir::Value like,
                           double value);

  mlir::ImplicitLocOpBuilder &b;
};

} // namespace kas

#endif // KAS_LIB_CONVERSION_KASKERNELTOLINALG_TENSORSTEPS_H
