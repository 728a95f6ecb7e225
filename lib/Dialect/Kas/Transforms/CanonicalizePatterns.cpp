//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace kas;

// Notation: x : [N] is a coordinate x of size N. Each coordinate has exactly
// one use (C9), so a rule that takes a coordinate away from its only user may
// change the op that makes it.

namespace {

bool isOne(Value coordinate) {
  return getSize(coordinate).getConstantValue() == 1;
}

/// The coordinates of the operator that data or weights depend on when
/// `dropped`, if there is one, is only dropped.
llvm::SmallPtrSet<Value, 16> getReached(Block &block, Value dropped = {}) {
  llvm::SmallPtrSet<Value, 16> reached;
  for (Operation &op : llvm::reverse(block))
    if (isa<YieldOp>(op) || llvm::any_of(op.getResults(), [&](Value result) {
          return reached.contains(result);
        }))
      for (Value operand : op.getOperands())
        if (operand != dropped)
          reached.insert(operand);
  return reached;
}

/// Whether a reduction may go when nothing depends on its coordinate: the sum
/// over N equal terms is another function, their mean and maximum are not.
bool isIdle(ReduceOp reduce) {
  return reduce.getKind() != ReduceKind::Sum || isOne(reduce.getResult());
}

/// Whether `coordinate`, which `user` uses, may be dropped instead: each
/// reduction it depends on is reached without it (C11), or is itself (R9).
bool isDroppable(Value coordinate, Operation *user) {
  if (auto reduce = coordinate.getDefiningOp<ReduceOp>())
    return isIdle(reduce);
  llvm::SmallPtrSet<Value, 16> reached =
      getReached(*user->getBlock(), coordinate);
  return llvm::all_of(
      user->getBlock()->getOps<ReduceOp>(),
      [&](ReduceOp reduce) { return reached.contains(reduce.getResult()); });
}

/// R1: split(i / B, i mod B) = i.
struct SplitOfMerge : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto merge = split.getOuter().getDefiningOp<MergeOp>();
    if (!merge || split.getOuter() != merge.getQuotient() ||
        split.getInner() != merge.getRemainder())
      return rewriter.notifyMatchFailure(
          split, "operands are not both halves of one merge");
    rewriter.replaceOp(split, merge.getCoord());
    rewriter.eraseOp(merge);
    return success();
  }
};

/// R2: t = B*i + j with j : [B]: t / B = i and t mod B = j. Side condition: no
/// reduction is lost when one of them is only dropped (C11).
struct MergeOfSplit : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto split = merge.getCoord().getDefiningOp<SplitOp>();
    if (!split)
      return rewriter.notifyMatchFailure(merge, "operand is not a split");
    if (getSize(split.getInner()) != merge.getBlock())
      return rewriter.notifyMatchFailure(merge, "blocks differ");
    llvm::SmallPtrSet<Value, 16> reached = getReached(*merge->getBlock());
    for (auto [half, operand] :
         llvm::zip_equal(merge->getResults(), split->getOperands()))
      if (!reached.contains(half) && !isDroppable(operand, split))
        return rewriter.notifyMatchFailure(merge, "a reduction would be lost");
    rewriter.replaceOp(merge, {split.getOuter(), split.getInner()});
    rewriter.eraseOp(split);
    return success();
  }
};

