//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structured operations over the dimensions of tensors.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_TENSOREMITTER_H
#define LIB_NETWORKS_DIFFERENTIATION_TENSOREMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace kas::networks {

using BodyFn = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange)>;

/// Structured operations over the dimensions of one tensor. Operands and result
/// have all of them but some.
class TensorEmitter {
public:
  TensorEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                mlir::RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}

  /// `body` of the elements of `inputs`; `dropped` of each are the dimensions
  /// that it does not have.
  mlir::Value
  map(llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<unsigned>>>
          inputs,
      BodyFn body);
  /// Sums over the dimensions `dropped` of `body` of the elements of `inputs`,
  /// which lack dimensions as those of `map` do.
  mlir::Value
  sum(llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<unsigned>>>
          inputs,
      llvm::ArrayRef<unsigned> dropped, BodyFn body);
  /// The same with the largest.
  mlir::Value
  maximum(llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<unsigned>>>
              inputs,
          llvm::ArrayRef<unsigned> dropped, BodyFn body);
  /// Sums, or with `isMaximum` the largest, over the dimensions `dropped`, of
  /// `body` of the elements of `inputs`.
  mlir::Value reduce(mlir::ValueRange inputs, llvm::ArrayRef<unsigned> dropped,
                     bool isMaximum, BodyFn body);
  /// The sum over all dimensions.
  mlir::Value sum(mlir::ValueRange inputs, BodyFn body);

private:
  mlir::AffineMap getMap(llvm::ArrayRef<unsigned> dropped) const;
  mlir::Value
  reduce(llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<unsigned>>>
             inputs,
         llvm::ArrayRef<unsigned> dropped, bool isMaximum, BodyFn body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType type;
};

mlir::Value multiply(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value a, mlir::Value b);
mlir::Value scale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                  double factor);

/// Tensors of rank 0, one element each, in one tensor.
mlir::Value collect(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::ValueRange scalars);

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_TENSOREMITTER_H
