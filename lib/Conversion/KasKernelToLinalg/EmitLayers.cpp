//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layers with weights.
//
// Dense layers, convolutions and `mix` are one contraction each, with groups as
// a batch loop, so that code generation finds register tiles for them; scales
// and normalizations are element-wise (docs/reference/tensor-level.md).
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace kas;

using Shape = TensorSteps::Shape;

//===----------------------------------------------------------------------===//
// Layers with weights
//===----------------------------------------------------------------------===//

/// A matrix product per sample and group over all positions.
FailureOr<Value> KernelEmitter::emit(DagFCOp op, ArrayRef<int64_t> shape) {
  FailureOr<LayerSizes> sizes = getLayerSizes(op);
  if (failed(sizes))
    return failure();
  return emitLayer(*sizes, values[op.getInput()], shape, {}, {}, {});
}

/// Stride 1 and "same" padding; windows may be causal.
FailureOr<Value> KernelEmitter::emit(DagConvOp op, ArrayRef<int64_t> shape) {
  FailureOr<LayerSizes> sizes = getLayerSizes(op);
  FailureOr<Shape> windows = getSizes(op.getWindows());
  if (failed(sizes) || failed(windows))
    return failure();
  // The spatial dimensions, counted among themselves.
  int64_t numChannelDims = getNumChannelDims(op.getInput());
  SmallVector<int64_t> dims = llvm::map_to_vector(
      op.getDims(), [&](int64_t dim) { return dim - numChannelDims; });
  return emitLayer(*sizes, values[op.getInput()], shape, dims, *windows,
                   {int64_t(op.getDilation()), op.getCausal()});
}

/// `result[n, g, o, p] = sum over c, k of weight[g, o, c, k] *
/// input[n, g, c, p + dilation*k]`, without the loops over one group, one
/// output or one channel of a group. Without windows, all positions are one
/// loop. The layer reads the padded input itself, not a view of it: then the
/// lowering path to the CPU need not make it.
FailureOr<Value> KernelEmitter::emitLayer(const LayerSizes &sizes, Value input,
                                          ArrayRef<int64_t> shape,
                                          ArrayRef<int64_t> windowDims,
                                          ArrayRef<int64_t> windows,
                                          WindowPosition place) {
  ArrayRef<int64_t> spatial = shape.drop_front(2);
  // Pixels: one loop per spatial dimension, since windows index them one by
  // one.
  Shape positions(spatial);
  if (windows.empty())
    positions = {getProduct(spatial)};
  // Some operand of a loop, in the order of its dimensions.
  struct Operand {
    Shape shape;
    SmallVector<AffineExpr> indices;
    void add(int64_t extent, AffineExpr index) {
      shape.push_back(extent);
      indices.push_back(index);
    }
  };
  // Loops are made in this order: sample, group, output, pixels, then the
  // reductions channel and windows, as `TensorSteps::contract` wants.
  Operand read, weight, result;
  unsigned numLoops = 0;
  auto addLoop = [&] { return b.getAffineDimExpr(numLoops++); };
  AffineExpr sample = addLoop();
  read.add(batch, sample);
  result.add(batch, sample);
  if (sizes.groups > 1) {
    AffineExpr group = addLoop();
    for (Operand *operand : {&read, &weight, &result})
      operand->add(sizes.groups, group);
  }
  // Depthwise: one output per group, so the group alone indexes it. Without
  // groups the loop stays, also over one output, so that there is a matrix
  // product.
  if (sizes.groups == 1 || sizes.getOutputsPerGroup() > 1) {
    AffineExpr output = addLoop();
    weight.add(sizes.getOutputsPerGroup(), output);
    result.add(sizes.getOutputsPerGroup(), output);
  }
  SmallVector<AffineExpr> points;
  for (int64_t extent : positions) {
    points.push_back(addLoop());
    result.add(extent, points.back());
  }
  unsigned firstReduction = numLoops;
  if (windows.empty() || sizes.perGroup > 1) {
    AffineExpr channel = addLoop();
    read.add(sizes.perGroup, channel);
    weight.add(sizes.perGroup, channel);
  }
  for (auto [dim, extent] : llvm::zip_equal(windowDims, windows)) {
    AffineExpr window = addLoop();
    // Stored in `points`, which index the input below; the result has its
    // indices already.
    points[dim] = points[dim] + window * place.dilation;
    weight.add(extent, window);
  }
  // Spatial dimensions come after sample, group and channel in the input.
  SmallVector<int64_t> padded = llvm::map_to_vector(
      windowDims, [&](int64_t d) { return d + int64_t(read.shape.size()); });
  for (auto [extent, point] : llvm::zip_equal(positions, points))
    read.add(extent, point);
  FailureOr<Value> source =
      padForWindows(steps.view(input, read.shape), padded, windows, place);
  if (failed(source))
    return failure();
  Value sums = steps.contract(result.shape, numLoops - firstReduction, *source,
                              getMap(numLoops, read.indices),
                              steps.view(takeWeight(), weight.shape),
                              getMap(numLoops, weight.indices));
  return steps.view(sums, shape);
}

