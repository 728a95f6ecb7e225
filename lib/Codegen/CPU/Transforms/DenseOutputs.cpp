//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions that would write every other element of a buffer, or columns
// between those of others, write a buffer of their own. Register tiles store
// whole vectors, for which the columns of the output must lie next to each
// other.
//
// There are two rewrites: an init with holes becomes a dense tensor, and loops
// that all inputs step with (batches) move before the columns, followed by a
// transpose.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-dense-outputs"

namespace kas::codegen {
#define GEN_PASS_DEF_KASDENSEOUTPUTSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Makes the initial value of a contraction again: a part of a broadcast is a
/// smaller broadcast, which costs less than a copy of that part.
class InitBuilder {
public:
  InitBuilder(RewriterBase &rewriter, Location loc)
      : rewriter(rewriter), loc(loc) {}

  /// `value`, a broadcast or a fill where it is a part of one.
  Value simplify(Value value);
  /// A tensor of its own with the elements of `value`.
  Value makeDense(Value value);
  /// Result dimension i is dimension `permutation[i]` of `value`.
  Value permute(Value value, ArrayRef<int64_t> permutation);

private:
  Value makeEmpty(ArrayRef<int64_t> shape, Value like) {
    return tensor::EmptyOp::create(rewriter, loc, shape,
                                   getElementTypeOrSelf(like.getType()));
  }
  Value makeFill(linalg::FillOp fill, ArrayRef<int64_t> shape) {
    return linalg::FillOp::create(rewriter, loc, fill.getInputs().front(),
                                  makeEmpty(shape, fill.getResult(0)))
        .getResult(0);
  }
  Value makeBroadcast(Value input, ArrayRef<int64_t> shape,
                      ArrayRef<int64_t> dimensions) {
    return linalg::BroadcastOp::create(rewriter, loc, input,
                                       makeEmpty(shape, input), dimensions)
        ->getResult(0);
  }
  Value simplifySlice(tensor::ExtractSliceOp op);
  Value simplifyReshape(tensor::ExpandShapeOp op);

  RewriterBase &rewriter;
  Location loc;
};

} // namespace

/// A slice of the rank of its source, with constant offsets and strides.
static bool isStatic(tensor::ExtractSliceOp op) {
  return op.getSourceType().getRank() == op.getType().getRank() &&
         op.getType().hasStaticShape() &&
         !llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) &&
         !llvm::any_of(op.getStaticStrides(), ShapedType::isDynamic);
}

/// What `slice` is a part of, without insertions elsewhere. Several
/// contractions that each add to their own part of one init form a chain of
/// insertions, each of which the next slice would depend on. Parts that do not
/// overlap are skipped, up to the init itself.
static Value skipInsertions(tensor::ExtractSliceOp slice) {
  Value source = slice.getSource();
  while (auto insertion = source.getDefiningOp<tensor::InsertSliceOp>()) {
    if (insertion.getSourceType().getRank() != slice.getType().getRank() ||
        llvm::any_of(insertion.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(insertion.getStaticSizes(), ShapedType::isDynamic) ||
        llvm::any_of(insertion.getStaticStrides(),
                     [](int64_t stride) { return stride != 1; }))
      break;
    // Disjoint in one dimension suffices: the slice ends before the insertion
    // begins, or begins after its end.
    bool isElsewhere = false;
    for (auto [offset, size, stride, otherOffset, otherSize] :
         llvm::zip_equal(slice.getStaticOffsets(), slice.getStaticSizes(),
                         slice.getStaticStrides(), insertion.getStaticOffsets(),
                         insertion.getStaticSizes()))
      isElsewhere |= offset + (size - 1) * stride < otherOffset ||
                     otherOffset + otherSize <= offset;
    if (!isElsewhere)
      break;
    source = insertion.getDest();
  }
  return source;
}

/// A slice of a fill is a fill; one of a broadcast is the broadcast of a slice
/// of its input, in the dimensions that the input has. What cannot be
/// simplified stays a slice.
Value InitBuilder::simplifySlice(tensor::ExtractSliceOp op) {
  if (!isStatic(op))
    return op;
  ArrayRef<int64_t> shape = op.getType().getShape();
  Value source = simplify(skipInsertions(op));
  if (auto fill = source.getDefiningOp<linalg::FillOp>())
    return makeFill(fill, shape);
  auto broadcast = source.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast)
    return source == op.getSource()
               ? op.getResult()
               : tensor::ExtractSliceOp::create(
                     rewriter, loc, source, op.getMixedOffsets(),
                     op.getMixedSizes(), op.getMixedStrides())
                     .getResult();
  SmallVector<OpFoldResult> offsets, sizes, strides;
  for (int64_t i = 0, rank = shape.size(); i < rank; ++i) {
    if (llvm::is_contained(broadcast.getDimensions(), i))
      continue;
    offsets.push_back(op.getMixedOffsets()[i]);
    sizes.push_back(op.getMixedSizes()[i]);
    strides.push_back(op.getMixedStrides()[i]);
  }
  Value input = rewriter.createOrFold<tensor::ExtractSliceOp>(
      loc, broadcast.getInput(), offsets, sizes, strides);
  return makeBroadcast(input, shape, broadcast.getDimensions());
}

