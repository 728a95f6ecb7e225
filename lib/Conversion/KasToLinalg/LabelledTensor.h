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

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace kas {

/// The sum of coordinates times their coefficients. Whatever values the
/// coordinates take in their domains, the sum is in bounds of the dimension
/// that it labels; a coordinate alone with coefficient 1 has the size of it.
using Label = llvm::SmallMapVector<mlir::Value, int64_t, 2>;

/// A tensor and what indexes it.
struct LabelledTensor {
  mlir::Value value;
  llvm::SmallVector<Label> dims;

  llvm::ArrayRef<int64_t> getShape() const;
  bool mentions(mlir::Value coordinate) const;
  /// The position of the dimension with the label `coordinate` alone, when no
  /// other dimension mentions it.
  std::optional<unsigned> findSole(mlir::Value coordinate) const;
};

/// `coordinate` alone.
Label getSoleLabel(mlir::Value coordinate);
bool isSole(const Label &label, mlir::Value coordinate);

/// Emits the ops that change a labelled tensor. What makes a copy fails when
/// the copy has more than `maxElements` elements, with the reason in `reason`.
class TensorRewriter {
public:
  TensorRewriter(mlir::OpBuilder &builder, mlir::Location loc,
                 int64_t maxElements)
      : b(loc, builder), maxElements(maxElements) {}

  mlir::ImplicitLocOpBuilder &getBuilder() { return b; }
  const std::string &getReason() const { return reason; }

  /// Replaces `from` by `to` in all labels.
  static void rename(LabelledTensor &tensor, mlir::Value from, mlir::Value to,
                     int64_t factor = 1);

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

  /// A tensor of ones, indexed by `coordinate`.
  LabelledTensor createOnes(mlir::Value coordinate, mlir::Type elementType);

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
