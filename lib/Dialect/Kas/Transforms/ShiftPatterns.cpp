//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rewrites of operators that join, move or cancel shifts
// (docs/reference/dialect.md).
// A shift by d is legal only where |d| is below the size (C3), so a rule that
// makes a new amount needs sizes that are numbers, or amounts that cannot grow.
//
//===----------------------------------------------------------------------===//

#include "ShiftPatterns.h"
#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kas;

/// Of different signs the sum is smaller than the larger amount, which is
/// legal.
std::optional<int64_t> kas::addShifts(int64_t a, int64_t b, SizeAttr size) {
  std::optional<int64_t> extent = size.getConstantValue();
  int64_t sum;
  if (llvm::AddOverflow(a, b, sum) || (!extent && (a > 0) == (b > 0)))
    return std::nullopt;
  return extent ? sum % *extent : sum;
}

namespace {

/// R3: shifts by a and b are one by a + b; none when a + b = 0. Side condition:
/// |a + b| < N is sure, because the signs differ or N is a number.
struct ShiftOfShift : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    auto inner = shift.getCoord().getDefiningOp<ShiftOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(shift, "operand is not a shift");
    std::optional<int64_t> sum = addShifts(inner.getAmount(), shift.getAmount(),
                                           getSize(shift.getCoord()));
    if (!sum)
      return rewriter.notifyMatchFailure(
          shift, "the sum of the amounts may reach the size");
    if (*sum == 0)
      rewriter.replaceOp(shift, inner.getCoord());
    else
      rewriter.replaceOpWithNewOp<ShiftOp>(shift, inner.getCoord(), *sum);
    rewriter.eraseOp(inner);
    return success();
  }
};

/// R4: a shift by -d of a coordinate whose size N is a number is one by N - d.
struct NegativeShift : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    std::optional<int64_t> size = getSize(shift.getCoord()).getConstantValue();
    int64_t amount = shift.getAmount();
    if (!size || amount > 0)
      return rewriter.notifyMatchFailure(
          shift, "the amount is positive or the size symbolic");
    rewriter.replaceOpWithNewOp<ShiftOp>(shift, shift.getCoord(),
                                         amount + *size);
    return success();
  }
};

/// R5: a reduction over f((r + d) mod N) is one over f(r): the same terms in
/// another order.
struct ShiftOfReduce : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    if (!shift.getCoord().getDefiningOp<ReduceOp>())
      return rewriter.notifyMatchFailure(shift, "operand is not a reduction");
    rewriter.replaceOp(shift, shift.getCoord());
    return success();
  }
};

/// The amount of a shift of a coordinate of `size` points.
/// From 0 to size - 1: the canonical amount where the size is a number (R4).
int64_t getAmountModulo(int64_t amount, int64_t size) {
  int64_t rest = amount % size;
  return rest < 0 ? rest + size : rest;
}

/// The coordinate shifted by `amount` modulo its size, a number.
Value createShift(PatternRewriter &rewriter, Location loc, Value coordinate,
                  int64_t amount) {
  amount = getAmountModulo(amount, *getSize(coordinate).getConstantValue());
  return amount ? ShiftOp::create(rewriter, loc, coordinate, amount)
                : coordinate;
}

/// The merge of which the coordinates are the shifted quotient and the
/// remainder.
MergeOp getMergeOfShifted(ShiftOp quotient, Value remainder) {
  auto merge = quotient.getCoord().getDefiningOp<MergeOp>();
  return merge && quotient.getCoord() == merge.getQuotient() &&
                 remainder == merge.getRemainder()
             ? merge
             : MergeOp();
}

/// R18: split(shift(i / B, d), i mod B) = shift(i, d*B). Side condition: B is a
/// number.
struct SplitOfShiftedQuotient : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto shift = split.getOuter().getDefiningOp<ShiftOp>();
    MergeOp merge =
        shift ? getMergeOfShifted(shift, split.getInner()) : MergeOp();
    if (!merge)
      return rewriter.notifyMatchFailure(
          split, "operands are not a shifted quotient and its remainder");
    std::optional<int64_t> block = merge.getBlock().getConstantValue();
    int64_t amount;
    // Only with a number B the new amount d*B is one.
    if (!block || llvm::MulOverflow(int64_t(shift.getAmount()), *block, amount))
      return rewriter.notifyMatchFailure(split, "the block is not a number");
    rewriter.replaceOpWithNewOp<ShiftOp>(split, merge.getCoord(), amount);
    rewriter.eraseOp(shift);
    rewriter.eraseOp(merge);
    return success();
  }
};

