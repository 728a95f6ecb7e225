//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fewer points of one iterator of an operator.
//
// Bottlenecks, restrictions and slabs of `kas.apply`, in primitives where one
// expresses it (docs/guide/transformations.md, "Operators"): merge, expand and
// stride thin an output out; a reduction gets a smaller size, and data is
// sliced.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "OperatorNest.h"
#include "kas/Dialect/Kas/TransformOps/OperatorDomain.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The lower padding of an unfold between concrete sizes.
static int64_t getLow(UnfoldOp unfold) {
  return unfold.getLowValue(
      [](SizeAttr size) { return *size.getConstantValue(); });
}

/// The unfold that `uses` are the window of.
static UnfoldOp getWindow(const CoordinateUses &uses) {
  auto unfold =
      uses.data ? dyn_cast<UnfoldOp>(uses.data->getOwner()) : UnfoldOp();
  return unfold && uses.data->getOperandNumber() == 1 ? unfold : UnfoldOp();
}

/// Three cases: the reduction indexes the data (slice it), is a window (change
/// the lower padding), or indexes weights alone (slice these).
FailureOr<ApplyOp> kas::restrictReduction(RewriterBase &rewriter, ApplyOp apply,
                                          int64_t iterator, int64_t offset,
                                          std::string &reason,
                                          std::optional<int64_t> wanted) {
  auto created = OperatorNest::get(rewriter, apply, reason);
  if (failed(created) || failed((*created)->checkIterator(iterator, reason)))
    return failure();
  OperatorNest &nest = **created;
  ReduceOp reduce = nest.getReduction(iterator);
  if (!reduce) // T10
    return miss(reason, "requires a reduction, got parallel iterator ",
                iterator);
  int64_t points = nest.getSize(iterator);
  int64_t size = wanted.value_or(points - offset);
  // T11
  if (offset < 0 || size < 1 || offset + size > points)
    return miss(reason, "requires a part of the ", points,
                " points of iterator ", iterator, ", got ", size, " from ",
                offset, " on");
  CoordinateUses uses = nest.getUses(reduce.getResult());
  std::optional<unsigned> dimension = nest.getDataDimension(uses);
  UnfoldOp unfold = getWindow(uses);
  // T18
  if (uses.data && !dimension && !unfold)
    return miss(reason,
                "requires a reduction that indexes the data by itself "
                "or is the window of an unfold, got one that goes to '",
                uses.data->getOwner()->getName(), "'");
  // C5: the window must keep the element at its own position.
  if (unfold && (getLow(unfold) < offset || getLow(unfold) >= offset + size))
    return miss(reason, "requires a part of the window with its point ",
                getLow(unfold), ", got ", size, " from ", offset, " on");

  rewriter.setInsertionPoint(apply);
  Location loc = apply.getLoc();
  // Element w of the new window is element w + offset of the old one.
  if (unfold)
    unfold.setLowAttr(rewriter.getI64IntegerAttr(getLow(unfold) - offset));
  if (dimension)
    nest.dataValue =
        sliceDimension(rewriter, loc, nest.dataValue, *dimension, offset, size);
  for (const auto &use : uses.weights) {
    Value &value = nest.weightValues[use.weight];
    value = sliceDimension(rewriter, loc, value, use.dimension, offset, size);
  }
  reduce.setSizeAttr(SizeAttr::getConstant(apply.getContext(), size));
  return nest.finish("part");
}

//===----------------------------------------------------------------------===//
// Output coordinates
//===----------------------------------------------------------------------===//

/// Puts `merge` of an output coordinate into blocks of `block` at the start.
/// The quotient is the block, the remainder the position in it; whoever used
/// the output gets one of the two from the caller.
static MergeOp mergeOutput(OperatorNest &nest, Value output, int64_t block) {
  nest.body.setInsertionPointToStart(&nest.op.getBody().front());
  return MergeOp::create(nest.body, nest.op.getLoc(), output,
                         SizeAttr::getConstant(nest.op.getContext(), block));
}

/// The output i is merged by the factor; its remainder is dropped, which
/// repeats each result, and factor * (i / factor) is what was i.
static ApplyOp thinOut(OperatorNest &nest, int64_t iterator, int64_t factor) {
  Value output = nest.getCoordinate(iterator);
  CoordinateUses uses = nest.getUses(output);
  Location loc = nest.op.getLoc();
  MergeOp merge = mergeOutput(nest, output, factor);
  ExpandOp::create(nest.body, loc, merge.getRemainder());
  // One per weight that has the coordinate, and one for the data.
  SmallVector<Value> copies = nest.fanOut(
      merge.getQuotient(), uses.weights.size() + (uses.data ? 1 : 0));
  for (auto [use, copy] : llvm::zip(uses.weights, copies)) {
    nest.weights[use.weight][use.dimension] = copy;
    Value &value = nest.weightValues[use.weight];
    value = sliceDimension(nest.rewriter, nest.apply.getLoc(), value,
                           use.dimension, 0, getConcreteSize(copy), factor);
  }
  if (uses.data) {
    Value strided =
        StrideOp::create(nest.body, loc, copies.back(),
                         SizeAttr::getConstant(nest.op.getContext(), factor));
    if (auto dimension = nest.getDataDimension(uses))
      nest.data[*dimension] = strided;
    uses.data->set(strided);
  }
  nest.dropShares(uses);
  return nest.finish("bottleneck" + std::to_string(factor));
}