/// R3: shifts by a and b are one by a + b; none when a + b = 0. Side condition:
/// |a + b| < N is sure, because the signs differ or N is a number.
struct ShiftOfShift : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp shift,
                                PatternRewriter &rewriter) const override {
    auto inner = shift.getCoord().getDefiningOp<ShiftOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(shift, "operand is not a shift");
    int64_t a = inner.getAmount(), b = shift.getAmount();
    std::optional<int64_t> size = getSize(shift.getCoord()).getConstantValue();
    if (!size && (a > 0) == (b > 0))
      return rewriter.notifyMatchFailure(
          shift, "the sum of the amounts may reach the size");
    int64_t sum = size ? (a + b) % *size : a + b;
    if (sum == 0)
      rewriter.replaceOp(shift, inner.getCoord());
    else
      rewriter.replaceOpWithNewOp<ShiftOp>(shift, inner.getCoord(), sum);
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

/// R6: strides by a and b are one by a * b; a stride by 1 is none.
struct StrideOfStride : OpRewritePattern<StrideOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StrideOp stride,
                                PatternRewriter &rewriter) const override {
    if (stride.getFactor().getConstantValue() == 1) {
      rewriter.replaceOp(stride, stride.getCoord());
      return success();
    }
    auto inner = stride.getCoord().getDefiningOp<StrideOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(stride, "operand is not a stride");
    SizeAttr factor = stride.getFactor().multiply(inner.getFactor());
    if (!factor)
      return rewriter.notifyMatchFailure(stride, "the factor does not fit");
    rewriter.replaceOpWithNewOp<StrideOp>(stride, inner.getCoord(), factor);
    rewriter.eraseOp(inner);
    return success();
  }
};

/// R7: with i : [1], B*i + j = j; with j : [1], 1*i + j = i. The other
/// coordinate is dropped. Side condition: no reduction is lost with it (C11).
struct SplitOfOne : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    Value kept = split.getInner(), dropped = split.getOuter();
    if (!isOne(dropped))
      std::swap(kept, dropped);
    if (!isOne(dropped))
      return rewriter.notifyMatchFailure(split, "no operand has size 1");
    if (!isDroppable(dropped, split))
      return rewriter.notifyMatchFailure(split, "a reduction would be lost");
    rewriter.setInsertionPointAfterValue(dropped);
    ExpandOp::create(rewriter, split.getLoc(), dropped);
    rewriter.replaceOp(split, kept);
    return success();
  }
};

/// R8: with a window j : [1] (so low = 0), i + j - low = i. The window is
/// dropped. Side condition: no reduction is lost with it (C11).
struct UnfoldOfOne : OpRewritePattern<UnfoldOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(UnfoldOp unfold,
                                PatternRewriter &rewriter) const override {
    if (!isOne(unfold.getWindow()))
      return rewriter.notifyMatchFailure(unfold, "the window is not of size 1");
    Value window = unfold.getWindow();
    if (!isDroppable(window, unfold))
      return rewriter.notifyMatchFailure(unfold, "a reduction would be lost");
    rewriter.setInsertionPointAfterValue(window);
    ExpandOp::create(rewriter, unfold.getLoc(), window);
    rewriter.replaceOp(unfold, unfold.getCoord());
    return success();
  }
};

/// R9: what only drops a coordinate may drop the coordinates it is made of:
/// expand(B*i + j) drops i and j, expand((i + d) mod N) and expand(S*i) drop i.
/// A reduction of size 1, a mean and a maximum go with their coordinate. Not
/// for an unfold, whose clipping counts, and not for a sum, whose terms count
/// (C11).
struct ExpandOfView : OpRewritePattern<ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandOp expand,
                                PatternRewriter &rewriter) const override {
    Operation *view = expand.getCoord().getDefiningOp();
    auto reduce = dyn_cast_or_null<ReduceOp>(view);
    if (!isa_and_nonnull<SplitOp, ShiftOp, StrideOp>(view) &&
        !(reduce && isIdle(reduce)))
      return rewriter.notifyMatchFailure(
          expand, "operand is not made by a view without clipping");
    for (Value operand : view->getOperands())
      ExpandOp::create(rewriter, expand.getLoc(), operand);
    rewriter.eraseOp(expand);
    rewriter.eraseOp(view);
    return success();
  }
};

/// R10: dropping both i / B and i mod B drops i.
struct ExpandOfMerge : OpRewritePattern<ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandOp expand,
                                PatternRewriter &rewriter) const override {
    auto merge = expand.getCoord().getDefiningOp<MergeOp>();
    if (!merge)
      return rewriter.notifyMatchFailure(expand, "operand is not a merge");
    auto usedByExpand = [](Value half) {
      return isa<ExpandOp>(*half.user_begin());
    };
    if (!llvm::all_of(merge->getResults(), usedByExpand))
      return rewriter.notifyMatchFailure(expand, "one half is kept");
    Operation *first = *merge.getQuotient().user_begin();
    Operation *second = *merge.getRemainder().user_begin();
    ExpandOp::create(rewriter, expand.getLoc(), merge.getCoord());
    rewriter.eraseOp(first);
    rewriter.eraseOp(second);
    rewriter.eraseOp(merge);
    return success();
  }
};

