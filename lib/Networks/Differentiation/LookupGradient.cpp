//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a table look-up (embedding): adds each element of the
// result's gradient to the row that it came from.
// Look-ups are not linear in an operand of a structured operation, but in a
// tensor that the body reads by a computed position, so the gradient is a
// scatter:
//    table_gradient[position(i, j)] += gradient[i, j]
// Positions may repeat. Sequential loops add in a fixed order, for the same
// bits on any number of threads.
//
//===----------------------------------------------------------------------===//

#include "LookupGradient.h"
#include "StructuredGradient.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// The element of a table that the body yields.
/// Null if the body yields anything else.
static tensor::ExtractOp getLookup(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  return body->getTerminator()
      ->getOperand(0)
      .getDefiningOp<tensor::ExtractOp>();
}

/// Null unless `op` does nothing but look elements of one of `tables` up.
Value kas::networks::getLookupTable(linalg::LinalgOp op,
                                    const DenseSet<Value> &tables) {
  // One element of the result for each iteration, at its indices.
  if (op->getNumResults() != 1 || op.getNumReductionLoops() != 0 ||
      !op.getIndexingMapsArray().back().isIdentity() ||
      op.getBlock()->getTerminator()->getNumOperands() != 1)
    return nullptr;
  tensor::ExtractOp lookup = getLookup(op);
  if (!lookup || lookup->getBlock() != op.getBlock() ||
      !tables.contains(lookup.getTensor()))
    return nullptr;
  // The position must not depend on another element of a table.
  bool isOnly = true;
  // Steps with regions could read the table inside.
  for (Operation &step : *op.getBlock())
    if (&step != lookup)
      isOnly &= step.getNumRegions() == 0 &&
                llvm::none_of(step.getOperands(), [&](Value operand) {
                  return tables.contains(operand);
                });
  bool readsOperands = llvm::any_of(op->getOperands(), [&](Value operand) {
    return tables.contains(operand);
  });
  return isOnly && !readsOperands ? lookup.getTensor() : nullptr;
}

namespace {

/// The loops of one gradient.
class ScatterBuilder {
public:
  ScatterBuilder(linalg::LinalgOp op, Value gradient)
      : op(op), gradient(gradient), loc(op.getLoc()) {}

  /// Loops from dimension number `indices.size()` on, which add to `sum`.
  /// `indices` are those of the loops outside; returns the table's gradient
  /// after all additions, which loops carry as a tensor.
  Value emit(OpBuilder &builder, SmallVectorImpl<Value> &indices, Value sum);

private:
  /// Adds one element of the result's gradient to its position.
  Value emitElement(OpBuilder &builder, ArrayRef<Value> indices, Value sum);

  linalg::LinalgOp op;
  Value gradient;
  Location loc;
};

} // namespace

Value ScatterBuilder::emit(OpBuilder &builder, SmallVectorImpl<Value> &indices,
                           Value sum) {
  auto type = cast<RankedTensorType>(gradient.getType());
  // All loops are there.
  if (indices.size() == size_t(type.getRank()))
    return emitElement(builder, indices, sum);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto loop = scf::ForOp::create(
      builder, loc, constant(0), constant(type.getDimSize(indices.size())),
      constant(1), sum,
      [&](OpBuilder &builder, Location loc, Value index, ValueRange sums) {
        indices.push_back(index);
        Value result = emit(builder, indices, sums.front());
        indices.pop_back();
        scf::YieldOp::create(builder, loc, result);
      });
  return loop.getResult(0);
}

Value ScatterBuilder::emitElement(OpBuilder &builder, ArrayRef<Value> indices,
                                  Value sum) {
  tensor::ExtractOp lookup = getLookup(op);
  IRMapping mapping;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    // Where the operand is read in this iteration.
    SmallVector<Value> at =
        llvm::map_to_vector(map.getResults(), [&](AffineExpr result) -> Value {
          if (auto dimension = dyn_cast<AffineDimExpr>(result))
            return indices[dimension.getPosition()];
          return affine::AffineApplyOp::create(
              builder, loc, AffineMap::get(map.getNumDims(), 0, result),
              indices);
        });
    mapping.map(
        op.getMatchingBlockArgument(operand),
        Value(tensor::ExtractOp::create(builder, loc, operand->get(), at)));
  }
  // Steps without results are assertions, which the forward operation has
  // checked.
  for (Operation &step : op.getBlock()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(step))
      mapping.map(index.getResult(), indices[index.getDim()]);
    else if (&step != lookup && step.getNumResults() > 0)
      builder.clone(step, mapping);
  }
  SmallVector<Value> position =
      llvm::map_to_vector(lookup.getIndices(), [&](Value index) {
        // Positions from outside of the body are the same here.
        return mapping.lookupOrDefault(index);
      });
  Value share = tensor::ExtractOp::create(builder, loc, gradient, indices);
  Value old = tensor::ExtractOp::create(builder, loc, sum, position);
  Value added = arith::AddFOp::create(builder, loc, old, share);
  return tensor::InsertOp::create(builder, loc, added, sum, position);
}

/// Starts from zeros of the shape of the table.
Value kas::networks::emitLookupGradient(OpBuilder &builder, linalg::LinalgOp op,
                                        Value gradient) {
  Value zeros =
      makeZeros(builder, op.getLoc(), getLookup(op).getTensor().getType());
  SmallVector<Value> indices;
  return ScatterBuilder(op, gradient).emit(builder, indices, zeros);
}
