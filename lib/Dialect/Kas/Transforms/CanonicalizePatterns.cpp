//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rewrites of operators but those of shifts, one pattern each, with its
// side condition (docs/reference/dialect.md).
// Each rule's identity is exact at every legal binding; a rule never changes
// what weights are indexed by, so that their shapes stay.
//
//===----------------------------------------------------------------------===//

#include "ShiftPatterns.h"
#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace kas;

// Notation: x : [N] is a coordinate x of size N. Each coordinate has exactly
// one use (C9), so a rule that takes a coordinate away from its only user may
// change the op that makes it.

bool kas::isIntegral(SizeAttr size) {
  if (!size || !size.getValue().hasIntegerConstant())
    return false;
  return llvm::all_of(llvm::seq<size_t>(size.getNames().size()), [&](size_t i) {
    return size.getValue().getExponent(i) >= 0;
  });
}

namespace {

bool isOne(Value coordinate) {
  return getSize(coordinate).getConstantValue() == 1;
}

/// The coordinates of the operator that data or weights depend on when
/// `dropped` are only dropped.
llvm::SmallPtrSet<Value, 16> getReached(Block &block,
                                        ArrayRef<Value> dropped = {}) {
  llvm::SmallPtrSet<Value, 16> reached;
  for (Operation &op : llvm::reverse(block))
    if (isa<YieldOp>(op) || llvm::any_of(op.getResults(), [&](Value result) {
          return reached.contains(result);
        }))
      for (Value operand : op.getOperands())
        if (!llvm::is_contained(dropped, operand))
          reached.insert(operand);
  return reached;
}

/// Whether a reduction may go when nothing depends on its coordinate: the sum
/// over N equal terms is another function, their mean and maximum are not.
bool isIdle(ReduceOp reduce) {
  return reduce.getKind() != ReduceKind::Sum || isOne(reduce.getResult());
}

/// Whether `coordinates`, of `block`, may be dropped instead of used: each
/// reduction they depend on is reached without them (C11), or is one (R9).
bool areDroppable(ArrayRef<Value> coordinates, Block &block) {
  llvm::SmallPtrSet<Value, 16> reached = getReached(block, coordinates);
  return llvm::all_of(block.getOps<ReduceOp>(), [&](ReduceOp reduce) {
    return llvm::is_contained(coordinates, reduce.getResult())
               ? isIdle(reduce)
               : reached.contains(reduce.getResult());
  });
}
bool isDroppable(Value coordinate) {
  return areDroppable(coordinate, *coordinate.getParentBlock());
}

/// Whether `coordinates` together may take the place of `half`: when that is
/// only dropped, so may they be. A reduction among them goes with an expand
/// (R9), but not below an unfold that is dropped.
/// Without it R2 could make an operator that violates C11: a reduction that
/// only an expand uses.
bool mayReplace(Value half, ArrayRef<Value> coordinates) {
  Block &block = *half.getParentBlock();
  if (getReached(block).contains(half))
    return true;
  bool hasReduce = llvm::any_of(coordinates, [](Value coordinate) {
    return coordinate.getDefiningOp<ReduceOp>();
  });
  return (!hasReduce || isa<ExpandOp>(*half.user_begin())) &&
         areDroppable(coordinates, block);
}

/// What is next to the outer operand of a split: the inner one, or the outer
/// operand of the split that it is.
std::pair<Value, SplitOp> getNeighbor(SplitOp split) {
  auto nested = split.getInner().getDefiningOp<SplitOp>();
  return {nested ? nested.getOuter() : split.getInner(), nested};
}

/// Replaces the outer operand of `split` and its neighbor by `whole`.
void replaceBoth(SplitOp split, SplitOp nested, Value whole,
                 PatternRewriter &rewriter) {
  if (!nested)
    return rewriter.replaceOp(split, whole);
  rewriter.replaceOpWithNewOp<SplitOp>(split, whole, nested.getInner());
  rewriter.eraseOp(nested);
}

/// R1: split(i / B, i mod B) = i, and so beside a third coordinate x:
/// split(i / B, split(i mod B, x)) = split(i, x).
struct SplitOfMerge : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto merge = split.getOuter().getDefiningOp<MergeOp>();
    auto [neighbor, nested] = getNeighbor(split);
    if (!merge || split.getOuter() != merge.getQuotient() ||
        neighbor != merge.getRemainder())
      return rewriter.notifyMatchFailure(
          split, "operands are not both halves of one merge");
    replaceBoth(split, nested, merge.getCoord(), rewriter);
    rewriter.eraseOp(merge);
    return success();
  }
};