/// The same for a dimension that is split into several: of a broadcast, those
/// of an added dimension are all added, those of others belong to the input.
Value InitBuilder::simplifyReshape(tensor::ExpandShapeOp op) {
  Value source = simplify(op.getSrc());
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  if (!op.getResultType().hasStaticShape())
    return op;
  if (auto fill = source.getDefiningOp<linalg::FillOp>())
    return makeFill(fill, shape);
  auto broadcast = source.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast)
    return source == op.getSrc()
               ? op.getResult()
               : tensor::ExpandShapeOp::create(rewriter, loc,
                                               op.getResultType(), source,
                                               op.getReassociationIndices())
                     .getResult();
  SmallVector<int64_t> dimensions, kept;
  SmallVector<ReassociationIndices> groups;
  for (auto [dimension, group] :
       llvm::enumerate(op.getReassociationIndices())) {
    if (llvm::is_contained(broadcast.getDimensions(), int64_t(dimension))) {
      llvm::append_range(dimensions, group);
      continue;
    }
    // Dimensions of the input, numbered without the added ones.
    ReassociationIndices &own = groups.emplace_back();
    for (int64_t part : group) {
      own.push_back(kept.size());
      kept.push_back(shape[part]);
    }
  }
  Value input = broadcast.getInput();
  auto type = cast<RankedTensorType>(input.getType()).clone(kept);
  if (type != input.getType())
    input = tensor::ExpandShapeOp::create(rewriter, loc, type, input, groups);
  return makeBroadcast(input, shape, dimensions);
}

Value InitBuilder::simplify(Value value) {
  if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    return simplifySlice(slice);
  if (auto reshape = value.getDefiningOp<tensor::ExpandShapeOp>())
    return simplifyReshape(reshape);
  return value;
}

Value InitBuilder::makeDense(Value value) {
  Value simple = simplify(value);
  if (isa_and_nonnull<linalg::FillOp, linalg::BroadcastOp>(
          simple.getDefiningOp()))
    return simple;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  // Nothing is known of its elements: they are copied.
  return linalg::CopyOp::create(rewriter, loc, simple, makeEmpty(shape, simple))
      .getResult(0);
}

