//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of operators: loop nests again.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_KASGRADIENT_H
#define KAS_CONVERSION_KASGRADIENT_H

#include "kas/Conversion/KasToAffine.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"

namespace kas {

/// The gradient of a loop nest of sums with respect to its tensor number
/// `tensor` (0: the data, then the weights), which has the shape `shape`.
///
/// The result is a nest whose outputs are the dimensions of that tensor, whose
/// `data` is the gradient of the forward nest's output, and whose `weights` are
/// the other tensors, in order. For each element it sums over the points of the
/// forward iteration space that read it: the tensor's index expressions are
/// solved for loop variables of the forward nest as far as possible, and what
/// remains is a guard. Nothing is written twice, so the outputs may run in
/// parallel. The forward nest must have no `max` over more than one value.
Coordinates getGradient(const Coordinates &forward, unsigned tensor,
                        llvm::ArrayRef<int64_t> shape);

/// Emits, at the builder's insertion point, loops that write the whole of
/// `output` (a buffer) with the gradient of the concrete operator `op` with
/// respect to its tensor number `tensor`, from `inputs` (the buffers of the
/// data, the weights and the output's gradient).
void emitGradientLoops(mlir::OpBuilder &builder, mlir::Location loc,
                       OperatorOp op, unsigned tensor, mlir::ValueRange inputs,
                       mlir::Value output,
                       const AffineLoopOptions &options = {});

/// The same on tensors with static shapes: returns the gradient, a tensor of
/// type `type`.
mlir::Value emitGradient(mlir::OpBuilder &builder, mlir::Location loc,
                         OperatorOp op, unsigned tensor,
                         mlir::ValueRange inputs, mlir::TensorType type,
                         const AffineLoopOptions &options = {});

/// The nest of `apply` and the tensors that it reads: the gradient of the
/// result, then the others.
struct GradientNest {
  Coordinates coordinates;
  llvm::SmallVector<mlir::Value> inputs;
};
GradientNest getGradient(ApplyGradientOp apply);

/// Replaces `apply` by the loops of `emitGradientLoops`.
void convertGradientToAffine(mlir::RewriterBase &rewriter,
                             ApplyGradientOp apply,
                             const AffineLoopOptions &options = {});

} // namespace kas

#endif // KAS_CONVERSION_KASGRADIENT_H
