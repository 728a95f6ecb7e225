//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rewrites one layer as products of int8 with sums in int32: quantizes data and
// weights, corrects for zero points, scales the result.
// The scheme, for each output channel with weights w = sw * qw and data x = sx
// * (qx - zx), qx in 0..255 and qw in -127..127:
//    sum x w = sx sw (sum qx qw - zx sum qw)
// The first sum is one of int8 products in int32, exact up to 2^16 terms; the
// second, of weights alone, is an offset per channel. Weights have a step for
// each output channel, data one for the layer (docs/guide/quantization.md).
// Values that depend on weights alone are computed where the function prepacks
// its weights.
//
//===----------------------------------------------------------------------===//

#include "LayerQuantizer.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::networks;
using namespace mlir;

/// A padding of `value` with zeros, or null.
tensor::PadOp kas::networks::getZeroPadding(Value value) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  Value inserted = pad ? pad.getConstantPaddingValue() : Value();
  return inserted && matchPattern(inserted, m_AnyZeroFloat()) ? pad
                                                              : tensor::PadOp();
}

/// `value` rounded to the nearest of the integers from `lower` to `upper`, as a
/// byte.
/// `upper` may be 255: the byte has the bits of an unsigned one then.
static Value roundToInt8(OpBuilder &builder, Location loc, Value value,
                         double lower, double upper) {
  auto constant = [&](double number) {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(number)));
  };
  // Half to even, as the standards of quantized formats have it.
  value = math::RoundEvenOp::create(builder, loc, value);
  // Of NaN and a number, the number.
  value = arith::MaxNumFOp::create(builder, loc, value, constant(lower));
  value = arith::MinNumFOp::create(builder, loc, value, constant(upper));
  // Through i32, since i8 could not hold 128 to 255.
  value = arith::FPToSIOp::create(builder, loc, builder.getI32Type(), value);
  return arith::TruncIOp::create(builder, loc, builder.getI8Type(), value);
}

/// The step between the values of 255 bytes for a range with zero in it.
/// With zero in the range, so that padding and rectifiers are exact; a range of
/// a single point has any step.
static double getStep(DataRange range) {
  float lower = std::min(range.lower, 0.0f);
  float upper = std::max(range.upper, 0.0f);
  return upper > lower ? (double(upper) - lower) / 255 : 1;
}

LayerQuantizer::LayerQuantizer(OpBuilder &builder, QuantizableLayer layer,
                               DataRange range)
    : LayerQuantizer(builder, layer, getStep(range),
                     // Zero is one of the steps.
                     static_cast<int32_t>(std::lround(
                         -std::min(range.lower, 0.0f) / getStep(range)))) {}

/// For data whose scale and zero point are known.
LayerQuantizer::LayerQuantizer(OpBuilder &builder, QuantizableLayer layer,
                               double scale, int32_t zeroPoint)
    : builder(builder), loc(layer.op.getLoc()), emitter(builder, loc),
      layer(layer), op(layer.op), scale(scale), zeroPoint(zeroPoint) {
  findChannels();
}

/// Data and weights in f32: both are quantized by code that is emitted.
Value LayerQuantizer::run(bool sharesInt8) {
  Value data = quantizeData(sharesInt8);
  quantizeWeights();
  return finish(data);
}

/// Data and weights are int8 already, and the steps of the weights a tensor of
/// their shape.
Value LayerQuantizer::run(Value data, Value given, Value steps) {
  weights = given;
  // All in a channel are equal.
  // The maximum of equal values reads the one step of each channel.
  scales = reduceWeights(
      steps, emitter.floating(-std::numeric_limits<double>::infinity()),
      [](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        return arith::MaximumFOp::create(inner, loc, values[0], values[1]);
      });
  sumWeights();
  return finish(data);
}