/// The mixed dimensions `first` to `last` - 1 are one, and so are those
/// before and those after: a product of matrices.
/// [front, contracted, back] x [outputs, contracted] -> [front, outputs, back].
/// `shape` is that of the result.
Value KernelEmitter::emitMixOfRun(Value input, ArrayRef<int64_t> shape,
                                  int64_t first, int64_t last) {
  int64_t outputs = getProduct(shape.slice(first, last - first));
  int64_t front = getProduct(shape.take_front(first));
  int64_t back = getProduct(shape.drop_front(last));
  int64_t contracted =
      getProduct(TensorSteps::getShape(input)) / (front * back);
  Shape read = {front, contracted}, result = {front, outputs};
  // Loops: front, output, back (if any), contracted.
  SmallVector<int64_t> readLoops = {0}, weightLoops = {1};
  if (back > 1) {
    read.push_back(back);
    result.push_back(back);
  }
  int64_t numLoops = result.size() + 1;
  readLoops.push_back(numLoops - 1);
  weightLoops.push_back(numLoops - 1);
  if (back > 1)
    readLoops.push_back(2);
  Value sums = steps.contract(result, 1, steps.view(input, read),
                              getMap(numLoops, readLoops),
                              steps.view(takeWeight(), {outputs, contracted}),
                              getMap(numLoops, weightLoops));
  return steps.view(sums, shape);
}

/// Neighbouring dimensions collapse to one; others keep a loop each.
FailureOr<Value> KernelEmitter::emit(DagMixOp op, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims = shiftDims(op.getDims());
  if (dims == getRange(dims.front(), dims.front() + dims.size()))
    return emitMixOfRun(values[op.getInput()], shape, dims.front(),
                        dims.back() + 1);
  unsigned numLoops = shape.size() + op.getDims().size();
  SmallVector<int64_t> reads = getRange(0, shape.size()), weights, contracted;
  // Along `dims` the result has the output's loop, the input the contracted
  // one.
  for (auto [place, dim] : llvm::enumerate(dims)) {
    weights.push_back(dim);
    contracted.push_back(shape.size() + place);
    reads[dim] = contracted.back();
  }
  llvm::append_range(weights, contracted);
  return steps.contract(shape, op.getDims().size(), values[op.getInput()],
                        getMap(numLoops, reads), takeWeight(),
                        getMap(numLoops, weights));
}

FailureOr<Value> KernelEmitter::emit(DagScaleOp op, ArrayRef<int64_t> shape) {
  AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                      getMap(shape.size(), shiftDims(op.getDims()))};
  return steps.map(shape, {values[op.getInput()], takeWeight()}, maps,
                   [](OpBuilder &nested, Location loc, ValueRange arguments) {
                     return arith::MulFOp::create(nested, loc, arguments[0],
                                                  arguments[1]);
                   });
}

FailureOr<Value> KernelEmitter::emit(DagNormOp op, ArrayRef<int64_t> shape) {
  SmallVector<Value> operands = {values[op.getInput()]};
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(shape.size())};
  // Scale, offset, mean, variance, in the order of `DagNormOp::getParams`.
  for (int i = 0; i < 4; ++i) {
    operands.push_back(takeWeight());
    maps.push_back(getMap(shape.size(),
                          getRange(1, 1 + getNumChannelDims(op.getInput()))));
  }
  return steps.map(
      shape, operands, maps,
      [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
        ImplicitLocOpBuilder n(loc, nested);
        Value epsilon = arith::ConstantOp::create(
            n, n.getFloatAttr(arguments[0].getType(), DagNormOp::epsilon));
        // The magnitude, so that random weights are legal, as in the reference.
        Value variance = arith::AddFOp::create(
            n, math::AbsFOp::create(n, arguments[4]), epsilon);
        Value centered = arith::SubFOp::create(n, arguments[0], arguments[3]);
        Value factor = arith::DivFOp::create(n, arguments[1],
                                             math::SqrtOp::create(n, variance));
        return arith::AddFOp::create(
            n, arith::MulFOp::create(n, centered, factor), arguments[2]);
      });
}
