//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that measure what quantization needs: the range of each layer's
// data, and the error that int8 makes in each layer.
// Calibration is a program like any other: `-kas-data-ranges` and
// `-kas-quantization-errors` add a function that returns two numbers for each
// layer, it is compiled and run on batches, and `-kas-quantize` takes what came
// out (docs/guide/quantization.md).
//
//===----------------------------------------------------------------------===//

#include "LayerQuantizer.h"

using namespace kas;
using namespace kas::networks;
using namespace mlir;

/// The least and the largest of zero and of all elements of `tensor`.
/// Zero is included, because padding and rectifiers need it to be a value of
/// int8.
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

/// Adds up the squares of what `body` makes of the elements of `inputs`, which
/// have one shape; a scalar.
static Value sumElements(OpBuilder &builder, Location loc, ValueRange inputs,
                         Emitter::Body body) {
  Emitter emitter(builder, loc);
  int64_t rank = cast<RankedTensorType>(inputs.front().getType()).getRank();
  SmallVector<AffineMap> maps(inputs.size(),
                              builder.getMultiDimIdentityMap(rank));
  maps.push_back(AffineMap::get(rank, 0, builder.getContext()));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::reduction);
  Value sum = emitter.generic(
      inputs, emitter.filled(emitter.floating(0), {}), maps, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
        Value root = body(inner, loc, values);
        Value square = arith::MulFOp::create(inner, loc, root, root);
        return arith::AddFOp::create(inner, loc, values.back(), square);
      });
  return tensor::ExtractOp::create(builder, loc, sum, ValueRange());
}

/// A copy of `function` after it that returns two numbers for each layer, which
/// `measure` adds to the code; null, with a diagnostic, without layers.
/// The result is a tensor [layers, 2].
static FailureOr<func::FuncOp> makeMeasuringFunction(
    func::FuncOp function, StringRef name,
    function_ref<std::pair<Value, Value>(unsigned, QuantizableLayer)> measure) {
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  auto clone = cast<func::FuncOp>(builder.clone(*function));
  clone.setName(name);
  SmallVector<QuantizableLayer> layers = findQuantizableLayers(clone);
  if (layers.empty()) {
    clone.erase();
    return emitNoLayers(function);
  }
  // Two for each layer, in the order of the layers, which `-kas-quantize`
  // counts in the same way.
  SmallVector<Value> values;
  for (auto [number, layer] : llvm::enumerate(layers)) {
    auto [first, second] = measure(number, layer);
    values.push_back(first);
    values.push_back(second);
  }
  Operation *end = clone.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  auto type =
      RankedTensorType::get({int64_t(layers.size()), 2}, builder.getF32Type());
  Value result =
      tensor::FromElementsOp::create(builder, function.getLoc(), type, values);
  func::ReturnOp::create(builder, function.getLoc(), result);
  end->erase();
  // The network's own results are not returned: what only they need is dead
  // code.
  while (clone.getNumResults() > 0)
    (void)clone.eraseResult(0);
  (void)clone.insertResult(0, type, {});
  return clone;
}

FailureOr<func::FuncOp> kas::networks::makeRangesFunction(func::FuncOp function,
                                                          StringRef name) {
  return makeMeasuringFunction(
      function, name, [](unsigned, QuantizableLayer layer) {
        // Zero padding is added after quantization, and belongs to any range.
        Value data = layer.data->get();
        if (tensor::PadOp pad = getZeroPadding(data))
          data = pad.getSource();
        OpBuilder builder(layer.op);
        return reduceRange(builder, layer.op.getLoc(), data);
      });
}

/// For each layer alone, all others in f32: the sum of squares of the error,
/// and of the result itself, whose ratio does not depend on the scale.
FailureOr<func::FuncOp>
kas::networks::makeErrorsFunction(func::FuncOp function,
                                  ArrayRef<DataRange> ranges, StringRef name) {
  if (failed(verifyRanges(function, ranges)))
    return failure();
  return makeMeasuringFunction(
      function, name, [&](unsigned number, QuantizableLayer layer) {
        OpBuilder builder(layer.op);
        Value rounded = LayerQuantizer(builder, layer, ranges[number])
                            .run(/*sharesInt8=*/false);
        // Both results must be there.
        builder.setInsertionPointAfter(layer.op);
        Location loc = layer.op.getLoc();
        Value exact = layer.op->getResult(0);
        Value error = sumElements(
            builder, loc, {rounded, exact},
            [](OpBuilder &inner, Location loc, ValueRange values) -> Value {
              return arith::SubFOp::create(inner, loc, values[0], values[1]);
            });
        Value size = sumElements(
            builder, loc, exact,
            [](OpBuilder &, Location, ValueRange values) { return values[0]; });
        return std::pair(error, size);
      });
}