/// The same formula without scales: results stay int32.
Value LayerQuantizer::runOnIntegers(Value data, Value given) {
  weights = given;
  sumWeights();
  Value start = op.getDpsInitOperand(0)->get();
  Value bias = findBias(start);
  Type wide = builder.getI32Type();
  // -zx, by which the sums of weights are multiplied.
  Value zero = arith::ConstantOp::create(builder, loc,
                                         builder.getI32IntegerAttr(-zeroPoint));
  SmallVector<Value> inputs{sums};
  if (bias)
    inputs.push_back(bias);
  unsigned rank = channelShape.size();
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              builder.getMultiDimIdentityMap(rank));
  Value empty = tensor::EmptyOp::create(builder, loc, channelShape, wide);
  // bias - zx * sum qw, for each channel.
  offsets = emitter.generic(
      inputs, empty, maps, Emitter::getParallel(rank),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value moved = arith::MulIOp::create(inner, loc, values[0], zero);
        if (!bias)
          return moved;
        return arith::AddIOp::create(inner, loc, moved, values[1]);
      });
  Value products = multiply(data);
  auto type = cast<RankedTensorType>(products.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  inputs = {products, offsets};
  maps = {identity,
          AffineMap::get(type.getRank(), 0, ofOutput, builder.getContext())};
  // The layer adds to a tensor that is no bias: added afterwards.
  if (!bias) {
    inputs.push_back(start);
    maps.push_back(identity);
  }
  maps.push_back(identity);
  empty = tensor::EmptyOp::create(builder, loc, type.getShape(), wide);
  return emitter.generic(
      inputs, empty, maps, Emitter::getParallel(type.getRank()),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value sum = arith::AddIOp::create(inner, loc, values[0], values[1]);
        if (bias)
          return sum;
        return arith::AddIOp::create(inner, loc, values[2], sum);
      });
}

Value LayerQuantizer::finish(Value data) {
  // What weights alone decide comes first, so that nothing is between the
  // products and what becomes of them.
  Value start = op.getDpsInitOperand(0)->get();
  Value bias = findBias(start);
  scaleChannels(bias);
  return scaleSums(multiply(data), bias ? Value() : start);
}

/// The dimensions of the weights that are no reductions are output channels;
/// where they are in the weights and in the output.
void LayerQuantizer::findChannels() {
  AffineMap map = op.getMatchingIndexingMap(layer.weights);
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    utils::IteratorType kind = op.getIteratorTypesArray()[loop];
    weightKinds.push_back(kind);
    if (kind == utils::IteratorType::reduction)
      continue;
    ofWeights.push_back(builder.getAffineDimExpr(i));
    ofOutput.push_back(
        builder.getAffineDimExpr(*output.getResultPosition(expr)));
    channelShape.push_back(op.getStaticLoopRanges()[loop]);
  }
}

/// Lets what adds `data` element by element later on, as a residual, read
/// `bytes` instead: f32 would be written for it alone.
void LayerQuantizer::readBytes(Value data, Value bytes) {
  if (isa<BlockArgument>(data))
    return;
  // After the layer and in its block, so that the int8 values are there;
  // elementwise, so that the conversion fuses into it.
  auto readsElements = [&](OpOperand &use) {
    auto reader = dyn_cast<linalg::LinalgOp>(use.getOwner());
    return reader && reader.isDpsInput(&use) &&
           reader.getNumReductionLoops() == 0 && reader->getNumResults() == 1 &&
           getElementTypeOrSelf(reader->getResult(0)).isF32() &&
           reader.getMatchingIndexingMap(&use).isIdentity() &&
           op->getBlock() == reader->getBlock() && op->isBeforeInBlock(reader);
  };
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : data.getUses())
    if (readsElements(use))
      uses.push_back(&use);
  if (uses.empty())
    return;
  // (byte - zeroPoint) * scale, as the layer reads it.
  Value offset = arith::ConstantOp::create(
      builder, loc, builder.getI32IntegerAttr(-zeroPoint));
  Value step = emitter.floating(scale);
  Value read = emitter.elementwise(
      bytes, builder.getF32Type(),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value wide =
            arith::ExtUIOp::create(inner, loc, inner.getI32Type(), values[0]);
        wide = arith::AddIOp::create(inner, loc, wide, offset);
        Value steps =
            arith::SIToFPOp::create(inner, loc, inner.getF32Type(), wide);
        return arith::MulFOp::create(inner, loc, steps, step);
      });
  for (OpOperand *use : uses)
    use->set(read);
}

