//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors whose dimensions are labelled with coordinates, and the rewrites of
// them that lowering to linalg is made of.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CONVERSION_KASTOLINALG_LABELLEDTENSOR_H
#define KAS_LIB_CONVERSION_KASTOLINALG_LABELLEDTENSOR_H

#include "kas/Conversion/Peeling.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace kas {

/// A tensor and what indexes it.
struct LabelledTensor : Labels {
  LabelledTensor() = default;
  explicit LabelledTensor(mlir::Value value) : value(value) {}

  mlir::Value value;

  llvm::ArrayRef<int64_t> getShape() const;
};

/// Emits the ops that change a labelled tensor. What makes a copy fails when
/// the copy has more than `maxElements` elements, with the reason in `reason`.
class TensorRewriter {
public:
  using Tensor = LabelledTensor;

  TensorRewriter(mlir::OpBuilder &builder, mlir::Location loc,
                 int64_t maxElements)
      : b(loc, builder), maxElements(maxElements) {}

  mlir::ImplicitLocOpBuilder &getBuilder() { return b; }
  const std::string &getReason() const { return reason; }

  /// Puts `inner size * outer + inner` in place of `coordinate`: reshapes the
  /// dimensions that it labels alone.
  void substitute(LabelledTensor &tensor, mlir::Value coordinate,
                  mlir::Value outer, mlir::Value inner);

  /// Makes `coordinate` the label of one dimension alone, by a copy when it is
  /// not.
  llvm::LogicalResult isolate(LabelledTensor &tensor, mlir::Value coordinate);

  /// Adds `low` and `high` elements of value `fill` to a dimension.
  llvm::LogicalResult pad(LabelledTensor &tensor, unsigned dim, int64_t low,
                          int64_t high, double fill);

  /// Element i becomes what was element (i + amount) mod size.
  llvm::LogicalResult rotate(LabelledTensor &tensor, unsigned dim,
                             int64_t amount);

  /// Joins the dimensions labelled `outer` and `inner`, each alone, to one
  /// labelled `coordinate`. The tensor is repeated along the one that it has
  /// not.
  llvm::LogicalResult join(LabelledTensor &tensor, mlir::Value outer,
                           mlir::Value inner, mlir::Value coordinate);

  /// A tensor of ones of the element type of `like`, indexed by `coordinate`.
  LabelledTensor createOnes(mlir::Value coordinate, const LabelledTensor &like);

private:
  llvm::LogicalResult checkCopy(llvm::ArrayRef<int64_t> shape);
  mlir::Value createEmpty(llvm::ArrayRef<int64_t> shape, mlir::Value like);
  llvm::LogicalResult repeat(LabelledTensor &tensor, unsigned position,
                             mlir::Value coordinate);
  llvm::LogicalResult moveDimension(LabelledTensor &tensor, unsigned from,
                                    unsigned to);

  mlir::ImplicitLocOpBuilder b;
  int64_t maxElements;
  std::string reason;
  /// The tensor.pad ops made so far that one operand alone uses.
  llvm::SmallPtrSet<mlir::Operation *, 4> paddings;
};

} // namespace kas

#endif // KAS_LIB_CONVERSION_KASTOLINALG_LABELLEDTENSOR_H
