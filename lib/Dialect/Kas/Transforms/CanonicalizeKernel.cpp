//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rewrites E1 to E12 of kernels (docs/reference/tensor-level.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "ShiftPatterns.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

static SymbolicTensorType getTensorType(Value value) {
  return cast<SymbolicTensorType>(value.getType());
}

static bool isOne(SizeAttr size) { return size.getConstantValue() == 1; }

/// The op of this type that makes `value`, or null.
template <typename OpTy>
static OpTy getProducer(Value value) {
  return value.getDefiningOp<OpTy>();
}

namespace {

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

/// E1: transpose [a, b] of transpose [a, b] is the tensor itself, in either
/// order of a and b; so is a transpose of two dimensions of size 1.
struct DoubleTranspose : OpRewritePattern<DagTransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagTransposeOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> dims = op.getDims();
    ArrayRef<SizeAttr> sizes = getTensorType(op.getInput()).getDims();
    if (isOne(sizes[dims[0]]) && isOne(sizes[dims[1]])) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = getProducer<DagTransposeOp>(op.getInput());
    if (!inner || (inner.getDims() != dims &&
                   inner.getDims() != ArrayRef<int64_t>{dims[1], dims[0]}))
      return rewriter.notifyMatchFailure(op, "no transpose of the same "
                                             "dimensions below");
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// E2: reorder and its inverse along one dimension, in either order, are
/// nothing; so is one of at most two positions.
struct ReorderAndBack : OpRewritePattern<DagReorderOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagReorderOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<int64_t> extent =
        getTensorType(op.getInput()).getDims()[op.getDim()].getConstantValue();
    if (extent && *extent <= 2) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = getProducer<DagReorderOp>(op.getInput());
    if (!inner || inner.getDim() != op.getDim() ||
        inner.getInverse() == op.getInverse())
      return rewriter.notifyMatchFailure(op, "no inverse below");
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// E3: shifts of one dimension by d and e are one by d + e, or nothing when
/// that is 0; both causal or both not. D4 must hold for the sum: it does when d
/// and e have different signs, or when the size is a number above it.
struct ShiftOfShift : OpRewritePattern<DagShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagShiftOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = getProducer<DagShiftOp>(op.getInput());
    if (!inner || inner.getDim() != op.getDim() ||
        inner.getCausal() != op.getCausal())
      return rewriter.notifyMatchFailure(op, "no shift of the dimension below");
    std::optional<int64_t> sum =
        addShifts(inner.getAmount(), op.getAmount(),
                  getTensorType(op.getInput()).getDims()[op.getDim()]);
    // A causal shift does not come around.
    int64_t amounts =
        int64_t(inner.getAmount()) + static_cast<int64_t>(op.getAmount());
    if (!sum || (op.getCausal() && *sum != amounts))
      return rewriter.notifyMatchFailure(
          op, "the sum of the amounts may reach the size");
    if (*sum == 0)
      rewriter.replaceOp(op, inner.getInput());
    else
      rewriter.replaceOpWithNewOp<DagShiftOp>(op, inner.getInput(), op.getDim(),
                                              *sum, op.getCausal());
    return success();
  }
};

/// E4: X as F groups, transposed, then as X/F groups, transposed, is X again.
/// One group, or X groups, are nothing to transpose.
struct ShuffleAndBack : OpRewritePattern<DagShuffleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagShuffleOp op,
                                PatternRewriter &rewriter) const override {
    SizeAttr extent = getTensorType(op.getInput()).getDims()[op.getDim()];
    if (isOne(op.getFactor()) || op.getFactor() == extent) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = getProducer<DagShuffleOp>(op.getInput());
    if (!inner || inner.getDim() != op.getDim() ||
        inner.getFactor().multiply(op.getFactor()) != extent)
      return rewriter.notifyMatchFailure(op, "no inverse below");
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// The tensor whose channels `value` only groups, or null.
static Value getUngrouped(Value value) {
  if (auto group = getProducer<DagGroupOp>(value))
    return group.getInput();
  auto groupAll = getProducer<DagGroupAllOp>(value);
  return groupAll ? groupAll.getInput() : Value();
}

/// E5: a view of all channels does not see how they were grouped.
struct GroupAllOfGroup : OpRewritePattern<DagGroupAllOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagGroupAllOp op,
                                PatternRewriter &rewriter) const override {
    Value input = getUngrouped(op.getInput());
    if (!input)
      return rewriter.notifyMatchFailure(op, "no group below");
    rewriter.replaceOpWithNewOp<DagGroupAllOp>(op, input);
    return success();
  }
};

/// E5: neither does the output.
struct OutputOfGroup : OpRewritePattern<DagOutputOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagOutputOp op,
                                PatternRewriter &rewriter) const override {
    Value input = getUngrouped(op.getInput());
    if (!input)
      return rewriter.notifyMatchFailure(op, "no group below");
    rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(input); });
    return success();
  }
};