/// A padding with zeros becomes one with zero points.
Value LayerQuantizer::quantizeData(bool sharesInt8) {
  Value data = layer.data->get();
  tensor::PadOp pad = getZeroPadding(data);
  if (pad)
    data = pad.getSource();
  Value bytes = emitter.elementwise(
      data, builder.getI8Type(),
      [&](OpBuilder &inner, Location loc, ValueRange values) {
        // A product with the inverse: a division takes many times as long.
        Value factor = arith::ConstantOp::create(
            inner, loc, inner.getF32FloatAttr(static_cast<float>(1 / scale)));
        Value offset = arith::ConstantOp::create(
            inner, loc, inner.getF32FloatAttr(static_cast<float>(zeroPoint)));
        Value steps = arith::MulFOp::create(inner, loc, values[0], factor);
        steps = arith::AddFOp::create(inner, loc, steps, offset);
        // Saturates: calibration may not have seen the largest value.
        return roundToInt8(inner, loc, steps, 0, 255);
      });
  if (sharesInt8)
    readBytes(data, bytes);
  if (!pad)
    return bytes;
  auto type = RankedTensorType::get(pad.getResultType().getShape(),
                                    builder.getI8Type());
  Value zero = arith::ConstantOp::create(
      builder, loc,
      builder.getI8IntegerAttr(static_cast<int8_t>(uint8_t(zeroPoint))));
  return tensor::PadOp::create(builder, loc, type, bytes, pad.getMixedLowPad(),
                               pad.getMixedHighPad(), zero);
}

/// A value for each output channel from all its weights.
Value LayerQuantizer::reduceWeights(Value tensor, Value start,
                                    Emitter::Body body) {
  unsigned rank = weightKinds.size();
  AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, ofWeights, builder.getContext())};
  return emitter.generic(tensor, emitter.filled(start, channelShape), maps,
                         weightKinds, body);
}

/// Symmetric, by the largest magnitude of a channel: no zero point, and -128 is
/// not used.
void LayerQuantizer::quantizeWeights() {
  Value tensor = layer.weights->get();
  // For 127 steps on each side.
  Value largest = reduceWeights(
      tensor, emitter.floating(0),
      [](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value size = math::AbsFOp::create(inner, loc, values[0]);
        return arith::MaximumFOp::create(inner, loc, size, values[1]);
      });
  // A channel of zeros has any scale.
  Value least = emitter.floating(1e-30);
  Value part = emitter.floating(1.0 / 127);
  scales = emitter.elementwise(
      largest, builder.getF32Type(),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value some = arith::MaximumFOp::create(inner, loc, values[0], least);
        return arith::MulFOp::create(inner, loc, some, part);
      });
  unsigned rank = weightKinds.size();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap channels = AffineMap::get(rank, 0, ofWeights, builder.getContext());
  Value empty = tensor::EmptyOp::create(
      builder, loc, cast<RankedTensorType>(tensor.getType()).getShape(),
      builder.getI8Type());
  weights = emitter.generic(
      {tensor, scales}, empty, {identity, channels, identity},
      Emitter::getParallel(rank),
      [](OpBuilder &inner, Location loc, ValueRange values) {
        Value steps = arith::DivFOp::create(inner, loc, values[0], values[1]);
        return roundToInt8(inner, loc, steps, -127, 127);
      });
  sumWeights();
}

/// Sums in i32 for the correction by the data's zero point.
void LayerQuantizer::sumWeights() {
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  // sum qw of each output channel.
  sums = reduceWeights(
      weights, zero,
      [](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value wide =
            arith::ExtSIOp::create(inner, loc, inner.getI32Type(), values[0]);
        return arith::AddIOp::create(inner, loc, wide, values[1]);
      });
}

