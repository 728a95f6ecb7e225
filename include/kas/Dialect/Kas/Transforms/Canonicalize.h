//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact identities on operators.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZE_H
#define KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZE_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

/// The rules of `kas-canonicalize`. Each keeps the function of an operator at
/// every legal binding, and the shapes of its data and weights.
void populateCanonicalizePatterns(mlir::RewritePatternSet &patterns);

/// Applies the rules to `op` until none matches.
mlir::LogicalResult canonicalizeOperator(OperatorOp op);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZE_H
