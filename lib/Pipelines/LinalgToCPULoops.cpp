//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace kas {
#define GEN_PASS_DEF_LINALGTOCPULOOPS
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace mlir;

namespace {

/// The parallel loop to put innermost, behind the reductions: the one that
/// walks along the last dimension of the result, if all operands allow vectors
/// in that direction. Convolutions read sums of dimensions, whose last one is
/// as good as a plain one.
std::optional<unsigned> getVectorLoop(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return std::nullopt;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (result.getNumResults() == 0)
    return std::nullopt;
  auto last = dyn_cast<AffineDimExpr>(result.getResults().back());
  if (!last || op.getStaticLoopRanges()[last.getPosition()] < 8)
    return std::nullopt;
  return last.getPosition();
}

/// Parallel loops, then reductions, then the loop for vectors.
linalg::LinalgOp orderLoops(IRRewriter &rewriter, linalg::LinalgOp op) {
  std::optional<unsigned> vectorLoop = getVectorLoop(op);
  if (!vectorLoop)
    return op;
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> general =
        linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return op;
    generic = *general;
  }
  SmallVector<unsigned> order, dims;
  generic.getParallelDims(dims);
  llvm::erase(dims, *vectorLoop);
  order = dims;
  dims.clear();
  generic.getReductionDims(dims);
  llvm::append_range(order, dims);
  order.push_back(*vectorLoop);
  FailureOr<linalg::GenericOp> ordered =
      linalg::interchangeGenericOp(rewriter, generic, order);
  return ordered.value_or(generic);
}

int64_t getNumIterations(linalg::LinalgOp op) {
  int64_t count = 1;
  for (int64_t range : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(range) || llvm::MulOverflow(count, range, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// Makes an `scf.parallel` of one loop of a nest.
void makeParallel(IRRewriter &rewriter, scf::ForOp loop) {
  rewriter.setInsertionPoint(loop);
  auto parallel =
      scf::ParallelOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                              loop.getUpperBound(), loop.getStep());
  rewriter.eraseOp(loop.getBody()->getTerminator());
  rewriter.inlineBlockBefore(loop.getBody(),
                             parallel.getBody()->getTerminator(),
                             parallel.getInductionVars());
  rewriter.eraseOp(loop);
}

struct LinalgToCPULoops : kas::impl::LinalgToCPULoopsBase<LinalgToCPULoops> {
  using LinalgToCPULoopsBase::LinalgToCPULoopsBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (failed(lower(rewriter, op)))
        return signalPassFailure();
  }

  LogicalResult lower(IRRewriter &rewriter, linalg::LinalgOp op) {
    if (!op.hasPureBufferSemantics())
      return op.emitError("expected an operation on buffers");
    bool alreadyParallel = op->getParentOfType<scf::ParallelOp>() != nullptr;
    op = orderLoops(rewriter, op);
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    int64_t work = getNumIterations(op);
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::LinalgLoops> loops =
        linalg::linalgOpToLoops(rewriter, op);
    if (failed(loops))
      return op.emitError("cannot be lowered to loops");
    rewriter.eraseOp(op);
    if (!parallel || alreadyParallel || work < minParallelWork)
      return success();
    for (auto [kind, range, loop] : llvm::zip(kinds, ranges, *loops)) {
      if (kind != utils::IteratorType::parallel)
        break;
      auto forOp = dyn_cast_or_null<scf::ForOp>(loop);
      if (range == 1 || !forOp)
        continue;
      makeParallel(rewriter, forOp);
      break;
    }
    return success();
  }
};

} // namespace
