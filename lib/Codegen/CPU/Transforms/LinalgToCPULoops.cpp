//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers linalg operations on buffers that no register tile computes to loops
// in an order that LLVM vectorizes, with parallel loops where the work
// suffices.
//
// For each operation, in this order: transposes in registers; parallel loops,
// reductions, vector loop (`orderLoops`); neighbouring loops joined
// (`collapseLoops`); permission to reorder a sum (`allowVectors`); loops; one
// `scf.parallel` of the outermost ones (`makeParallel`), which a copy into what
// was filled before shares with the filling (`joinCopy`).
//
//===----------------------------------------------------------------------===//

#include "../Emit/TransposeEmitter.h"
#include "../Strategy/ContractionTarget.h"
#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLINALGTOCPULOOPSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas::codegen;
using namespace mlir;

namespace {

/// The parallel loop to put innermost, inside the reductions: the one that
/// steps along the last dimension of the result, if all operands allow vectors
/// in that direction. Convolutions read sums of dimensions, whose last one is
/// as good as a plain one.
std::optional<unsigned> getVectorLoop(linalg::LinalgOp op) {
  // Without reductions loops are in the order of the output as they are.
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return std::nullopt;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (result.getNumResults() == 0)
    return std::nullopt;
  auto last = dyn_cast<AffineDimExpr>(result.getResults().back());
  // Shorter loops fill no vector of 256 bits.
  if (!last || op.getStaticLoopRanges()[last.getPosition()] < 8)
    return std::nullopt;
  // An input that steps along a reduction has its vectors there.
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0 || !map.isFunctionOfDim(last.getPosition()))
      continue;
    auto along = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (along && kinds[along.getPosition()] == utils::IteratorType::reduction)
      return std::nullopt;
  }
  return last.getPosition();
}

/// Parallel loops, then reductions, then the loop for vectors. Returns the
/// operation in that order; `op` itself where no loop suits.
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
  // `order[i]` is the loop that becomes number `i`.
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

/// Whether the loops `loop` and `loop + 1` are of one kind, and all operands of
/// `op` have both dimensions side by side, or neither of them.
bool isCollapsible(linalg::LinalgOp op, unsigned loop) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  return kinds[loop] == kinds[loop + 1] &&
         llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           AffineMap map = op.getMatchingIndexingMap(&operand);
           std::optional<unsigned> outer =
               map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
           std::optional<unsigned> inner = map.getResultPosition(
               getAffineDimExpr(loop + 1, map.getContext()));
           // Neither: the operand is the same in both loops, a broadcast.
           if (!outer && !inner)
             return true;
           return outer && inner && *inner == *outer + 1 &&
                  memref::CollapseShapeOp::isGuaranteedCollapsible(
                      cast<MemRefType>(operand.get().getType()),
                      ReassociationIndices{*outer, *inner});
         });
}

/// Leaves out dimensions of size 1 at whose only place an operand is read or
/// written, such as height and width of a mean over them: loops that the others
/// step through can then be one.
void dropUnitResults(IRRewriter &rewriter, linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic)
    return;
  rewriter.setInsertionPoint(op);
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    AffineMap &map = maps[operand.getOperandNumber()];
    if (!type || !type.hasStaticShape())
      continue;
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> results;
    for (auto [size, result] :
         llvm::zip_equal(type.getShape(), map.getResults()))
      // A dimension of size 1 read at another expression is out of bounds or a
      // loop of one iteration; only the constant 0 says so plainly.
      if (size != 1 || result != rewriter.getAffineConstantExpr(0)) {
        shape.push_back(size);
        results.push_back(result);
      }
    if (results.size() == map.getNumResults())
      continue;
    FailureOr<Value> reduced = memref::SubViewOp::rankReduceIfNeeded(
        rewriter, op.getLoc(), operand.get(), shape);
    // A layout that has no view of lower rank.
    if (failed(reduced))
      continue;
    operand.set(*reduced);
    map = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
  }
  generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
}

