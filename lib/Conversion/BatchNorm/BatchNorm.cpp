//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers `kas.batch_norm` in training mode and its gradients to linalg (Ioffe
// and Szegedy, "Batch Normalization", ICML 2015).
//
// Statistics take one pass over the data, the normalization a second one; the
// gradient takes two as well. docs/guide/gradients.md says where the op occurs.
// Data is [samples, channels, pixels...] (NCHW and the like).
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/BatchNorm.h"
#include "kas/Conversion/TensorEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;
using namespace kas::scalars;

namespace {

/// Sums over the samples and places of each channel: first over the places of
/// each sample, which lie in one row, so that all is read in the order in which
/// it is stored.
/// "Places" are the positions along dimensions 2 and up (pixels of an image),
/// "rows" the tensors [samples, channels] that are left after summing over
/// them.
class ChannelSums {
public:
  ChannelSums(OpBuilder &builder, Location loc, RankedTensorType type)
      : builder(builder), loc(loc), type(type) {
    for (unsigned dimension = 2; dimension < type.getRank(); ++dimension) {
      places.push_back(dimension);
      numPositions *= type.getDimSize(dimension);
    }
    // Dimension 0 is the samples, dimension 1 the channel.
    allButChannel.push_back(0);
    llvm::append_range(allButChannel, places);
  }

  /// `count` sums over the places of each sample and channel: of `body` of the
  /// elements of `whole`, tensors of the data's type, of `rows`, which have one
  /// for each sample and channel, and of `channels`, one for each channel.
  /// The arguments of `body` come in the order `whole`, `rows`, `channels`.
  SmallVector<Value> sumPositions(unsigned count, ArrayRef<Value> whole,
                                  ArrayRef<Value> rows,
                                  ArrayRef<Value> channels,
                                  TensorEmitter::BodiesFn body) const {
    SmallVector<TensorWithoutDims> inputs;
    for (Value value : whole)
      inputs.push_back({value, {}});
    for (Value value : rows)
      inputs.push_back({value, places});
    for (Value value : channels)
      inputs.push_back({value, allButChannel});
    return TensorEmitter(builder, loc, type).sums(count, inputs, places, body);
  }

  /// The sum over the samples of `body` of the elements of `rows` and
  /// `channels`, for each channel.
  Value sumSamples(ArrayRef<Value> rows, ArrayRef<Value> channels,
                   TensorEmitter::BodyFn body) const {
    SmallVector<TensorWithoutDims> inputs;
    for (Value value : rows)
      inputs.push_back({value, {}});
    for (Value value : channels)
      inputs.push_back({value, {0}});
    auto rowType = cast<RankedTensorType>(rows.front().getType());
    return TensorEmitter(builder, loc, rowType).sum(inputs, {0}, body);
  }
  Value sumSamples(Value rows) const {
    return sumSamples(rows, {},
                      [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  }

  /// The place in the middle of each sample and channel of `data`.
  /// A tensor [samples, channels]: a slice, no arithmetic.
  Value getMiddlePositions(Value data) const {
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
    for (unsigned dimension : places)
      offsets[dimension] = builder.getIndexAttr(type.getDimSize(dimension) / 2);
    SmallVector<OpFoldResult> steps(type.getRank(), builder.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes(steps);
    ArrayRef<int64_t> shape = type.getShape().take_front(2);
    for (auto [size, extent] : llvm::zip(sizes, shape))
      size = builder.getIndexAttr(extent);
    return tensor::ExtractSliceOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()), data,
        offsets, sizes, steps);
  }

  /// The dimensions that a tensor with one element for each channel lacks.
  ArrayRef<unsigned> getAllButChannel() const { return allButChannel; }
  int64_t getNumPositions() const { return numPositions; }

private:
  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
  SmallVector<unsigned> places, allButChannel;
  int64_t numPositions = 1;
};

} // namespace

/// Of tensors with one element for each channel.
/// Element by element; `values` have one shape.
static Value mapChannels(OpBuilder &builder, Location loc, ValueRange values,
                         TensorEmitter::BodyFn body) {
  SmallVector<TensorWithoutDims> inputs;
  for (Value value : values)
    inputs.push_back({value, {}});
  auto type = cast<RankedTensorType>(values.front().getType());
  return TensorEmitter(builder, loc, type).map(inputs, body);
}

/// 1 / sqrt(variance + epsilon).
/// One division per channel, so that there is none per element.
static Value emitInverseDeviation(OpBuilder &builder, Location loc,
                                  Value variance, double epsilon) {
  return mapChannels(
      builder, loc, variance,
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Type type = v[0].getType();
        Value shift = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(type, epsilon));
        Value one = arith::ConstantOp::create(builder, loc,
                                              builder.getFloatAttr(type, 1));
        Value deviation = math::SqrtOp::create(
            builder, loc, arith::AddFOp::create(builder, loc, v[0], shift));
        return arith::DivFOp::create(builder, loc, one, deviation);
      });
}

