//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A structured operation taken apart, to be put together over other iterators.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KAS_TRANSFORMOPS_LOOPNEST_H
#define LIB_DIALECT_KAS_TRANSFORMOPS_LOOPNEST_H

#include "kas/Support/Reason.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace kas {

/// Inputs, then the init; one indexing map each.
struct LoopNest {
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::AffineMap> maps;
  llvm::SmallVector<mlir::utils::IteratorType> iterators;
  llvm::SmallVector<int64_t> sizes;

  static mlir::FailureOr<LoopNest> get(mlir::linalg::LinalgOp op,
                                       std::string &reason);

  bool isParallel(unsigned iterator) const {
    return iterators[iterator] == mlir::utils::IteratorType::parallel;
  }
  mlir::LogicalResult checkIterator(int64_t iterator,
                                    std::string &reason) const;
  /// Fails where a result of a map that `iterator` occurs in is more than the
  /// iterator itself.
  mlir::LogicalResult checkPlain(unsigned iterator, std::string &reason) const;
  /// The dimension of an operand that `iterator` alone indexes.
  std::optional<unsigned> getDimension(unsigned operand,
                                       unsigned iterator) const;

  /// The operation over the present operands, maps and iterators, with the
  /// region of `op`, which stays.
  mlir::linalg::LinalgOp build(mlir::RewriterBase &rewriter) const;
};

/// `value` with its dimension `dimension` as (`outer`, the rest).
mlir::Value splitDimension(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value value, unsigned dimension,
                           int64_t outer);

/// `value` with `dimension` and the next one as one.
mlir::Value joinDimensions(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value value, unsigned dimension);

/// `size` elements of `value` along `dimension`, from `offset` on.
mlir::Value sliceDimension(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value value, unsigned dimension,
                           int64_t offset, int64_t size, int64_t stride = 1);

/// `value` indexed by `map`, but with each result of `map` once, at its first
/// place: the diagonal along dimensions of equal results. Also the results.
std::pair<mlir::Value, llvm::SmallVector<mlir::AffineExpr>>
gatherDiagonal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
               mlir::AffineMap map);

} // namespace kas

#endif // LIB_DIALECT_KAS_TRANSFORMOPS_LOOPNEST_H
