//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rewrites functions of the math dialect as arithmetic: MLIR's polynomials, our
// own for erf and exp, and roundings.
// `log1p` and `expm1` by Kahan's method (Goldberg, "What Every Computer
// Scientist Should Know About Floating-Point Arithmetic", 1991, theorem 4;
// Higham, "Accuracy and Stability of Numerical Algorithms", section 1.14.1).
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {
Value makeConstant(ImplicitLocOpBuilder &builder, Type type, double value) {
  FloatAttr number = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  return createScalarOrSplatConstant(builder, builder.getLoc(), type,
                                     number.getValue());
}

Value compare(ImplicitLocOpBuilder &builder, Value value, Value other) {
  return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, value,
                               other);
}

/// log(1 + x) loses the low bits of a small x in the sum s = fl(1 + x). As
/// log(s) / (s - 1) varies slowly, x * log(s) / (s - 1) has the error of a few
/// roundings.
struct ExpandLog1p : OpRewritePattern<math::Log1pOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Log1pOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value x = op.getOperand();
    Value one = makeConstant(b, x.getType(), 1);
    Value sum = arith::AddFOp::create(b, x, one);
    Value logarithm = math::LogOp::create(b, sum);
    Value kept = arith::SubFOp::create(b, sum, one);
    Value scaled =
        arith::MulFOp::create(b, x, arith::DivFOp::create(b, logarithm, kept));
    // s = 1: the result is x itself. s = log(s) holds for infinity, where the
    // quotient would be NaN.
    Value isExact = arith::OrIOp::create(b, compare(b, sum, one),
                                         compare(b, sum, logarithm));
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isExact, x, scaled);
    return success();
  }
};

/// exp(x) - 1, likewise: with u = fl(exp(x)), (u - 1) * x / log(u).
struct ExpandExpM1 : OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value x = op.getOperand();
    Value one = makeConstant(b, x.getType(), 1);
    Value minusOne = makeConstant(b, x.getType(), -1);
    Value exponential = math::ExpOp::create(b, x);
    Value difference = arith::SubFOp::create(b, exponential, one);
    Value logarithm = math::LogOp::create(b, exponential);
    Value scaled = arith::MulFOp::create(
        b, difference, arith::DivFOp::create(b, x, logarithm));
    // u - 1 = -1 far below zero, where log(u) is minus infinity, and u = log(u)
    // for infinity: the difference is exact to rounding.
    Value isFar = arith::OrIOp::create(b, compare(b, difference, minusOne),
                                       compare(b, exponential, logarithm));
    Value far = arith::SelectOp::create(b, isFar, difference, scaled);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, compare(b, exponential, one), x, far);
    return success();
  }
};

/// The nearest integer to `x`, of two the even one, with the sign of `x`: the
/// sum with 2^23 has no fraction left. For what is less than that.
Value roundSmall(ImplicitLocOpBuilder &b, Value x) {
  Value large = makeConstant(b, x.getType(), 1 << 23);
  Value sum = arith::AddFOp::create(b, math::AbsFOp::create(b, x), large);
  return math::CopySignOp::create(b, arith::SubFOp::create(b, sum, large), x);
}

/// `near`, the nearest integer to `x`, corrected to the direction of a
/// rounding.
Value correct(ImplicitLocOpBuilder &b, math::RoundEvenOp, Value, Value near) {
  return near;
}

/// `near + step` where `near` is beyond `x`, on the side that `isBeyond` says.
Value correctTowards(ImplicitLocOpBuilder &b, arith::CmpFPredicate isBeyond,
                     Value x, Value near, double step) {
  Value other =
      arith::AddFOp::create(b, near, makeConstant(b, x.getType(), step));
  return arith::SelectOp::create(b, arith::CmpFOp::create(b, isBeyond, near, x),
                                 other, near);
}

Value correct(ImplicitLocOpBuilder &b, math::FloorOp, Value x, Value near) {
  return correctTowards(b, arith::CmpFPredicate::OGT, x, near, -1);
}

Value correct(ImplicitLocOpBuilder &b, math::CeilOp, Value x, Value near) {
  return correctTowards(b, arith::CmpFPredicate::OLT, x, near, 1);
}

Value correct(ImplicitLocOpBuilder &b, math::TruncOp, Value x, Value near) {
  return correctTowards(b, arith::CmpFPredicate::OGT,
                        math::AbsFOp::create(b, x),
                        math::AbsFOp::create(b, near), -1);
}

/// A half goes away from zero.
Value correct(ImplicitLocOpBuilder &b, math::RoundOp, Value x, Value near) {
  Value size = math::AbsFOp::create(b, near);
  Value rest = arith::SubFOp::create(b, math::AbsFOp::create(b, x), size);
  Value next = arith::AddFOp::create(b, size, makeConstant(b, x.getType(), 1));
  Value isHalf = compare(b, rest, makeConstant(b, x.getType(), 0.5));
  return arith::SelectOp::create(b, isHalf, next, size);
}

/// Roundings of f32 where no instruction has them, and the C library may not
/// have all.
template <typename OpT>
struct ExpandRounding : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    if (!getElementTypeOrSelf(x.getType()).isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value rounded = correct(b, op, x, roundSmall(b, x));
    // From 2^23 on all floats are integers; NaN and infinity stay as they are.
    Value isSmall = arith::CmpFOp::create(
        b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, x),
        makeConstant(b, x.getType(), 1 << 23));
    // The sign of zero is that of x: floor(-0.0) and ceil(-0.5) are -0.0.
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, isSmall, math::CopySignOp::create(b, rounded, x), x);
    return success();
  }
};
} // namespace

LogicalResult kas::codegen::expandMath(Operation *root,
                                       const MathExpansions &expansions) {
  RewritePatternSet patterns(root->getContext());
  populateMathPolynomialApproximationPatterns(patterns,
                                              expansions.approximated);
  if (expansions.approximated(math::ErfOp::getOperationName()))
    populateErfPatterns(patterns);
  if (expansions.approximated(math::ExpOp::getOperationName()))
    populateExpPatterns(patterns);
  // No names would be all of them.
  if (!expansions.expanded.empty())
    math::populateExpansionPatterns(patterns, expansions.expanded);
  if (expansions.divisions)
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  if (expansions.differences)
    patterns.add<ExpandLog1p, ExpandExpM1>(patterns.getContext());
  if (expansions.roundings)
    patterns.add<ExpandRounding<math::RoundEvenOp>,
                 ExpandRounding<math::RoundOp>, ExpandRounding<math::FloorOp>,
                 ExpandRounding<math::CeilOp>, ExpandRounding<math::TruncOp>>(
        patterns.getContext());
  return applyPatternsGreedily(root, std::move(patterns));
}