Value InitBuilder::permute(Value value, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape = applyPermutation(
      cast<RankedTensorType>(value.getType()).getShape(), permutation);
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return makeFill(fill, shape);
  if (auto broadcast = value.getDefiningOp<linalg::BroadcastOp>()) {
    SmallVector<int64_t> dimensions, kept;
    for (auto [dimension, old] : llvm::enumerate(permutation))
      if (llvm::is_contained(broadcast.getDimensions(), old))
        dimensions.push_back(dimension);
      else
        kept.push_back(old);
    // Else the input of the broadcast would have to be transposed, too.
    if (llvm::is_sorted(kept))
      return makeBroadcast(broadcast.getInput(), shape, dimensions);
  }
  return linalg::TransposeOp::create(rewriter, loc, value,
                                     makeEmpty(shape, value), permutation)
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Obstacles to vectors
//===----------------------------------------------------------------------===//

/// Whether `init` is some of the elements of another tensor, with others in
/// between. Also through reshapes and slices without strides, which may be of a
/// part with holes.
static bool hasHoles(Value init) {
  for (;;) {
    if (auto reshape = init.getDefiningOp<tensor::ExpandShapeOp>()) {
      init = reshape.getSrc();
      continue;
    }
    auto slice = init.getDefiningOp<tensor::ExtractSliceOp>();
    if (!slice)
      return false;
    if (llvm::any_of(slice.getStaticStrides(),
                     [](int64_t stride) { return stride != 1; }))
      return true;
    init = slice.getSource();
  }
}

/// The permutation that brings loops which all inputs step with, such as slabs
/// of columns, before the others, if they follow columns and are too
/// short for vectors of their own; else nothing.
static std::optional<SmallVector<int64_t>>
getBatchesFirst(linalg::GenericOp op) {
  // Elements: a vector of 256 bits. Batches of at least as many are vectors
  // themselves.
  constexpr int64_t shortest = 8;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (!map.isProjectedPermutation() || op.getNumDpsInputs() != 2 ||
      llvm::any_of(sizes, ShapedType::isDynamic))
    return std::nullopt;
  SmallVector<AffineMap> inputs = op.getIndexingMapsArray();
  inputs.pop_back();
  auto isBatch = [&](unsigned loop) {
    return llvm::all_of(
        inputs, [&](AffineMap input) { return input.isFunctionOfDim(loop); });
  };
  // Rows of sums step with the weight, columns with the data alone.
  auto isColumn = [&](unsigned loop) {
    return inputs[0].isFunctionOfDim(loop) && !inputs[1].isFunctionOfDim(loop);
  };
  SmallVector<int64_t> first, others;
  // `innermost` is the extent of the last batch loop after all others, or 0.
  bool followsColumn = false, hasColumn = false;
  int64_t innermost = 0;
  for (unsigned position = 0; position < map.getNumResults(); ++position) {
    unsigned loop = map.getDimPosition(position);
    bool isOne = sizes[loop] == 1;
    if (!isOne && isBatch(loop)) {
      followsColumn |= hasColumn;
      first.push_back(position);
      innermost = sizes[loop];
      continue;
    }
    others.push_back(position);
    hasColumn |= !isOne && isColumn(loop);
    if (!isOne)
      innermost = 0;
  }
  // Batches that precede all columns are in nobody's way.
  if (!followsColumn || innermost >= shortest)
    return std::nullopt;
  first.append(others);
  return first;
}

namespace {

/// Rewrites the contractions on tensors of static shape.
struct DenseOutputs
    : kas::codegen::impl::KasDenseOutputsPassBase<DenseOutputs> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      // A schedule was found for the operation as it is.
      if (op.hasPureTensorSemantics() && op.getNumReductionLoops() > 0 &&
          op.getNumDpsInits() == 1 &&
          cast<ShapedType>(op.getDpsInits().front().getType())
              .hasStaticShape() &&
          !op->hasAttr(KasCPUDialect::scheduleName))
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops)
      rewrite(op);
  }

private:
  static void rewrite(linalg::LinalgOp op) {
    Value init = op.getDpsInits().front();
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    auto permutation = generic ? getBatchesFirst(generic) : std::nullopt;
    bool isDense = !permutation && !hasHoles(init);
    LDBG() << op.getLoc() << ": "
           << (isDense       ? "left as it is"
               : permutation ? "loops of all inputs first"
                             : "a buffer of its own");
    if (isDense)
      return;
    IRRewriter rewriter(op);
    InitBuilder inits(rewriter, op.getLoc());
    if (!permutation) {
      Value dense = inits.makeDense(init);
      rewriter.modifyOpInPlace(op, [&] { op.setDpsInitOperand(0, dense); });
      return;
    }
    // Result dimension `i` of the contraction is dimension `permutation[i]` of
    // the original.
    Value turned = inits.permute(inits.simplify(init), *permutation);
    SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
    maps.back() =
        AffineMap::get(maps.back().getNumDims(), 0,
                       applyPermutation(maps.back().getResults(), *permutation),
                       op.getContext());
    // The same loops and body: only the output's map and init are permuted.
    auto made = linalg::GenericOp::create(
        rewriter, op.getLoc(), turned.getType(), generic.getInputs(), turned,
        maps, generic.getIteratorTypesArray());
    rewriter.inlineRegionBefore(generic.getRegion(), made.getRegion(),
                                made.getRegion().begin());
    Value back =
        inits.permute(made.getResult(0), invertPermutationVector(*permutation));
    rewriter.replaceOp(generic, back);
  }
};

} // namespace
