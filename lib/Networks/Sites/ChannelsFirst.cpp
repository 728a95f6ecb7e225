//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rewrites convolutions with channels last (NHWC) to ones with channels first
// (NCHW) between transpositions.
// Operators are extracted and substituted with channels first; models of
// TensorFlow and of ONNX may have them last. For `-kas-extract` they are
// rewritten for the duration of the pass, and those that turn out to be no
// sites are put back as they were, so a network without sites does not change.
//
//===----------------------------------------------------------------------===//

#include "ChannelsFirst.h"
#include "Rewriting.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

using Order = SmallVector<int64_t>;

/// The dimensions of `map` in the order of batch, groups, channels, space.
/// Stable: dimensions of one group keep their order.
static Order getOrder(AffineMap map, const linalg::ConvolutionDimensions &dims,
                      ArrayRef<unsigned> channels) {
  auto getRank = [&](int64_t index) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(index));
    auto isOf = [&](ArrayRef<unsigned> loops) {
      return dim && llvm::is_contained(loops, dim.getPosition());
    };
    return isOf(dims.batch) ? 0 : isOf(dims.depth) ? 1 : isOf(channels) ? 2 : 3;
  };
  Order order = llvm::to_vector(llvm::seq<int64_t>(map.getNumResults()));
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(getRank(a), a) < std::pair(getRank(b), b);
  });
  return order;
}

/// Result i is result `order[i]` of `map`.
static AffineMap reorder(AffineMap map, ArrayRef<int64_t> order) {
  SmallVector<AffineExpr> results;
  for (int64_t index : order)
    results.push_back(map.getResult(index));
  return AffineMap::get(map.getNumDims(), 0, results, map.getContext());
}

static Value transpose(OpBuilder &b, Location loc, Value value,
                       ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(
      b, loc, applyPermutation(type.getShape(), order), type.getElementType());
  return linalg::TransposeOp::create(b, loc, value, empty, order)->getResult(0);
}

/// The data in another order, padded after that as it was before.
/// The padding stays next to the convolution, where matching looks for it.
static Value reorderData(OpBuilder &b, Value data, ArrayRef<int64_t> order) {
  auto pad = data.getDefiningOp<tensor::PadOp>();
  Value fill = pad ? pad.getConstantPaddingValue() : Value();
  if (!fill || !pad.getSourceType().hasStaticShape() || !pad.getLow().empty() ||
      // Amounts that are values have no permutation here.
      !pad.getHigh().empty())
    return transpose(b, data.getLoc(), data, order);
  Value source = transpose(b, pad.getLoc(), pad.getSource(), order);
  auto type =
      RankedTensorType::get(applyPermutation(pad.getType().getShape(), order),
                            pad.getType().getElementType());
  auto getAmounts = [&](ArrayRef<int64_t> amounts) {
    return getAsIndexOpFoldResult(b.getContext(),
                                  applyPermutation(amounts, order));
  };
  return tensor::PadOp::create(b, pad.getLoc(), type, source,
                               getAmounts(pad.getStaticLow()),
                               getAmounts(pad.getStaticHigh()), fill);
}

/// A fill needs no transposition: it is the same in any order.
static Value reorderStart(OpBuilder &b, Value start, ArrayRef<int64_t> order) {
  auto fill = start.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return transpose(b, start.getLoc(), start, order);
  auto type = cast<RankedTensorType>(start.getType());
  Value empty = tensor::EmptyOp::create(
      b, fill.getLoc(), applyPermutation(type.getShape(), order),
      type.getElementType());
  return linalg::FillOp::create(b, fill.getLoc(), fill.getInputs(), empty)
      ->getResult(0);
}

