//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of functions on tensors by reverse accumulation: of whole networks
// in linalg, before they are bufferized.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_DIFFERENTIATION_DIFFERENTIATE_H
#define KAS_NETWORKS_DIFFERENTIATION_DIFFERENTIATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::networks {

/// Emits, at the builder's insertion point, the gradients of a scalar with
/// respect to `wanted`, values of the block that the builder is in, given its
/// gradients with respect to `results`, values of the same block. Each gradient
/// has the type of its value; zeros where the results do not depend on it.
///
/// Between `wanted` and `results` there may be structured operations that sum,
/// take the maximum or work element by element, `tensor.pad` by one value,
/// reshapes, slices and insertions of slices, and `kas.apply` of concrete
/// operators; in bodies, `arith` and `math` operations that have a derivative.
/// Fails with a diagnostic at any other. Where a maximum is taken by several
/// elements, each of them gets the gradient; the derivative of
/// `arith.maximumf(a, b)` at a = b is that of a.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
emitGradients(mlir::OpBuilder &builder, mlir::ValueRange results,
              mlir::ValueRange resultGradients, mlir::ValueRange wanted);

/// Adds a function `name` after `function` that has an argument more for each
/// result, its gradient, and that returns the results, then the gradients with
/// respect to the arguments at the positions `arguments`.
mlir::FailureOr<mlir::func::FuncOp>
makeGradientFunction(mlir::func::FuncOp function, llvm::StringRef name,
                     llvm::ArrayRef<unsigned> arguments);

} // namespace kas::networks

#endif // KAS_NETWORKS_DIFFERENTIATION_DIFFERENTIATE_H
