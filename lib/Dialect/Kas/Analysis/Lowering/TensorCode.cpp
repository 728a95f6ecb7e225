//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads tensor and linalg operations of a lowering symbolically, element by
// element.
//
// `getElement` returns one element at symbolic indices; views rewrite the
// indices, pads and insertions split by region, linalg ops open loops.
//
//===----------------------------------------------------------------------===//

#include "LoweredCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

/// Keeps the first reason, which is the deepest.
LogicalResult LoweredCode::fail(const Twine &text) {
  if (reason.empty())
    reason = text.str();
  return failure();
}

LogicalResult LoweredCode::failAt(Value value, const Twine &text) {
  Operation *op = value.getDefiningOp();
  return fail((op ? "'" + op->getName().getStringRef() + "'"
                  : Twine("a block argument")) +
              text);
}

LogicalResult LoweredCode::countStep() {
  // Values are read again at each use: reading is exponential in chains of
  // them.
  constexpr unsigned maxSteps = 10000;
  return ++numSteps <= maxSteps ? success()
                                : fail("it has more than 10000 steps");
}

/// Indices are assumed to be in bounds of `tensor`; the callers restrict
/// regions.
FailureOr<Terms> LoweredCode::getElement(Value tensor, Indices indices) {
  // An input of the operator: a term with one factor.
  if (llvm::is_contained(inputs, tensor)) {
    Terms element;
    element.terms.emplace_back().factors.push_back(
        {tensor, llvm::to_vector(indices)});
    return element;
  }
  if (failed(countStep()))
    return failure();
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.hasStaticShape())
    return failAt(tensor, " has no static shape");
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return failAt(tensor, " is no operand of the operator");
  return TypeSwitch<Operation *, FailureOr<Terms>>(op)
      .Case([&](arith::ConstantOp constant) -> FailureOr<Terms> {
        auto values = dyn_cast<SplatElementsAttr>(constant.getValue());
        if (!values)
          return failAt(tensor, " has several values");
        return getConstant(values.getSplatValue<Attribute>());
      })
      // Undefined everywhere: an error only if something reads it.
      .Case([&](tensor::EmptyOp) {
        Terms nothing;
        nothing.undefined.emplace_back();
        return nothing;
      })
      .Case([&](tensor::PadOp pad) { return getPadded(pad, indices); })
      .Case([&](tensor::ExtractSliceOp slice) {
        return getExtracted(slice, indices);
      })
      .Case([&](tensor::InsertSliceOp insert) {
        return getInserted(insert, indices);
      })
      .Case([&](tensor::CollapseShapeOp reshape) {
        return getReshaped(reshape.getSrc(), type, indices);
      })
      .Case([&](tensor::ExpandShapeOp reshape) {
        return getReshaped(reshape.getSrc(), type, indices);
      })
      .Case([&](ApplyOp apply) { return getApplied(apply, indices); })
      .Case([&](bufferization::ToTensorOp read) {
        return getStored(read.getBuffer(), indices, read);
      })
      .Case([&](linalg::LinalgOp structured) {
        return getStructured(structured,
                             cast<OpResult>(tensor).getResultNumber(), indices);
      })
      .Default([&](Operation *) -> FailureOr<Terms> {
        return failAt(tensor, " cannot be compared");
      });
}

/// 0 is no term, minus infinity (where a maximum begins) a region of `lowest`.
FailureOr<Terms> LoweredCode::getConstant(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  if (!number)
    return fail("a constant is no floating-point number");
  llvm::APFloat exact = number.getValue();
  Terms constant;
  if (exact.isZero())
    return constant;
  if (exact.isInfinity() && exact.isNegative()) {
    constant.lowest.emplace_back();
    return constant;
  }
  if (!exact.isFinite())
    return fail("a constant is not finite");
  constant.terms.emplace_back().scale = number.getValueAsDouble();
  return constant;
}