//===----------------------------------------------------------------------===//
// Linalg
//===----------------------------------------------------------------------===//

namespace {

/// What normalizes a batch.
struct Statistics {
  Value mean, variance;
};

} // namespace

/// Both in one pass over `data`. Of each row the sums of x - x0 and of its
/// square are taken, where x0 is the row's middle element: it is among what is
/// summed, so the row's variance loses few bits, whatever the mean is. Rows are
/// put together as by Chan, Golub and LeVeque, "Updating Formulae and a
/// Pairwise Algorithm for Computing Sample Variances", 1979.
/// `count` is the number of elements of a channel: samples times places. The
/// variance is the biased one (divided by `count`), which normalization uses.
static Statistics emitStatistics(OpBuilder &builder, Location loc, Value data,
                                 double count) {
  ChannelSums sums(builder, loc, cast<RankedTensorType>(data.getType()));
  Value middle = sums.getMiddlePositions(data);
  SmallVector<Value> rows = sums.sumPositions(
      2, data, middle, {},
      [](OpBuilder &builder, Location loc, ValueRange v) -> SmallVector<Value> {
        Value shifted = arith::SubFOp::create(builder, loc, v[0], v[1]);
        return {shifted, multiply(builder, loc, shifted, shifted)};
      });
  // mean = (places * sum of x0 + sum of (x - x0)) / count.
  double numPositions = sums.getNumPositions();
  Value mean = sums.sumSamples(
      {middle, rows[0]}, {},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        return arith::AddFOp::create(
            builder, loc, scale(builder, loc, v[0], numPositions / count),
            scale(builder, loc, v[1], 1 / count));
      });
  Value variance = sums.sumSamples(
      {middle, rows[0], rows[1]}, mean,
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        // The row's mean from x0, the sum of squares from there, and how far
        // that is from the mean of all.
        Value fromMiddle = scale(builder, loc, v[1], 1 / numPositions);
        Value within = arith::SubFOp::create(
            builder, loc, v[2], multiply(builder, loc, v[1], fromMiddle));
        Value apart = arith::SubFOp::create(
            builder, loc, arith::AddFOp::create(builder, loc, v[0], fromMiddle),
            v[3]);
        Value between = scale(
            builder, loc, multiply(builder, loc, apart, apart), numPositions);
        // Rounding may make it slightly negative, and a variance below -epsilon
        // would give NaN later.
        return scale(builder, loc,
                     arith::AddFOp::create(
                         builder, loc,
                         arith::MaximumFOp::create(
                             builder, loc, within,
                             makeConstant(builder, loc, within.getType(), 0)),
                         between),
                     1 / count);
      });
  return {mean, variance};
}

