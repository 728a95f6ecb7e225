//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches floats that are clipped by constant bounds: by maxima, minima and
// choices.
//
//===----------------------------------------------------------------------===//

#include "ClippedInteger.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace kas::codegen;
using namespace mlir;

std::optional<double> kas::codegen::getConstant(Value value) {
  FloatAttr number;
  if (!matchPattern(value, m_Constant(&number)))
    return std::nullopt;
  return number.getValueAsDouble();
}

/// What `value` is the larger, or the smaller, of and an integer from `least`
/// to `most`; null if it is something else.
template <typename... Bounds>
static Value matchBound(Value value, double least, double most) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (!isa_and_nonnull<Bounds...>(op))
    return Value();
  auto bound = getConstant(op->getOperand(1));
  bool isWithin = bound && *bound == std::trunc(*bound) && least <= *bound &&
                  *bound <= most;
  return isWithin ? op->getOperand(0) : Value();
}

namespace {

/// A choice between a value and a constant that bounds it: `x < bound ? bound :
/// x` or `x > bound ? x : bound`, and the opposites, which are upper bounds.
struct ClipBySelect {
  Value clipped;
  Value bound;
  bool isUpper = false;
};

} // namespace

static std::optional<ClipBySelect> matchSelect(Value value) {
  auto select = value ? value.getDefiningOp<arith::SelectOp>() : nullptr;
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                        : arith::CmpFOp();
  if (!compare)
    return std::nullopt;
  bool isLess = compare.getPredicate() == arith::CmpFPredicate::OLT ||
                compare.getPredicate() == arith::CmpFPredicate::ULT;
  bool isGreater = compare.getPredicate() == arith::CmpFPredicate::OGT ||
                   compare.getPredicate() == arith::CmpFPredicate::UGT;
  bool takesBound = compare.getLhs() == select.getFalseValue();
  Value bound = takesBound ? select.getTrueValue() : select.getFalseValue();
  auto limit = getConstant(compare.getRhs()), number = getConstant(bound);
  if ((!isLess && !isGreater) || !limit || !number || *limit != *number ||
      (!takesBound && compare.getLhs() != select.getTrueValue()))
    return std::nullopt;
  return ClipBySelect{compare.getLhs(), bound, takesBound == isGreater};
}

/// What `value` is clipped of by such a choice, with an integer from `least` to
/// `most`; null if it is something else.
static Value matchSelected(Value value, bool isUpper, double least,
                           double most) {
  auto clip = matchSelect(value);
  if (!clip || clip->isUpper != isUpper)
    return Value();
  double bound = *getConstant(clip->bound);
  bool isWithin = bound == std::trunc(bound) && least <= bound && bound <= most;
  return isWithin ? clip->clipped : Value();
}

Value kas::codegen::matchLowerClip(Value value, double least, double most) {
  Value inner =
      matchBound<arith::MaximumFOp, arith::MaxNumFOp>(value, least, most);
  return inner ? inner : matchSelected(value, /*isUpper=*/false, least, most);
}

Value kas::codegen::matchUpperClip(Value value, double least, double most) {
  Value inner =
      matchBound<arith::MinimumFOp, arith::MinNumFOp>(value, least, most);
  return inner ? inner : matchSelected(value, /*isUpper=*/true, least, most);
}

Value kas::codegen::matchClip(Value value) {
  Value inner = matchLowerClip(value, -mostBound, mostBound);
  return inner ? inner : matchUpperClip(value, -mostBound, mostBound);
}

Value kas::codegen::repeatClip(RewriterBase &rewriter, Value like, Value value,
                               llvm::function_ref<double(double)> change) {
  Operation *op = like.getDefiningOp();
  Location loc = op->getLoc();
  auto clip = matchSelect(like);
  double bound = *getConstant(clip ? clip->bound : op->getOperand(1));
  Value other = arith::ConstantOp::create(
      rewriter, loc,
      rewriter.getF32FloatAttr(static_cast<float>(change(bound))));
  if (!clip)
    return rewriter
        .create(loc, op->getName().getIdentifier(), {value, other},
                op->getResultTypes(), op->getAttrs())
        ->getResult(0);
  auto select = cast<arith::SelectOp>(op);
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  Value condition = arith::CmpFOp::create(rewriter, loc, compare.getPredicate(),
                                          value, other);
  bool takesBound = select.getTrueValue() == clip->bound;
  return arith::SelectOp::create(rewriter, loc, condition,
                                 takesBound ? other : value,
                                 takesBound ? value : other);
}

bool kas::codegen::isIntegerWithin(Value value, double least, double most) {
  Value inner = matchUpperClip(value, least, most);
  inner = inner ? matchLowerClip(inner, least, most) : Value();
  if (!inner) {
    inner = matchLowerClip(value, least, most);
    inner = inner ? matchUpperClip(inner, least, most) : Value();
  }
  if (!inner)
    return false;
  // A zero point is added to the integer before it is clipped; an integral
  // float plus an integer is one.
  if (auto added = inner.getDefiningOp<arith::AddFOp>()) {
    auto offset = getConstant(added.getRhs());
    if (!offset || *offset != std::trunc(*offset))
      return false;
    inner = added.getLhs();
  }
  return inner.getDefiningOp<math::RoundEvenOp>() != nullptr;
}
