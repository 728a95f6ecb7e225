//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of applications of operators.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_OPERATORGRADIENT_H
#define LIB_NETWORKS_DIFFERENTIATION_OPERATORGRADIENT_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas::networks {

/// The gradient of `apply` of a concrete operator by its operand `tensor`,
/// where that of the result is `gradient`: loops for operators with maxima,
/// else `kas.apply_gradient`, or, where tiles do not suit the gradient since
/// its indices are divided (strides, shifts), that of the operator in linalg.
mlir::Value emitOperatorGradient(mlir::OpBuilder &builder, ApplyOp apply,
                                 unsigned tensor, mlir::Value gradient);

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_OPERATORGRADIENT_H
