//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A structured operation as operands, maps and iterators that transformations
// take apart and put together again.
// Transformations change operands, maps and iterators of the copy and `build` a
// `linalg.generic` with the old body; so named ops need no cases of their own.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

/// Nothing is changed. `linalg.index` would see the new iterators.
FailureOr<LoopNest> LoopNest::get(linalg::LinalgOp op, std::string &reason) {
  // T1
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1)
    return miss(reason,
                "requires an operation on tensors with one result, got ",
                op->getNumResults(), " results");
  if (op.hasIndexSemantics())
    return miss(reason, "requires a body without 'linalg.index'");
  LoopNest nest;
  nest.op = op;
  nest.operands = llvm::to_vector(op->getOperands());
  nest.maps = op.getIndexingMapsArray();
  nest.iterators = op.getIteratorTypesArray();
  nest.sizes = op.getStaticLoopRanges();
  if (llvm::any_of(nest.sizes, ShapedType::isDynamic))
    return miss(reason, "requires static shapes");
  return nest;
}

/// Numbers come from scripts and parameters.
LogicalResult LoopNest::checkIterator(int64_t iterator,
                                      std::string &reason) const {
  if (iterator >= 0 && iterator < int64_t(sizes.size())) // T2
    return success();
  return miss(reason, "requires an iterator from 0 to ", sizes.size() - 1,
              ", got ", iterator);
}

/// T5: an iterator in a sum (a window) cannot be cut into groups by a reshape.
LogicalResult LoopNest::checkPlain(unsigned iterator,
                                   std::string &reason) const {
  // T5
  for (AffineMap map : maps)
    for (AffineExpr expr : map.getResults())
      if (expr.isFunctionOfDim(iterator) && !isa<AffineDimExpr>(expr))
        return miss(reason, "requires dimensions that iterator ", iterator,
                    " indexes alone, got ", expr);
  return success();
}

/// Nothing when it only occurs in sums, or not at all.
std::optional<unsigned> LoopNest::getDimension(unsigned operand,
                                               unsigned iterator) const {
  return maps[operand].getResultPosition(
      getAffineDimExpr(iterator, maps[operand].getContext()));
}

/// At the insertion point; extents follow from the operands' shapes.
linalg::LinalgOp LoopNest::build(RewriterBase &rewriter) const {
  Value init = operands.back();
  auto generic = linalg::GenericOp::create(
      rewriter, op->getLoc(), init.getType(), ArrayRef(operands).drop_back(),
      init, maps, iterators);
  rewriter.cloneRegionBefore(op->getRegion(0), generic.getRegion(),
                             generic.getRegion().begin());
  return generic;
}

//===----------------------------------------------------------------------===//
// Dimensions of tensors
//===----------------------------------------------------------------------===//

/// Every dimension by itself, but for `dimension` and the next one.
static SmallVector<ReassociationIndices> getReassociation(unsigned rank,
                                                          unsigned dimension) {
  SmallVector<ReassociationIndices> result;
  for (unsigned index = 0; index < rank; ++index)
    if (index == dimension + 1)
      result.back().push_back(index);
    else
      result.push_back({index});
  return result;
}

/// `outer` must divide the dimension; no data moves.
Value kas::splitDimension(OpBuilder &builder, Location loc, Value value,
                          unsigned dimension, int64_t outer) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  int64_t inner = shape[dimension] / outer;
  shape[dimension] = outer;
  shape.insert(shape.begin() + dimension + 1, inner);
  return tensor::ExpandShapeOp::create(
      builder, loc, type.clone(shape), value,
      getReassociation(shape.size(), dimension));
}

Value kas::joinDimensions(OpBuilder &builder, Location loc, Value value,
                          unsigned dimension) {
  unsigned rank = cast<RankedTensorType>(value.getType()).getRank();
  return tensor::CollapseShapeOp::create(builder, loc, value,
                                         getReassociation(rank, dimension));
}

/// The value itself when the slice is all of it.
Value kas::sliceDimension(OpBuilder &builder, Location loc, Value value,
                          unsigned dimension, int64_t offset, int64_t size,
                          int64_t stride) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dimension) == size)
    return value;
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t extent : type.getShape())
    sizes.push_back(builder.getIndexAttr(extent));
  offsets[dimension] = builder.getIndexAttr(offset);
  sizes[dimension] = builder.getIndexAttr(size);
  strides[dimension] = builder.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(builder, loc, value, offsets, sizes,
                                        strides);
}

/// Indexed by (g, i, g, j): the copy is [g, i, j], read at [g, i, g, j].
std::pair<Value, SmallVector<AffineExpr>>
kas::gatherDiagonal(OpBuilder &builder, Location loc, Value value,
                    AffineMap map) {
  SmallVector<AffineExpr> kept;
  llvm::SmallDenseSet<AffineExpr> seen;
  for (AffineExpr expr : map.getResults())
    if (seen.insert(expr).second)
      kept.push_back(expr);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> sources;
  for (auto [index, expr] : llvm::enumerate(kept)) {
    sources.push_back(builder.getAffineDimExpr(index));
    shape.push_back(type.getDimSize(*map.getResultPosition(expr)));
  }
  SmallVector<AffineExpr> reads;
  for (AffineExpr expr : map.getResults())
    reads.push_back(sources[llvm::find(kept, expr) - kept.begin()]);
  Value empty =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  SmallVector<utils::IteratorType> types(kept.size(),
                                         utils::IteratorType::parallel);
  auto gather = linalg::GenericOp::create(
      builder, loc, type.clone(shape), value, empty,
      ArrayRef<AffineMap>{
          AffineMap::get(kept.size(), 0, reads, builder.getContext()),
          builder.getMultiDimIdentityMap(kept.size())},
      types, [](OpBuilder &builder, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(builder, loc, arguments.front());
      });
  return {gather.getResult(0), kept};
}