/// R19: the same for another B below a shift by e: the two add up, so the one
/// by e may as well be below the merge.
struct ShiftOfShiftedQuotient : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    auto split = shift.getCoord().getDefiningOp<SplitOp>();
    auto inner = split ? split.getOuter().getDefiningOp<ShiftOp>() : ShiftOp();
    MergeOp merge =
        inner ? getMergeOfShifted(inner, split.getInner()) : MergeOp();
    if (!merge)
      return rewriter.notifyMatchFailure(
          shift, "operand is not of a shifted quotient and its remainder");
    if (merge.getBlock().getConstantValue())
      return rewriter.notifyMatchFailure(shift, "the operand is a shift (R18)");
    rewriter.setInsertionPoint(merge);
    Value shifted = ShiftOp::create(rewriter, shift.getLoc(), merge.getCoord(),
                                    shift.getAmount());
    rewriter.modifyOpInPlace(merge,
                             [&] { merge.getCoordMutable().assign(shifted); });
    rewriter.replaceOp(shift, split.getResult());
    return success();
  }
};

/// Shifts the quotient of `merge` for all that use it.
void shiftQuotient(PatternRewriter &rewriter, MergeOp merge, Location loc,
                   int64_t amount) {
  rewriter.setInsertionPointAfter(merge);
  auto shifted = ShiftOp::create(rewriter, loc, merge.getQuotient(), amount);
  // The new shift itself keeps the old operand.
  rewriter.replaceAllUsesExcept(merge.getQuotient(), shifted.getResult(),
                                shifted);
}

/// R20: split(shift(a, d), b) shifted and merged by b's size is split(a, b)
/// shifted and merged, with the quotient shifted by d.
struct MergeOfShiftedSplit : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto shift = merge.getCoord().getDefiningOp<ShiftOp>();
    auto split = shift ? shift.getCoord().getDefiningOp<SplitOp>() : SplitOp();
    auto outer = split ? split.getOuter().getDefiningOp<ShiftOp>() : ShiftOp();
    if (!outer)
      return rewriter.notifyMatchFailure(
          merge, "operand is not a shifted split of a shift");
    if (getSize(split.getInner()) != merge.getBlock())
      return rewriter.notifyMatchFailure(merge, "blocks differ");
    shiftQuotient(rewriter, merge, outer.getLoc(), outer.getAmount());
    rewriter.replaceOp(outer, outer.getCoord());
    return success();
  }
};

/// R21: the halves by B of i shifted by d*B are i / B shifted by d and i mod B.
/// Side condition: B is a number.
struct MergeOfBlockShift : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto shift = merge.getCoord().getDefiningOp<ShiftOp>();
    std::optional<int64_t> block = merge.getBlock().getConstantValue();
    if (!shift || !block || int64_t(shift.getAmount()) % *block != 0)
      return rewriter.notifyMatchFailure(
          merge, "operand is not a shift by a multiple of the block");
    shiftQuotient(rewriter, merge, shift.getLoc(),
                  int64_t(shift.getAmount()) / *block);
    rewriter.replaceOp(shift, shift.getCoord());
    return success();
  }
};

/// R22: a reduction over f((B*r + j + d) mod (N*B)), which nothing else reads,
/// is one over f(B*r + (j + d) mod B): the carry renames the points of r. Side
/// conditions: B is a number; no reduction that j depends on nests between that
/// does not commute: all are sums and means, all are maxima, or j depends on
/// none.
struct ShiftOfReduceSplit : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    auto split = shift.getCoord().getDefiningOp<SplitOp>();
    if (!split || !split.getOuter().getDefiningOp<ReduceOp>())
      return rewriter.notifyMatchFailure(
          shift, "operand is not a split with an outer reduction");
    if (!getSize(split.getInner()).getConstantValue())
      return rewriter.notifyMatchFailure(shift, "the block is not a number");
    if (!areUniform(*shift->getBlock()) && dependsOnReduce(split.getInner()))
      return rewriter.notifyMatchFailure(
          shift, "a reduction that does not commute may nest between");
    Value inner = createShift(rewriter, shift.getLoc(), split.getInner(),
                              shift.getAmount());
    rewriter.replaceOpWithNewOp<SplitOp>(shift, split.getOuter(), inner);
    rewriter.eraseOp(split);
    return success();
  }

  /// Reductions of one class commute with each other.
  static bool areUniform(Block &block) {
    auto isMax = [](ReduceOp op) { return op.getKind() == ReduceKind::Max; };
    auto reductions = block.getOps<ReduceOp>();
    return llvm::all_of(reductions, isMax) || llvm::none_of(reductions, isMax);
  }
  /// Bodies are small: no memo.
  static bool dependsOnReduce(Value coordinate) {
    Operation *op = coordinate.getDefiningOp();
    return op && (isa<ReduceOp>(op) ||
                  llvm::any_of(op->getOperands(), dependsOnReduce));
  }
};

/// R23: where the quotient is dropped, the remainder by B of i shifted by d is
/// i mod B shifted by d. Side condition: B is a number.
struct RemainderOfShift : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto shift = merge.getCoord().getDefiningOp<ShiftOp>();
    if (!shift || !merge.getBlock().getConstantValue())
      return rewriter.notifyMatchFailure(
          merge, "operand is not a shift, or the block not a number");
    if (!isa<ExpandOp>(*merge.getQuotient().user_begin()))
      return rewriter.notifyMatchFailure(merge, "the quotient is kept");
    rewriter.setInsertionPointAfter(merge);
    Value shifted = createShift(rewriter, shift.getLoc(), merge.getRemainder(),
                                shift.getAmount());
    if (Operation *op = shifted.getDefiningOp(); op != merge)
      rewriter.replaceAllUsesExcept(merge.getRemainder(), shifted, op);
    rewriter.replaceOp(shift, shift.getCoord());
    return success();
  }
};