/// R2: t = B*i + j with j : [B]: t / B = i and t mod B = j. So for splits of
/// splits: the last factors of size B together are t mod B. Side condition: no
/// reduction is lost when one of them is only dropped (C11).
struct MergeOfSplit : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    SmallVector<SplitOp> splits;
    Value low = merge.getCoord();
    while (getSize(low) != merge.getBlock()) {
      auto split = low.getDefiningOp<SplitOp>();
      if (!split)
        return rewriter.notifyMatchFailure(
            merge, "operand is not a split with an inner operand of this size");
      splits.push_back(split);
      low = split.getInner();
    }
    if (splits.empty())
      return rewriter.notifyMatchFailure(merge, "operand is not a split");
    SmallVector<Value> factors = llvm::map_to_vector(
        splits, [](SplitOp split) -> Value { return split.getOuter(); });
    if (!mayReplace(merge.getQuotient(), factors) ||
        !mayReplace(merge.getRemainder(), low))
      return rewriter.notifyMatchFailure(merge, "a reduction would be lost");
    Value high = factors.pop_back_val();
    for (Value factor : llvm::reverse(factors))
      high = SplitOp::create(rewriter, merge.getLoc(), factor, high);
    rewriter.replaceOp(merge, {high, low});
    for (SplitOp split : splits)
      rewriter.eraseOp(split);
    return success();
  }
};

/// R15: merges are below splits. t = A*i + j with j : [A]: t / (A*B) = i / B
/// and t mod (A*B) = A*(i mod B) + j; and where A = B*C, t / B = C*i + j / B
/// and t mod B = j mod B. Side conditions: B, and C, have no denominator; no
/// reduction is lost when one half is only dropped (C11).
/// Example: with A = 4, B = 2 the halves of split(i, j) by 8 are i / 2 and
/// split(i mod 2, j); by 2 they are split(i, j / 2) and j mod 2.
struct MergeInSplit : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto split = merge.getCoord().getDefiningOp<SplitOp>();
    if (!split)
      return rewriter.notifyMatchFailure(merge, "operand is not a split");
    SizeAttr inner = getSize(split.getInner()), block = merge.getBlock();
    if (inner == block)
      return rewriter.notifyMatchFailure(merge, "the halves are the operands");
    Location loc = merge.getLoc();
    if (SizeAttr outerBlock = block.divide(inner); isIntegral(outerBlock)) {
      if (!mayReplace(merge.getRemainder(), split.getInner()))
        return rewriter.notifyMatchFailure(merge, "a reduction would be lost");
      auto outer = MergeOp::create(rewriter, loc, split.getOuter(), outerBlock);
      Value low = SplitOp::create(rewriter, loc, outer.getRemainder(),
                                  split.getInner());
      rewriter.replaceOp(merge, {outer.getQuotient(), low});
    } else if (isIntegral(inner.divide(block))) {
      if (!mayReplace(merge.getQuotient(), split.getOuter()))
        return rewriter.notifyMatchFailure(merge, "a reduction would be lost");
      auto lower = MergeOp::create(rewriter, loc, split.getInner(), block);
      Value high =
          SplitOp::create(rewriter, loc, split.getOuter(), lower.getQuotient());
      rewriter.replaceOp(merge, {high, lower.getRemainder()});
    } else {
      return rewriter.notifyMatchFailure(
          merge, "neither of the block and the inner size divides the other");
    }
    rewriter.eraseOp(split);
    return success();
  }
};

/// R14: split(split(a, b), c) = split(a, split(b, c)).
struct SplitOfSplit : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto outer = split.getOuter().getDefiningOp<SplitOp>();
    if (!outer)
      return rewriter.notifyMatchFailure(split,
                                         "the outer operand is not a split");
    if (!getSize(outer.getInner()).multiply(getSize(split.getInner())))
      return rewriter.notifyMatchFailure(split, "the product does not fit");
    Value inner = SplitOp::create(rewriter, split.getLoc(), outer.getInner(),
                                  split.getInner());
    rewriter.replaceOpWithNewOp<SplitOp>(split, outer.getOuter(), inner);
    rewriter.eraseOp(outer);
    return success();
  }
};