/// Leaves operations that are no convolution, or have channels first already.
void ChannelsFirst::rewrite(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 2 ||
      !op.hasPureTensorSemantics() ||
      llvm::any_of(op->getOperandTypes(), [](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return !tensor || !tensor.hasStaticShape();
      }))
    return;
  FailureOr<linalg::ConvolutionDimensions> dims =
      linalg::inferConvolutionDims(op);
  // Without a spatial dimension the order of channels means nothing.
  if (failed(dims) || dims->outputImage.empty() || dims->batch.size() != 1)
    return;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Order dataOrder = getOrder(maps[0], *dims, dims->inputChannel);
  Order resultOrder = getOrder(maps[2], *dims, dims->outputChannel);
  // Both orders are the identity.
  if (llvm::is_sorted(dataOrder) && llvm::is_sorted(resultOrder))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value data = reorderData(b, op.getDpsInputs()[0], dataOrder);
  Value start = reorderStart(b, op.getDpsInits()[0], resultOrder);
  maps[0] = reorder(maps[0], dataOrder);
  maps[2] = reorder(maps[2], resultOrder);
  // Named operations fix their layout, so the rewritten one is generic.
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange(start.getType()),
      ValueRange{data, op.getDpsInputs()[1]}, ValueRange(start), maps,
      op.getIteratorTypesArray());
  IRMapping mapping;
  op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
  // An attribute of named operations that describes the old maps.
  op->removeDiscardableAttr("linalg.memoized_indexing_maps");
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  Value result = transpose(b, loc, generic.getResult(0),
                           invertPermutationVector(resultOrder));
  Value before = op.getDpsInputs()[0], beforeStart = op.getDpsInits()[0];
  op->getResult(0).replaceAllUsesWith(result);
  // The old operation is taken out of the block and kept for `restore`.
  convolutions.push_back({op, generic, result});
  putAside(op);
  for (Value value : {before, beforeStart})
    // The padding and the fill that only the old operation read.
    if (Operation *made = value.getDefiningOp(); made && made->use_empty())
      putAside(made);
}

/// Operands are remembered and dropped, so that producers without other users
/// can be put aside as well.
void ChannelsFirst::putAside(Operation *op) {
  aside[op] = SmallVector<Value>(op->getOperands());
  op->remove();
  for (OpOperand &operand : op->getOpOperands())
    operand.drop();
}

/// With what it reads, as far as that was put aside.
/// Recursively; insertion order is producers first.
void ChannelsFirst::putBack(Operation *op, OpBuilder &builder) {
  auto found = aside.find(op);
  if (found == aside.end())
    return;
  SmallVector<Value> operands = std::move(found->second);
  aside.erase(found);
  for (auto [operand, value] : llvm::zip_equal(op->getOpOperands(), operands)) {
    if (Operation *producer = value.getDefiningOp())
      putBack(producer, builder);
    operand.set(value);
  }
  builder.insert(op);
}

/// For example, of NHWC data,
///    %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w)
/// becomes
///    %t = linalg.transpose %x [0, 3, 1, 2]
///    %c = linalg.generic (NCHW by the same weight)
///    %y = linalg.transpose %c [0, 2, 3, 1]
ChannelsFirst::ChannelsFirst(ModuleOp module) {
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() > 0)
      ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops)
    rewrite(op);
}

/// Operations that were not put back have been replaced for good.
ChannelsFirst::~ChannelsFirst() {
  for (auto &[op, operands] : aside)
    op->erase();
}

/// Sites carry `kas.site`; everything else becomes what it was.
void ChannelsFirst::restore() {
  for (Convolution &convolution : convolutions) {
    if (convolution.after->hasAttr(KasDialect::siteAttrName))
      continue;
    OpBuilder builder(convolution.after);
    putBack(convolution.before, builder);
    Value result = convolution.before->getResult(0);
    // What was put aside reads it, too.
    for (auto &[op, operands] : aside)
      llvm::replace(operands, convolution.result, result);
    convolution.result.replaceAllUsesWith(result);
    eraseWithDeadOperands(convolution.result.getDefiningOp());
  }
}