/// Makes one loop of neighbours that all operands step through as if they were
/// one: an image of any width then has whole vectors. `isKept` says which
/// parallel loops stay as they are.
linalg::LinalgOp collapseLoops(IRRewriter &rewriter, linalg::LinalgOp op,
                               llvm::function_ref<bool(unsigned)> isKept) {
  // What upstream's collapsing takes: buffers indexed by loops, each once, and
  // scalars.
  auto isPlain = [&](OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand).isProjectedPermutation() &&
           (isa<MemRefType>(operand.get().getType()) ||
            op.getMatchingIndexingMap(&operand).getNumResults() == 0);
  };
  if (op.getNumLoops() < 2 || op.hasIndexSemantics() ||
      !llvm::all_of(op->getOpOperands(), isPlain))
    return op;
  // Each group becomes one loop. It grows while the next loop is one with the
  // last of the group.
  SmallVector<ReassociationIndices> groups{{0}};
  for (unsigned loop = 0; loop + 1 < op.getNumLoops(); ++loop)
    if (isCollapsible(op, loop) && !isKept(loop))
      groups.back().push_back(loop + 1);
    else
      groups.push_back({loop + 1});
  // LLVM makes calls of the C library of the lines of fills and copies.
  bool isMoved = llvm::hasSingleElement(*op.getBlock());
  if (groups.back().size() == 1 || isMoved)
    return op;
  rewriter.setInsertionPoint(op);
  if (!isa<linalg::GenericOp>(op)) {
    FailureOr<linalg::GenericOp> general =
        linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return op;
    op = *general;
  }
  FailureOr<linalg::CollapseResult> collapsed =
      linalg::collapseOpIterationDims(op, groups, rewriter);
  if (failed(collapsed))
    return op;
  rewriter.eraseOp(op);
  return collapsed->collapsedOp;
}

/// Whether LLVM would unroll a loop of `range` steps completely, before it is
/// vectorized, and vectors with the few steps that remain are faster: as
/// measured on depthwise convolutions of all widths.
bool isUnrolledTooEarly(int64_t range) {
  return range == 8 || (range >= 16 && range <= 40 && range % 4 == 0);
}

/// Keeps LLVM from unrolling a loop.
void keepLoop(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true),
                                          {}, {}, {}, {}, {}, {});
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(
                                       context, {}, {}, {}, unroll, {}, {}, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}));
}

/// Lets LLVM take a sum along the innermost loop in vectors, which changes its
/// order, or a maximum: it knows that of its own, and not what it is expanded
/// to, comparisons and selections that propagate NaN.
void allowVectors(linalg::LinalgOp op) {
  if (op.getNumLoops() == 0 || op.getNumDpsInits() != 1 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
    return;
  Block *body = op.getBlock();
  // The operation that joins the accumulator, the last argument of the body,
  // with a term.
  Operation *combiner = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !combiner->hasOneUse() ||
      !llvm::is_contained(combiner->getOperands(), body->getArguments().back()))
    return;
  // Only this addition may be reordered; the flag is needed, as LLVM keeps the
  // order of floating-point sums otherwise.
  if (auto sum = dyn_cast<arith::AddFOp>(combiner)) {
    sum.setFastmath(sum.getFastmath() | arith::FastMathFlags::reassoc);
    return;
  }
  OpBuilder builder(combiner);
  Operation *intrinsic = nullptr;
  if (isa<arith::MaximumFOp>(combiner))
    intrinsic = LLVM::MaximumOp::create(builder, combiner->getLoc(),
                                        combiner->getOperands());
  else if (isa<arith::MinimumFOp>(combiner))
    intrinsic = LLVM::MinimumOp::create(builder, combiner->getLoc(),
                                        combiner->getOperands());
  if (!intrinsic)
    return;
  combiner->replaceAllUsesWith(intrinsic);
  combiner->erase();
}

