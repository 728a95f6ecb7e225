//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Quantization/Quantize.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace kas;
using namespace kas::networks;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Whether some reduction is the index of a dimension of both inputs.
static bool sumsOverChannels(linalg::LinalgOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  return llvm::any_of(reductions, [&](unsigned loop) {
    AffineExpr dim = getAffineDimExpr(loop, op->getContext());
    return op.getStaticLoopRanges()[loop] > 1 &&
           llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
             return llvm::is_contained(
                 op.getMatchingIndexingMap(input).getResults(), dim);
           });
  });
}

static bool isQuantizable(linalg::LinalgOp op) {
  auto isF32 = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getElementType().isF32();
  };
  return isSumOfProducts(op) && op.getNumDpsInputs() == 2 &&
         llvm::all_of(op->getOperands(), isF32) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0))
             .isProjectedPermutation() &&
         sumsOverChannels(op);
}

/// Whether the weights have all reductions, and dimensions that are loops.
static bool areWeights(linalg::LinalgOp op, OpOperand *weights) {
  AffineMap map = op.getMatchingIndexingMap(weights);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  return map.isProjectedPermutation() &&
         llvm::all_of(reductions,
                      [&](unsigned loop) { return map.isFunctionOfDim(loop); });
}

SmallVector<QuantizableLayer>
kas::networks::findQuantizableLayers(func::FuncOp function) {
  SmallVector<QuantizableLayer> layers;
  if (function.getNumArguments() == 0)
    return layers;
  // What depends on the first argument.
  DenseSet<Value> data{function.getArgument(0)};
  for (Operation &inner : function.getBody().front()) {
    if (llvm::any_of(inner.getOperands(),
                     [&](Value operand) { return data.contains(operand); }))
      data.insert_range(inner.getResults());
    auto op = dyn_cast<linalg::LinalgOp>(inner);
    if (!op || !isQuantizable(op))
      continue;
    OpOperand *first = op.getDpsInputOperand(0);
    OpOperand *second = op.getDpsInputOperand(1);
    bool isFirstData = data.contains(first->get());
    if (isFirstData == data.contains(second->get()))
      continue;
    if (!isFirstData)
      std::swap(first, second);
    if (areWeights(op, second))
      layers.push_back({op, first, second});
  }
  return layers;
}

/// A padding of `value` with zeros, or null.
static tensor::PadOp getZeroPadding(Value value) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  Value inserted = pad ? pad.getConstantPaddingValue() : Value();
  return inserted && matchPattern(inserted, m_AnyZeroFloat()) ? pad
                                                              : tensor::PadOp();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {

/// Emits operations on tensors.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

  Value floating(double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  Value filled(Value value, ArrayRef<int64_t> shape) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, value.getType());
    return linalg::FillOp::create(builder, loc, value, empty).getResult(0);
  }
  /// `body` of `inputs` and `output` at each point of the loops.
  Value generic(ValueRange inputs, Value output, ArrayRef<AffineMap> maps,
                ArrayRef<utils::IteratorType> kinds, Body body) {
    return linalg::GenericOp::create(
               builder, loc, output.getType(), inputs, output, maps, kinds,
               [&](OpBuilder &inner, Location loc, ValueRange values) {
                 Value result = body(inner, loc, values);
                 linalg::YieldOp::create(inner, loc, result);
               })
        .getResult(0);
  }
  /// `body` of each element of `input`, as a tensor of `type`.
  Value elementwise(Value input, Type type, Body body) {
    auto inputType = cast<RankedTensorType>(input.getType());
    int64_t rank = inputType.getRank();
    Value empty =
        tensor::EmptyOp::create(builder, loc, inputType.getShape(), type);
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    return generic(input, empty, {identity, identity}, getParallel(rank), body);
  }
  static SmallVector<utils::IteratorType> getParallel(int64_t rank) {
    return SmallVector<utils::IteratorType>(rank,
                                            utils::IteratorType::parallel);
  }

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace

/// `value` rounded to the nearest of the integers from `lower` to `upper`, as a
/// byte.
static Value roundToByte(OpBuilder &builder, Location loc, Value value,
                         double lower, double upper) {
  auto constant = [&](double number) {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(number)));
  };
  value = math::RoundEvenOp::create(builder, loc, value);
  // Of NaN and a number, the number.
  value = arith::MaxNumFOp::create(builder, loc, value, constant(lower));
  value = arith::MinNumFOp::create(builder, loc, value, constant(upper));
  value = arith::FPToSIOp::create(builder, loc, builder.getI32Type(), value);
  return arith::TruncIOp::create(builder, loc, builder.getI8Type(), value);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// The least and the largest of zero and of all elements of `tensor`.
static std::pair<Value, Value> reduceRange(OpBuilder &builder, Location loc,
                                           Value tensor) {
  Emitter emitter(builder, loc);
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, builder.getContext())};
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::reduction);
  auto reduce = [&](bool largest) {
    Value reduced = emitter.generic(
        tensor, emitter.filled(emitter.floating(0), {}), maps, kinds,
        [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
          if (largest)
            return arith::MaximumFOp::create(inner, loc, values[0], values[1]);
          return arith::MinimumFOp::create(inner, loc, values[0], values[1]);
        });
    return tensor::ExtractOp::create(builder, loc, reduced, ValueRange());
  };
  Value lower = reduce(false);
  return {lower, reduce(true)};
}

static InFlightDiagnostic emitNoLayers(func::FuncOp function) {
  return function.emitError(
      "requires a function with layers that sum products of data and weights "
      "of f32 over channels, got none");
}

FailureOr<func::FuncOp> kas::networks::makeRangesFunction(func::FuncOp function,
                                                          StringRef name) {
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  auto clone = cast<func::FuncOp>(builder.clone(*function));
  clone.setName(name);
  SmallVector<QuantizableLayer> layers = findQuantizableLayers(clone);
  if (layers.empty()) {
    clone.erase();
    return emitNoLayers(function);
  }
  Operation *end = clone.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  Location loc = function.getLoc();
  SmallVector<Value> values;
  for (QuantizableLayer &layer : layers) {
    Value data = layer.data->get();
    if (tensor::PadOp pad = getZeroPadding(data))
      data = pad.getSource();
    auto [lower, upper] = reduceRange(builder, layer.op.getLoc(), data);
    values.push_back(lower);
    values.push_back(upper);
  }
  auto type =
      RankedTensorType::get({int64_t(layers.size()), 2}, builder.getF32Type());
  Value result = tensor::FromElementsOp::create(builder, loc, type, values);
  func::ReturnOp::create(builder, loc, result);
  end->erase();
  while (clone.getNumResults() > 0)
    (void)clone.eraseResult(0);
  (void)clone.insertResult(0, type, {});
  return clone;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {

/// What becomes of one layer.
class LayerQuantizer {
public:
  LayerQuantizer(OpBuilder &builder, QuantizableLayer layer, DataRange range)
      : builder(builder), loc(layer.op.getLoc()), emitter(builder, loc),
        layer(layer), op(layer.op) {
    // Zero is one of the steps.
    float lower = std::min(range.lower, 0.0f);
    float upper = std::max(range.upper, 0.0f);
    scale = upper > lower ? (double(upper) - lower) / 255 : 1;
    zeroPoint = static_cast<int32_t>(std::lround(-lower / scale));
    findChannels();
  }

  /// What stands for the result of the layer.
  Value run() {
    Value data = quantizeData();
    quantizeWeights();
    // What weights alone decide comes first, so that nothing is between the
    // products and what becomes of them.
    Value start = op.getDpsInitOperand(0)->get();
    Value bias = findBias(start);
    scaleChannels(bias);
    return scaleSums(multiply(data), bias ? Value() : start);
  }

private:
  void findChannels();
  Value quantizeData();
  void readBytes(Value data, Value bytes);
  void quantizeWeights();
  Value multiply(Value data);
  Value findBias(Value start);
  void scaleChannels(Value bias);
  Value scaleSums(Value products, Value start);
  /// Adds up what `body` makes of each weight, for each channel.
  Value reduceWeights(Value tensor, Value start, Emitter::Body body);

  OpBuilder &builder;
  Location loc;
  Emitter emitter;
  QuantizableLayer layer;
  linalg::LinalgOp op;
  double scale;
  int32_t zeroPoint;
  /// The channels: dimensions of the weights that are no reductions, their
  /// sizes, and the same as dimensions of the output.
  SmallVector<AffineExpr> ofWeights, ofOutput;
  SmallVector<int64_t> channelShape;
  SmallVector<utils::IteratorType> weightKinds;
  /// Per channel: the step of a weight, the sum of quantized weights, the step
  /// of a product, and what is added at last.
  Value weights, scales, sums, steps, offsets;
};

} // namespace

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
Value LayerQuantizer::quantizeData() {
  Value data = layer.data->get();
  tensor::PadOp pad = getZeroPadding(data);
  if (pad)
    data = pad.getSource();
  Value bytes = emitter.elementwise(
      data, builder.getI8Type(),
      [&](OpBuilder &inner, Location loc, ValueRange values) {
        Value factor = arith::ConstantOp::create(
            inner, loc, inner.getF32FloatAttr(static_cast<float>(1 / scale)));
        Value offset = arith::ConstantOp::create(
            inner, loc, inner.getF32FloatAttr(static_cast<float>(zeroPoint)));
        Value steps = arith::MulFOp::create(inner, loc, values[0], factor);
        steps = arith::AddFOp::create(inner, loc, steps, offset);
        return roundToByte(inner, loc, steps, 0, 255);
      });
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

Value LayerQuantizer::reduceWeights(Value tensor, Value start,
                                    Emitter::Body body) {
  unsigned rank = weightKinds.size();
  AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, ofWeights, builder.getContext())};
  return emitter.generic(tensor, emitter.filled(start, channelShape), maps,
                         weightKinds, body);
}