/// R16: remainders are merged, quotients are not: (i / B) / C = i / (B*C), and
/// with t = i mod (B*C), (i / B) mod C = t / B and i mod B = t mod B.
struct MergeOfQuotient : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto lower = merge.getCoord().getDefiningOp<MergeOp>();
    if (!lower || merge.getCoord() != lower.getQuotient())
      return rewriter.notifyMatchFailure(merge, "operand is not a quotient");
    SizeAttr block = merge.getBlock().multiply(lower.getBlock());
    if (!block)
      return rewriter.notifyMatchFailure(merge, "the product does not fit");
    // Uses of the lower remainder may be before the upper merge.
    rewriter.setInsertionPoint(lower);
    auto high =
        MergeOp::create(rewriter, merge.getLoc(), lower.getCoord(), block);
    auto low = MergeOp::create(rewriter, lower.getLoc(), high.getRemainder(),
                               lower.getBlock());
    rewriter.replaceOp(merge, {high.getQuotient(), low.getQuotient()});
    rewriter.replaceAllUsesWith(lower.getRemainder(), low.getRemainder());
    rewriter.eraseOp(lower);
    return success();
  }
};

/// R17: dropping both i / A and (i mod A) / B drops i / B.
struct ExpandOfQuotients : OpRewritePattern<MergeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MergeOp merge,
                                PatternRewriter &rewriter) const override {
    auto lower = merge.getCoord().getDefiningOp<MergeOp>();
    if (!lower || merge.getCoord() != lower.getRemainder())
      return rewriter.notifyMatchFailure(merge, "operand is not a remainder");
    auto upperExpand = dyn_cast<ExpandOp>(*merge.getQuotient().user_begin());
    auto lowerExpand = dyn_cast<ExpandOp>(*lower.getQuotient().user_begin());
    if (!upperExpand || !lowerExpand)
      return rewriter.notifyMatchFailure(merge, "a quotient is kept");
    auto whole = MergeOp::create(rewriter, merge.getLoc(), lower.getCoord(),
                                 merge.getBlock());
    ExpandOp::create(rewriter, upperExpand.getLoc(), whole.getQuotient());
    rewriter.eraseOp(upperExpand);
    rewriter.eraseOp(lowerExpand);
    rewriter.replaceAllUsesWith(merge.getRemainder(), whole.getRemainder());
    rewriter.eraseOp(merge);
    rewriter.eraseOp(lower);
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
    if (!isDroppable(dropped))
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
    if (!isDroppable(window))
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

/// R13: two reductions of the same kind that are only used as B*i + j, also
/// beside a third coordinate, are one over [G*B]. Side condition: no reduction
/// of another kind that does not commute (max) nests between them; they are
/// neighbours, or no max occurs.
struct SplitOfReduces : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp split,
                                PatternRewriter &rewriter) const override {
    auto outer = split.getOuter().getDefiningOp<ReduceOp>();
    auto [neighbor, nested] = getNeighbor(split);
    auto inner = neighbor.getDefiningOp<ReduceOp>();
    if (!outer || !inner || outer.getKind() != inner.getKind())
      return rewriter.notifyMatchFailure(
          split, "operands are not two reductions of one kind");
    if (!mayMove(outer, inner))
      return rewriter.notifyMatchFailure(
          split, "a reduction that does not commute nests between");
    SizeAttr size = getSize(outer.getResult()).multiply(getSize(neighbor));
    if (!size)
      return rewriter.notifyMatchFailure(split, "the product does not fit");
    // The inner one's place: what nests inside it stays inside.
    ReduceOp later = outer->isBeforeInBlock(inner) ? inner : outer;
    rewriter.setInsertionPoint(later);
    Value whole =
        ReduceOp::create(rewriter, later.getLoc(), later.getKind(), size);
    rewriter.setInsertionPoint(split);
    replaceBoth(split, nested, whole, rewriter);
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
  patterns.add<SplitOfMerge, MergeOfSplit, StrideOfStride, SplitOfOne,
               UnfoldOfOne, ExpandOfView, ExpandOfMerge, ShareOfExpanded,
               MergeOfReduce, SplitOfReduces, SplitOfSplit, MergeInSplit,
               MergeOfQuotient, ExpandOfQuotients>(patterns.getContext());
  populateShiftPatterns(patterns);
}