/// The product of all extents; the largest number where one is unknown, which
/// counts as enough work to share.
int64_t getNumIterations(linalg::LinalgOp op) {
  int64_t count = 1;
  for (int64_t range : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(range) || llvm::MulOverflow(count, range, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// Whether `threads` threads that share `points` iterations are busy for all
/// but a small part of the time; 0 threads: any usual number of them.
bool isBalanced(int64_t points, int64_t threads) {
  if (threads == 0)
    return points >= 64;
  // Iterations if all threads had as many as the busiest one.
  int64_t slots = llvm::divideCeil(points, threads) * threads;
  // 6 %, as docs/reference/passes.md promises.
  return slots - points <= points / 16;
}

/// How many of the outermost loops threads share, so that each has the same
/// work: all but the innermost one, which steps through consecutive memory, if
/// fewer do not.
unsigned countShared(ArrayRef<utils::IteratorType> kinds,
                     ArrayRef<int64_t> ranges, int64_t threads) {
  unsigned count = 0;
  int64_t points = 1;
  for (auto [kind, range] : llvm::zip_equal(kinds, ranges)) {
    bool isLast = count + 1 == ranges.size();
    if (kind != utils::IteratorType::parallel || ShapedType::isDynamic(range) ||
        (points > 1 && (isLast || isBalanced(points, threads))))
      break;
    points *= range;
    ++count;
  }
  return count;
}

/// The outermost loops to share: as few as give all threads the same work. The
/// innermost one stays, because it steps through consecutive memory.
SmallVector<scf::ForOp> chooseShared(ArrayRef<utils::IteratorType> kinds,
                                     ArrayRef<int64_t> ranges,
                                     ArrayRef<Operation *> loops,
                                     int64_t threads) {
  SmallVector<scf::ForOp> shared;
  int64_t points = 1;
  for (auto [kind, range, loop] : llvm::zip(kinds, ranges, loops)) {
    auto forOp = dyn_cast_or_null<scf::ForOp>(loop);
    // Parallel loops before the first reduction, nested directly.
    if (kind != utils::IteratorType::parallel || !forOp)
      break;
    // Enough points already, or only the innermost loop is left.
    if (points > 1 && (loop == loops.back() || isBalanced(points, threads)))
      break;
    // A loop that runs once has nothing to share.
    if (points == 1)
      shared.clear();
    shared.push_back(forOp);
    points *= range;
  }
  return points > 1 ? shared : SmallVector<scf::ForOp>();
}

/// Makes one `scf.parallel` of loops that are nested directly.
scf::ParallelOp makeParallel(IRRewriter &rewriter, ArrayRef<scf::ForOp> loops) {
  SmallVector<Value> lower, upper, steps;
  for (scf::ForOp loop : loops) {
    lower.push_back(loop.getLowerBound());
    upper.push_back(loop.getUpperBound());
    steps.push_back(loop.getStep());
  }
  scf::ForOp outermost = loops.front(), innermost = loops.back();
  rewriter.setInsertionPoint(outermost);
  auto parallel = scf::ParallelOp::create(rewriter, outermost.getLoc(), lower,
                                          upper, steps);
  SmallVector<Value> indices(parallel.getInductionVars());
  for (unsigned i = 0; i + 1 < loops.size(); ++i) {
    scf::ForOp loop = loops[i];
    rewriter.replaceAllUsesWith(loop.getInductionVar(), indices[i]);
  }
  // Its body moves into the parallel loop; the loops in between hold nothing
  // else.
  rewriter.eraseOp(innermost.getBody()->getTerminator());
  rewriter.inlineBlockBefore(
      innermost.getBody(), parallel.getBody()->getTerminator(), indices.back());
  rewriter.eraseOp(outermost);
  return parallel;
}

/// What a parallel loop has filled with one value: padding, until the data is
/// copied to its inside.
struct Filled {
  Value buffer;
  scf::ParallelOp loop;
};

/// Whether iterations of loops over the first `numDims` dimensions write the
/// same parts of `filled` and of `view`, which is inside of it.
bool areSameParts(Value filled, Value view, unsigned numDims) {
  auto inside = view.getDefiningOp<memref::SubViewOp>();
  if (!inside || inside.getSource() != filled ||
      inside.getSourceType().getRank() != inside.getType().getRank())
    return false;
  for (unsigned dim = 0; dim < numDims; ++dim)
    if (inside.getStaticOffsets()[dim] != 0 ||
        inside.getStaticStrides()[dim] != 1 ||
        inside.getStaticSizes()[dim] != inside.getSourceType().getDimSize(dim))
      return false;
  return true;
}

/// Copies to the inside of `filled` where that is filled, if `copy` follows it:
/// threads then wait once, and each has what it copies to in its cache.
/// `numDims` dimensions from the first one on have loops.
void joinCopy(IRRewriter &rewriter, const Filled &filled, Value target,
              scf::ParallelOp copy, unsigned numDims) {
  scf::ParallelOp loop = filled.loop;
  if (loop->getBlock() != copy->getBlock() ||
      getConstantIntValues(getAsOpFoldResult(loop.getUpperBound())) !=
          getConstantIntValues(getAsOpFoldResult(copy.getUpperBound())) ||
      !areSameParts(filled.buffer, target, numDims))
    return;
  // Only views may be in between: they move up.
  SmallVector<Operation *> views;
  for (Operation *op = loop->getNextNode(); op != copy; op = op->getNextNode())
    if (!op || !isMemoryEffectFree(op))
      return;
    else
      views.push_back(op);
  for (Operation *op : views)
    rewriter.moveOpBefore(op, loop);
  rewriter.eraseOp(copy.getBody()->getTerminator());
  rewriter.inlineBlockBefore(copy.getBody(), loop.getBody()->getTerminator(),
                             loop.getInductionVars());
  rewriter.eraseOp(copy);
}

/// Makes another shape of a whole buffer a plain view. Else the indices of all
/// that reads it would be divided into those of the buffer, and LLVM would
/// gather what lies side by side.
void castReshape(Operation *op) {
  auto source = cast<MemRefType>(op->getOperand(0).getType());
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (!source.hasStaticShape() || !source.getLayout().isIdentity() ||
      !type.getLayout().isIdentity())
    return;
  OpBuilder builder(op);
  op->replaceAllUsesWith(memref::ReinterpretCastOp::create(
      builder, op->getLoc(), type, op->getOperand(0), /*offset=*/0,
      type.getShape(), type.getStridesAndOffset().first));
  op->erase();
}

struct LinalgToCPULoops
    : kas::codegen::impl::KasLinalgToCPULoopsPassBase<LinalgToCPULoops> {
  using KasLinalgToCPULoopsPassBase::KasLinalgToCPULoopsPassBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (failed(lower(rewriter, op)))
        return signalPassFailure();
    getOperation().walk([](Operation *op) {
      if (isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(op))
        castReshape(op);
    });
  }

  /// Replaces `op` by loops; an error if it is on tensors or has no loops.
  LogicalResult lower(IRRewriter &rewriter, linalg::LinalgOp op) {
    if (!op.hasPureBufferSemantics())
      return op.emitError("expected an operation on buffers");
    // Nested parallel regions would start threads of threads.
    bool alreadyParallel = op->getParentOfType<scf::ParallelOp>() != nullptr;
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op.getOperation())) {
      bool isShared = getNumThreads(op, threads) != 1 && !alreadyParallel &&
                      getNumIterations(op) >= minParallelWork;
      ContractionTarget target(getContractionTarget(op, /*vectorBits=*/0));
      rewriter.setInsertionPoint(op);
      if (succeeded(
              emitTranspose(rewriter, transpose, target.lanes, isShared))) {
        rewriter.eraseOp(op);
        return success();
      }
    }
    bool isCopy = isa<linalg::CopyOp>(op);
    bool isFill = isa<linalg::FillOp>(op) ||
                  (isa<linalg::MapOp>(op) && op.getNumDpsInputs() == 0);
    Value target = op.getDpsInits().front();
    std::optional<unsigned> vectorLoop = getVectorLoop(op);
    // Asked before loops are joined: a joined loop is longer.
    bool keeps =
        vectorLoop && isUnrolledTooEarly(op.getStaticLoopRanges()[*vectorLoop]);
    op = orderLoops(rewriter, op);
    dropUnitResults(rewriter, op);
    bool isShared = getNumThreads(op, threads) != 1 && !alreadyParallel &&
                    getNumIterations(op) >= minParallelWork;
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    // Threads share outer loops, which must be left for them.
    unsigned numShared = isShared ? countShared(kinds, ranges, threads) : 0;
    op = collapseLoops(rewriter, op,
                       [&](unsigned loop) { return loop < numShared; });
    kinds = op.getIteratorTypesArray();
    ranges = op.getStaticLoopRanges();
    allowVectors(op);
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::LinalgLoops> loops =
        linalg::linalgOpToLoops(rewriter, op);
    if (failed(loops))
      return op.emitError("cannot be lowered to loops");
    rewriter.eraseOp(op);
    if (keeps && !loops->empty())
      if (auto innermost = dyn_cast_or_null<scf::ForOp>(loops->back()))
        keepLoop(innermost);
    if (!isShared)
      return success();
    SmallVector<scf::ForOp> shared =
        chooseShared(kinds, ranges, *loops, threads);
    if (shared.empty())
      return success();
    // Loops of one iteration that are around those that threads share.
    auto *first = llvm::find(*loops, shared.front().getOperation());
    unsigned numDims = first - loops->begin() + shared.size();
    for (Operation *outer : llvm::make_range(loops->begin(), first))
      (void)cast<scf::ForOp>(outer).promoteIfSingleIteration(rewriter);
    scf::ParallelOp parallel = makeParallel(rewriter, shared);
    if (isCopy && filled)
      joinCopy(rewriter, *filled, target, parallel, numDims);
    filled.reset();
    if (isFill)
      filled = {target, parallel};
    return success();
  }

  /// By the last operation, if it was a padding.
  std::optional<Filled> filled;
};

} // namespace
