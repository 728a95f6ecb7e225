//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers kas.apply to affine loops: exact for every operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_KASTOAFFINE_H
#define KAS_CONVERSION_KASTOAFFINE_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

struct AffineLoopOptions {
  /// Make the outermost output loop `affine.parallel`, if the nest has at least
  /// `minParallelWork` points.
  bool parallel = false;
  double minParallelWork = 32768;
};

/// Emits, at the builder's insertion point, loops that write the whole of
/// `output` (a buffer) from `inputs` (the buffers of the data and the weights).
/// Reductions nest in program order; a point whose guards do not hold is
/// skipped. Element types below 32 bits are accumulated in f32.
void emitAffineLoops(mlir::OpBuilder &builder, mlir::Location loc,
                     const Coordinates &coordinates, mlir::ValueRange inputs,
                     mlir::Value output, const AffineLoopOptions &options = {});

/// Emits, at the builder's insertion point, loops that write the whole of
/// `output` (a buffer) with the gradient of an operator with `max` with respect
/// to its tensor number `tensor` (0: the data, then the weights) from `inputs`
/// (the buffers of the data, the weights and the output's gradient). Equal
/// values under a `max` share its gradient. For other operators the nest of
/// `getGradient` (Gradient.h) is better.
void emitMaxGradientLoops(mlir::OpBuilder &builder, mlir::Location loc,
                          const Coordinates &coordinates, unsigned tensor,
                          mlir::ValueRange inputs, mlir::Value output);

/// Replaces `apply`, on tensors, by a new buffer, affine loops that fill it,
/// and the buffer as a tensor. Reports when its operator is not concrete.
mlir::LogicalResult convertToAffine(mlir::RewriterBase &rewriter, ApplyOp apply,
                                    const AffineLoopOptions &options = {});

/// Lets one-shot bufferization turn a `kas.apply` of a concrete operator into
/// the same loops.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

} // namespace kas

#endif // KAS_CONVERSION_KASTOAFFINE_H
