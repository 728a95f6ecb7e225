//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Single operators as functions, for tools and searches that compile and time
// them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_OPERATORMODULE_H
#define KAS_CONVERSION_OPERATORMODULE_H

#include "kas/Conversion/KasToAffine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas {

/// The name of the function that `createOperatorModule` makes.
constexpr llvm::StringLiteral operatorFunctionName = "run";

/// A module with a copy of `op`, which must be concrete, and a function that
/// applies it to f32 tensors. Its arguments are called `data`, `weight0`,
/// `weight1`, ... and carry initializers that give results of order 1: the data
/// is normal, the weights are scaled by the number of terms that the sums have.
mlir::OwningOpRef<mlir::ModuleOp> createOperatorModule(OperatorOp op);

/// The name of the function that `createGradientModule` makes.
constexpr llvm::StringLiteral gradientFunctionName = "gradient";

/// A module with a function that computes the gradient of `op`, which must be
/// concrete, with respect to its tensor number `tensor` (0: the data, then the
/// weights), on f32 tensors. Its arguments are those of `op` and the gradient
/// of the output.
mlir::OwningOpRef<mlir::ModuleOp>
createGradientModule(OperatorOp op, unsigned tensor,
                     const AffineLoopOptions &options = {});

} // namespace kas

#endif // KAS_CONVERSION_OPERATORMODULE_H
