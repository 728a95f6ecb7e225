//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of f32 in a few operations. The error function is one quotient of
// polynomials: upstream's form chooses each coefficient by the interval, which
// takes twice the time. The exponential is a polynomial times a power of two,
// whose exponent is rounded and put in place by one multiply-add: upstream's
// form takes a quarter more time.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;

/// From here on erf is 1 in f32.
static constexpr float limit = 3.92f;
/// erf(x) is x * P(x * x) / Q(x * x), lowest power first: the best quotient of
/// degrees 5 and 5 by the largest relative error up to the limit, 1.9e-8,
/// found by weighted least squares.
static constexpr float numerator[] = {
    1.1283791065216064f,    0.19039687514305115f,   0.052747275680303574f,
    0.0037651588208973408f, 0.0002848648582585156f, 2.0500617665675236e-06f};
static constexpr float denominator[] = {1.0f,
                                        0.5020675659179688f,
                                        0.1141049861907959f,
                                        0.014968302100896835f,
                                        0.001162410480901599f,
                                        3.8090514863142744e-05f};

/// Beyond, results are zero and infinity.
static constexpr float lowest = -87.8f, highest = 88.8f;
/// The logarithm of two, the first part with so few bits that its products with
/// exponents are exact.
static constexpr float logTwo = 0.693359375f, logTwoRest = -2.12194442e-4f;
/// exp(x), lowest power first: the best polynomial of degree 7 by the largest
/// relative error from -0.35 to 0.695, 2.1e-9, of those that begin as the
/// series does; found by weighted least squares.
static constexpr float exponential[] = {1.0f,
                                        1.0f,
                                        0.5f,
                                        0.16666698455810547f,
                                        0.04166734591126442f,
                                        0.008327300660312176f,
                                        0.001386477262713015f,
                                        0.00022962629736866802f};

namespace {

/// Operations on values of one type, f32 or vectors of it.
struct FloatBuilder {
  ImplicitLocOpBuilder builder;
  Type type;

  Value constant(float value) {
    return splat(builder.getF32FloatAttr(value), type);
  }
  /// A constant of this type, f32 or i32, or a vector of it.
  Value splat(TypedAttr attribute, Type type) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      attribute = DenseElementsAttr::get(shaped, Attribute(attribute));
    return arith::ConstantOp::create(builder, attribute);
  }
  /// 2^n for the f32 1.5 * 2^23 + 127 + n, an integer: its last bits, put where
  /// the exponent is. 0 for n = -127.
  Value powerOfTwo(Value biased) {
    Type integer = builder.getI32Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      integer = shaped.clone(integer);
    Value bits = arith::BitcastOp::create(builder, integer, biased);
    Value place = splat(builder.getI32IntegerAttr(23), integer);
    return arith::BitcastOp::create(
        builder, type, arith::ShLIOp::create(builder, bits, place));
  }
  /// Leaves NaN, in one instruction: a comparison with NaN is false.
  Value clamp(Value x, float bound, arith::CmpFPredicate predicate) {
    Value other = constant(bound);
    Value isBeyond = arith::CmpFOp::create(builder, predicate, x, other);
    return arith::SelectOp::create(builder, isBeyond, other, x);
  }
  /// Horner's scheme with fused multiply-adds.
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value sum = constant(coefficients.back());
    for (float coefficient : llvm::reverse(coefficients.drop_back()))
      sum = math::FmaOp::create(builder, sum, x, constant(coefficient));
    return sum;
  }
};

struct ApproximateErf : OpRewritePattern<math::ErfOp> {
  // Before upstream's.
  explicit ApproximateErf(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "requires elements of type f32");
    FloatBuilder at{ImplicitLocOpBuilder(op.getLoc(), rewriter), op.getType()};
    // Clamping keeps the powers finite; the quotient at the limit rounds to 1.
    Value x = at.clamp(getArgument(op, at), limit, arith::CmpFPredicate::OGT);
    x = at.clamp(x, -limit, arith::CmpFPredicate::OLT);
    Value square = arith::MulFOp::create(at.builder, x, x);
    Value above =
        arith::MulFOp::create(at.builder, x, at.polynomial(square, numerator));
    rewriter.replaceOpWithNewOp<arith::DivFOp>(
        op, above, at.polynomial(square, denominator));
    return success();
  }

private:
  /// What the function is of; a division by a constant, as that by the root of
  /// two in a GELU, as a product, which takes a tenth of the time.
  static Value getArgument(math::ErfOp op, FloatBuilder &at) {
    auto quotient = op.getOperand().getDefiningOp<arith::DivFOp>();
    FloatAttr divisor;
    DenseElementsAttr divisors;
    if (!quotient)
      return op.getOperand();
    if (matchPattern(quotient.getRhs(), m_Constant(&divisors)) &&
        divisors.isSplat())
      divisor = divisors.getSplatValue<FloatAttr>();
    else if (!matchPattern(quotient.getRhs(), m_Constant(&divisor)))
      return op.getOperand();
    double value = divisor.getValueAsDouble();
    // Outside of this range the reciprocal may be inexact by more than a
    // rounding, or zero or infinite.
    if (!(std::abs(value) > 1e-3 && std::abs(value) < 1e3))
      return op.getOperand();
    return arith::MulFOp::create(at.builder, quotient.getLhs(),
                                 at.constant(static_cast<float>(1 / value)));
  }
};

struct ApproximateExp : OpRewritePattern<math::ExpOp> {
  // Before upstream's.
  explicit ApproximateExp(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    // What is added to an exponent n so that the sum is rounded to an integer
    // and ends with the bits of n + 127.
    constexpr float bias = 0x1.8p23f + 127;
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "requires elements of type f32");
    FloatBuilder at{ImplicitLocOpBuilder(op.getLoc(), rewriter), op.getType()};
    ImplicitLocOpBuilder &builder = at.builder;
    Value x = op.getOperand();
    x = at.clamp(x, lowest, arith::CmpFPredicate::OLT);
    x = at.clamp(x, highest, arith::CmpFPredicate::OGT);
    // exp(x) = 2^n * exp(rest), with n the integer next to x / log(2).
    Value biased = math::FmaOp::create(builder, x, at.constant(1.44269502f),
                                       at.constant(bias));
    // Of the largest results the rest takes what an exponent cannot.
    biased = at.clamp(biased, bias + 127, arith::CmpFPredicate::OGT);
    Value n = arith::SubFOp::create(builder, biased, at.constant(bias));
    Value rest = math::FmaOp::create(builder, n, at.constant(-logTwo), x);
    rest = math::FmaOp::create(builder, n, at.constant(-logTwoRest), rest);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, at.polynomial(rest, exponential), at.powerOfTwo(biased));
    return success();
  }
};

} // namespace

void kas::codegen::populateErfPatterns(RewritePatternSet &patterns) {
  patterns.add<ApproximateErf>(patterns.getContext());
}

void kas::codegen::populateExpPatterns(RewritePatternSet &patterns) {
  patterns.add<ApproximateExp>(patterns.getContext());
}
