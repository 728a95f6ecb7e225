//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How an operand is read in terms of loops: follows views, pads and slices back
// to the tensor that is read, with the guards that padding adds.
// Example: a convolution reads `pad(transpose(x))` at `d2 + d4`. The tracer
// turns that into a read of `x` at `d2 + d4 - 1` in its own order of
// dimensions, with the guard `0 <= d2 + d4 - 1 < size`. No view is ever
// computed. Views whose offsets or strides are not static end the trace: the
// kernel then reads their result.
//
//===----------------------------------------------------------------------===//

#include "TensorAccess.h"
#include "KernelProblem.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Goes from a value to its source, one view after another.
class AccessTracer {
public:
  /// `loops` are the extents of the loops, which bound the dimensions of all
  /// expressions.
  AccessTracer(TensorAccess &access, ArrayRef<int64_t> loops)
      : access(access),
        context(cast<ShapedType>(access.source.getType()).getContext()) {
    for (int64_t extent : loops)
      ranges.push_back({0, extent - 1});
  }

  /// Follows views until a value that none makes, or one that is the same
  /// everywhere.
  void trace() {
    simplify();
    while (Operation *op = access.source.getDefiningOp()) {
      if (!step(op))
        return;
      simplify();
    }
  }

private:
  /// Each replaces the source by the operand of a view and the indices by those
  /// in the operand. False, and nothing changed, where that is impossible.
  /// `stepPad` accept paddings of different values that never meet.
  bool step(Operation *op);
  bool stepPad(tensor::PadOp pad);
  bool stepSlice(tensor::ExtractSliceOp slice);
  /// The value is the same everywhere.
  bool fillAll(Attribute fill);

  /// Runs after each step. Guards that ranges prove disappear, so that
  /// `stepPad` does not refuse another padding value for a padding that is
  /// never read.
  void simplify() {
    for (AffineExpr &expr : access.indices)
      expr = simplifyInRanges(expr, ranges);
    for (Guard &guard : access.guards)
      guard.expr = simplifyInRanges(guard.expr, ranges);
    llvm::erase_if(access.guards, [&](const Guard &guard) {
      Interval range = getInterval(guard.expr, ranges);
      return range.lower >= 0 && range.upper < guard.extent;
    });
  }

  TensorAccess &access;
  MLIRContext *context;
  /// Bounds of the loops, dimension i of all expressions.
  SmallVector<Interval> ranges;
};

} // namespace

bool AccessTracer::fillAll(Attribute fill) {
  auto typed = dyn_cast_if_present<TypedAttr>(fill);
  // Elements outside of an earlier padding have its value: only if both values
  // agree is there one value for all.
  if (!typed || (!access.guards.empty() && access.fill != typed))
    return false;
  access.source = Value();
  access.fill = typed;
  access.indices.clear();
  access.guards.clear();
  return true;
}

bool AccessTracer::stepPad(tensor::PadOp pad) {
  Value padding = pad.getConstantPaddingValue();
  TypedAttr fill;
  // One access has one `fill`, so nested paddings must agree.
  if (!padding || !matchPattern(padding, m_Constant(&fill)) ||
      (!access.guards.empty() && access.fill != fill))
    return false;
  SmallVector<int64_t> lows, highs;
  for (auto [amounts, list] : {std::pair(pad.getMixedLowPad(), &lows),
                               {pad.getMixedHighPad(), &highs}})
    for (OpFoldResult amount : amounts) {
      std::optional<int64_t> constant = getConstantIntValue(amount);
      if (!constant)
        return false;
      list->push_back(*constant);
    }
  ArrayRef<int64_t> shape = pad.getSourceType().getShape();
  // The index in the source; a dimension without padding needs no guard.
  for (auto [index, low, high, size] :
       llvm::zip_equal(access.indices, lows, highs, shape)) {
    index = index - low;
    if (low != 0 || high != 0)
      access.guards.push_back({index, size});
  }
  access.fill = fill;
  access.source = pad.getSource();
  return true;
}

