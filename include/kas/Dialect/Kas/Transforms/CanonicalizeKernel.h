//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact identities of the tensor level.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZEKERNEL_H
#define KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZEKERNEL_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace kas {

/// The rules E1 to E12 of docs/reference/tensor-level.md. Each keeps the
/// function of a kernel at every legal binding, the shapes of its weights and
/// their order.
void populateKernelCanonicalizePatterns(mlir::RewritePatternSet &patterns);

/// Applies the rules to `kernel` until none matches; steps without weights that
/// nothing reads are erased. Returns whether anything has changed.
bool canonicalizeKernel(KernelOp kernel,
                        const mlir::FrozenRewritePatternSet &patterns);
bool canonicalizeKernel(KernelOp kernel);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_CANONICALIZEKERNEL_H
