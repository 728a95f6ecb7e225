//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RepeatElementwise.h"
#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace kas::codegen {
#define GEN_PASS_DEF_FUSEELEMENTWISE
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

bool isCopy(linalg::GenericOp op) {
  return isa<BlockArgument>(op.getBody()->getTerminator()->getOperand(0));
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
  if (consumer.getNumReductionLoops() == 0)
    return true;
  if (isRepeated)
    return false;
  if (isSumInAnyOrder(consumer))
    return true;
  return isCopy(producer) || (getOnlyOperation<arith::MulFOp>(producer) &&
                              getOnlyOperation<arith::AddFOp>(consumer));
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

struct FuseElementwise
    : kas::codegen::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    generalizeAdditions(getOperation());
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // There are no blocks to merge.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // What is fused may be worth repeating.
    do {
      if (failed(applyPatternsGreedily(getOperation(), frozen, config)))
        return signalPassFailure();
    } while (repeatElementwise(getOperation()));
  }
};

} // namespace
