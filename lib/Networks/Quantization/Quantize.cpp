//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the layers of a function that can multiply int8, and quantizes them by
// given ranges.
// A layer is a contraction of data and weights that sums over channels: int8
// pays there, not for depthwise windows. Data is what depends on an argument
// that is data (`isData`), weights what does not.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Quantization/Quantize.h"
#include "LayerQuantizer.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <cmath>

using namespace kas;
using namespace kas::networks;
using namespace mlir;

/// Whether some reduction is the index of a dimension of both factors.
/// A window is no such index: the data is read there at a sum of loops.
static bool sumsOverChannels(linalg::LinalgOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  return llvm::any_of(reductions, [&](unsigned loop) {
    AffineExpr dim = getAffineDimExpr(loop, op->getContext());
    // A channel of size 1 sums nothing.
    return op.getStaticLoopRanges()[loop] > 1 &&
           llvm::all_of(ArrayRef<unsigned>{0, 1}, [&](unsigned number) {
             AffineMap map =
                 op.getMatchingIndexingMap(op.getDpsInputOperand(number));
             return llvm::is_contained(map.getResults(), dim);
           });
  });
}

/// Contractions of f32 with static shapes, two factors, and a result whose
/// dimensions are loops.
static bool isQuantizable(linalg::LinalgOp op) {
  auto isF32 = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getElementType().isF32();
  };
  return hasContractionBody(op) && op.getNumDpsInputs() == 2 &&
         llvm::all_of(op->getOperands(), isF32) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0))
             .isProjectedPermutation() &&
         sumsOverChannels(op);
}

/// Whether the weights have all reductions, and dimensions that are loops.
/// Sums of weights per channel are the correction; they need all reductions.
static bool areWeights(linalg::LinalgOp op, OpOperand *weights) {
  AffineMap map = op.getMatchingIndexingMap(weights);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  return map.isProjectedPermutation() &&
         llvm::all_of(reductions,
                      [&](unsigned loop) { return map.isFunctionOfDim(loop); });
}

/// The named operations with zero points, in which quantized models may come.
SmallVector<QuantizableLayer>
kas::networks::findIntegerLayers(func::FuncOp function) {
  SmallVector<QuantizableLayer> layers;
  function.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::Conv2DNchwFchwQOp, linalg::Conv2DNgchwGfchwQOp,
             linalg::Conv2DNhwcFhwcQOp, linalg::Conv2DNhwcHwcfQOp,
             linalg::Conv2DNhwgcGfhwcQOp, linalg::QuantizedBatchMatmulOp,
             linalg::QuantizedMatmulOp>(op))
      return;
    OpOperand *weights = op.getDpsInputOperand(1);
    // Zero points are scalars and not tensors.
    auto isStatic = [](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return !type || type.hasStaticShape();
    };
    if (llvm::all_of(op->getOperands(), isStatic) && op->getNumResults() == 1 &&
        areWeights(op, weights) && sumsOverChannels(op))
      layers.push_back({op, op.getDpsInputOperand(0), weights});
  });
  return layers;
}

/// In program order. A layer whose factors both depend on data, as in
/// attention, or neither, is none.
SmallVector<QuantizableLayer>
kas::networks::findQuantizableLayers(func::FuncOp function) {
  SmallVector<QuantizableLayer> layers;
  if (function.getNumArguments() == 0)
    return layers;
  // What depends on data.
  DenseSet<Value> data;
  for (BlockArgument argument : function.getArguments())
    if (isData(argument))
      data.insert(argument);
  for (Operation &inner : function.getBody().front()) {
    // Regions are not looked into: operations of networks pass data as
    // operands.
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
      // Weights may be the first factor.
      std::swap(first, second);
    if (areWeights(op, second))
      layers.push_back({op, first, second});
  }
  return layers;
}

InFlightDiagnostic kas::networks::emitNoLayers(func::FuncOp function) {
  return function.emitError(
      "requires a function with layers that sum products of data and weights "
      "of f32 over channels, got none");
}

/// Ranges come from a run of another function, perhaps of an older network.
LogicalResult kas::networks::verifyRanges(func::FuncOp function,
                                          ArrayRef<DataRange> ranges) {
  size_t numLayers = findQuantizableLayers(function).size();
  if (numLayers == 0)
    return emitNoLayers(function);
  if (numLayers != ranges.size())
    return function.emitError("requires ")
           << numLayers << " ranges, one for each layer, got " << ranges.size();
  for (DataRange range : ranges)
    if (!std::isfinite(range.lower) || !std::isfinite(range.upper) ||
        range.lower > range.upper)
      return function.emitError("requires finite ranges of data, got ")
             << range.lower << " to " << range.upper;
  return success();
}

/// One range for each layer in program order; nothing changes if a range or a
/// number of `kept` is wrong.
LogicalResult kas::networks::quantize(func::FuncOp function,
                                      ArrayRef<DataRange> ranges,
                                      ArrayRef<int64_t> kept) {
  if (failed(verifyRanges(function, ranges)))
    return failure();
  for (int64_t number : kept)
    if (number < 0 || number >= int64_t(ranges.size()))
      return function.emitError("requires numbers of layers from 0 to ")
             << ranges.size() - 1 << " in 'kept', got " << number;
  for (auto [number, layer] :
       // The list is made before the first layer changes, so numbers stay
       // right.
       llvm::enumerate(findQuantizableLayers(function))) {
    if (llvm::is_contained(kept, int64_t(number)))
      continue;
    OpBuilder builder(layer.op);
    Value result = LayerQuantizer(builder, layer, ranges[number]).run();
    layer.op->getResult(0).replaceAllUsesWith(result);
    layer.op->erase();
  }
  return success();
}
