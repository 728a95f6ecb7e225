//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simplifies what is computed before and after a value is rounded to a byte:
// clips before zero points, and products with steps as part of the numbers that
// they are applied to. Between two layers of a quantized network a sum of int8
// takes six to eight operations on floats then, and not twelve to nineteen:
// with few channels as long as the products.
//
// Products of steps are rounded in other places than before: a value between
// two bytes may become the other one.
//
//===----------------------------------------------------------------------===//

#include "ClippedInteger.h"
#include "QuantizedArithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace kas::codegen;
using namespace mlir;

namespace {

/// (clip(round(x) + zero point)) - zero point becomes clip(round(x)) between
/// other bounds: of integers, exactly.
struct ClipBeforeZeroPoint : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto back = getConstant(op.getRhs());
    if (!back || !isIntegerWithin(op.getLhs(), -mostBound, mostBound))
      return rewriter.notifyMatchFailure(op, "no integer and a constant");
    // From the outermost bound to what is clipped.
    SmallVector<Value> bounds;
    Value inner = op.getLhs();
    for (Value clipped = matchClip(inner); clipped;
         clipped = matchClip(inner)) {
      bounds.push_back(inner);
      inner = clipped;
    }
    auto added = inner.getDefiningOp<arith::AddFOp>();
    auto offset = added ? getConstant(added.getRhs()) : std::nullopt;
    if (!offset || *offset + *back != 0)
      return rewriter.notifyMatchFailure(op, "the zero point is not added");
    Value value = added.getLhs();
    for (Value bound : llvm::reverse(bounds))
      value = repeatClip(rewriter, bound, value,
                         [&](double number) { return number + *back; });
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// The zero point 0 of a value that is rounded, before or after: whether a zero
/// is negative is not seen.
struct DropZeroPoint : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto added = getConstant(op.getRhs());
    Value value = op.getLhs();
    bool isRounded =
        value.getDefiningOp<math::RoundEvenOp>() ||
        isIntegerWithin(value, -mostBound, mostBound) ||
        (op->hasOneUse() && isa<math::RoundEvenOp>(*op->user_begin()));
    if (!added || *added != 0 || !isRounded)
      return rewriter.notifyMatchFailure(op, "adds no zero to an integer");
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// round(x * s), where x is an integer of 9 bits and s is 1 up to the rounding
/// of two steps, is x: what was dequantized is quantized by the same step.
struct ReadRoundedInteger : OpRewritePattern<math::RoundEvenOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RoundEvenOp op,
                                PatternRewriter &rewriter) const override {
    auto product = op.getOperand().getDefiningOp<arith::MulFOp>();
    auto step = product ? getConstant(product.getRhs()) : std::nullopt;
    if (!step || std::abs(*step - 1) > 1e-5 ||
        !isIntegerWithin(product.getLhs(), -mostBound, mostBound))
      return rewriter.notifyMatchFailure(op, "no integer times 1");
    rewriter.replaceOp(op, product.getLhs());
    return success();
  }
};

/// A rectifier before the rounding of what is clipped by 0 afterwards.
struct DropRectifier : OpRewritePattern<math::RoundEvenOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RoundEvenOp op,
                                PatternRewriter &rewriter) const override {
    auto matchRectifier = [](Value value) {
      return matchLowerClip(value, 0, 0);
    };
    Value inner = matchRectifier(op.getOperand());
    // A choice reads the rounded value twice.
    auto isClipped = [&](Operation *user) {
      return matchRectifier(user->getResult(0)) == op.getResult() ||
             (isa<arith::CmpFOp>(user) &&
              llvm::all_of(user->getUsers(), [&](Operation *next) {
                return matchRectifier(next->getResult(0)) == op.getResult();
              }));
    };
    if (!inner || !llvm::all_of(op->getUsers(), [&](Operation *user) {
          return user->getNumResults() == 1 && isClipped(user);
        }))
      return rewriter.notifyMatchFailure(op, "not rectified twice");
    rewriter.modifyOpInPlace(op, [&] { op.getOperandMutable().assign(inner); });
    return success();
  }
};

/// Before what is rounded a product with a step becomes part of the constants,
/// and of the numbers of channels, that it is applied to: (x * a + b) * c is x
/// * (a * c) + b * c.
class StepScaler {
public:
  StepScaler(linalg::GenericOp op, PatternRewriter &rewriter)
      : op(op), rewriter(rewriter) {}

  /// Whether all terms of `value` have a number that may be scaled by `step`,
  /// and nothing else reads them.
  bool canScale(Value value, double step) {
    if (isScalable(value, step))
      return true;
    Operation *made = value.getDefiningOp();
    if (!made || made->getBlock() != op.getBody())
      return false;
    if (Value clipped = matchClip(value))
      return hasOneReader(value) && canScale(clipped, step);
    if (!hasOneReader(value))
      return false;
    if (isa<arith::MulFOp>(made))
      return isScalable(made->getOperand(1), step);
    return isa<arith::AddFOp, arith::SubFOp>(made) &&
           canScale(made->getOperand(0), step) &&
           canScale(made->getOperand(1), step);
  }