bool AccessTracer::stepSlice(tensor::ExtractSliceOp slice) {
  if (llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic))
    return false;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  SmallVector<AffineExpr> indices;
  unsigned next = 0;
  for (auto [i, offset, stride] :
       llvm::enumerate(slice.getStaticOffsets(), slice.getStaticStrides())) {
    AffineExpr index =
        // A rank-reducing slice: a dropped dimension has one element, index 0.
        dropped[i] ? getAffineConstantExpr(0, context) : access.indices[next++];
    indices.push_back(index * stride + offset);
  }
  access.indices = std::move(indices);
  access.source = slice.getSource();
  return true;
}

bool AccessTracer::step(Operation *op) {
  // Indices in the operand of the view, computed from those in its result.
  SmallVector<AffineExpr> indices;
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    Attribute value;
    return matchPattern(fill.value(), m_Constant(&value)) && fillAll(value);
  }
  // Any value will do for what is not initialized; zero lets a contraction
  // begin with it.
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return fillAll(
        OpBuilder(context).getZeroAttr(empty.getType().getElementType()));
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return constant.isSplat() && fillAll(constant.getSplatValue<Attribute>());
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return stepPad(pad);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return stepSlice(slice);
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    indices.resize(access.indices.size());
    for (auto [i, source] : llvm::enumerate(transpose.getPermutation()))
      indices[source] = access.indices[i];
  } else if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op)) {
    for (auto [i, index] : llvm::enumerate(access.indices))
      if (!llvm::is_contained(broadcast.getDimensions(),
                              static_cast<int64_t>(i)))
        indices.push_back(index);
  } else if (isa<linalg::CopyOp>(op)) {
    indices = access.indices;
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    // [i * n + j] of the result is [i, j] of the operand.
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    // Groups follow each other; upstream's verifier cuts their numbers to 32
    // bits, so that they may be larger than the rank.
    int64_t first = 0;
    for (auto [index, group] :
         llvm::zip_equal(access.indices, collapse.getReassociationIndices())) {
      indices.append(delinearize(index, shape.slice(first, group.size())));
      first += group.size();
    }
    // All dimensions have one element.
    indices.resize(shape.size(), getAffineConstantExpr(0, context));
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    // The inverse: [i, j] of the result is [i * n + j] of the operand.
    ArrayRef<int64_t> shape = expand.getResultType().getShape();
    int64_t first = 0;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      indices.push_back(
          linearize(ArrayRef(access.indices).slice(first, group.size()),
                    shape.slice(first, group.size()), context));
      first += group.size();
    }
  } else {
    return false;
  }
  access.source = op->getOperand(0);
  access.indices = std::move(indices);
  return true;
}

TensorAccess TensorAccess::get(Value value, AffineMap map,
                               ArrayRef<int64_t> loops) {
  TensorAccess access;
  access.source = value;
  access.indices.assign(map.getResults().begin(), map.getResults().end());
  AccessTracer(access, loops).trace();
  return access;
}

TensorAccess TensorAccess::get(OpOperand &operand) {
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  // A scalar operand: a constant is a fill, another value is read as it is.
  if (!isa<ShapedType>(operand.get().getType())) {
    TensorAccess access;
    if (!matchPattern(operand.get(), m_Constant(&access.fill)))
      access.source = operand.get();
    return access;
  }
  return get(operand.get(), map, op.getStaticLoopRanges());
}

bool TensorAccess::hasZeroFill() const {
  return !fill || matchPattern(fill, m_AnyZeroFloat());
}

bool TensorAccess::isZero() const {
  return !source && fill && matchPattern(fill, m_AnyZeroFloat());
}

bool kas::codegen::isReshape(Operation *op) {
  return isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
}

bool kas::codegen::isTensorView(Operation *op) {
  return isReshape(op) ||
         isa_and_present<linalg::FillOp, linalg::TransposeOp,
                         linalg::BroadcastOp, linalg::CopyOp, tensor::PadOp,
                         tensor::ExtractSliceOp, tensor::EmptyOp>(op);
}
