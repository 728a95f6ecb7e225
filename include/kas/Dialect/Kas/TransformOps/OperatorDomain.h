//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The neural transformations of kas/TransformOps/IteratorDomain.h for operators
// of the kas dialect: what they make of an operator is an operator again.
//
// The iterators of an operator are its output coordinates, then its reductions
// in program order, so those of `kas.conv2d` have the numbers of
// `linalg.conv_2d_nchw_fchw`. Each function replaces a `kas.apply` by one of a
// new concrete operator that follows the old one, and whose weights are
// slices of the old ones. Where an application does not qualify, they change
// nothing and say in `reason` what they require and what they got.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMOPS_OPERATORDOMAIN_H
#define KAS_DIALECT_KAS_TRANSFORMOPS_OPERATORDOMAIN_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>
#include <string>
#include <utility>

namespace kas {

/// The output coordinate that indexes weights alone, and the reduction that by
/// itself indexes a dimension of the data and weights; fails unless there is
/// one of each.
mlir::FailureOr<std::pair<int64_t, int64_t>>
inferChannelIterators(ApplyOp apply, std::string &reason);

/// `groupIterators`: both iterators become a group, which they share, and the
/// rest; the data gets `kas.split group, rest`, weights get both.
mlir::FailureOr<ApplyOp> groupIterators(mlir::RewriterBase &rewriter,
                                        ApplyOp apply, int64_t first,
                                        int64_t second, int64_t groups,
                                        std::string &reason);

/// `depthwiseIterators`.
mlir::FailureOr<ApplyOp> depthwiseIterators(mlir::RewriterBase &rewriter,
                                            ApplyOp apply, int64_t first,
                                            int64_t second,
                                            std::string &reason);

/// `restrictReduction`. There is no primitive for a part of the data, so a
/// slice of it precedes the application.
mlir::FailureOr<ApplyOp>
restrictReduction(mlir::RewriterBase &rewriter, ApplyOp apply, int64_t iterator,
                  int64_t offset, std::string &reason,
                  std::optional<int64_t> size = std::nullopt);

/// `bottleneckIterator`: of an output coordinate, `kas.merge` by the factor,
/// `kas.expand` of the remainder, and `kas.stride` where data is indexed.
mlir::FailureOr<ApplyOp> bottleneckIterator(mlir::RewriterBase &rewriter,
                                            ApplyOp apply, int64_t iterator,
                                            int64_t factor,
                                            std::string &reason);

/// `splitIntoSlabs`: `kas.merge` into slab and row, the unfolds over the rows
/// of a slab, then `kas.split`; each weight is indexed by the slab, too.
mlir::FailureOr<ApplyOp> splitIntoSlabs(mlir::RewriterBase &rewriter,
                                        ApplyOp apply, int64_t iterator,
                                        int64_t slabs, std::string &reason);

/// `renewWeights`: with `kas.init` as `-kas-substitute` writes it.
mlir::LogicalResult renewWeights(mlir::RewriterBase &rewriter, ApplyOp apply,
                                 std::string &reason);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMOPS_OPERATORDOMAIN_H
