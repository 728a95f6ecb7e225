//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fewer points of one iterator.
//
// Bottlenecks of structured operations (Turner et al., "Neural Architecture
// Search as Program Transformation Exploration", ASPLOS 2021, section 4.1).
// Reductions keep a contiguous part; parallel iterators keep every B-th point,
// whose result is repeated, so that the shape stays. Operators:
// OperatorBottleneck.cpp.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

/// The factor of `iterator` in a sum of iterators with positive factors, 0
/// where it does not occur; failure for any other expression that it occurs in.
/// Of `2 * d0 + d1` the factor of d0 is 2. A floordiv or mod of it is no sum.
static FailureOr<int64_t> getFactor(AffineExpr expr, unsigned iterator) {
  if (!expr.isFunctionOfDim(iterator))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return failure();
  if (binary.getKind() == AffineExprKind::Add) {
    FailureOr<int64_t> lhs = getFactor(binary.getLHS(), iterator);
    FailureOr<int64_t> rhs = getFactor(binary.getRHS(), iterator);
    if (failed(lhs) || failed(rhs))
      return failure();
    return *lhs + *rhs;
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !constant ||
      constant.getValue() < 1)
    return failure();
  FailureOr<int64_t> factor = getFactor(binary.getLHS(), iterator);
  if (failed(factor))
    return failure();
  return *factor * constant.getValue();
}

/// Only then does a shorter loop read a contiguous or strided slice.
static LogicalResult checkLinear(const LoopNest &nest, unsigned iterator,
                                 std::string &reason) {
  for (AffineMap map : nest.maps)
    for (AffineExpr expr : map.getResults())
      if (failed(getFactor(expr, iterator))) // T8
        return miss(reason,
                    "requires indices that are sums of iterators with "
                    "positive factors, got ",
                    expr);
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Points `offset` to `offset + size` - 1; `wanted` is the size, all of the
/// rest without it. Operands are sliced, so maps and body stay.
FailureOr<linalg::LinalgOp>
kas::restrictReduction(RewriterBase &rewriter, linalg::LinalgOp op,
                       int64_t iterator, int64_t offset, std::string &reason,
                       std::optional<int64_t> wanted) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest) || failed(nest->checkIterator(iterator, reason)))
    return failure();
  int64_t points = nest->sizes[iterator];
  int64_t size = wanted.value_or(points - offset);
  if (nest->isParallel(iterator)) // T10
    return miss(reason, "requires a reduction, got parallel iterator ",
                iterator);
  // T11
  if (offset < 0 || size < 1 || offset + size > points)
    return miss(reason, "requires a part of the ", points,
                " points of iterator ", iterator, ", got ", size, " from ",
                offset, " on");
  if (failed(checkLinear(*nest, iterator, reason)))
    return failure();
  rewriter.setInsertionPoint(op);
  for (auto [operand, map] : llvm::enumerate(nest->maps))
    for (auto [dimension, expr] : llvm::enumerate(map.getResults())) {
      // 0 for dimensions that the iterator does not index: the slice is the
      // whole.
      int64_t factor = *getFactor(expr, iterator);
      Value &value = nest->operands[operand];
      int64_t extent =
          cast<RankedTensorType>(value.getType()).getDimSize(dimension);
      // The points that go on either side.
      value =
          sliceDimension(rewriter, op.getLoc(), value, dimension,
                         factor * offset, extent - factor * (points - size));
    }
  linalg::LinalgOp result = nest->build(rewriter);
  rewriter.replaceOp(op, result->getResults());
  return result;
}

//===----------------------------------------------------------------------===//
// Parallel iterators
//===----------------------------------------------------------------------===//

/// `value` with each index of `dimension` repeated `factor` times.
/// [a, b] by 2 -> [a, a, b, b]: a broadcast along a new inner dimension,
/// joined.
static Value repeatAlong(RewriterBase &rewriter, Location loc, Value value,
                         unsigned dimension, int64_t factor) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  shape.insert(shape.begin() + dimension + 1, factor);
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  Value repeated = linalg::BroadcastOp::create(rewriter, loc, value, empty,
                                               int64_t(dimension + 1))
                       ->getResult(0);
  return joinDimensions(rewriter, loc, repeated, dimension);
}

/// Iterator i runs over N / factor points and stands for i * factor: dimensions
/// that it indexes alone are sliced with that stride (weights, the result), in
/// other indices (data of a convolution) it is multiplied.
static linalg::LinalgOp thinOut(RewriterBase &rewriter, LoopNest &nest,
                                unsigned iterator, int64_t factor) {
  Location loc = nest.op->getLoc();
  unsigned resultDimension =
      *nest.getDimension(nest.operands.size() - 1, iterator);
  AffineExpr dim = rewriter.getAffineDimExpr(iterator);
  for (unsigned operand = 0; operand < nest.operands.size(); ++operand) {
    SmallVector<AffineExpr> exprs;
    for (auto [dimension, expr] :
         llvm::enumerate(nest.maps[operand].getResults())) {
      if (expr != dim) {
        exprs.push_back(expr.replace(dim, dim * factor));
        continue;
      }
      exprs.push_back(expr);
      nest.operands[operand] =
          sliceDimension(rewriter, loc, nest.operands[operand], dimension, 0,
                         nest.sizes[iterator] / factor, factor);
    }
    nest.maps[operand] = AffineMap::get(nest.maps[operand].getNumDims(), 0,
                                        exprs, rewriter.getContext());
  }
  linalg::LinalgOp result = nest.build(rewriter);
  rewriter.replaceOp(nest.op, repeatAlong(rewriter, loc, result->getResult(0),
                                          resultDimension, factor));
  return result;
}

FailureOr<linalg::LinalgOp>
kas::bottleneckIterator(RewriterBase &rewriter, linalg::LinalgOp op,
                        int64_t iterator, int64_t factor, std::string &reason) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest) || failed(nest->checkIterator(iterator, reason)))
    return failure();
  int64_t points = nest->sizes[iterator];
  if (factor < 1 || points % factor != 0) // T7
    return miss(reason, "requires a factor that divides the ", points,
                " points of iterator ", iterator, ", got ", factor);
  if (!nest->isParallel(iterator))
    return restrictReduction(rewriter, op, iterator, 0, reason,
                             points / factor);
  if (failed(checkLinear(*nest, iterator, reason)))
    return failure();
  // T9
  if (!nest->getDimension(nest->operands.size() - 1, iterator))
    return miss(reason, "requires a dimension of the result that iterator ",
                iterator, " indexes alone");
  rewriter.setInsertionPoint(op);
  return thinOut(rewriter, *nest, iterator, factor);
}
