//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations on bytes in the place of a layer of f32.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_NETWORKS_QUANTIZATION_LAYERQUANTIZER_H
#define KAS_LIB_NETWORKS_QUANTIZATION_LAYERQUANTIZER_H

#include "kas/Networks/Quantization/Quantize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kas::networks {

using namespace mlir;

/// Says that `function` has no layers that bytes can stand for.
InFlightDiagnostic emitNoLayers(func::FuncOp function);

/// Fails, with a diagnostic, unless there is a finite range for each layer of
/// `function`, and some layer.
LogicalResult verifyRanges(func::FuncOp function, ArrayRef<DataRange> ranges);

/// The layers of `function` that multiply bytes, less zero points that are
/// operands, and add the products in i32.
SmallVector<QuantizableLayer> findIntegerLayers(func::FuncOp function);

/// A padding of `value` with zeros, or null.
tensor::PadOp getZeroPadding(Value value);

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

/// What becomes of one layer.
class LayerQuantizer {
public:
  LayerQuantizer(OpBuilder &builder, QuantizableLayer layer, DataRange range);
  LayerQuantizer(OpBuilder &builder, QuantizableLayer layer, double scale,
                 int32_t zeroPoint);

  /// What stands for the result of the layer. Where `sharesBytes`, what adds
  /// the data of the layer later on reads its bytes.
  Value run(bool sharesBytes = true);
  /// The same for data and weights that are bytes already, unsigned and signed
  /// ones. `steps` has the step of each weight, equal in each channel.
  Value run(Value data, Value weights, Value steps);
  /// The same for a layer whose result are the sums, of unsigned and of signed
  /// bytes.
  Value runOnIntegers(Value data, Value weights);

private:
  void findChannels();
  Value quantizeData(bool sharesBytes);
  void readBytes(Value data, Value bytes);
  void quantizeWeights();
  void sumWeights();
  Value finish(Value data);
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

} // namespace kas::networks

#endif // KAS_LIB_NETWORKS_QUANTIZATION_LAYERQUANTIZER_H
