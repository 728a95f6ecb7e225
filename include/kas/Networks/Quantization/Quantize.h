//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Networks whose layers multiply bytes: ranges of their data by calibration,
// then products of 8 bits with sums of 32.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_QUANTIZATION_QUANTIZE_H
#define KAS_NETWORKS_QUANTIZATION_QUANTIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::networks {

/// A sum of products of f32, of data and of weights, that bytes can stand for.
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

/// Lets the layers of `function`, which have these `ranges`, multiply bytes.
/// Data is quantized per tensor, to 255 steps from `lower` to `upper` with a
/// zero point, weights symmetrically per output channel to -127 to 127; sums
/// are exact. What adds a layer's data elsewhere later on, as a residual, reads
/// the bytes. All else stays f32, and the arguments what they are. After Jacob
/// et al.: "Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference", CVPR 2018, section 2. Fails, with a
/// diagnostic, unless there is a finite range for each layer.
mlir::LogicalResult quantize(mlir::func::FuncOp function,
                             llvm::ArrayRef<DataRange> ranges);

} // namespace kas::networks

#endif // KAS_NETWORKS_QUANTIZATION_QUANTIZE_H