/// The source inside, the constant in the padding.
FailureOr<Terms> LoweredCode::getPadded(tensor::PadOp pad, Indices indices) {
  Value fill = pad.getConstantPaddingValue();
  ArrayRef<int64_t> low = pad.getStaticLow();
  if (!fill || ShapedType::isDynamicShape(low) ||
      !pad.getSourceType().hasStaticShape())
    return failAt(pad, " has no constant padding");
  Conditions inside;
  SmallVector<AffineExpr> sources;
  bool isPossible = true;
  for (auto [index, lower, extent] :
       llvm::zip_equal(indices, low, pad.getSourceType().getShape())) {
    sources.push_back(index - lower);
    isPossible &= addBounds(inside, sources.back(), extent, dims);
  }
  FailureOr<Terms> outer = getScalar(fill);
  // No index is inside.
  if (failed(outer) || !isPossible)
    return outer;
  FailureOr<Terms> element = getElement(pad.getSource(), sources);
  if (failed(element))
    return failure();
  Terms result = restrictTo(std::move(*element), inside, dims);
  for (const Conditions &outside : getComplement(inside, dims))
    addTerms(result, restrictTo(*outer, outside, dims));
  dropEmpty(result, dims);
  return result;
}

/// Element i of the slice is element offset + stride * i.
FailureOr<Terms> LoweredCode::getExtracted(tensor::ExtractSliceOp slice,
                                           Indices indices) {
  if (ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticStrides()) ||
      slice.getSourceType().getRank() != slice.getType().getRank())
    return failAt(slice, " has dynamic offsets or drops dimensions");
  SmallVector<AffineExpr> sources;
  for (auto [index, offset, stride] : llvm::zip_equal(
           indices, slice.getStaticOffsets(), slice.getStaticStrides()))
    sources.push_back(index * stride + offset);
  return getElement(slice.getSource(), sources);
}

/// The source inside of the slice, the destination outside of it.
FailureOr<Terms> LoweredCode::getInserted(tensor::InsertSliceOp insert,
                                          Indices indices) {
  auto isOne = [](int64_t stride) { return stride == 1; };
  if (ShapedType::isDynamicShape(insert.getStaticOffsets()) ||
      !llvm::all_of(insert.getStaticStrides(), isOne) ||
      !insert.getSourceType().hasStaticShape() ||
      insert.getSourceType().getRank() != insert.getType().getRank())
    return failAt(insert, " has dynamic offsets, strides or other ranks");
  Conditions inside;
  SmallVector<AffineExpr> sources;
  bool isPossible = true;
  for (auto [index, offset, extent] :
       llvm::zip_equal(indices, insert.getStaticOffsets(),
                       insert.getSourceType().getShape())) {
    sources.push_back(index - offset);
    isPossible &= addBounds(inside, sources.back(), extent, dims);
  }
  // The slice is never met.
  if (!isPossible)
    return getElement(insert.getDest(), indices);
  FailureOr<Terms> element = getElement(insert.getSource(), sources);
  if (failed(element))
    return failure();
  Terms result = restrictTo(std::move(*element), inside, dims);
  SmallVector<Conditions> outside = getComplement(inside, dims);
  // The slice covers everything that is requested, so the destination, often a
  // tensor.empty, is not read at all.
  if (outside.empty())
    return result;
  FailureOr<Terms> kept = getElement(insert.getDest(), indices);
  if (failed(kept))
    return failure();
  for (const Conditions &region : outside)
    addTerms(result, restrictTo(*kept, region, dims));
  dropEmpty(result, dims);
  return result;
}

/// The element at the same place in row-major order.
FailureOr<Terms> LoweredCode::getReshaped(Value source, RankedTensorType result,
                                          Indices indices) {
  auto type = cast<RankedTensorType>(source.getType());
  if (!type.hasStaticShape())
    return failAt(source, " has no static shape");
  SmallVector<AffineExpr> sources =
      delinearize(linearize(indices, result.getShape(), source.getContext()),
                  type.getShape());
  // Divisions that reshapes undo would make systems large. The operator's own
  // expressions are never simplified.
  for (AffineExpr &index : sources)
    index = simplifyInRanges(index, dims.ranges);
  return getElement(source, sources);
}

