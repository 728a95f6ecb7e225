//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Concatenations that extend each other share a tensor: `concat(a, b)` and,
// later, `concat(a, b, c)` become slices of one tensor into which each input is
// inserted once. Densely connected networks (Huang et al., "Densely Connected
// Convolutional Networks", CVPR 2017) would else copy all earlier layers again
// for each layer.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGROWCONCATSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Each has the inputs of the one before it and more after them.
using Chain = SmallVector<tensor::ConcatOp>;

/// Whether slices from the beginning of the result lie together. All dimensions
/// before that of the concatenation have one element, so that the beginning of
/// the result is one piece of memory: a view and not a copy. Shapes must be
/// static, since offsets are sums of sizes.
static bool isContiguous(tensor::ConcatOp op) {
  RankedTensorType type = op.getResultType();
  return type.hasStaticShape() &&
         llvm::all_of(
             op.getInputs(),
             [](Value input) {
               return cast<ShapedType>(input.getType()).hasStaticShape();
             }) &&
         llvm::all_of(type.getShape().take_front(op.getDim()),
                      [](int64_t size) { return size == 1; });
}

/// Whether `later` has all inputs of `earlier`, in the same order, and others
/// after them.
static bool extends(tensor::ConcatOp later, tensor::ConcatOp earlier) {
  unsigned count = earlier.getInputs().size();
  return later.getDim() == earlier.getDim() &&
         later.getInputs().size() > count &&
         later.getInputs().take_front(count) == earlier.getInputs();
}

/// Whether something uses `op` that is not before `later`, in another block for
/// instance.
static bool isUsedAfter(tensor::ConcatOp op, tensor::ConcatOp later) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    // The users of `op` read a tensor into which `later` inserts more.
    // Bufferization does that in place only if all of them come before.
    return user->getBlock() != later->getBlock() ||
           !user->isBeforeInBlock(later);
  });
}

/// The chains of a block, each as long as it gets.
static SmallVector<Chain> findChains(Block &block) {
  SmallVector<Chain> chains;
  for (auto op : block.getOps<tensor::ConcatOp>()) {
    if (!isContiguous(op))
      continue;
    // The latest chain first: it is the longest one with this beginning.
    auto extended = llvm::find_if(llvm::reverse(chains), [&](Chain &chain) {
      return extends(op, chain.back()) && !isUsedAfter(chain.back(), op);
    });
    if (extended != chains.rend())
      extended->push_back(op);
    else
      chains.push_back({op});
  }
  return chains;
}

/// Each concatenation becomes the insertions that it adds, followed, for all
/// but the last, by a slice from the beginning. Inserting late keeps each
/// input's lifetime as it is.
static void replace(RewriterBase &rewriter, ArrayRef<tensor::ConcatOp> chain) {
  tensor::ConcatOp first = chain.front(), last = chain.back();
  unsigned dim = first.getDim();
  RankedTensorType type = last.getResultType();
  SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(type.getRank(), rewriter.getIndexAttr(1));
  auto getSizes = [&](RankedTensorType part) {
    return getAsIndexOpFoldResult(rewriter.getContext(), part.getShape());
  };
  rewriter.setInsertionPoint(first);
  // The tensor of the last concatenation, made where the first one is.
  Value all = tensor::EmptyOp::create(rewriter, first.getLoc(), type.getShape(),
                                      type.getElementType());
  unsigned numInserted = 0;
  int64_t end = 0;
  for (tensor::ConcatOp op : chain) {
    rewriter.setInsertionPoint(op);
    for (Value input : op.getInputs().drop_front(numInserted)) {
      auto part = cast<RankedTensorType>(input.getType());
      offsets[dim] = rewriter.getIndexAttr(end);
      all = tensor::InsertSliceOp::create(rewriter, op.getLoc(), input, all,
                                          offsets, getSizes(part), ones);
      end += part.getDimSize(dim);
    }
    numInserted = op.getInputs().size();
    // Slices begin at 0.
    offsets[dim] = rewriter.getIndexAttr(0);
    Value result = all;
    if (op != last)
      result =
          tensor::ExtractSliceOp::create(rewriter, op.getLoc(), all, offsets,
                                         getSizes(op.getResultType()), ones);
    rewriter.replaceOp(op, result);
  }
}

namespace {
struct GrowConcats : kas::codegen::impl::KasGrowConcatsPassBase<GrowConcats> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](Block *block) {
      for (const Chain &chain : findChains(*block))
        if (chain.size() > 1) {
          replace(rewriter, chain);
          numShared += chain.size() - 1;
        }
    });
  }
};
} // namespace
