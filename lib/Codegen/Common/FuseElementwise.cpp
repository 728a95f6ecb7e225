//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fuses elementwise operations with their readers where that repeats no work,
// and leaves contractions in the form that register tiles need.
// Upstream's fusion patterns do the rewriting; `shouldFuse` says where. Around
// them: sums of f64 may be reordered, quantized arithmetic is simplified, and
// cheap operations with several readers are repeated (RepeatElementwise.cpp).
//
//===----------------------------------------------------------------------===//

#include "QuantizedArithmetic.h"
#include "RepeatElementwise.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASFUSEELEMENTWISEPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace kas::codegen;
using namespace mlir;

namespace {

/// The only operation in the body of `op`, if it yields that of two of its
/// arguments, each once.
template <typename BinaryOp>
BinaryOp getOnlyOperation(linalg::GenericOp op) {
  Block *body = op.getBody();
  auto only = dyn_cast<BinaryOp>(body->front());
  bool isBody =
      only && body->getOperations().size() == 2 && only->getBlock() == body &&
      body->getTerminator()->getOperand(0) == only->getResult(0) &&
      isa<BlockArgument>(only.getLhs()) && isa<BlockArgument>(only.getRhs());
  return isBody ? only : BinaryOp();
}

/// Whether `op` only moves elements, such as a transpose or a broadcast.
bool isCopy(linalg::GenericOp op) {
  return isa<BlockArgument>(op.getBody()->getTerminator()->getOperand(0));
}

/// Whether `value` does not depend on data of its function: weights, and what
/// is made of them, once ahead of all calls where they are prepacked. Asked
/// again each time: rewriting makes and erases values.
bool isOfWeights(Value value) {
  SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(seen[i])) {
      if (kas::isData(argument))
        return false;
      continue;
    }
    Operation *made = seen[i].getDefiningOp();
    if (!isMemoryEffectFree(made))
      return false;
    seen.insert_range(made->getOperands());
    SetVector<Value> above;
    getUsedValuesDefinedAbove(made->getRegions(), above);
    seen.insert_range(above);
  }
  return true;
}

/// Whether `op` is small, such as one value per channel, and computes
/// something. Made of weights alone it runs once, if weights are prepacked;
/// fused into a reader it would be computed at each pixel.
bool isOfChannels(linalg::GenericOp op) {
  // 64 KiB of f32: far below the activations that read it.
  constexpr int64_t mostElements = 1 << 14;
  if (op->getNumResults() != 1)
    return false;
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  return type.hasStaticShape() && type.getNumElements() <= mostElements &&
         !isCopy(op);
}

/// Fusing must not repeat work: the value has one reader, and that reader
/// computes each of its points once. Of what is summed, only copies and
/// products are fused, which make a contraction: other functions would leave
/// their vectors in a sum, unless its order is free.
bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || !operand->get().hasOneUse())
    return false;
  // A producer that adds to what was there must not do so more than once, which
  // upstream's fusion does not look at.
  bool isRepeated = !consumer.getMatchingIndexingMap(operand).isPermutation();
  OpOperand *init = producer.getDpsInitOperand(0);
  if (isRepeated && producer.payloadUsesValueFromOperand(init))
    return false;
  if (isRepeated && isOfChannels(producer) && isOfWeights(operand->get()))
    return false;
  // Elementwise readers compute each element once or read a broadcast.
  if (consumer.getNumReductionLoops() == 0)
    return true;
  if (isRepeated)
    return false;
  if (isSumInAnyOrder(consumer))
    return true;
  return isCopy(producer) || (getOnlyOperation<arith::MulFOp>(producer) &&
                              getOnlyOperation<arith::AddFOp>(consumer));
}

/// Lets sums of f64 have any order, which changes what f64 rounds, and nothing
/// of what is rounded to f32 later, such as the variance of a layer norm. So
/// what is summed can be computed where it is, and need not be in memory in
/// twice the size.
void freeSums(func::FuncOp function) {
  function.walk([&](linalg::GenericOp op) {
    if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0)
      return;
    auto sum = getOnlyOperation<arith::AddFOp>(op);
    if (sum && sum.getType().isF64())
      sum.setFastmath(sum.getFastmath() | arith::FastMathFlags::reassoc);
  });
}

/// Makes additions of whole tensors operations that can be fused.
void generalizeAdditions(func::FuncOp function) {
  SmallVector<linalg::AddOp> additions;
  function.walk([&](linalg::AddOp op) {
    if (op.hasPureTensorSemantics() && op->hasOneUse() &&
        isa<linalg::GenericOp>(*op->user_begin()))
      additions.push_back(op);
  });
  IRRewriter rewriter(function.getContext());
  for (linalg::AddOp op : additions) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter,
                                    cast<linalg::LinalgOp>(op.getOperation()));
  }
}

/// Moves `op`, and the empty tensors that it writes to, to where the last of
/// its other operands is.
void hoist(linalg::GenericOp op) {
  Operation *last = nullptr;
  SmallVector<Operation *> empty;
  auto add = [&](Value value) {
    Operation *made = value.getDefiningOp();
    if (isa_and_nonnull<tensor::EmptyOp>(made) && made->getNumOperands() == 0)
      empty.push_back(made);
    else if (made && (!last || last->isBeforeInBlock(made)))
      last = made;
  };
  llvm::for_each(op->getOperands(), add);
  SetVector<Value> above;
  getUsedValuesDefinedAbove(op->getRegions(), above);
  llvm::for_each(above, add);
  if (last)
    op->moveAfter(last);
  else
    op->moveBefore(op->getBlock(), op->getBlock()->begin());
  for (Operation *made : empty)
    if (op->isBeforeInBlock(made))
      made->moveBefore(op);
}

/// Moves what weights alone decide for channels to where its operands are, so
/// that it is not between a sum and what reads that.
void hoistChannels(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  for (auto op : function.getOps<linalg::GenericOp>())
    if (isOfChannels(op) && isOfWeights(op.getResult(0)))
      ops.push_back(op);
  for (linalg::GenericOp op : ops)
    hoist(op);
}

struct FuseElementwise
    : kas::codegen::impl::KasFuseElementwisePassBase<FuseElementwise> {
  void runOnOperation() override {
    freeSums(getOperation());
    generalizeAdditions(getOperation());
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    populateQuantizedArithmeticPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // A function on tensors has one block here: no region to simplify.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // What is fused may be worth repeating.
    do {
      if (failed(applyPatternsGreedily(getOperation(), frozen, config)))
        return signalPassFailure();
    } while (repeatElementwise(getOperation()));
    hoistChannels(getOperation());
  }
};

} // namespace
