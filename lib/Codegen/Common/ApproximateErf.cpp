//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The error function as one quotient of polynomials. Upstream's form chooses
// each coefficient by the interval, which takes twice the time.
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

namespace {

/// Operations on values of one type, f32 or vectors of it.
struct FloatBuilder {
  ImplicitLocOpBuilder builder;
  Type type;

  Value constant(float value) {
    TypedAttr attribute = builder.getF32FloatAttr(value);
    if (auto shaped = dyn_cast<ShapedType>(type))
      attribute = DenseElementsAttr::get(shaped, value);
    return arith::ConstantOp::create(builder, attribute);
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

} // namespace

void kas::codegen::populateErfPatterns(RewritePatternSet &patterns) {
  patterns.add<ApproximateErf>(patterns.getContext());
}
