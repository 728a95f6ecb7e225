//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The terms that lowered code computes: reads it from the result back to the
// inputs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_LOWEREDCODE_H
#define KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_LOWEREDCODE_H

#include "Terms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kas::lowering {

/// Reads code on tensors (affine loops on buffers, linalg and tensor ops,
/// concrete operators). Each method fails with a reason for code that it does
/// not know.
class LoweredCode {
public:
  LoweredCode(mlir::ValueRange inputs, Dims &dims)
      : inputs(inputs), dims(dims) {}

  /// The element of `tensor` at `indices`.
  llvm::FailureOr<Terms> getElement(mlir::Value tensor,
                                    llvm::ArrayRef<mlir::AffineExpr> indices);

  const std::string &getReason() const { return reason; }

private:
  using Indices = llvm::ArrayRef<mlir::AffineExpr>;
  using MaybeTerms = llvm::FailureOr<Terms>;

  // Tensors: TensorCode.cpp.
  MaybeTerms getConstant(mlir::Attribute value);
  MaybeTerms getPadded(mlir::tensor::PadOp pad, Indices indices);
  MaybeTerms getExtracted(mlir::tensor::ExtractSliceOp slice, Indices indices);
  MaybeTerms getInserted(mlir::tensor::InsertSliceOp insert, Indices indices);
  MaybeTerms getReshaped(mlir::Value source, mlir::RankedTensorType result,
                         Indices indices);
  MaybeTerms getApplied(ApplyOp apply, Indices indices);
  MaybeTerms getStructured(mlir::linalg::LinalgOp op, unsigned result,
                           Indices indices);
  MaybeTerms getReduced(mlir::linalg::LinalgOp op, unsigned result,
                        llvm::ArrayRef<Loop> loops, Indices indices);

  // Scalars and loops: ScalarCode.cpp.
  MaybeTerms getScalar(mlir::Value value);
  MaybeTerms getSum(mlir::arith::AddFOp sum);
  MaybeTerms getProduct(mlir::arith::MulFOp product);
  MaybeTerms getQuotient(mlir::arith::DivFOp quotient);
  MaybeTerms getSelected(mlir::arith::SelectOp select);
  MaybeTerms getLoaded(mlir::affine::AffineLoadOp load);
  MaybeTerms getStored(mlir::Value buffer, Indices indices,
                       mlir::Operation *reader);
  /// Where a store writes the elements that are read.
  struct Written {
    Conditions where;
    bool isPossible = true;
  };
  /// Gives the loops around `store`, and `iv`, the values at which it writes
  /// the element at `indices`.
  mlir::LogicalResult
  addNest(Written &written, mlir::affine::AffineStoreOp store, Indices indices);
  mlir::LogicalResult addLoop(Written &written,
                              mlir::affine::AffineStoreOp store, mlir::Value iv,
                              mlir::AffineMap lower, mlir::AffineMap upper,
                              int64_t step, Indices indices);
  MaybeTerms getLoopResult(mlir::affine::AffineForOp loop, unsigned result);
  MaybeTerms getBranchResult(mlir::affine::AffineIfOp branch, unsigned result);
  /// The value of `value` where `flag` is true; it does not exist elsewhere.
  MaybeTerms getExisting(mlir::Value value, mlir::Value flag);
  MaybeTerms getExistingOfLoop(mlir::affine::AffineForOp loop, unsigned value,
                               unsigned flag);
  /// Makes the induction variable of `loop` a new dimension.
  llvm::FailureOr<Loop> enter(mlir::affine::AffineForOp loop, bool isMax);
  llvm::FailureOr<Conditions> getCondition(mlir::affine::AffineIfOp branch);

  /// Reduces what is added to or maximized with `accumulator` by `yielded`.
  MaybeTerms reduce(mlir::Value yielded, mlir::Value accumulator,
                    llvm::MutableArrayRef<Loop> loops,
                    llvm::function_ref<MaybeTerms()> getInitial);
  MaybeTerms sum(Terms value, llvm::ArrayRef<Loop> loops);
  MaybeTerms maximize(Terms value, llvm::ArrayRef<Loop> loops);

  llvm::FailureOr<mlir::AffineExpr> getIndex(mlir::Value value);
  /// The results of `map` on index values; divisors must be positive constants.
  llvm::FailureOr<llvm::SmallVector<mlir::AffineExpr>>
  applyMap(mlir::AffineMap map, mlir::ValueRange operands);
  llvm::FailureOr<llvm::SmallVector<mlir::AffineExpr>>
  substitute(mlir::ArrayRef<mlir::AffineExpr> exprs, unsigned numDims,
             llvm::ArrayRef<mlir::AffineExpr> values);

  /// Counts what is read: values that are used often would take too long.
  mlir::LogicalResult countStep();
  mlir::LogicalResult fail(const llvm::Twine &text);
  mlir::LogicalResult failAt(mlir::Value value, const llvm::Twine &text);

  mlir::ValueRange inputs;
  Dims &dims;
  std::string reason;
  unsigned numSteps = 0;
  /// The index values of loops and branches that are open.
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> indexValues;
  /// The accumulators of reductions that are open.
  llvm::DenseSet<mlir::Value> accumulators;
  /// What arguments of linalg bodies read: an element, or a scalar.
  struct Read {
    mlir::Value source;
    llvm::SmallVector<mlir::AffineExpr> indices;
  };
  llvm::DenseMap<mlir::Value, Read> reads;
};

} // namespace kas::lowering

#endif // KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_LOWEREDCODE_H
