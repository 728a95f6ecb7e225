//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds convolutions and residual blocks of a classifier, normalizes results by
// batch statistics, and emits the gradient of the cross entropy.
// Shared by Fisher.cpp and Proxies.cpp. A classifier is a function of one block
// whose result is [samples, classes].
//
//===----------------------------------------------------------------------===//

#include "NetworkLayers.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/Site.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

/// Nothing for operations that are no convolution with one batch dimension and
/// output channels; pooling has no channels in this sense.
std::optional<Layer> kas::networks::matchLayer(linalg::LinalgOp op) {
  if (!linalg::isaConvolutionOpInterface(op) || op->getNumResults() != 1)
    return std::nullopt;
  auto dims = linalg::inferConvolutionDims(op);
  if (failed(dims) || dims->batch.size() != 1 || dims->filterLoop.empty() ||
      dims->outputChannel.size() + dims->depth.size() == 0)
    return std::nullopt;
  Layer layer;
  layer.op = op;
  // Dimensions are those of the result.
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto getDimension = [&](unsigned loop) {
    return map.getResultPosition(getAffineDimExpr(loop, op->getContext()));
  };
  layer.batch = *getDimension(dims->batch.front());
  for (unsigned loop : dims->outputImage)
    layer.spatial.push_back(*getDimension(loop));
  // The name of the layer is that of its weight without `.weight`.
  if (auto argument = dyn_cast<BlockArgument>(op.getDpsInputs()[1]))
    if (auto function =
            dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), KasDialect::argumentNameAttrName)) {
        StringRef text = name.getValue();
        text.consume_back(".weight");
        layer.name = text.str();
      }
  return layer;
}

/// Its result is only read by an elementwise sum with a tensor of the same
/// shape.
bool kas::networks::endsResidualBlock(const Layer &layer) {
  Value result = layer.op->getResult(0);
  if (!result.hasOneUse())
    return false;
  auto reader = dyn_cast<linalg::LinalgOp>(*result.getUsers().begin());
  if (!reader || reader.getNumDpsInputs() != 2 ||
      reader.getNumReductionLoops() != 0)
    return false;
  Operation &first = reader.getBlock()->front();
  return isa<arith::AddFOp>(first) &&
         llvm::all_of(reader.getDpsInputs(), [&](Value input) {
           return input.getType() == result.getType();
         });
}

/// (x - mean) / sqrt(variance + e) over the batch and `spatial`, per channel;
/// in two passes, because variances by difference of squares lose bits.
Value kas::networks::emitNormalized(OpBuilder &builder, Value result,
                                    unsigned batch,
                                    ArrayRef<unsigned> spatial) {
  Location loc = result.getLoc();
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<unsigned> dropped = llvm::to_vector(spatial);
  dropped.push_back(batch);
  double count = 1;
  for (unsigned dimension : dropped)
    count *= type.getDimSize(dimension);
  TensorEmitter emitter(builder, loc, type);
  Value mean = emitter.sum({{result, {}}}, dropped,
                           [&](OpBuilder &builder, Location loc, ValueRange v) {
                             return scale(builder, loc, v[0], 1 / count);
                           });
  // Used for the variance and for the result.
  Value centred =
      emitter.map({{result, {}}, {mean, dropped}},
                  [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                    return arith::SubFOp::create(builder, loc, v[0], v[1]);
                  });
  Value variance =
      emitter.sum({{centred, {}}}, dropped,
                  [&](OpBuilder &builder, Location loc, ValueRange v) {
                    return scale(builder, loc,
                                 multiply(builder, loc, v[0], v[0]), 1 / count);
                  });
  // The constant of torch.nn.BatchNorm2d.
  return emitter.map(
      {{centred, {}}, {variance, dropped}},
      [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value epsilon = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(v[1].getType(), 1e-5));
        Value sum = arith::AddFOp::create(builder, loc, v[1], epsilon);
        Value factor = math::RsqrtOp::create(builder, loc, sum);
        return multiply(builder, loc, v[0], factor);
      });
}