  /// `value` times `step`, where it can be scaled.
  Value scale(Value value, double step) {
    Location loc = value.getLoc();
    if (isScalable(value, step))
      return scaleNumber(value, step);
    if (Value clipped = matchClip(value))
      return repeatClip(rewriter, value, scale(clipped, step),
                        [&](double number) { return number * step; });
    Operation *made = value.getDefiningOp();
    if (isa<arith::MulFOp>(made))
      return arith::MulFOp::create(rewriter, loc, made->getOperand(0),
                                   scaleNumber(made->getOperand(1), step));
    Value lhs = scale(made->getOperand(0), step);
    Value rhs = scale(made->getOperand(1), step);
    if (isa<arith::AddFOp>(made))
      return arith::AddFOp::create(rewriter, loc, lhs, rhs);
    return arith::SubFOp::create(rewriter, loc, lhs, rhs);
  }

private:
  /// Where a clip reads a value, it does so twice: to compare it, and to take
  /// it.
  static bool hasOneReader(Value value) {
    if (value.hasOneUse())
      return true;
    Value clip;
    for (Operation *user : value.getUsers())
      if (auto select = dyn_cast<arith::SelectOp>(user))
        clip = select.getResult();
    return clip && matchClip(clip) == value &&
           llvm::all_of(value.getUsers(), [&](Operation *user) {
             return user == clip.getDefiningOp() ||
                    llvm::all_of(user->getUsers(), [&](Operation *next) {
                      return next == clip.getDefiningOp();
                    });
           });
  }

  /// The operand that `value` is an element of, if it has one number for many
  /// elements of the result.
  OpOperand *getChannels(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != op.getBody() ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return nullptr;
    OpOperand *operand = op.getDpsInputOperand(argument.getArgNumber());
    AffineMap map = op.getMatchingIndexingMap(operand);
    auto type = dyn_cast<RankedTensorType>(operand->get().getType());
    return type && type.hasStaticShape() && map.getNumResults() == 1 &&
                   map.isProjectedPermutation() && op.getNumLoops() > 1
               ? operand
               : nullptr;
  }

  /// Whether `value` is a number that may be scaled: a constant, or one of each
  /// channel that nothing else here reads.
  bool isScalable(Value value, double step) {
    if (auto number = getConstant(value))
      return *number == 0 || std::isnormal(static_cast<float>(*number * step));
    return value.getType().isF32() && getChannels(value) && value.hasOneUse();
  }

  /// The constant times `step`, or the element of a tensor that is made of it.
  Value scaleNumber(Value value, double step) {
    Location loc = op.getLoc();
    if (auto number = getConstant(value))
      return arith::ConstantOp::create(
          rewriter, loc,
          rewriter.getF32FloatAttr(static_cast<float>(*number * step)));
    OpOperand *operand = getChannels(value);
    OpBuilder::InsertionGuard guard(rewriter);
    // Not between a layer and what is computed with its sums.
    rewriter.setInsertionPointAfterValue(operand->get());
    Value empty = tensor::EmptyOp::create(
        rewriter, loc,
        cast<RankedTensorType>(operand->get().getType()).getShape(),
        rewriter.getF32Type());
    AffineMap identity = rewriter.getMultiDimIdentityMap(1);
    auto scaled = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), operand->get(), empty,
        ArrayRef{identity, identity}, ArrayRef{utils::IteratorType::parallel},
        [&](OpBuilder &inner, Location loc, ValueRange values) {
          Value factor = arith::ConstantOp::create(
              inner, loc, inner.getF32FloatAttr(static_cast<float>(step)));
          Value product = arith::MulFOp::create(inner, loc, values[0], factor);
          linalg::YieldOp::create(inner, loc, product);
        });
    rewriter.modifyOpInPlace(op, [&] { operand->set(scaled.getResult(0)); });
    return value;
  }

  linalg::GenericOp op;
  PatternRewriter &rewriter;
};

/// round(x * step), also with a zero point added before the rounding, where x
/// is a sum of scaled terms.
struct ScaleBeforeRounding : OpRewritePattern<math::RoundEvenOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RoundEvenOp op,
                                PatternRewriter &rewriter) const override {
    auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
    Value operand = op.getOperand();
    // The zero point may be added before the rounding.
    auto offset = operand.getDefiningOp<arith::AddFOp>();
    if (offset && getConstant(offset.getRhs()))
      operand = offset.getLhs();
    else
      offset = {};
    auto product = operand.getDefiningOp<arith::MulFOp>();
    auto step = product ? getConstant(product.getRhs()) : std::nullopt;
    if (!generic || !generic.hasPureTensorSemantics() ||
        !op.getType().isF32() || !step || !(*step > 0) ||
        !std::isnormal(static_cast<float>(*step)))
      return rewriter.notifyMatchFailure(op, "no product with a step");
    StepScaler scaler(generic, rewriter);
    if (!product->hasOneUse() || isa<BlockArgument>(product.getLhs()) ||
        getConstant(product.getLhs()) ||
        !scaler.canScale(product.getLhs(), *step))
      return rewriter.notifyMatchFailure(op, "not a sum of scaled terms");
    rewriter.setInsertionPoint(product);
    rewriter.replaceOp(product, scaler.scale(product.getLhs(), *step));
    return success();
  }
};

} // namespace

void kas::codegen::populateRoundingPatterns(RewritePatternSet &patterns) {
  patterns.add<ClipBeforeZeroPoint, DropZeroPoint, ReadRoundedInteger,
               DropRectifier, ScaleBeforeRounding>(patterns.getContext());
}
