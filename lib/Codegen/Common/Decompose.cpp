//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations on tensors that no later pass takes become ones that they take.
// TOSA, packs, Winograd transforms, softmax, gathers and elementwise operations
// on tensors become linalg, tensor and arith, with upstream's patterns where it
// has them.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "kas/Support/Resources.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToSCF/TosaToSCF.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Dialect/Tosa/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASDECOMPOSEPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Whether a slice drops some but not all of its dimensions of size 1, and has
/// steps. As a view of a buffer it would tell by its strides which are dropped;
/// upstream compares them with those without steps, and crashes.
static bool dropsByStride(OffsetSizeAndStrideOpInterface op, ShapedType type) {
  int64_t numDropped = int64_t(op.getStaticSizes().size()) - type.getRank();
  return numDropped > 0 && llvm::count(op.getStaticSizes(), 1) > numDropped &&
         llvm::any_of(op.getStaticStrides(), [](int64_t s) { return s != 1; });
}

/// The same for slices of tensors alone.
static bool dropsByStride(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return dropsByStride(slice, slice.getType());
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return dropsByStride(slice, slice.getSourceType());
  auto slice = dyn_cast<tensor::ParallelInsertSliceOp>(op);
  return slice && dropsByStride(slice, slice.getSourceType());
}

/// Without an iteration all results are what they were.
static bool isWithoutIterations(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() &&
         llvm::is_contained(op.getStaticLoopRanges(), 0);
}

namespace {

/// Operations without iterations become their initial values: later passes
/// divide by extents and assume at least one.
struct DropEmptyLoops : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!isWithoutIterations(op))
      return failure();
    rewriter.replaceOp(op, op.getDpsInits());
    return success();
  }
};

/// Softmax and the like, as several linalg operations.
struct DecomposeAggregate
    : OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    // Upstream begins with the least float, whatever the type.
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(*op);
        softmax &&
        !isa<FloatType>(softmax.getInputOperandType().getElementType()))
      return failure();
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return failure();
    rewriter.replaceOp(op, *values);
    return success();
  }
};

/// Upstream pads with zeros that it has no attribute for otherwise.
bool hasZero(ShapedType type) {
  return type.getElementType().isIntOrIndexOrFloat();
}

struct LowerPack : OpRewritePattern<linalg::PackOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::PackOp op,
                                PatternRewriter &rewriter) const override {
    return success(op.hasPureTensorSemantics() && hasZero(op.getSourceType()) &&
                   succeeded(linalg::lowerPack(rewriter, op)));
  }
};

struct LowerUnPack : OpRewritePattern<linalg::UnPackOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::UnPackOp op,
                                PatternRewriter &rewriter) const override {
    return success(op.hasPureTensorSemantics() &&
                   succeeded(linalg::lowerUnPack(rewriter, op)));
  }
};

/// A slice of all dimensions, of which a reshape drops some.
struct DropAfterSlice : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    if (!dropsByStride(op))
      return failure();
    auto slice = tensor::ExtractSliceOp::create(
        rewriter, op.getLoc(), op.getSource(), op.getMixedOffsets(),
        op.getMixedSizes(), op.getMixedStrides());
    auto groups =
        getReassociationIndicesForReshape(slice.getType(), op.getType());
    if (!groups)
      return failure();
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(op, op.getType(),
                                                         slice, *groups);
    return success();
  }
};

/// A reshape that adds the dimensions that an inserted slice has not.
template <typename InsertOp>
struct AddBeforeInsertion : OpRewritePattern<InsertOp> {
  using OpRewritePattern<InsertOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(InsertOp op,
                                PatternRewriter &rewriter) const override {
    if (!dropsByStride(op))
      return failure();
    auto type = tensor::ExtractSliceOp::inferResultType(op.getDestType(),
                                                        op.getStaticSizes());
    auto groups = getReassociationIndicesForReshape(op.getSourceType(), type);
    if (!groups)
      return failure();
    OpBuilder::InsertionGuard guard(rewriter);
    // No place for other operations.
    if (auto parallel = dyn_cast<InParallelOpInterface>(op->getParentOp()))
      rewriter.setInsertionPoint(parallel);
    auto source = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), type,
                                                op.getSource(), *groups,
                                                op.getMixedSizes());
    rewriter.modifyOpInPlace(op, [&] { op.getSourceMutable().assign(source); });
    return success();
  }
};

