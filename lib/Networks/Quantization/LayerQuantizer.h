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

/// Says that `function` has no layers that int8 can stand for.
mlir::InFlightDiagnostic emitNoLayers(mlir::func::FuncOp function);

/// Fails, with a diagnostic, unless there is a finite range for each layer of
/// `function`, and some layer.
mlir::LogicalResult verifyRanges(mlir::func::FuncOp function,
                                 llvm::ArrayRef<DataRange> ranges);

/// The layers of `function` in int8, less zero points that are
/// operands, and add the products in i32.
llvm::SmallVector<QuantizableLayer>
findIntegerLayers(mlir::func::FuncOp function);

/// A padding of `value` with zeros, or null.
mlir::tensor::PadOp getZeroPadding(mlir::Value value);

/// Emits operations on tensors.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange)>;

  mlir::Value floating(double value) {
    return mlir::arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  mlir::Value filled(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
    mlir::Value empty =
        mlir::tensor::EmptyOp::create(builder, loc, shape, value.getType());
    return mlir::linalg::FillOp::create(builder, loc, value, empty)
        .getResult(0);
  }
  /// `body` of `inputs` and `output` at each point of the loops.
  mlir::Value generic(mlir::ValueRange inputs, mlir::Value output,
                      llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> kinds,
                      Body body) {
    return mlir::linalg::GenericOp::create(
               builder, loc, output.getType(), inputs, output, maps, kinds,
               [&](mlir::OpBuilder &inner, mlir::Location loc,
                   mlir::ValueRange values) {
                 mlir::Value result = body(inner, loc, values);
                 mlir::linalg::YieldOp::create(inner, loc, result);
               })
        .getResult(0);
  }
  /// `body` of each element of `input`, as a tensor of `type`.
  mlir::Value elementwise(mlir::Value input, mlir::Type type, Body body) {
    auto inputType = cast<mlir::RankedTensorType>(input.getType());
    int64_t rank = inputType.getRank();
    mlir::Value empty =
        mlir::tensor::EmptyOp::create(builder, loc, inputType.getShape(), type);
    mlir::AffineMap identity = builder.getMultiDimIdentityMap(rank);
    return generic(input, empty, {identity, identity}, getParallel(rank), body);
  }
  static llvm::SmallVector<mlir::utils::IteratorType>
  getParallel(int64_t rank) {
    return llvm::SmallVector<mlir::utils::IteratorType>(
        rank, mlir::utils::IteratorType::parallel);
  }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// What becomes of one layer.
class LayerQuantizer {
public:
  LayerQuantizer(mlir::OpBuilder &builder, QuantizableLayer layer,
                 DataRange range);
  LayerQuantizer(mlir::OpBuilder &builder, QuantizableLayer layer, double scale,
                 int32_t zeroPoint);

  /// What stands for the result of the layer. Where `sharesInt8`, what adds
  /// the data of the layer later on reads its bytes.
  mlir::Value run(bool sharesInt8 = true);
  /// The same for data and weights that are bytes already, unsigned and signed
  /// ones. `steps` has the step of each weight, equal in each channel.
  mlir::Value run(mlir::Value data, mlir::Value weights, mlir::Value steps);
  /// The same for a layer whose result are the sums, of unsigned and of signed
  /// bytes.
  mlir::Value runOnIntegers(mlir::Value data, mlir::Value weights);

private:
  void findChannels();
  mlir::Value quantizeData(bool sharesInt8);
  void readBytes(mlir::Value data, mlir::Value bytes);
  void quantizeWeights();
  void sumWeights();
  mlir::Value finish(mlir::Value data);
  mlir::Value multiply(mlir::Value data);
  mlir::Value findBias(mlir::Value start);
  void scaleChannels(mlir::Value bias);
  mlir::Value scaleSums(mlir::Value products, mlir::Value start);
  /// Adds up what `body` makes of each weight, for each channel.
  mlir::Value reduceWeights(mlir::Value tensor, mlir::Value start,
                            Emitter::Body body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  Emitter emitter;
  QuantizableLayer layer;
  mlir::linalg::LinalgOp op;
  double scale;
  int32_t zeroPoint;
  /// The channels: dimensions of the weights that are no reductions, their
  /// sizes, and the same as dimensions of the output.
  llvm::SmallVector<mlir::AffineExpr> ofWeights, ofOutput;
  llvm::SmallVector<int64_t> channelShape;
  llvm::SmallVector<mlir::utils::IteratorType> weightKinds;
  /// Per channel: the step of a weight, the sum of quantized weights, the step
  /// of a product, and what is added at last.
  mlir::Value weights, scales, sums, steps, offsets;
};

} // namespace kas::networks

#endif // KAS_LIB_NETWORKS_QUANTIZATION_LAYERQUANTIZER_H
