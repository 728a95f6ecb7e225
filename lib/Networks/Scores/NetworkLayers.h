//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layers of a network, and the ends of its backward pass.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SCORES_NETWORKLAYERS_H
#define LIB_NETWORKS_SCORES_NETWORKLAYERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>
#include <string>

namespace kas::networks {

/// The result of a convolution, and what its dimensions are.
struct Layer {
  mlir::linalg::LinalgOp op;
  std::string name;
  unsigned batch = 0;
  llvm::SmallVector<unsigned> spatial;
};

/// Nothing where `op` is no convolution.
std::optional<Layer> matchLayer(mlir::linalg::LinalgOp op);

/// Its only reader adds it to another tensor of the same type.
bool endsResidualBlock(const Layer &layer);

/// `value`, normalized over `batch` and `spatial` with its own statistics.
mlir::Value emitNormalized(mlir::OpBuilder &builder, mlir::Value value,
                           unsigned batch, llvm::ArrayRef<unsigned> spatial);

/// Puts the result of a convolution, normalized over batch and space, in its
/// place, and returns it.
mlir::Value normalizeLayer(mlir::OpBuilder &builder, const Layer &layer);

/// The gradient of the cross entropy, averaged over the samples, by `logits`.
mlir::Value emitLossGradient(mlir::OpBuilder &builder, mlir::Value logits,
                             mlir::Value labels);

/// The type of the result, samples x classes; null with a diagnostic where
/// `function` gives no scores of classes. `what` is what it is wanted for.
mlir::RankedTensorType checkClassifier(mlir::func::FuncOp function,
                                       llvm::StringRef what);

/// A clone of `function` after it.
mlir::func::FuncOp cloneAfter(mlir::OpBuilder &builder,
                              mlir::func::FuncOp function,
                              llvm::StringRef name);

/// An argument more, called `name`.
mlir::Value addArgument(mlir::func::FuncOp function, mlir::Type type,
                        llvm::StringRef name);

/// Tensors of rank 0, one element each, in one tensor.
mlir::Value collect(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::ValueRange scalars);

/// Returns `results` instead of what `function` returns.
void setResults(mlir::func::FuncOp function, mlir::ValueRange results);

} // namespace kas::networks

#endif // LIB_NETWORKS_SCORES_NETWORKLAYERS_H
