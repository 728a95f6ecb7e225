//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions with weights of their own for each slab of the data.
//
// Sequence 1 of Turner et al. (section 7.3): the data is cut into slabs along a
// spatial dimension, each padded by itself and convolved with weights of its
// own.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kas;

namespace {

/// The slab becomes a parallel iterator before `iterator`, which is
/// shorter.
class SlabSplitter {
public:
  SlabSplitter(RewriterBase &rewriter, LoopNest &nest, unsigned iterator,
               int64_t slabs, std::string &reason)
      : rewriter(rewriter), nest(nest), iterator(iterator), slabs(slabs),
        reason(reason) {}

  LogicalResult check();
  linalg::LinalgOp rewrite();

private:
  LogicalResult checkOperands();
  LogicalResult checkPadding();
  LogicalResult checkSizes();

  Value splitData();
  Value repeatWeight(Value weight);
  /// The expressions of a map over the new iterators: the slab comes before
  /// `iterator`.
  SmallVector<AffineExpr> shift(AffineMap map) const;

  int64_t getPadding(ArrayRef<OpFoldResult> amounts) const {
    return *getConstantIntValue(amounts[dataDimension]);
  }

  RewriterBase &rewriter;
  LoopNest &nest;
  unsigned iterator;
  int64_t slabs;
  std::string &reason;
  /// The dimension of the data that the windows move along.
  unsigned dataDimension = 0;
  /// The padding of the data, null without one; its value and what it pads.
  tensor::PadOp pad;
  Value padding;
  Value source;
};

} // namespace

// T12
/// A convolution: the data is indexed by the iterator and a window, the result
/// by the iterator alone, weights not at all.
LogicalResult SlabSplitter::checkOperands() {
  if (!nest.isParallel(iterator))
    return miss(reason, "requires a parallel iterator, got reduction ",
                iterator);
  std::optional<unsigned> found;
  for (auto [dimension, expr] : llvm::enumerate(nest.maps[0].getResults()))
    if (expr.isFunctionOfDim(iterator)) {
      if (found)
        return miss(reason,
                    "requires one dimension of the first input that "
                    "iterator ",
                    iterator, " indexes, got another one");
      found = dimension;
    }
  if (!found || !nest.getDimension(nest.operands.size() - 1, iterator))
    return miss(reason,
                "requires an iterator that indexes the first input "
                "and, alone, the result, got ",
                iterator);
  dataDimension = *found;
  for (AffineMap map : ArrayRef(nest.maps).drop_front().drop_back())
    if (map.isFunctionOfDim(iterator))
      return miss(reason, "requires weights that iterator ", iterator,
                  " does not index, got ", AffineMapAttr::get(map));
  return success();
}

// T13
/// Padding inside of an operand is redone per slab, so its amounts must be
/// known and it must not crop.
LogicalResult SlabSplitter::checkPadding() {
  source = nest.operands[0];
  pad = source.getDefiningOp<tensor::PadOp>();
  if (!pad)
    return success();
  padding = pad.getConstantPaddingValue();
  if (!padding || pad.getResultType().getRank() == 0 ||
      llvm::any_of(pad.getMixedLowPad(),
                   [](OpFoldResult amount) {
                     return getConstantIntValue(amount).value_or(-1) < 0;
                   }) ||
      llvm::any_of(pad.getMixedHighPad(), [](OpFoldResult amount) {
        return getConstantIntValue(amount).value_or(-1) < 0;
      }))
    return miss(reason, "requires static padding with one value");
  source = pad.getSource();
  return success();
}

// T14
/// T14 asks for "same" padding: a slab of input / slabs elements must be enough
/// for output / slabs results.
LogicalResult SlabSplitter::checkSizes() {
  int64_t input =
      cast<RankedTensorType>(source.getType()).getDimSize(dataDimension);
  int64_t output = nest.sizes[iterator];
  for (int64_t size : {input, output})
    if (slabs < 1 || size % slabs != 0)
      return miss(reason, "requires a number of slabs that divides the ", input,
                  " inputs and ", output, " outputs, got ", slabs);
  // The largest index that a slab reads.
  // Indices are sums with positive factors, so they are largest where all
  // iterators are.
  SmallVector<AffineExpr> last;
  for (auto [index, size] : llvm::enumerate(nest.sizes))
    last.push_back(rewriter.getAffineConstantExpr(
        (index == iterator ? size / slabs : size) - 1));
  auto bound = dyn_cast<AffineConstantExpr>(
      nest.maps[0].getResult(dataDimension).replaceDims(last));
  int64_t padded = input / slabs;
  if (pad)
    padded +=
        getPadding(pad.getMixedLowPad()) + getPadding(pad.getMixedHighPad());
  if (!bound || bound.getValue() >= padded)
    return miss(reason, "requires padding by which ", input / slabs,
                " inputs give ", output / slabs, " outputs");
  return success();
}

