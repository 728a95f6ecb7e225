//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-pack-dot-products: lays operands of int8, i16 and bf16
// contractions out in the groups of 32 bits that dot-product instructions read,
// with unsigned bytes on one side: an offset makes signed ones of both sides
// so. Where the target multiplies i16 in pairs and no bytes, these are widened.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "../Strategy/DotProducts.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-dot-products"

namespace kas::codegen {
#define GEN_PASS_DEF_KASPACKDOTPRODUCTSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

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

//===----------------------------------------------------------------------===//
// Widening
//===----------------------------------------------------------------------===//

/// The bytes of `tensor` as i16.
static Value widen(RewriterBase &rewriter, Location loc, Value tensor,
                   bool isUnsigned) {
  auto type = cast<RankedTensorType>(tensor.getType());
  AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
  Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                        rewriter.getI16Type());
  SmallVector<utils::IteratorType> kinds(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, loc, empty.getType(), tensor, empty,
             ArrayRef{identity, identity}, kinds,
             [&](OpBuilder &builder, Location loc, ValueRange values) {
               Type wide = builder.getI16Type();
               Value wider =
                   isUnsigned
                       ? arith::ExtUIOp::create(builder, loc, wide, values[0])
                             .getResult()
                       : arith::ExtSIOp::create(builder, loc, wide, values[0]);
               linalg::YieldOp::create(builder, loc, wider);
             })
      .getResult(0);
}

/// `op` on i16 of the values of its bytes.
static linalg::LinalgOp widenInputs(RewriterBase &rewriter, linalg::LinalgOp op,
                                    const DotProduct &product) {
  Location loc = op.getLoc();
  SmallVector<Value> inputs;
  for (auto [input, isUnsigned] :
       llvm::zip_equal(op.getDpsInputs(), product.isUnsigned))
    inputs.push_back(widen(rewriter, loc, input, isUnsigned));
  Value output = op.getDpsInitOperand(0)->get();
  auto result = linalg::GenericOp::create(
      rewriter, loc, output.getType(), inputs, output,
      op.getIndexingMapsArray(), op.getIteratorTypesArray(),
      [](OpBuilder &builder, Location loc, ValueRange values) {
        Type wide = builder.getI32Type();
        Value lhs = arith::ExtSIOp::create(builder, loc, wide, values[0]);
        Value rhs = arith::ExtSIOp::create(builder, loc, wide, values[1]);
        Value product = arith::MulIOp::create(builder, loc, lhs, rhs);
        Value sum = arith::AddIOp::create(builder, loc, values[2], product);
        linalg::YieldOp::create(builder, loc, sum);
      });
  rewriter.replaceOp(op, result);
  return cast<linalg::LinalgOp>(result.getOperation());
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

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

/// Rewrites `op` such that its innermost reduction takes as many elements as
/// fill a VNNI group, which lie together, with unsigned bytes on one side and
/// signed ones on the other. Says why it does not.
static LogicalResult
packDotProducts(RewriterBase &rewriter, linalg::LinalgOp op,
                const Target &target,
                function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  std::optional<DotProduct> product = DotProduct::match(op);
  if (!product)
    return fail("it multiplies no bytes, i16 or bf16");
  if (product->isOfInt16() && target.shortDotBits == 0)
    return fail("the target has no products of i16");
  bool widens = product->isOfInt8() && target.shortDotBits > 0;
  int64_t size = widens ? 2 : product->getVNNIGroupSize();
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.hasDynamicShape() || !op.hasPureTensorSemantics() ||
      !output.isProjectedPermutation())
    return fail("its output is not indexed by loops of static extents");
  FailureOr<Contraction> contraction = Contraction::match(op, emitReason);
  if (failed(contraction))
    return failure();
  std::optional<unsigned> loop = chooseVNNILoop(*contraction, size);
  if (!loop)
    return fail("no reduction is a dimension of both inputs");
  if (!widens && product->isUnsigned[0] && product->isUnsigned[1])
    return fail("both inputs are unsigned");
  rewriter.setInsertionPoint(op);
  if (widens) {
    op = widenInputs(rewriter, op, *product);
    rewriter.setInsertionPoint(op);
  } else if (product->isOfInt8() && !product->getUnsignedInput()) {
    FailureOr<linalg::LinalgOp> moved = makeUnsigned(rewriter, op);
    if (failed(moved))
      return fail("both inputs are signed, and indexed by sums of loops");
    op = *moved;
    rewriter.setInsertionPoint(op);
  }
  SmallVector<OpFoldResult> sizes(op.getNumLoops(), rewriter.getIndexAttr(0));
  sizes[*loop] = rewriter.getIndexAttr(size);
  FailureOr<linalg::PackResult> packed = linalg::pack(rewriter, op, sizes);
  if (failed(packed))
    return fail("it cannot be packed");
  for (linalg::PackOp pack : packed->packOps)
    if (failed(rearrange(rewriter, pack)))
      return fail("its inputs cannot be packed");
  return success();
}

namespace {
struct PackDotProducts
    : kas::codegen::impl::KasPackDotProductsPassBase<PackDotProducts> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      auto product = DotProduct::match(op);
      // Operands that are in this layout already stay as they are.
      if (product && !findVNNILoop(op, product->getVNNIGroupSize()))
        ops.push_back(op);
    });
    // What cannot be laid out stays and becomes plain loops.
    IRRewriter rewriter(&getContext());
    Target target = getContractionTarget(getOperation(), /*vectorBits=*/0);
    for (linalg::LinalgOp op : ops)
      (void)packDotProducts(rewriter, op, target, [&](const Twine &reason) {
        LDBG() << op.getLoc() << ": not packed: " << reason.str();
      });
  }
};
} // namespace
