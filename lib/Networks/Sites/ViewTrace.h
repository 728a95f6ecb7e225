//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where each element of a tensor comes from, through reshapes, transpositions,
// slices and steps on single elements.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SITES_VIEWTRACE_H
#define LIB_NETWORKS_SITES_VIEWTRACE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"
#include <vector>

namespace kas::networks {

struct ViewTrace {
  /// Not the result of a step that is looked through.
  mlir::Value origin;
  /// For each element of the tensor in row-major order, which one of `origin`.
  std::vector<int64_t> elements;
  /// The product of the numbers that all elements are multiplied by.
  double scale = 1;
  /// Weights that are added, dimension by dimension.
  llvm::SmallVector<mlir::Value> biases;
};

/// Follows `value` to its origin; adds what is looked through to `ops`.
/// Elements are empty when there are more than 2^25 of them, or they cannot be
/// counted.
ViewTrace traceViews(mlir::Value value,
                     llvm::SmallSetVector<mlir::Operation *, 32> &ops);

/// The number that `value`, inside of the body of `op`, always is.
std::optional<double> getConstantNumber(mlir::linalg::LinalgOp op,
                                        mlir::Value value);

/// What the body of `op` gives for its result `index`.
mlir::Operation *getYielded(mlir::linalg::LinalgOp op, unsigned index = 0);

/// The operand that `value` is inside of the body of `op`; null when it is
/// none, or not an input.
mlir::OpOperand *getInputOperand(mlir::linalg::LinalgOp op, mlir::Value value);

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_VIEWTRACE_H
