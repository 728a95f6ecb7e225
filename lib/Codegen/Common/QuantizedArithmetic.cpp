//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simplifies arithmetic on quantized int8 values exactly: zero points are
// subtracted in 32 bits, and floats that were just quantized are not converted
// twice. Tells what may be quantized before a maximum.
// A quantized model dequantizes each tensor as (float(int8) - zero point) *
// scale, often in 64-bit integers. The rewrites are exact: an int8 plus a zero
// point of at most 15 bits fits 32, and f32 has all integers up to 2^24.
//
//===----------------------------------------------------------------------===//

#include "QuantizedArithmetic.h"
#include "ClippedInteger.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace kas::codegen;
using namespace mlir;

namespace {

/// An integer made of an int8 or uint8 `byte`: the byte plus `added`.
struct Int8Sum {
  Value byte;
  bool isUnsigned = false;
  int64_t added = 0;
};

} // namespace

/// An extended integer, of whatever width: `matchInt8Sum` checks for 8 bits.
static std::optional<Int8Sum> matchExtended(Value value) {
  if (auto extended = value.getDefiningOp<arith::ExtUIOp>())
    return Int8Sum{extended.getIn(), /*isUnsigned=*/true};
  if (auto extended = value.getDefiningOp<arith::ExtSIOp>())
    return Int8Sum{extended.getIn(), /*isUnsigned=*/false};
  return std::nullopt;
}

/// An integer that is converted to a float, a byte among them.
/// Nothing where the sum may not fit its type, so that it would wrap.
static std::optional<Int8Sum> matchInt8Sum(Value value) {
  if (value.getType().isInteger(8))
    return Int8Sum{value, /*isUnsigned=*/false};
  // With the 8 bits of the byte the sum fits 16 bits and more.
  constexpr unsigned mostBits = 15;
  APInt number;
  std::optional<Int8Sum> sum;
  if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
    sum = matchExtended(difference.getLhs());
    if (!sum || !matchPattern(difference.getRhs(), m_ConstantInt(&number)))
      return std::nullopt;
    if (number.getSignificantBits() > mostBits)
      return std::nullopt;
    sum->added = -number.getSExtValue();
  } else if (auto added = value.getDefiningOp<arith::AddIOp>()) {
    sum = matchExtended(added.getLhs());
    if (!sum || !matchPattern(added.getRhs(), m_ConstantInt(&number)))
      return std::nullopt;
    if (number.getSignificantBits() > mostBits)
      return std::nullopt;
    sum->added = number.getSExtValue();
  } else {
    sum = matchExtended(value);
  }
  if (!sum || !sum->byte.getType().isInteger(8) ||
      value.getType().getIntOrFloatBitWidth() < 16)
    return std::nullopt;
  return sum;
}

/// The float that became the i32 of which `sum.byte` is the lower bits, if it
/// is an integer in the range of int8 or uint8.
static Value findTruncated(const Int8Sum &sum) {
  auto lower = sum.byte.getDefiningOp<arith::TruncIOp>();
  auto convert =
      lower ? lower.getIn().getDefiningOp<arith::FPToSIOp>() : nullptr;
  bool isExact =
      convert && (sum.isUnsigned ? isIntegerWithin(convert.getIn(), 0, 255)
                                 : isIntegerWithin(convert.getIn(), -128, 127));
  return isExact ? convert.getIn() : Value();
}

/// The float from which `sum.byte` was converted, if that conversion is exact:
/// the float is an integer in the range of int8 or uint8.
static Value findFloat(const Int8Sum &sum) {
  if (Value rounded = findTruncated(sum))
    return rounded;
  if (auto convert = sum.byte.getDefiningOp<arith::FPToUIOp>())
    return sum.isUnsigned && isIntegerWithin(convert.getIn(), 0, 255)
               ? convert.getIn()
               : Value();
  auto convert = sum.byte.getDefiningOp<arith::FPToSIOp>();
  return convert && !sum.isUnsigned &&
                 isIntegerWithin(convert.getIn(), -128, 127)
             ? convert.getIn()
             : Value();
}