/// R24: merges are below strides. t = f*i + d with d = e*f + r, 0 <= r < f:
/// where B = f*c, t / B = (i + e) / c and t mod B = f*((i + e) mod c) + r. Side
/// condition: d = 0, or f is a number and d a multiple of it or positive.
struct MergeOfStride : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto [stride, shift] = getShiftedStride(merge);
    if (!stride)
      return rewriter.notifyMatchFailure(merge, "operand is not of a stride");
    SizeAttr factor = stride.getFactor(), block = merge.getBlock();
    SizeAttr rest = block.divide(factor);
    if (block == factor || !isIntegral(rest))
      return rewriter.notifyMatchFailure(
          merge, "the block is not a multiple of the factor");
    auto amount = divideAmount(shift, factor);
    if (!amount)
      return rewriter.notifyMatchFailure(merge, "the shift may carry");
    Location loc = merge.getLoc();
    Value base = stride.getCoord();
    if (amount->first)
      base = ShiftOp::create(rewriter, loc, base, amount->first);
    auto halves = MergeOp::create(rewriter, loc, base, rest);
    Value low = StrideOp::create(rewriter, loc, halves.getRemainder(), factor);
    if (amount->second)
      low = ShiftOp::create(rewriter, loc, low, amount->second);
    rewriter.replaceOp(merge, {halves.getQuotient(), low});
    eraseView(rewriter, stride, shift);
    return success();
  }

  /// The stride that `merge` is of, and the shift between, if there is one.
  static std::pair<StrideOp, ShiftOp> getShiftedStride(MergeOp merge) {
    auto shift = merge.getCoord().getDefiningOp<ShiftOp>();
    Value base = shift ? shift.getCoord() : merge.getCoord();
    return {base.getDefiningOp<StrideOp>(), shift};
  }

  /// Quotient and remainder of the amount by `size`.
  static std::optional<std::pair<int64_t, int64_t>>
  divideAmount(ShiftOp shift, SizeAttr size) {
    if (!shift)
      return std::pair<int64_t, int64_t>();
    std::optional<int64_t> divisor = size.getConstantValue();
    int64_t amount = shift.getAmount();
    // One less than nothing may be as many as there are.
    if (!divisor || (amount < 0 && amount % *divisor != 0))
      return std::nullopt;
    return std::pair(amount / *divisor, amount % *divisor);
  }

  static void eraseView(PatternRewriter &rewriter, StrideOp stride,
                        ShiftOp shift) {
    if (shift)
      rewriter.eraseOp(shift);
    rewriter.eraseOp(stride);
  }
};

/// R25: where f = B*c, t = f*i + d and t mod B, a number, is dropped, t / B =
/// c*i + d / B. Side condition: d = 0, or B is a number and d a multiple of it
/// or positive.
struct QuotientOfStride : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto [stride, shift] = MergeOfStride::getShiftedStride(merge);
    if (!stride)
      return rewriter.notifyMatchFailure(merge, "operand is not of a stride");
    SizeAttr rest = stride.getFactor().divide(merge.getBlock());
    if (!isIntegral(rest))
      return rewriter.notifyMatchFailure(
          merge, "the factor is not a multiple of the block");
    auto expand = dyn_cast<ExpandOp>(*merge.getRemainder().user_begin());
    if (!expand)
      return rewriter.notifyMatchFailure(merge, "the remainder is kept");
    auto amount = MergeOfStride::divideAmount(shift, merge.getBlock());
    if (!amount)
      return rewriter.notifyMatchFailure(merge, "the shift may carry");
    Location loc = merge.getLoc();
    Value quotient = stride.getCoord();
    if (rest.getConstantValue() != 1)
      quotient = StrideOp::create(rewriter, loc, quotient, rest);
    if (amount->first)
      quotient = ShiftOp::create(rewriter, loc, quotient, amount->first);
    rewriter.eraseOp(expand);
    rewriter.replaceAllUsesWith(merge.getQuotient(), quotient);
    rewriter.eraseOp(merge);
    MergeOfStride::eraseView(rewriter, stride, shift);
    return success();
  }
};

} // namespace

void kas::populateShiftPatterns(RewritePatternSet &patterns) {
  patterns.add<ShiftOfShift, NegativeShift, ShiftOfReduce,
               SplitOfShiftedQuotient, ShiftOfShiftedQuotient,
               MergeOfShiftedSplit, MergeOfBlockShift, ShiftOfReduceSplit,
               RemainderOfShift, MergeOfStride, QuotientOfStride>(
      patterns.getContext());
}
