//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of the bodies of structured operations.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_SCALARGRADIENT_H
#define LIB_NETWORKS_DIFFERENTIATION_SCALARGRADIENT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace kas::networks {

/// Emits the gradients of `result`, a value of a block of scalar operations
/// that has been copied to the builder's insertion point by `mapping`, with
/// respect to `argument` of that block, times `gradient`. Null, after a
/// diagnostic, where an operation between them has no derivative here; a zero
/// where `result` does not depend on `argument`.
mlir::Value emitScalarGradient(mlir::OpBuilder &builder, mlir::Value result,
                               mlir::Value gradient, mlir::Value argument,
                               const mlir::IRMapping &mapping);

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_SCALARGRADIENT_H