/// Example, a dense layer y[o] = sum over c of x[c] * w[o, c], o by 4:
///   q, r = merge o by 4; expand r; the weight is indexed by q
/// so y[4*q + r] is the same for all r, and w is w[::4, :].
FailureOr<ApplyOp> kas::bottleneckIterator(RewriterBase &rewriter,
                                           ApplyOp apply, int64_t iterator,
                                           int64_t factor,
                                           std::string &reason) {
  auto nest = OperatorNest::get(rewriter, apply, reason);
  if (failed(nest) || failed((*nest)->checkIterator(iterator, reason)))
    return failure();
  int64_t points = (*nest)->getSize(iterator);
  if (factor < 1 || points % factor != 0) // T7
    return miss(reason, "requires a factor that divides the ", points,
                " points of iterator ", iterator, ", got ", factor);
  if ((*nest)->getReduction(iterator)) {
    // Destroys the copy: `restrictReduction` makes one of its own.
    nest->reset();
    return restrictReduction(rewriter, apply, iterator, 0, reason,
                             points / factor);
  }
  rewriter.setInsertionPoint(apply);
  return thinOut(**nest, iterator, factor);
}

//===----------------------------------------------------------------------===//
// Slabs
//===----------------------------------------------------------------------===//

/// Where the data is indexed by an output coordinate through strides and
/// unfolds.
/// Returns the dimension of the data. Every coordinate on the way must divide
/// into slabs, or a slab would read elements of its neighbour.
static FailureOr<unsigned> traceSlabs(const OperatorNest &nest,
                                      int64_t iterator, int64_t slabs,
                                      std::string &reason) {
  Value coordinate = nest.getCoordinate(iterator);
  while (true) {
    if (slabs < 1 || getConcreteSize(coordinate) % slabs != 0) // T14
      return miss(reason, "requires a number of slabs that divides the ",
                  getConcreteSize(coordinate), " points of a coordinate, got ",
                  slabs);
    OpOperand &use = *coordinate.use_begin();
    if (isa<YieldOp>(use.getOwner()) &&
        use.getOperandNumber() < nest.data.size())
      return use.getOperandNumber();
    bool isBase = isa<UnfoldOp>(use.getOwner()) && use.getOperandNumber() == 0;
    if (!isBase && !isa<StrideOp>(use.getOwner())) // T12
      return miss(reason,
                  "requires an iterator that goes to the data by "
                  "strides and unfolds alone, got '",
                  use.getOwner()->getName(), "'");
    coordinate = use.getOwner()->getResult(0);
  }
}

/// [slabs, ...]: each slab begins with the same weight.
static Value repeatWeight(RewriterBase &rewriter, Location loc, Value weight,
                          int64_t count) {
  auto type = cast<RankedTensorType>(weight.getType());
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  shape.insert(shape.begin(), count);
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  return linalg::BroadcastOp::create(rewriter, loc, weight, empty, int64_t(0))
      ->getResult(0);
}

/// The chain of strides and unfolds then runs over the rows of a slab, so its
/// clipping is the padding of each slab.
FailureOr<ApplyOp> kas::splitIntoSlabs(RewriterBase &rewriter, ApplyOp apply,
                                       int64_t iterator, int64_t slabs,
                                       std::string &reason) {
  auto created = OperatorNest::get(rewriter, apply, reason);
  if (failed(created) || failed((*created)->checkIterator(iterator, reason)))
    return failure();
  OperatorNest &nest = **created;
  if (nest.getReduction(iterator)) // T12
    return miss(reason, "requires a parallel iterator, got reduction ",
                iterator);
  FailureOr<unsigned> dimension = traceSlabs(nest, iterator, slabs, reason);
  if (failed(dimension))
    return failure();
  rewriter.setInsertionPoint(apply);
  Value output = nest.getCoordinate(iterator);
  OpOperand &use = *output.use_begin();
  bool isDirect = isa<YieldOp>(use.getOwner());
  MergeOp merge = mergeOutput(nest, output, nest.getSize(iterator) / slabs);
  use.set(merge.getRemainder());
  SmallVector<Value> copies =
      nest.fanOut(merge.getQuotient(), nest.weights.size() + 1);
  for (auto [index, value] : llvm::enumerate(nest.weightValues)) {
    value = repeatWeight(rewriter, apply.getLoc(), value, slabs);
    nest.weights[index].insert(nest.weights[index].begin(), copies[index]);
  }
  nest.body.setInsertionPoint(nest.op.getYield());
  Value last = isDirect ? merge.getRemainder() : nest.data[*dimension];
  nest.data[*dimension] =
      SplitOp::create(nest.body, nest.op.getLoc(), copies.back(), last);
  return nest.finish("slabs" + std::to_string(slabs));
}
