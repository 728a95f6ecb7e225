//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse accumulation over the operations of one block.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_REVERSE_H
#define LIB_NETWORKS_DIFFERENTIATION_REVERSE_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::networks {

/// Reverse accumulation over the operations from `begin` to where the builder
/// is, whose gradients are inserted there.
class Reverse {
public:
  Reverse(mlir::OpBuilder &builder, mlir::ValueRange wanted,
          mlir::Block::iterator begin);

  void add(mlir::Value value, mlir::Value gradient);
  mlir::LogicalResult run();
  /// Zeros where there is none.
  mlir::Value get(mlir::Value value);

private:
  /// Whether a wanted value is an operand, or is read in a region.
  bool reads(mlir::Operation *op) const;
  mlir::LogicalResult propagate(mlir::Operation *op, mlir::Value gradient);
  mlir::LogicalResult propagateStructured(mlir::linalg::LinalgOp op,
                                          mlir::Value gradient);
  mlir::LogicalResult propagateOperator(ApplyOp apply, mlir::Value gradient);
  void propagateBatchNorm(BatchNormOp op, mlir::Value gradient);
  mlir::LogicalResult propagateConcat(mlir::tensor::ConcatOp op,
                                      mlir::Value gradient);

  mlir::OpBuilder &builder;
  /// What depends on a wanted value.
  mlir::DenseSet<mlir::Value> active;
  mlir::DenseMap<mlir::Value, mlir::Value> gradients;
  /// Forward operations, last first.
  llvm::SmallVector<mlir::Operation *> operations;
};

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_REVERSE_H
