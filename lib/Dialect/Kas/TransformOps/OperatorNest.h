//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator and its application taken apart, to be changed together.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KAS_TRANSFORMOPS_OPERATORNEST_H
#define LIB_DIALECT_KAS_TRANSFORMOPS_OPERATORNEST_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Support/Reason.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

/// Where one coordinate goes.
struct CoordinateUses {
  struct WeightUse {
    unsigned weight, dimension;
  };
  llvm::SmallVector<WeightUse> weights;
  /// What the data side is an operand of; null where only weights have it.
  mlir::OpOperand *data = nullptr;
  /// The `kas.share`s between.
  llvm::SmallVector<ShareOp> shares;

  bool isIn(unsigned weight) const {
    return llvm::any_of(
        weights, [&](const WeightUse &use) { return use.weight == weight; });
  }
};

/// A concrete copy of the operator of an application, which is changed, and
/// the coordinates and values of its weights. The copy goes unless `finish` is
/// called.
class OperatorNest {
public:
  static mlir::FailureOr<std::unique_ptr<OperatorNest>>
  get(mlir::RewriterBase &rewriter, ApplyOp apply, std::string &reason);
  ~OperatorNest();

  unsigned getNumIterators() const { return iterators.size(); }
  mlir::LogicalResult checkIterator(int64_t iterator,
                                    std::string &reason) const;
  mlir::Value getCoordinate(unsigned iterator) const {
    return iterators[iterator];
  }
  int64_t getSize(unsigned iterator) const {
    return getConcreteSize(iterators[iterator]);
  }
  /// Null for an output coordinate.
  ReduceOp getReduction(unsigned iterator) const {
    return iterators[iterator].getDefiningOp<ReduceOp>();
  }
  CoordinateUses getUses(mlir::Value coordinate) const;
  /// The dimension of the data that `uses` index as they are.
  std::optional<unsigned> getDataDimension(const CoordinateUses &uses) const;

  /// Removes the shares of a coordinate; then nothing uses it but what `uses`
  /// has as `data`.
  void dropShares(const CoordinateUses &uses);
  /// `count` coordinates equal to `coordinate`; the last may be transformed.
  llvm::SmallVector<mlir::Value> fanOut(mlir::Value coordinate, unsigned count);

  /// Puts the new operator and its application in place of the old ones.
  ApplyOp finish(llvm::StringRef suffix);

  mlir::RewriterBase &rewriter;
  ApplyOp apply;
  OperatorOp op;
  /// Builds in the body of `op`.
  mlir::OpBuilder body;
  /// The coordinates of the data and the weights, in place of the yield's.
  llvm::SmallVector<mlir::Value> data;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> weights;
  /// What the new application takes.
  mlir::Value dataValue;
  llvm::SmallVector<mlir::Value> weightValues;

private:
  OperatorNest(mlir::RewriterBase &rewriter, ApplyOp apply, OperatorOp op);

  llvm::SmallVector<mlir::Value> iterators;
  bool isFinished = false;
};

} // namespace kas

#endif // LIB_DIALECT_KAS_TRANSFORMOPS_OPERATORNEST_H