/// E6: as many copies as blocks of a single dimension are a group.
struct AmplifyOnce : OpRewritePattern<DagAmplifyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagAmplifyOp op,
                                PatternRewriter &rewriter) const override {
    SymbolicTensorType type = getTensorType(op.getInput());
    if (type.getNumChannelDims() != 1 ||
        op.getCopies().multiply(op.getChannels()) != type.getDims()[0])
      return rewriter.notifyMatchFailure(op, "not a view of one dimension");
    rewriter.replaceOpWithNewOp<DagGroupOp>(op, op.getInput(), /*dim=*/0,
                                            op.getCopies());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// E7: a group of channels below windows that nothing else reads. The windows
/// come last, so the group keeps its place.
struct GroupBelowUnfold : OpRewritePattern<DagGroupOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagGroupOp op,
                                PatternRewriter &rewriter) const override {
    auto unfold = getProducer<DagUnfoldOp>(op.getInput());
    if (!unfold || !unfold.getResult().hasOneUse() ||
        int64_t(op.getDim()) >=
            getTensorType(unfold.getInput()).getNumChannelDims())
      return rewriter.notifyMatchFailure(op, "no windows of its own below");
    auto group = DagGroupOp::create(rewriter, op.getLoc(), unfold.getInput(),
                                    op.getDim(), op.getFactor());
    SmallVector<int64_t> dims = llvm::map_to_vector(
        unfold.getDims(), [](int64_t dim) { return dim + 1; });
    rewriter.replaceOpWithNewOp<DagUnfoldOp>(
        op, group, dims, unfold.getWindows(), unfold.getDilation(),
        unfold.getCausal());
    return success();
  }
};

/// E8: windows, then a layer over the channels, are a convolution. The weight
/// has the same shape: channels, then windows.
struct LayerOfUnfold : OpRewritePattern<DagFCOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagFCOp op,
                                PatternRewriter &rewriter) const override {
    auto unfold = getProducer<DagUnfoldOp>(op.getInput());
    if (!unfold || int64_t(op.getGroups()) >
                       getTensorType(unfold.getInput()).getNumChannelDims())
      return rewriter.notifyMatchFailure(op, "no windows of channels below");
    rewriter.replaceOpWithNewOp<DagConvOp>(
        op, unfold.getInput(), op.getGroups(), unfold.getDims(),
        unfold.getWindows(), unfold.getDilation(), op.getChannels(),
        unfold.getCausal());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions and folds
//===----------------------------------------------------------------------===//

/// The function of no value is below +0.
static bool isNeverNegative(Value value) {
  if (getProducer<DagSoftmaxOp>(value))
    return true;
  auto op = getProducer<DagUnaryOp>(value);
  return op && llvm::is_contained({DagUnaryKind::ReLU, DagUnaryKind::Sigmoid,
                                   DagUnaryKind::Abs, DagUnaryKind::Exp,
                                   DagUnaryKind::Sqrt, DagUnaryKind::Sqr},
                                  op.getKind());
}

/// E9: relu and abs of what is never negative; neg of neg.
struct FunctionOfFunction : OpRewritePattern<DagUnaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagUnaryOp op,
                                PatternRewriter &rewriter) const override {
    DagUnaryKind kind = op.getKind();
    bool keeps = kind == DagUnaryKind::ReLU || kind == DagUnaryKind::Abs;
    if (keeps && isNeverNegative(op.getInput())) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = getProducer<DagUnaryOp>(op.getInput());
    if (kind != DagUnaryKind::Neg || !inner ||
        inner.getKind() != DagUnaryKind::Neg)
      return rewriter.notifyMatchFailure(op, "no function that it undoes");
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// E10: abs, sqr and sqrt (of the absolute value) do not see a sign.
struct FunctionOfSign : OpRewritePattern<DagUnaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagUnaryOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = getProducer<DagUnaryOp>(op.getInput());
    if (!inner ||
        !llvm::is_contained(
            {DagUnaryKind::Abs, DagUnaryKind::Sqr, DagUnaryKind::Sqrt},
            op.getKind()) ||
        !llvm::is_contained({DagUnaryKind::Neg, DagUnaryKind::Abs},
                            inner.getKind()))
      return rewriter.notifyMatchFailure(op, "no sign below");
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(inner.getInput()); });
    return success();
  }
};

/// E11: folds of one kind are one; over sizes of 1 all kinds are the same.
struct FoldOfFold : OpRewritePattern<DagFoldOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagFoldOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<SizeAttr> sizes = getTensorType(op.getInput()).getDims();
    if (op.getKind() != DagFoldKind::Sum &&
        llvm::all_of(op.getDims(),
                     [&](int64_t dim) { return isOne(sizes[dim]); })) {
      rewriter.modifyOpInPlace(op, [&] { op.setKind(DagFoldKind::Sum); });
      return success();
    }
    auto inner = getProducer<DagFoldOp>(op.getInput());
    if (!inner || inner.getKind() != op.getKind())
      return rewriter.notifyMatchFailure(op, "no fold of its kind below");
    // The outer dimensions are counted without the inner ones.
    SmallVector<int64_t> dims(inner.getDims()), kept;
    int64_t rank = getTensorType(inner.getInput()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(inner.getDims(), dim))
        kept.push_back(dim);
    for (int64_t dim : op.getDims())
      dims.push_back(kept[dim]);
    llvm::sort(dims);
    rewriter.replaceOpWithNewOp<DagFoldOp>(op, op.getKind(), inner.getInput(),
                                           dims);
    return success();
  }
};

