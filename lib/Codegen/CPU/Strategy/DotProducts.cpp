//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches products of int8 or bf16 that dot-product instructions (VNNI, DPBF16)
// compute, finds the reduction whose elements fill a 32-bit group, and corrects
// for signed data.
//
//===----------------------------------------------------------------------===//

#include "DotProducts.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

std::optional<DotProduct> DotProduct::match(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || !hasContractionBody(op))
    return std::nullopt;
  DotProduct product;
  product.element = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  Type sum = getElementTypeOrSelf(op.getDpsInitOperand(0)->get());
  if (!(product.element.isInteger(8) && sum.isInteger(32)) &&
      !(product.element.isBF16() && sum.isF32()))
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (getElementTypeOrSelf(input->get()) != product.element)
      return std::nullopt;
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (!argument.hasOneUse())
      return std::nullopt;
    Operation *widened = *argument.user_begin();
    if (!isa<arith::ExtUIOp, arith::ExtSIOp, arith::ExtFOp>(widened) ||
        widened->getResult(0).getType() != sum)
      return std::nullopt;
    product.isUnsigned[input->getOperandNumber()] =
        isa<arith::ExtUIOp>(widened);
  }
  return product;
}

//===----------------------------------------------------------------------===//
// VNNI groups
//===----------------------------------------------------------------------===//

/// Whether `loop` alone is the index of one dimension, and of no other part.
static bool isDimension(ArrayRef<AffineExpr> indices, unsigned loop) {
  unsigned alone = 0;
  for (AffineExpr expr : indices) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    if (!isa<AffineDimExpr>(expr))
      return false;
    ++alone;
  }
  return alone == 1;
}

std::optional<unsigned> kas::codegen::findVNNILoop(linalg::LinalgOp op,
                                                   int64_t size) {
  if (op.getNumDpsInputs() != 2)
    return std::nullopt;
  std::optional<unsigned> loop;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0)
      return std::nullopt;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!last || !isDimension(map.getResults(), last.getPosition()) ||
        (loop && *loop != last.getPosition()))
      return std::nullopt;
    loop = last.getPosition();
  }
  bool isWord =
      op.getStaticLoopRanges()[*loop] == size &&
      op.getIteratorTypesArray()[*loop] == utils::IteratorType::reduction;
  return isWord ? loop : std::nullopt;
}

std::optional<unsigned>
kas::codegen::chooseVNNILoop(const Contraction &contraction, int64_t size) {
  std::optional<unsigned> best;
  double bestPart = 0;
  for (auto [loop, entry] : llvm::enumerate(contraction.loops)) {
    int64_t extent = entry.extent;
    bool suits =
        entry.isReduction && extent > 1 &&
        llvm::all_of(contraction.inputs, [&](const Contraction::Input &input) {
          return isDimension(input.indices, loop);
        });
    double part = double(extent) / llvm::alignTo(extent, size);
    if (!suits ||
        (best && std::pair(part, extent) <=
                     std::pair(bestPart, contraction.loops[*best].extent)))
      continue;
    best = loop;
    bestPart = part;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Signs
//===----------------------------------------------------------------------===//

/// `tensor` with 128 added to each byte, as unsigned ones.
static Value addOffset(RewriterBase &rewriter, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
  Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<utils::IteratorType> kinds(type.getRank(),
                                         utils::IteratorType::parallel);
  auto moved = linalg::GenericOp::create(
      rewriter, loc, type, tensor, empty, ArrayRef{identity, identity}, kinds,
      [](OpBuilder &builder, Location loc, ValueRange values) {
        Value top = arith::ConstantOp::create(
            builder, loc, builder.getIntegerAttr(values[0].getType(), -128));
        Value moved = arith::XOrIOp::create(builder, loc, values[0], top);
        linalg::YieldOp::create(builder, loc, moved);
      });
  return moved.getResult(0);
}

/// For each element of the output of `op` that `input` steps with the sum of
/// the input over the reductions, and the loops that index these sums.
static std::pair<Value, SmallVector<unsigned>>
sumInput(RewriterBase &rewriter, linalg::LinalgOp op, OpOperand *input) {
  Location loc = op.getLoc();
  AffineMap map = op.getMatchingIndexingMap(input);
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<utils::IteratorType> loopKinds = op.getIteratorTypesArray(),
                                   kinds;
  SmallVector<AffineExpr> indices;
  SmallVector<unsigned> loops;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    kinds.push_back(loopKinds[loop]);
    if (loopKinds[loop] == utils::IteratorType::reduction)
      continue;
    indices.push_back(rewriter.getAffineDimExpr(i));
    shape.push_back(extents[loop]);
    loops.push_back(loop);
  }
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(0));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, rewriter.getI32Type());
  Value zeros = linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
  AffineMap identity = rewriter.getMultiDimIdentityMap(map.getNumResults());
  auto sums = linalg::GenericOp::create(
      rewriter, loc, zeros.getType(), input->get(), zeros,
      ArrayRef{identity, AffineMap::get(map.getNumResults(), 0, indices,
                                        rewriter.getContext())},
      kinds, [](OpBuilder &builder, Location loc, ValueRange values) {
        Value wide = arith::ExtSIOp::create(builder, loc, builder.getI32Type(),
                                            values[0]);
        linalg::YieldOp::create(
            builder, loc,
            arith::AddIOp::create(builder, loc, values[1], wide).getResult());
      });
  return {sums.getResult(0), loops};
}

