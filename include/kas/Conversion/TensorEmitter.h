//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structured operations over the dimensions of tensors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_TENSOREMITTER_H
#define KAS_CONVERSION_TENSOREMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace kas {

/// A tensor of the result's element type that lacks some dimensions, and these
/// dimensions.
using TensorWithoutDims = std::pair<mlir::Value, llvm::SmallVector<unsigned>>;

/// Emits structured operations over the dimensions of one tensor, of static
/// shape and floating-point elements. Operands and result have all of its
/// dimensions but some.
class TensorEmitter {
public:
  /// Emits what becomes of one element of each input.
  using BodyFn = llvm::function_ref<mlir::Value(
      mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

  TensorEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                mlir::RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}

  /// `body` of the elements of `inputs`.
  mlir::Value map(llvm::ArrayRef<TensorWithoutDims> inputs, BodyFn body);
  /// Sums over the dimensions `dropped` of `body` of the elements of `inputs`,
  /// which begin with zero.
  mlir::Value sum(llvm::ArrayRef<TensorWithoutDims> inputs,
                  llvm::ArrayRef<unsigned> dropped, BodyFn body);
  /// Emits what becomes of one element of each input for each of some results.
  using BodiesFn = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;
  /// `count` such sums in one pass, with their terms in any order, so that
  /// vectors add up along the innermost dimension, too.
  llvm::SmallVector<mlir::Value> sums(unsigned count,
                                      llvm::ArrayRef<TensorWithoutDims> inputs,
                                      llvm::ArrayRef<unsigned> dropped,
                                      BodiesFn body);
  /// The largest of them.
  mlir::Value maximum(llvm::ArrayRef<TensorWithoutDims> inputs,
                      llvm::ArrayRef<unsigned> dropped, BodyFn body);
  /// The sum over all dimensions; `inputs` have all of them.
  mlir::Value sum(mlir::ValueRange inputs, BodyFn body);

private:
  mlir::AffineMap getMap(llvm::ArrayRef<unsigned> dropped) const;
  llvm::SmallVector<mlir::utils::IteratorType>
  getIterators(llvm::ArrayRef<unsigned> dropped) const;
  /// A tensor without the dimensions `dropped` whose elements are `value`.
  mlir::Value fill(llvm::ArrayRef<unsigned> dropped, llvm::APFloat value);
  mlir::Value reduce(llvm::ArrayRef<TensorWithoutDims> inputs,
                     llvm::ArrayRef<unsigned> dropped, bool isMaximum,
                     BodyFn body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType type;
};

/// What bodies are made of: operations on floats of one type.
namespace scalars {
mlir::Value makeConstant(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Type type, double value);
mlir::Value multiply(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value a, mlir::Value b);
mlir::Value scale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                  double factor);
} // namespace scalars

} // namespace kas

#endif // KAS_CONVERSION_TENSOREMITTER_H