/// E11: so are pools of the same dimensions; windows of 1 are nothing.
struct PoolOfPool : OpRewritePattern<DagPoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagPoolOp op,
                                PatternRewriter &rewriter) const override {
    auto windows = op.getWindows().getAsRange<SizeAttr>();
    if (llvm::all_of(windows, isOne)) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = getProducer<DagPoolOp>(op.getInput());
    if (!inner || inner.getKind() != op.getKind() ||
        inner.getDims() != op.getDims())
      return rewriter.notifyMatchFailure(op, "no pool of its kind below");
    SmallVector<Attribute> products;
    for (auto [outer, below] :
         llvm::zip_equal(windows, inner.getWindows().getAsRange<SizeAttr>())) {
      SizeAttr product = outer.multiply(below);
      if (!product)
        return rewriter.notifyMatchFailure(op, "the windows do not fit");
      products.push_back(product);
    }
    rewriter.replaceOpWithNewOp<DagPoolOp>(op, op.getKind(), inner.getInput(),
                                           op.getDims(),
                                           rewriter.getArrayAttr(products));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Blending
//===----------------------------------------------------------------------===//

/// Whether element meets element of two tensors of one shape.
static bool isPointwise(DagBroadcastOp op) {
  return op.getLeft().getType() == op.getRight().getType();
}

/// Whether `a` is before `b`; inputs come first.
static bool isBefore(Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first && !second)
    return cast<BlockArgument>(a).getArgNumber() <
           cast<BlockArgument>(b).getArgNumber();
  return !first || (second && first->isBeforeInBlock(second));
}

/// E12: the least and the greatest of a tensor and itself; other operands that
/// commute are in program order, and all of their dimensions are common.
struct OrderedBlend : OpRewritePattern<DagBroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DagBroadcastOp op,
                                PatternRewriter &rewriter) const override {
    if (!isPointwise(op))
      return rewriter.notifyMatchFailure(op, "shapes differ");
    DagBroadcastKind kind = op.getKind();
    Value left = op.getLeft(), right = op.getRight();
    if (left == right &&
        (kind == DagBroadcastKind::Min || kind == DagBroadcastKind::Max)) {
      rewriter.replaceOp(op, left);
      return success();
    }
    int64_t rank = getTensorType(left).getRank();
    // Subtraction does not commute.
    bool isOrdered =
        kind == DagBroadcastKind::Sub || left == right || isBefore(left, right);
    // Of equal shapes every split into prefix and suffix is the same operation.
    bool isCommon = op.getCommon() == ArrayRef<int64_t>{rank, 0};
    if (isOrdered && isCommon)
      return rewriter.notifyMatchFailure(op, "in order already");
    if (!isOrdered)
      std::swap(left, right);
    rewriter.replaceOpWithNewOp<DagBroadcastOp>(op, kind, left, right,
                                                ArrayRef<int64_t>{rank, 0});
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// All rules
//===----------------------------------------------------------------------===//

/// All have the same benefit; the driver visits ops in program order.
void kas::populateKernelCanonicalizePatterns(RewritePatternSet &patterns) {
  patterns.add<DoubleTranspose, ReorderAndBack, ShiftOfShift, ShuffleAndBack,
               GroupAllOfGroup, OutputOfGroup, AmplifyOnce, GroupBelowUnfold,
               LayerOfUnfold, FunctionOfFunction, FunctionOfSign, FoldOfFold,
               PoolOfPool, OrderedBlend>(patterns.getContext());
}

/// Erases steps without weights that nothing reads. Those with weights stay:
/// callers pass weights by their order.
static bool eraseUnread(KernelOp kernel) {
  bool changed = false;
  SmallVector<DagOpInterface> steps(kernel.getBody().getOps<DagOpInterface>());
  // Backwards: a step is read only by later ones.
  for (DagOpInterface step : llvm::reverse(steps)) {
    if (!step->use_empty() || !step.getParams().empty())
      continue;
    step->erase();
    changed = true;
  }
  return changed;
}

namespace {
/// Whether a sweep has done anything.
struct ChangeListener : RewriterBase::Listener {
  void notifyOperationReplaced(Operation *, ValueRange) override {
    changed = true;
  }
  void notifyOperationModified(Operation *) override { changed = true; }
  bool changed = false;
};
} // namespace

bool kas::canonicalizeKernel(KernelOp kernel,
                             const FrozenRewritePatternSet &patterns) {
  bool changed = eraseUnread(kernel);
  // Every rule takes a step away, or moves one down or into order once.
  for (ChangeListener listener;; listener.changed = false) {
    walkAndApplyPatterns(kernel, patterns, &listener);
    if (!listener.changed)
      return changed;
    eraseUnread(kernel);
    changed = true;
  }
}

bool kas::canonicalizeKernel(KernelOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  populateKernelCanonicalizePatterns(patterns);
  return canonicalizeKernel(kernel, std::move(patterns));
}