/// `output` of `op` less 128 times the sums of `input`, and that for each
/// iteration of the reductions that it does not step with.
static Value subtractOffset(RewriterBase &rewriter, linalg::LinalgOp op,
                            OpOperand *input) {
  Location loc = op.getLoc();
  Value output = op.getDpsInitOperand(0)->get();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  AffineMap inputMap = op.getMatchingIndexingMap(input);
  int32_t factor = -128;
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  for (unsigned loop : reductions)
    if (!inputMap.isFunctionOfDim(loop))
      factor *= static_cast<int32_t>(op.getStaticLoopRanges()[loop]);
  auto [sums, loops] = sumInput(rewriter, op, input);
  // The loops are dimensions of the output.
  SmallVector<AffineExpr> indices;
  for (unsigned loop : loops)
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (cast<AffineDimExpr>(expr).getPosition() == loop)
        indices.push_back(rewriter.getAffineDimExpr(i));
  unsigned rank = map.getNumResults();
  AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  auto moved = linalg::GenericOp::create(
      rewriter, loc, output.getType(), sums, output,
      ArrayRef{AffineMap::get(rank, 0, indices, rewriter.getContext()),
               identity},
      kinds, [&](OpBuilder &builder, Location loc, ValueRange values) {
        Value scale = arith::ConstantOp::create(
            builder, loc, builder.getI32IntegerAttr(factor));
        Value part = arith::MulIOp::create(builder, loc, values[0], scale);
        linalg::YieldOp::create(
            builder, loc,
            arith::AddIOp::create(builder, loc, values[1], part).getResult());
      });
  return moved.getResult(0);
}

/// Of two signed inputs makes one unsigned: a sum of the other one makes up for
/// it. Rather the first, as weights, whose sum is made once, come second.
static FailureOr<linalg::LinalgOp> makeUnsigned(RewriterBase &rewriter,
                                                linalg::LinalgOp op) {
  auto isPlain = [&](unsigned number) {
    return op.getMatchingIndexingMap(op.getDpsInputOperand(number))
        .isProjectedPermutation();
  };
  unsigned signedNumber = isPlain(1) ? 1 : 0;
  if (!isPlain(signedNumber))
    return failure();
  unsigned number = 1 - signedNumber;
  Location loc = op.getLoc();
  SmallVector<Value> inputs(op.getDpsInputs());
  inputs[number] = addOffset(rewriter, loc, inputs[number]);
  Value output =
      subtractOffset(rewriter, op, op.getDpsInputOperand(signedNumber));
  auto result = linalg::GenericOp::create(
      rewriter, loc, output.getType(), inputs, output,
      op.getIndexingMapsArray(), op.getIteratorTypesArray(),
      [&](OpBuilder &builder, Location loc, ValueRange values) {
        Type wide = builder.getI32Type();
        Value moved =
            arith::ExtUIOp::create(builder, loc, wide, values[number]);
        Value kept =
            arith::ExtSIOp::create(builder, loc, wide, values[signedNumber]);
        Value product = arith::MulIOp::create(builder, loc, moved, kept);
        Value sum = arith::AddIOp::create(builder, loc, values[2], product);
        linalg::YieldOp::create(builder, loc, sum);
      });
  rewriter.replaceOp(op, result);
  return cast<linalg::LinalgOp>(result.getOperation());
}

/// Lowers `pack` to a padding, a view and a transpose, those that do something.
static LogicalResult rearrange(RewriterBase &rewriter, linalg::PackOp pack) {
  rewriter.setInsertionPoint(pack);
  FailureOr<linalg::LowerPackResult> lowered =
      linalg::lowerPack(rewriter, pack, /*lowerPadLikeWithInsertSlice=*/false);
  if (failed(lowered))
    return failure();
  tensor::PadOp pad = lowered->padOp;
  if (pad && pad.getSourceType() == pad.getResultType())
    rewriter.replaceOp(pad, pad.getSource());
  linalg::TransposeOp transpose = lowered->transposeOp;
  if (transpose && isIdentityPermutation(transpose.getPermutation()))
    rewriter.replaceOp(transpose, transpose.getInput());
  return success();
}

LogicalResult
kas::codegen::packDotProducts(RewriterBase &rewriter, linalg::LinalgOp op,
                              function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  std::optional<DotProduct> product = DotProduct::match(op);
  if (!product)
    return fail("it multiplies no bytes or bf16");
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.hasDynamicShape() || !op.hasPureTensorSemantics() ||
      !output.isProjectedPermutation())
    return fail("its output is not indexed by loops of static extents");
  FailureOr<Contraction> contraction = Contraction::match(op, emitReason);
  if (failed(contraction))
    return failure();
  std::optional<unsigned> loop =
      chooseVNNILoop(*contraction, product->getVNNIGroupSize());
  if (!loop)
    return fail("no reduction is a dimension of both inputs");
  if (product->isUnsigned[0] && product->isUnsigned[1])
    return fail("both inputs are unsigned");
  rewriter.setInsertionPoint(op);
  if (product->isOfInt8() && !product->getUnsignedInput()) {
    FailureOr<linalg::LinalgOp> moved = makeUnsigned(rewriter, op);
    if (failed(moved))
      return fail("both inputs are signed, and indexed by sums of loops");
    op = *moved;
    rewriter.setInsertionPoint(op);
  }
  SmallVector<OpFoldResult> sizes(op.getNumLoops(), rewriter.getIndexAttr(0));
  sizes[*loop] = rewriter.getIndexAttr(product->getVNNIGroupSize());
  FailureOr<linalg::PackResult> packed = linalg::pack(rewriter, op, sizes);
  if (failed(packed))
    return fail("it cannot be packed");
  for (linalg::PackOp pack : packed->packOps)
    if (failed(rearrange(rewriter, pack)))
      return fail("its inputs cannot be packed");
  return success();
}