/// R11: a share whose data side is dropped is a direct use by the weight.
struct ShareOfExpanded : OpRewritePattern<ShareOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShareOp share,
                                PatternRewriter &rewriter) const override {
    auto expand = dyn_cast<ExpandOp>(*share.getData().user_begin());
    if (!expand)
      return rewriter.notifyMatchFailure(share, "the data side is kept");
    rewriter.eraseOp(expand);
    rewriter.replaceAllUsesWith(share.getWeight(), share.getCoord());
    rewriter.eraseOp(share);
    return success();
  }
};

/// R12: a reduction over r : [N] that is only used as r / B and r mod B is two,
/// over [N/B] and [B], of the same kind: the same terms. Side condition: both
/// are reached from data or a weight (C11).
struct MergeOfReduce : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto reduce = merge.getCoord().getDefiningOp<ReduceOp>();
    if (!reduce)
      return rewriter.notifyMatchFailure(merge, "operand is not a reduction");
    llvm::SmallPtrSet<Value, 16> reached = getReached(*merge->getBlock());
    if (!llvm::all_of(merge->getResults(),
                      [&](Value half) { return reached.contains(half); }))
      return rewriter.notifyMatchFailure(merge, "one half is only dropped");
    rewriter.setInsertionPoint(reduce);
    SmallVector<Value, 2> halves;
    for (Value half : merge->getResults())
      halves.push_back(ReduceOp::create(rewriter, reduce.getLoc(),
                                        reduce.getKind(), getSize(half)));
    rewriter.replaceOp(merge, halves);
    rewriter.eraseOp(reduce);
    return success();
  }
};

/// R13: two reductions of the same kind that are only used as B*i + j are one
/// over [G*B]. Side condition: no reduction of another kind that does not
/// commute (max) nests between them; they are neighbours, or no max occurs.
struct SplitOfReduces : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto outer = split.getOuter().getDefiningOp<ReduceOp>();
    auto inner = split.getInner().getDefiningOp<ReduceOp>();
    if (!outer || !inner || outer.getKind() != inner.getKind())
      return rewriter.notifyMatchFailure(
          split, "operands are not two reductions of one kind");
    if (!mayMove(outer, inner))
      return rewriter.notifyMatchFailure(
          split, "a reduction that does not commute nests between");
    // The inner one's place: what nests inside it stays inside.
    ReduceOp later = outer->isBeforeInBlock(inner) ? inner : outer;
    rewriter.setInsertionPoint(later);
    Value whole = ReduceOp::create(rewriter, later.getLoc(), later.getKind(),
                                   getSize(split.getResult()));
    rewriter.replaceOp(split, whole);
    rewriter.eraseOp(outer);
    rewriter.eraseOp(inner);
    return success();
  }

  static bool mayMove(ReduceOp a, ReduceOp b) {
    auto reductions = getReductions(a->getParentOfType<OperatorOp>());
    auto *first =
        llvm::find_if(reductions, [&](ReduceOp r) { return r == a || r == b; });
    auto isSame = [&](ReduceOp r) { return r.getKind() == a.getKind(); };
    auto isLinear = [](ReduceOp r) { return r.getKind() != ReduceKind::Max; };
    auto *last = std::find_if(std::next(first), reductions.end(),
                              [&](ReduceOp r) { return r == a || r == b; });
    return std::all_of(first, last, isSame) ||
           std::all_of(first, std::next(last), isLinear);
  }
};

} // namespace

void kas::populateCanonicalizePatterns(RewritePatternSet &patterns) {
  patterns
      .add<SplitOfMerge, MergeOfSplit, ShiftOfShift, NegativeShift,
           ShiftOfReduce, StrideOfStride, SplitOfOne, UnfoldOfOne, ExpandOfView,
           ExpandOfMerge, ShareOfExpanded, MergeOfReduce, SplitOfReduces>(
          patterns.getContext());
}
