//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "../../Common/SumOfProducts.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

bool kas::codegen::isContraction(linalg::GenericOp op) {
  if (!isSumOfProducts(op))
    return false;
  for (Value operand : op->getOperands())
    if (auto shaped = dyn_cast<ShapedType>(operand.getType());
        !shaped ||
        !isa<Float32Type, Float16Type, BFloat16Type>(shaped.getElementType()))
      return false;
  if (!getElementTypeOrSelf(op.getResult(0).getType()).isF32())
    return false;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return map.isProjectedPermutation() &&
         map.getNumResults() == op.getNumParallelLoops();
}

std::optional<ContractionProblem>
ContractionProblem::get(linalg::GenericOp op) {
  if (!isContraction(op) ||
      !TensorAccess::get(*op.getDpsInitOperand(0)).isZero())
    return std::nullopt;
  SmallVector<TensorAccess> accesses;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    TensorAccess access = TensorAccess::get(*operand);
    if (!access.source || !access.hasZeroFill())
      return std::nullopt;
    accesses.push_back(std::move(access));
  }

  ContractionProblem result;
  Coordinates &coordinates = result.problem.coordinates;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<AffineExpr> axisOfLoop(extents.size());
  auto addAxis = [&](unsigned loop, std::optional<ReduceKind> kind) {
    axisOfLoop[loop] =
        getAffineDimExpr(coordinates.axes.size(), op.getContext());
    coordinates.axes.push_back({extents[loop], kind, Value()});
  };
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (AffineExpr expr : map.getResults())
    addAxis(cast<AffineDimExpr>(expr).getPosition(), std::nullopt);
  coordinates.numOutputs = coordinates.axes.size();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      addAxis(loop, ReduceKind::Sum);

  // Neighbouring columns of the output are neighbours in the data.
  auto dependsOnLast = [&](const TensorAccess &access) {
    for (unsigned axis = coordinates.numOutputs; axis-- > 0;)
      if (coordinates.axes[axis].extent > 1) {
        unsigned loop = cast<AffineDimExpr>(map.getResult(axis)).getPosition();
        return llvm::any_of(access.indices, [&](AffineExpr expr) {
          return expr.isFunctionOfDim(loop);
        });
      }
    return false;
  };
  auto data = llvm::find_if(accesses, dependsOnLast);
  if (data != accesses.end())
    std::rotate(accesses.begin(), data, data + 1);

  for (TensorAccess &access : accesses) {
    SmallVector<AffineExpr> indices;
    for (AffineExpr expr : access.indices)
      indices.push_back(expr.replaceDims(axisOfLoop));
    for (const Guard &guard : access.guards)
      coordinates.guards.push_back(
          {guard.expr.replaceDims(axisOfLoop), guard.extent});
    ArrayRef<int64_t> shape =
        cast<ShapedType>(access.source.getType()).getShape();
    if (result.inputs.empty()) {
      coordinates.data = std::move(indices);
      result.problem.data.assign(shape.begin(), shape.end());
    } else {
      coordinates.weights.push_back(std::move(indices));
      result.problem.weights.emplace_back(shape);
    }
    result.inputs.push_back(access.source);
  }
  result.problem.output.assign(
      cast<ShapedType>(op.getResult(0).getType()).getShape());
  return result;
}
