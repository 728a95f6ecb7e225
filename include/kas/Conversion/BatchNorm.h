//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalization by the statistics of the batch, as linalg, and its gradient.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_BATCHNORM_H
#define KAS_CONVERSION_BATCHNORM_H

#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

/// The gradients by data, scale and offset, given that by the result.
struct BatchNormGradients {
  mlir::Value data, scale, offset;
};
BatchNormGradients emitBatchNormGradients(mlir::OpBuilder &builder,
                                          BatchNormOp op, mlir::Value gradient);

/// Replaces the op by linalg.
void lowerBatchNorm(mlir::RewriterBase &rewriter, BatchNormOp op);

} // namespace kas

#endif // KAS_CONVERSION_BATCHNORM_H
