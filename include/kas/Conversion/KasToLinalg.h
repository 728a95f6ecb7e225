//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers kas.apply to linalg on tensors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_KASTOLINALG_H
#define KAS_CONVERSION_KASTOLINALG_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

struct LinalgOptions {
  /// Copies of tensors (windows, repeated weights) may have this many elements.
  int64_t maxElements = int64_t(1) << 24;
  /// Use named ops (linalg.matmul, linalg.conv_2d_nchw_fchw, ...) where the
  /// whole contraction is one.
  bool namedOps = true;
};

/// Replaces `apply`, on tensors, by tensor and linalg ops. No indexing map has
/// floordiv or mod in it: merges and splits become reshapes of the operands,
/// unfold a tensor.pad and a sum of two dimensions, shift two slices.
///
/// Fails without changing anything, and says why in `reason`, when the operator
/// mixes `max` with other reductions, clips under a `max` of products, or needs
/// a copy that is too large. Reports when the operator is not concrete
/// (`reason` stays empty then).
mlir::LogicalResult convertToLinalg(mlir::RewriterBase &rewriter, ApplyOp apply,
                                    const LinalgOptions &options,
                                    std::string &reason);

} // namespace kas

#endif // KAS_CONVERSION_KASTOLINALG_H
