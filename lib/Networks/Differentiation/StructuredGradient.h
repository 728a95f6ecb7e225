//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of single operations on tensors.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_STRUCTUREDGRADIENT_H
#define LIB_NETWORKS_DIFFERENTIATION_STRUCTUREDGRADIENT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::networks {

/// A tensor of zeros like `value`.
mlir::Value makeZeros(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type);

/// A gradient, and the value that it is by.
struct OperandGradient {
  mlir::Value target, gradient;
};

/// The gradient with respect to `operand` of `op`, whose result has the
/// gradient `gradient`; or with respect to the tensor that was padded to be the
/// operand. Fails with a diagnostic.
mlir::FailureOr<OperandGradient>
emitStructuredGradient(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op,
                       mlir::OpOperand &operand, mlir::Value gradient);

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_STRUCTUREDGRADIENT_H