LogicalResult SlabSplitter::check() {
  return failure(failed(checkOperands()) || failed(checkPadding()) ||
                 failed(checkSizes()));
}

/// [H] -> [slabs, H / slabs], then padded: each slab has zeros at both ends.
Value SlabSplitter::splitData() {
  Location loc = nest.op->getLoc();
  Value value = splitDimension(rewriter, loc, source, dataDimension, slabs);
  if (!pad)
    return value;
  SmallVector<OpFoldResult> low = pad.getMixedLowPad();
  SmallVector<OpFoldResult> high = pad.getMixedHighPad();
  for (auto *amounts : {&low, &high})
    amounts->insert(amounts->begin() + dataDimension, rewriter.getIndexAttr(0));
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (auto [size, before, after] : llvm::zip_equal(type.getShape(), low, high))
    shape.push_back(size + *getConstantIntValue(before) +
                    *getConstantIntValue(after));
  return tensor::PadOp::create(rewriter, loc, type.clone(shape), value, low,
                               high, padding);
}

/// Copies for now; `new_weights` makes them independent.
Value SlabSplitter::repeatWeight(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  shape.insert(shape.begin(), slabs);
  Location loc = nest.op->getLoc();
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  return linalg::BroadcastOp::create(rewriter, loc, weight, empty, int64_t(0))
      ->getResult(0);
}

SmallVector<AffineExpr> SlabSplitter::shift(AffineMap map) const {
  SmallVector<AffineExpr> dims;
  for (unsigned index = 0; index < map.getNumDims(); ++index)
    dims.push_back(rewriter.getAffineDimExpr(index + (index >= iterator)));
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return expr.replaceDims(dims);
  });
}

/// Data and result split a dimension, weights get one in front; each map gets
/// the slab there. The result is joined again.
linalg::LinalgOp SlabSplitter::rewrite() {
  Location loc = nest.op->getLoc();
  unsigned result = nest.operands.size() - 1;
  unsigned resultDimension = *nest.getDimension(result, iterator);
  for (unsigned operand = 0; operand <= result; ++operand) {
    SmallVector<AffineExpr> exprs = shift(nest.maps[operand]);
    Value &value = nest.operands[operand];
    unsigned dimension = 0;
    if (operand == 0) {
      value = splitData();
      dimension = dataDimension;
    } else if (operand == result) {
      value = splitDimension(rewriter, loc, value, resultDimension, slabs);
      dimension = resultDimension;
    } else {
      value = repeatWeight(value);
    }
    exprs.insert(exprs.begin() + dimension,
                 rewriter.getAffineDimExpr(iterator));
    nest.maps[operand] =
        AffineMap::get(nest.sizes.size() + 1, 0, exprs, rewriter.getContext());
  }
  nest.iterators.insert(nest.iterators.begin() + iterator,
                        utils::IteratorType::parallel);
  linalg::LinalgOp generic = nest.build(rewriter);
  rewriter.replaceOp(
      nest.op,
      joinDimensions(rewriter, loc, generic->getResult(0), resultDimension));
  return generic;
}

FailureOr<linalg::LinalgOp> kas::splitIntoSlabs(RewriterBase &rewriter,
                                                linalg::LinalgOp op,
                                                int64_t iterator, int64_t slabs,
                                                std::string &reason) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest) || failed(nest->checkIterator(iterator, reason)))
    return failure();
  SlabSplitter splitter(rewriter, *nest, iterator, slabs, reason);
  if (failed(splitter.check()))
    return failure();
  rewriter.setInsertionPoint(op);
  return splitter.rewrite();
}