/// Reads each element of a `tensor.gather` where its indices say.
struct LowerGather : OpRewritePattern<tensor::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::GatherOp op,
                                PatternRewriter &rewriter) const override;
};

} // namespace

// Example: source [4, 5, 6], indices [7, 1], gather_dims = [1]: the result [7,
// 4, 6] (or [7, 4, 1, 6]) is `source[i, indices[n, 0], j]`.
LogicalResult LowerGather::matchAndRewrite(tensor::GatherOp op,
                                           PatternRewriter &rewriter) const {
  auto indices = cast<RankedTensorType>(op.getIndices().getType());
  auto source = cast<RankedTensorType>(op.getSource().getType());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  ArrayRef<int64_t> gathered = op.getGatherDims();
  // The last dimension of the indices has one index per gathered dimension.
  int64_t numBatch = indices.getRank() - 1;
  // Gathered dimensions are of size 1, or not there.
  // Whether the result leaves the gathered dimensions out follows from its
  // rank.
  bool isReduced =
      type.getRank() == numBatch + source.getRank() - int64_t(gathered.size());
  Location loc = op.getLoc();
  SmallVector<Value> sizes;
  // `sourceDim` is the dimension of the source that dimension `dim` comes from.
  for (int64_t dim = 0, sourceDim = 0; dim < type.getRank(); ++dim) {
    bool isBatch = dim < numBatch;
    while (!isBatch && isReduced && llvm::is_contained(gathered, sourceDim))
      ++sourceDim;
    if (type.isDynamicDim(dim))
      sizes.push_back(
          isBatch
              ? tensor::DimOp::create(rewriter, loc, op.getIndices(), dim)
                    .getResult()
              : tensor::DimOp::create(rewriter, loc, op.getSource(), sourceDim)
                    .getResult());
    sourceDim += isBatch ? 0 : 1;
  }
  Value empty = tensor::EmptyOp::create(rewriter, loc, type, sizes);
  auto map = rewriter.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange) {
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      place.push_back(linalg::IndexOp::create(b, loc, dim));
    SmallVector<Value> from;
    int64_t next = numBatch;
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      const auto *found = llvm::find(gathered, dim);
      if (found == gathered.end()) {
        from.push_back(place[next++]);
        continue;
      }
      next += isReduced ? 0 : 1;
      SmallVector<Value> at(ArrayRef(place).take_front(numBatch));
      at.push_back(arith::ConstantIndexOp::create(
          b, loc, std::distance(gathered.begin(), found)));
      Value index = tensor::ExtractOp::create(b, loc, op.getIndices(), at);
      from.push_back(
          getValueOrCreateCastToIndexLike(b, loc, b.getIndexType(), index));
    }
    Value element = tensor::ExtractOp::create(b, loc, op.getSource(), from);
    linalg::YieldOp::create(b, loc, element);
  };
  rewriter.replaceOpWithNewOp<linalg::GenericOp>(op, type, ValueRange(), empty,
                                                 map, loops, body);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Upstream's way from TOSA, without its validation, which is about devices.
/// First half: ranks and shapes are inferred, which the second half needs.
static void addTosaShapes(OpPassManager &manager) {
  manager.addPass(tosa::createTosaOptionalDecompositionsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(tosa::createTosaInferShapesPass());
  manager.addPass(tosa::createTosaMakeBroadcastablePass());
}

/// Second half: TOSA to linalg, tensor, arith and scf.
static void addTosa(OpPassManager &manager) {
  // First: regions of TOSA's own are no place for others' terminators.
  manager.addPass(createTosaToSCFPass());
  manager.addPass(tosa::createTosaToLinalgNamed());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(tosa::createTosaLayerwiseConstantFoldPass());
  manager.addPass(tosa::createTosaMakeBroadcastablePass());
  manager.addPass(tosa::createTosaToLinalg());
  TosaToArithPassOptions arith;
  arith.includeApplyRescale = true;
  manager.addPass(createTosaToArithPass(arith));
  manager.addPass(createTosaToTensorPass());
  // Shapes that nothing uses any more.
  manager.addPass(createCanonicalizerPass());
}

/// Upstream's lowering makes an invalid reshape of others.
static LogicalResult checkTile(tosa::TileOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || type.getNumDynamicDims() <= 1)
    return success();
  return op.emitOpError("requires at most one dynamic dimension of its result "
                        "to be lowered, got ")
         << type;
}