void LayerQuantizer::quantizeWeights() {
  Value tensor = layer.weights->get();
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
        return roundToByte(inner, loc, steps, -127, 127);
      });
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  sums = reduceWeights(
      weights, zero,
      [](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value wide =
            arith::ExtSIOp::create(inner, loc, inner.getI32Type(), values[0]);
        return arith::AddIOp::create(inner, loc, wide, values[1]);
      });
}

Value LayerQuantizer::multiply(Value data) {
  unsigned dataNumber = layer.data->getOperandNumber();
  SmallVector<Value> inputs{weights, weights};
  inputs[dataNumber] = data;
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return emitter.generic(
      inputs, emitter.filled(zero, type.getShape()), op.getIndexingMapsArray(),
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
  Value zero = emitter.floating(-zeroPoint);
  Value empty =
      tensor::EmptyOp::create(builder, loc, channelShape, builder.getF32Type());
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

LogicalResult kas::networks::quantize(func::FuncOp function,
                                      ArrayRef<DataRange> ranges) {
  SmallVector<QuantizableLayer> layers = findQuantizableLayers(function);
  if (layers.empty())
    return emitNoLayers(function);
  if (layers.size() != ranges.size())
    return function.emitError("requires ")
           << layers.size() << " ranges, one for each layer, got "
           << ranges.size();
  for (DataRange range : ranges)
    if (!std::isfinite(range.lower) || !std::isfinite(range.upper) ||
        range.lower > range.upper)
      return function.emitError("requires finite ranges of data, got ")
             << range.lower << " to " << range.upper;
  for (auto [layer, range] : llvm::zip_equal(layers, ranges)) {
    OpBuilder builder(layer.op);
    Value result = LayerQuantizer(builder, layer, range).run();
    layer.op->getResult(0).replaceAllUsesWith(result);
    layer.op->erase();
  }
  return success();
}
