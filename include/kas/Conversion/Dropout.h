//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dropout as linalg.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_DROPOUT_H
#define KAS_CONVERSION_DROPOUT_H

#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

/// Elements whose random word is less stay out: `probability` * 2^32, rounded
/// to a whole number of 32 bits.
uint32_t getDropoutBound(double probability);

/// Replaces the op by linalg; one without a seed by its data.
void lowerDropout(mlir::RewriterBase &rewriter, DropoutOp op);

} // namespace kas

#endif // KAS_CONVERSION_DROPOUT_H
