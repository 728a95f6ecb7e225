//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Networks with layers in int8: ranges of their data by calibration,
// then products of 8 bits with sums of 32.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_QUANTIZATION_QUANTIZE_H
#define KAS_NETWORKS_QUANTIZATION_QUANTIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::networks {

/// A contraction of f32, of data and of weights, that int8 can stand for.
struct QuantizableLayer {
  mlir::linalg::LinalgOp op;
  mlir::OpOperand *data, *weights;
};

/// The smallest and the largest value that the data of a layer takes.
struct DataRange {
  float lower = 0, upper = 0;
};

/// The layers of `function`, in order: linalg operations on tensors of static
/// shape that multiply what depends on the first argument with what depends on
/// others only, and sum over a dimension that both have. A depthwise
/// convolution, which has none, is no such layer.
llvm::SmallVector<QuantizableLayer>
findQuantizableLayers(mlir::func::FuncOp function);

/// Adds a function `name` after `function`, with its arguments, that returns
/// the least and the largest value of the data of each layer, and zero if that
/// is less or larger, as a tensor of [layers, 2]. Fails, with a diagnostic, if
/// there are no layers.
mlir::FailureOr<mlir::func::FuncOp>
makeRangesFunction(mlir::func::FuncOp function, llvm::StringRef name);

/// Adds a function `name` after `function`, with its arguments, that returns
/// two numbers for each layer, as a tensor of [layers, 2]: the sum of the
/// squares of what `quantize` with these `ranges` would change in the result of
/// the layer alone, and that of the squares of the result. Fails as `quantize`.
mlir::FailureOr<mlir::func::FuncOp>
makeErrorsFunction(mlir::func::FuncOp function,
                   llvm::ArrayRef<DataRange> ranges, llvm::StringRef name);

/// Quantizes the layers of `function`, which have these `ranges`, to int8,
/// except for those whose numbers, from 0 on, are `kept`.
/// Data is quantized per tensor, to 255 steps from `lower` to `upper` with a
/// zero point, weights symmetrically per output channel to -127 to 127; sums
/// are exact. What adds a layer's data elsewhere later on, as a residual, reads
/// the bytes. All else stays f32, and the arguments what they are. After Jacob
/// et al.: "Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference", CVPR 2018, section 2. Fails, with a
/// diagnostic, unless there is a finite range for each layer, and for a kept
/// layer that there is not.
mlir::LogicalResult quantize(mlir::func::FuncOp function,
                             llvm::ArrayRef<DataRange> ranges,
                             llvm::ArrayRef<int64_t> kept = {});

/// Lets the layers of `function` whose data and weights are bytes that linalg
/// operations turn into f32, as networks with pairs of quantization and
/// dequantization have them, compute in int8. Data has one step and one zero
/// point; weights have one step, or one for each output channel, and a zero
/// point in the middle. Between the bytes and the layer may be reshapes,
/// transposes, and, for data, zeros around. Results differ by the rounding of
/// f32 only. Named linalg operations on signed bytes with constant zero points,
/// 0 for weights, multiply unsigned data, with the same sums. Returns the
/// number of such layers.
unsigned fuseDequantize(mlir::func::FuncOp function);

/// Moves what the weights of `function`, all arguments that are not data, alone
/// decide to a function `name` after it, which takes all weights: what it
/// returns `function` takes in their place. What would be larger than what it
/// is made of stays. Fails, with a diagnostic, for several blocks and weights
/// of dynamic shape.
mlir::LogicalResult splitWeights(mlir::func::FuncOp function,
                                 llvm::StringRef name);

} // namespace kas::networks

#endif // KAS_NETWORKS_QUANTIZATION_QUANTIZE_H