/// Everything that reads the layer's result reads the normalized one from now
/// on, except for the normalization itself.
Value kas::networks::normalizeLayer(OpBuilder &builder, const Layer &layer) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(layer.op);
  Value result = layer.op->getResult(0);
  Value normalized =
      emitNormalized(builder, result, layer.batch, layer.spatial);
  Operation *last = normalized.getDefiningOp();
  result.replaceUsesWithIf(normalized, [&](OpOperand &use) {
    return last->isBeforeInBlock(use.getOwner());
  });
  return normalized;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Of the mean cross entropy by the logits: (softmax - labels) / N.
Value kas::networks::emitLossGradient(OpBuilder &builder, Value logits,
                                      Value labels) {
  Location loc = logits.getLoc();
  auto type = cast<RankedTensorType>(logits.getType());
  TensorEmitter emitter(builder, loc, type);
  auto first = [](OpBuilder &, Location, ValueRange v) { return v[0]; };
  // Subtracted from the logits, so that no exponential overflows.
  Value largest = emitter.maximum({{logits, {}}}, {1}, first);
  Value powers =
      emitter.map({{logits, {}}, {largest, {1}}},
                  [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                    Value shifted =
                        arith::SubFOp::create(builder, loc, v[0], v[1]);
                    return math::ExpOp::create(builder, loc, shifted);
                  });
  Value sum = emitter.sum({{powers, {}}}, {1}, first);
  double factor = 1.0 / type.getDimSize(0);
  return emitter.map(
      {{powers, {}}, {sum, {1}}, {labels, {}}},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value share = arith::DivFOp::create(builder, loc, v[0], v[1]);
        Value excess = arith::SubFOp::create(builder, loc, share, v[2]);
        return scale(builder, loc, excess, factor);
      });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The type of the result, or null after an error; `what` says for which
/// purpose.
RankedTensorType kas::networks::checkClassifier(func::FuncOp function,
                                                StringRef what) {
  auto type = function.getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(function.getResultTypes()[0])
                  : RankedTensorType();
  if (function.getBody().hasOneBlock() && type && type.getRank() == 2 &&
      type.hasStaticShape())
    return type;
  function.emitError("for ")
      << what
      << ", requires a function with one block and one result of static shape "
         "samples x classes";
  return nullptr;
}

/// The builder's insertion point is moved; callers set it again.
func::FuncOp kas::networks::cloneAfter(OpBuilder &builder,
                                       func::FuncOp function, StringRef name) {
  builder.setInsertionPointAfter(function);
  func::FuncOp clone = function.clone();
  clone.setName(name);
  builder.insert(clone);
  return clone;
}

Value kas::networks::addArgument(func::FuncOp function, Type type,
                                 StringRef name) {
  Builder builder(function.getContext());
  LogicalResult inserted = function.insertArgument(
      function.getNumArguments(), type,
      builder.getDictionaryAttr(builder.getNamedAttr(
          KasDialect::argumentNameAttrName, builder.getStringAttr(name))),
      function.getLoc());
  assert(succeeded(inserted) && "a func.func takes arguments");
  (void)inserted;
  return function.getArguments().back();
}

/// Attributes of results are dropped: they belong to the old ones.
void kas::networks::setResults(func::FuncOp function, ValueRange results) {
  function.getBody().front().getTerminator()->setOperands(results);
  function.setType(FunctionType::get(
      function.getContext(), function.getArgumentTypes(), results.getTypes()));
  function.removeResAttrsAttr();
}

/// Scalars (tensors of rank 0) become one vector; bodies of results need a
/// tensor.
Value kas::networks::collect(OpBuilder &builder, Location loc,
                             ValueRange scalars) {
  Type element =
      cast<RankedTensorType>(scalars.front().getType()).getElementType();
  Value result = tensor::EmptyOp::create(
      builder, loc, ArrayRef<int64_t>{int64_t(scalars.size())}, element);
  for (auto [index, scalar] : llvm::enumerate(scalars)) {
    Value one = tensor::ExpandShapeOp::create(
        builder, loc, RankedTensorType::get({1}, element), scalar,
        ArrayRef<ReassociationIndices>{});
    result = tensor::InsertSliceOp::create(
        builder, loc, one, result,
        ArrayRef<OpFoldResult>{builder.getIndexAttr(index)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  }
  return result;
}