/// The contraction of the layer with its own maps; the operand order is kept.
/// The body is the one that `-kas-pack-dot-products` knows: extend, multiply,
/// add.
Value LayerQuantizer::multiply(Value data) {
  unsigned dataNumber = layer.data->getOperandNumber();
  SmallVector<Value> inputs{weights, weights};
  inputs[dataNumber] = data;
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  AffineMap maps[] = {op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
                      op.getMatchingIndexingMap(op.getDpsInputOperand(1)),
                      op.getMatchingIndexingMap(op.getDpsInitOperand(0))};
  return emitter.generic(
      inputs, emitter.filled(zero, type.getShape()), maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Type wide = inner.getI32Type();
        Value step =
            arith::ExtUIOp::create(inner, loc, wide, values[dataNumber]);
        Value weight =
            arith::ExtSIOp::create(inner, loc, wide, values[1 - dataNumber]);
        Value product = arith::MulIOp::create(inner, loc, step, weight);
        return arith::AddIOp::create(inner, loc, values[2], product);
      });
}

/// The value per channel that `start`, which the layer adds to, is a broadcast
/// of; null if it is none.
Value LayerQuantizer::findBias(Value start) {
  auto broadcast = start.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast || ofOutput.size() != 1)
    return Value();
  int64_t rank = cast<RankedTensorType>(start.getType()).getRank();
  unsigned channel = cast<AffineDimExpr>(ofOutput.front()).getPosition();
  // All dimensions but the channel's are those of the broadcast.
  ArrayRef<int64_t> added = broadcast.getDimensions();
  bool isBias = int64_t(added.size()) == rank - 1 &&
                !llvm::is_contained(added, int64_t(channel));
  return isBias ? broadcast.getInput() : Value();
}

/// For each channel the step of a sum, and what zero points and the bias, if
/// there is one, add to the result: of weights alone, so they are made once.
void LayerQuantizer::scaleChannels(Value bias) {
  unsigned rank = channelShape.size();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  auto kinds = Emitter::getParallel(rank);
  Value dataScale = emitter.floating(scale);
  steps = emitter.elementwise(
      scales, builder.getF32Type(),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        return arith::MulFOp::create(inner, loc, values[0], dataScale);
      });
  SmallVector<Value> inputs{sums, steps};
  if (bias)
    inputs.push_back(bias);
  SmallVector<AffineMap> maps(inputs.size() + 1, identity);
  // Zero points are at most 255: exact in f32.
  Value zero = emitter.floating(-zeroPoint);
  Value empty =
      tensor::EmptyOp::create(builder, loc, channelShape, builder.getF32Type());
  // bias - zx * sum qw * sx * sw, in f32.
  offsets = emitter.generic(
      inputs, empty, maps, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value sum =
            arith::SIToFPOp::create(inner, loc, inner.getF32Type(), values[0]);
        Value moved = arith::MulFOp::create(inner, loc, sum, zero);
        moved = arith::MulFOp::create(inner, loc, moved, values[1]);
        if (!bias)
          return moved;
        return arith::AddFOp::create(inner, loc, moved, values[2]);
      });
}

/// The products in f32, added to `start` if there is one.
Value LayerQuantizer::scaleSums(Value products, Value start) {
  // Adding zeros is left out.
  auto fill = start ? start.getDefiningOp<linalg::FillOp>() : linalg::FillOp();
  bool adds =
      start && !(fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat()));
  auto type = cast<RankedTensorType>(products.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap channels =
      AffineMap::get(type.getRank(), 0, ofOutput, builder.getContext());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        builder.getF32Type());
  SmallVector<Value> inputs{products, steps, offsets};
  SmallVector<AffineMap> maps{identity, channels, channels};
  if (adds) {
    inputs.push_back(start);
    maps.push_back(identity);
  }
  maps.push_back(identity);
  return emitter.generic(
      inputs, empty, maps, Emitter::getParallel(type.getRank()),
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value sum =
            arith::SIToFPOp::create(inner, loc, inner.getF32Type(), values[0]);
        Value result = arith::MulFOp::create(inner, loc, sum, values[1]);
        result = arith::AddFOp::create(inner, loc, result, values[2]);
        if (!adds)
          return result;
        return arith::AddFOp::create(inner, loc, values[3], result);
      });
}