/// Upstream's patterns end on tensors without a rank. Those of TOSA's
/// operations may get one by `mayBeInferred`.
static LogicalResult checkRanks(func::FuncOp function, bool mayBeInferred) {
  auto check = [](Value value, Operation *op) -> LogicalResult {
    if (!isa<UnrankedTensorType>(value.getType()))
      return success();
    return emitError(value.getLoc())
           << "the pipeline for CPUs requires a rank, got " << value.getType()
           << " in '" << op->getName() << "'";
  };
  WalkResult result = function.walk([&](Operation *op) {
    // Before inference, operations of TOSA are excused.
    bool isTosa = isa<tosa::TosaOp>(op) && mayBeInferred;
    for (Value value : op->getResults())
      if (!isTosa && failed(check(value, op)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Value value : region.getArguments())
        if (!isTosa && failed(check(value, op)))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// What upstream does not convert is an error that says what it would.
/// `failure` lets other handlers print the diagnostic, with the note.
static LogicalResult explainTosa(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
      StringRef(diagnostic.str())
          .starts_with("failed to legalize operation 'tosa."))
    diagnostic << "; static sizes, or dynamic ones of the batch alone, or the "
                  "operations it stands for are lowered";
  return failure();
}

/// Gives a constant elements that LLVM's translation takes.
static void readResource(arith::ConstantOp op) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue()))
    if (DenseElementsAttr elements = kas::readSpecialResource(resource))
      op.setValueAttr(elements);
}

static bool isOnTensors(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
}

namespace {
struct Decompose : kas::codegen::impl::KasDecomposePassBase<Decompose> {
  LogicalResult lowerTosa(func::FuncOp function) {
    ScopedDiagnosticHandler handler(&getContext(), explainTosa);
    // Two pipelines, with checks of what upstream would crash on between them.
    OpPassManager shapes(func::FuncOp::getOperationName());
    addTosaShapes(shapes);
    OpPassManager tosa(func::FuncOp::getOperationName());
    addTosa(tosa);
    if (failed(checkRanks(function, /*mayBeInferred=*/true)) ||
        failed(runPipeline(shapes, function)) ||
        failed(checkRanks(function, /*mayBeInferred=*/false)))
      return failure();
    bool isFine = true;
    function.walk([&](tosa::TileOp op) { isFine &= succeeded(checkTile(op)); });
    return success(isFine && succeeded(runPipeline(tosa, function)));
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // Most functions have nothing to decompose: one traversal decides.
    bool hasTosa = false, hasMore = false;
    function.walk([&](Operation *op) {
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        readResource(constant);
      hasTosa |= isa<tosa::TosaOp>(op);
      auto loops = dyn_cast<linalg::LinalgOp>(op);
      hasMore |= isa<linalg::AggregatedOpInterface, linalg::PackOp,
                     linalg::UnPackOp, linalg::WinogradFilterTransformOp,
                     linalg::WinogradInputTransformOp,
                     linalg::WinogradOutputTransformOp, tensor::GatherOp>(op) ||
                 isOnTensors(op) || dropsByStride(op) ||
                 (loops && isWithoutIterations(loops));
    });
    if (hasTosa) {
      if (failed(lowerTosa(function)))
        return signalPassFailure();
    }
    if (!hasTosa && !hasMore)
      return markAllAnalysesPreserved();
    RewritePatternSet patterns(&getContext());
    patterns.add<DropEmptyLoops, DecomposeAggregate, LowerPack, LowerUnPack,
                 LowerGather, DropAfterSlice,
                 AddBeforeInsertion<tensor::InsertSliceOp>,
                 AddBeforeInsertion<tensor::ParallelInsertSliceOp>>(
        &getContext());
    linalg::populateDecomposeWinogradOpsPatterns(patterns);
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    // One pass over the function is enough: no pattern makes what another one
    // takes.
    walkAndApplyPatterns(function, std::move(patterns));
  }
};
} // namespace