namespace {

/// sitofp(ext(fpto(x)) + zero point) becomes x + zero point: a value that was
/// just quantized is not converted to int8 and back. Without a zero point it
/// may be a byte, signed or not, that becomes a float.
template <typename ConvertOp>
struct ReadRoundedFloat : OpRewritePattern<ConvertOp> {
  using OpRewritePattern<ConvertOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvertOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = matchInt8Sum(op.getIn());
    // Wider integers would have to be positive.
    if (sum && isa<arith::UIToFPOp>(op) && !op.getIn().getType().isInteger(8))
      sum.reset();
    if (sum && op.getIn().getType().isInteger(8))
      sum->isUnsigned = isa<arith::UIToFPOp>(op);
    if (!sum || !op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a byte that becomes f32");
    Value rounded = findFloat(*sum);
    if (!rounded || rounded.getType() != op.getType())
      return rewriter.notifyMatchFailure(
          op, "the byte is not a float that was rounded and clipped");
    // Also of 0, which makes -0 a 0 as the byte does.
    Value added = arith::ConstantOp::create(
        rewriter, op.getLoc(), rewriter.getF32FloatAttr(sum->added));
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, rounded, added);
    return success();
  }
};

/// The sum of an int8 and its zero point in 32 bits, which vectors convert to
/// f32 twice as many of as of 64 bits.
struct NarrowInt8Sum : OpRewritePattern<arith::SIToFPOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SIToFPOp op,
                                PatternRewriter &rewriter) const override {
    Type given = op.getIn().getType();
    if (given.isInteger(32) || given.isInteger(8))
      return rewriter.notifyMatchFailure(op, "has 32 bits already, or is one");
    auto sum = matchInt8Sum(op.getIn());
    if (!sum)
      return rewriter.notifyMatchFailure(op, "not the sum of a byte");
    Location loc = op.getLoc();
    Type type = rewriter.getI32Type();
    Value wide =
        sum->isUnsigned
            ? arith::ExtUIOp::create(rewriter, loc, type, sum->byte).getResult()
            : arith::ExtSIOp::create(rewriter, loc, type, sum->byte);
    Value added = arith::ConstantOp::create(
        rewriter, loc, rewriter.getI32IntegerAttr(sum->added));
    wide = arith::AddIOp::create(rewriter, loc, wide, added);
    rewriter.replaceOpWithNewOp<arith::SIToFPOp>(op, op.getType(), wide);
    return success();
  }
};

} // namespace

void kas::codegen::populateQuantizedArithmeticPatterns(
    RewritePatternSet &patterns) {
  // Tried first: it removes the conversion that the other one narrows.
  patterns.add<ReadRoundedFloat<arith::SIToFPOp>,
               ReadRoundedFloat<arith::UIToFPOp>>(patterns.getContext(),
                                                  /*benefit=*/2);
  patterns.add<NarrowInt8Sum>(patterns.getContext());
  populateRoundingPatterns(patterns);
}

/// The operand of which `value` is a function that never falls; null if it is
/// not known to be one.
static Value matchRising(Value value) {
  if (Value clipped = matchClip(value))
    return clipped;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<math::RoundEvenOp>(op))
    return op->getOperand(0);
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp,
                       arith::DivFOp>(op))
    return Value();
  auto number = getConstant(op->getOperand(1));
  bool isProduct = isa<arith::MulFOp, arith::DivFOp>(op);
  bool rises = number && std::isfinite(*number) && (!isProduct || *number > 0);
  return rises ? op->getOperand(0) : Value();
}

bool kas::codegen::isRisingQuantization(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() != 0 ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Value byte = op.getBody()->getTerminator()->getOperand(0);
  if (!byte.getType().isInteger(8))
    return false;
  Value number = findFloat({byte, /*isUnsigned=*/true});
  while (number && number != op.getRegionInputArgs().front())
    number = matchRising(number);
  return number != nullptr;
}
