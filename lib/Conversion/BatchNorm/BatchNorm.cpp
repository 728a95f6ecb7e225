//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// Samples, channels and places (1 for data without them): sums over the first
/// run along the last, so they are vectors wherever images are not tiny.
class ChannelSums {
public:
  ChannelSums(OpBuilder &builder, Location loc, RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}

  Value collapse(Value value) const {
    if (type.getRank() <= 3)
      return value;
    SmallVector<ReassociationIndices> groups{{0}, {1}, {}};
    for (int64_t dimension = 2; dimension < type.getRank(); ++dimension)
      groups.back().push_back(dimension);
    return tensor::CollapseShapeOp::create(builder, loc, value, groups);
  }

  /// For each channel the sum of `body` of the elements of `whole`, tensors of
  /// the data's type, and of `channels`, which have one for each channel.
  Value sum(ArrayRef<Value> whole, ArrayRef<Value> channels,
            TensorEmitter::BodyFn body) const {
    SmallVector<TensorWithoutDims> inputs;
    for (Value value : whole)
      inputs.push_back({collapse(value), {}});
    auto collapsed = cast<RankedTensorType>(inputs.front().first.getType());
    SmallVector<unsigned> others{0};
    if (collapsed.getRank() == 3)
      others.push_back(2);
    for (Value value : channels)
      inputs.push_back({value, others});
    Value sums = TensorEmitter(builder, loc, collapsed).sum(inputs, {0}, body);
    if (collapsed.getRank() == 2)
      return sums;
    return TensorEmitter(builder, loc, cast<RankedTensorType>(sums.getType()))
        .sum({{sums, {}}}, {1},
             [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  }

private:
  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
};

} // namespace

/// Of tensors with one element for each channel.
static Value mapChannels(OpBuilder &builder, Location loc, ValueRange values,
                         TensorEmitter::BodyFn body) {
  SmallVector<TensorWithoutDims> inputs;
  for (Value value : values)
    inputs.push_back({value, {}});
  auto type = cast<RankedTensorType>(values.front().getType());
  return TensorEmitter(builder, loc, type).map(inputs, body);
}

/// 1 / sqrt(variance + epsilon).
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

/// The dimensions that a tensor with one element for each channel lacks.
static SmallVector<unsigned> getOtherDims(RankedTensorType type) {
  SmallVector<unsigned> dims{0};
  for (unsigned dimension = 2; dimension < type.getRank(); ++dimension)
    dims.push_back(dimension);
  return dims;
}

BatchNormGradients kas::emitBatchNormGradients(OpBuilder &builder,
                                               BatchNormOp op, Value gradient) {
  Location loc = op.getLoc();
  Value data = op.getData(), mean = op.getMean();
  auto type = cast<RankedTensorType>(data.getType());
  double count = op.getNumElementsOfChannel();
  ChannelSums sums(builder, loc, type);
  BatchNormGradients gradients;
  gradients.offset = sums.sum(
      {gradient}, {}, [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  Value product = sums.sum({gradient, data}, {mean},
                           [](OpBuilder &builder, Location loc, ValueRange v) {
                             Value centred = arith::SubFOp::create(builder, loc,
                                                                   v[1], v[2]);
                             return multiply(builder, loc, v[0], centred);
                           });
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
  SmallVector<unsigned> others = getOtherDims(type);
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

void kas::lowerBatchNorm(RewriterBase &rewriter, BatchNormOp op) {
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value data = op.getData();
  auto type = cast<RankedTensorType>(data.getType());
  double count = op.getNumElementsOfChannel();
  ChannelSums sums(rewriter, loc, type);
  auto divide = [&](Value sum) {
    return mapChannels(rewriter, loc, sum,
                       [&](OpBuilder &builder, Location loc, ValueRange v) {
                         return scale(builder, loc, v[0], 1 / count);
                       });
  };
  Value mean = divide(sums.sum(
      {data}, {}, [](OpBuilder &, Location, ValueRange v) { return v[0]; }));
  Value variance = divide(sums.sum(
      {data}, {mean}, [](OpBuilder &builder, Location loc, ValueRange v) {
        Value centred = arith::SubFOp::create(builder, loc, v[0], v[1]);
        return multiply(builder, loc, centred, centred);
      }));
  Value inverse = emitInverseDeviation(rewriter, loc, variance,
                                       op.getEpsilon().convertToDouble());
  Value factor =
      mapChannels(rewriter, loc, {op.getScale(), inverse},
                  [](OpBuilder &builder, Location loc, ValueRange v) {
                    return multiply(builder, loc, v[0], v[1]);
                  });
  SmallVector<unsigned> others = getOtherDims(type);
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