/// With g the gradient of the result, s the scale, d = sqrt(variance +
/// epsilon), n = `count` and c = x - mean:
///    offset: sum g        scale: sum (g c) / d
///    data:   s / d * (g - sum g / n - c * sum (g c) / (n d^2))
BatchNormGradients kas::emitBatchNormGradients(OpBuilder &builder,
                                               BatchNormOp op, Value gradient) {
  Location loc = op.getLoc();
  Value data = op.getData(), mean = op.getMean();
  auto type = cast<RankedTensorType>(data.getType());
  double count = op.getNumElementsOfChannel();
  ChannelSums sums(builder, loc, type);
  SmallVector<Value> rows = sums.sumPositions(
      2, {gradient, data}, {}, mean,
      [](OpBuilder &builder, Location loc, ValueRange v) -> SmallVector<Value> {
        Value centred = arith::SubFOp::create(builder, loc, v[1], v[2]);
        return {v[0], multiply(builder, loc, v[0], centred)};
      });
  BatchNormGradients gradients;
  // Two stages as in the forward pass: places of a row first, then samples.
  gradients.offset = sums.sumSamples(rows[0]);
  Value product = sums.sumSamples(rows[1]);
  Value inverse = emitInverseDeviation(builder, loc, op.getVariance(),
                                       op.getEpsilon().convertToDouble());
  auto emitProduct = [&](OpBuilder &builder, Location loc, ValueRange v) {
    return multiply(builder, loc, v[0], v[1]);
  };
  gradients.scale = mapChannels(builder, loc, {product, inverse}, emitProduct);
  Value factor =
      mapChannels(builder, loc, {op.getScale(), inverse}, emitProduct);
  // What the data shares with the gradient, for each unit that it is from its
  // mean.
  Value slope =
      mapChannels(builder, loc, {gradients.scale, inverse},
                  [&](OpBuilder &builder, Location loc, ValueRange v) {
                    return scale(builder, loc,
                                 multiply(builder, loc, v[0], v[1]), 1 / count);
                  });
  SmallVector<unsigned> others(sums.getAllButChannel());
  gradients.data =
      TensorEmitter(builder, loc, type)
          .map({{gradient, {}},
                {data, {}},
                {mean, others},
                {factor, others},
                {gradients.offset, others},
                {slope, others}},
               [&](OpBuilder &builder, Location loc, ValueRange v) {
                 Value centred =
                     arith::SubFOp::create(builder, loc, v[1], v[2]);
                 Value shared = arith::AddFOp::create(
                     builder, loc, scale(builder, loc, v[4], 1 / count),
                     multiply(builder, loc, centred, v[5]));
                 Value rest = arith::SubFOp::create(builder, loc, v[0], shared);
                 return multiply(builder, loc, v[3], rest);
               });
  return gradients;
}

/// (x - mean) * (scale / d) + offset. The mean is subtracted first: folding it
/// into the offset would cancel where it is large against the deviation. The
/// statistics are results, too: the running ones and the gradient need them.
void kas::lowerBatchNorm(RewriterBase &rewriter, BatchNormOp op) {
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value data = op.getData();
  auto type = cast<RankedTensorType>(data.getType());
  auto [mean, variance] =
      emitStatistics(rewriter, loc, data, op.getNumElementsOfChannel());
  Value inverse = emitInverseDeviation(rewriter, loc, variance,
                                       op.getEpsilon().convertToDouble());
  Value factor =
      mapChannels(rewriter, loc, {op.getScale(), inverse},
                  [](OpBuilder &builder, Location loc, ValueRange v) {
                    return multiply(builder, loc, v[0], v[1]);
                  });
  ChannelSums sums(rewriter, loc, type);
  SmallVector<unsigned> others(sums.getAllButChannel());
  Value result =
      TensorEmitter(rewriter, loc, type)
          .map({{data, {}},
                {mean, others},
                {factor, others},
                {op.getOffset(), others}},
               [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                 Value centred =
                     arith::SubFOp::create(builder, loc, v[0], v[1]);
                 return arith::AddFOp::create(
                     builder, loc, multiply(builder, loc, centred, v[2]), v[3]);
               });
  rewriter.replaceOp(op, {result, mean, variance});
}