/// Another operator (a stage): its term with each factor replaced by the terms
/// of that operand.
FailureOr<Terms> LoweredCode::getApplied(ApplyOp apply, Indices indices) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return failAt(apply.getResult(), " is of no concrete operator");
  SmallVector<Value> tensors = llvm::to_vector(apply->getOperands());
  Term term = getOperatorTerm(op, tensors, indices, dims);
  // What is left of the term is loops, scale and guards.
  SmallVector<Factor> factors = std::move(term.factors);
  term.factors.clear();
  bool isMax = llvm::any_of(term.loops, [](const Loop &loop) {
    return loop.isMax && loop.extent > 1;
  });
  Terms product;
  product.terms.emplace_back().scale = 1;
  for (const Factor &factor : factors) {
    FailureOr<Terms> element = getElement(factor.tensor, factor.indices);
    if (failed(element))
      return failure();
    FailureOr<Terms> next = multiply(product, *element, dims);
    if (failed(next))
      return failAt(apply.getResult(), " multiplies maxima");
    product = std::move(*next);
  }
  // max over a sum of terms is no max of terms.
  if (isMax && (product.terms.size() != 1 || !product.lowest.empty() ||
                !product.terms.front().where.empty() ||
                !product.terms.front().loops.empty()))
    return failAt(apply.getResult(), " takes a maximum of sums");
  FailureOr<Terms> result = sum(std::move(product), term.loops);
  if (failed(result))
    return failure();
  for (Term &part : result->terms)
    part.scale *= term.scale;
  return restrictTo(std::move(*result), term.where, dims);
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

/// Loops that index the result get its indices, all others are reductions and
/// get new dimensions.
FailureOr<Terms> LoweredCode::getStructured(linalg::LinalgOp op,
                                            unsigned result, Indices indices) {
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(result));
  if (!map.isProjectedPermutation() || op.hasDynamicShape() ||
      op.hasIndexSemantics())
    return failAt(op->getResult(result), " is not indexed by its loops");
  SmallVector<AffineExpr> values(op.getNumLoops());
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), indices))
    values[cast<AffineDimExpr>(expr).getPosition()] = index;
  SmallVector<Loop> loops;
  for (auto [value, extent, type] : llvm::zip_equal(
           values, op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    if (value)
      continue;
    if (type != utils::IteratorType::reduction)
      return failAt(op->getResult(result), " writes elements several times");
    loops.push_back({dims.add(extent), extent, false});
    value = getAffineDimExpr(loops.back().dim, op->getContext());
  }
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (!isa<TensorType>(operand.get().getType())) {
      // A scalar operand, as of linalg.fill.
      reads[argument] = {operand.get(), {}};
      continue;
    }
    AffineMap operandMap = op.getMatchingIndexingMap(&operand);
    FailureOr<SmallVector<AffineExpr>> elements =
        substitute(operandMap.getResults(), operandMap.getNumDims(), values);
    if (failed(elements))
      return failure();
    reads[argument] = {operand.get(), *elements};
  }
  return getReduced(op, result, loops, indices);
}

/// The output operand is the accumulator; it begins with the init tensor's
/// element.
FailureOr<Terms> LoweredCode::getReduced(linalg::LinalgOp op, unsigned result,
                                         ArrayRef<Loop> loops,
                                         Indices indices) {
  OpOperand *init = op.getDpsInitOperand(result);
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  auto getInitial = [&] { return getElement(init->get(), indices); };
  Value yielded = op.getBlock()->getTerminator()->getOperand(result);
  // `reduce` sets what kind they are.
  SmallVector<Loop> opened(loops);
  accumulators.insert(accumulator);
  return reduce(yielded, accumulator, opened, getInitial);
}
