//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neural transformations of loop nests: changes of the iteration domain of one
// operation that change what it computes, such as grouping its channels. They
// are those of Turner et al., "Neural Architecture Search as Program
// Transformation Exploration" (ASPLOS 2021), sections 4 and 5, as functions of
// the iterators: no interchange has to bring them to the front.
//
// All of them take operations on tensors of static shape with one result and
// no `linalg.index`, replace them by a `linalg.generic`, and inherit the
// weights: the new operation reads the elements of the old weights that its
// domain still reaches, by slices before it. `renewWeights` then gives it
// weights of its own. Where an operation does not qualify, they change nothing
// and say in `reason` what they require and what they got.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMOPS_ITERATORDOMAIN_H
#define KAS_DIALECT_KAS_TRANSFORMOPS_ITERATORDOMAIN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>
#include <string>
#include <utility>

namespace kas {

/// The iterators over output and input channels of a convolution or
/// contraction, which are what `group` is about.
mlir::FailureOr<std::pair<int64_t, int64_t>>
inferChannelIterators(mlir::linalg::LinalgOp op, std::string &reason);

/// group(G): tiles the iterators `first` and `second` by a common count and
/// keeps the diagonal blocks, `floor(first * G / N_first) = floor(second * G /
/// N_second)`. At least one of them is a reduction. Iterators with one point
/// left are dropped, so that as many groups as channels give a depthwise
/// convolution.
mlir::FailureOr<mlir::linalg::LinalgOp>
groupIterators(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
               int64_t first, int64_t second, int64_t groups,
               std::string &reason);

/// Group with as many groups as both iterators have points.
mlir::FailureOr<mlir::linalg::LinalgOp>
depthwiseIterators(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
                   int64_t first, int64_t second, std::string &reason);

/// Reduces over the points from `offset` on, at most `size` of them, instead of
/// all points.
mlir::FailureOr<mlir::linalg::LinalgOp>
restrictReduction(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
                  int64_t iterator, int64_t offset, std::string &reason,
                  std::optional<int64_t> size = std::nullopt);

/// bottleneck(B): a reduction keeps its first N/B points. Of a parallel
/// iterator every B-th point is computed and stands for the B results from
/// there on, so that the shape stays: for channels that is N/B channels, each
/// repeated; for a spatial iterator a stride of B, then the nearest result.
mlir::FailureOr<mlir::linalg::LinalgOp>
bottleneckIterator(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
                   int64_t iterator, int64_t factor, std::string &reason);

/// Cuts the data along the spatial iterator into slabs that do not see each
/// other: padding is applied to each, and each has weights of its own. The
/// operation's first input is the data.
mlir::FailureOr<mlir::linalg::LinalgOp>
splitIntoSlabs(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
               int64_t iterator, int64_t slabs, std::string &reason);

/// Gives `op` new arguments of the function around it for all its inputs but
/// the first, where they are made from arguments and constants by slices,
/// reshapes, transpositions and copies alone. Each has `kas.init =
/// "kaiming(F)"` with F points of the reductions of `op`, and the name of the
/// old weight with a number; arguments that nothing reads any more go.
mlir::LogicalResult renewWeights(mlir::RewriterBase &rewriter,
                                 mlir::linalg::LinalgOp op,
                                 std::string &reason);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMOPS_ITERATORDOMAIN_H
