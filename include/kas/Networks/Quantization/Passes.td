//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that make layers multiply bytes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_QUANTIZATION_PASSES_TD
#define KAS_NETWORKS_QUANTIZATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasDataRangesPass : Pass<"kas-data-ranges", "::mlir::ModuleOp"> {
  let summary = "Add a function that computes ranges of the data of layers";
  let description = [{
    For a function on tensors, whose first argument is the data and whose others are weights, adds one named
    `NAME_ranges` with the same arguments. It returns, for each layer that `-kas-quantize` would let multiply bytes,
    in order, the least and the largest value of the layer's data, or zero if that is less or larger.

    ```mlir
    func.func @forward(%x: tensor<1x64xf32>, %w: tensor<64x32xf32>) -> tensor<1x32xf32>
    // kas-opt -kas-data-ranges
    func.func @forward_ranges(%x: tensor<1x64xf32>, %w: tensor<64x32xf32>) -> tensor<1x2xf32>
    ```

    A function without such layers is an error.

    Example: `test/Networks/Quantization/data-ranges.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [Option<"function", "function", "std::string", "\"forward\"",
                        "The function to compute ranges for">];
}

def KasQuantizePass : Pass<"kas-quantize", "::mlir::ModuleOp"> {
  let summary = "Let layers multiply bytes";
  let description = [{
    Layers are linalg operations that sum products of f32, of what depends on the first argument and of what depends
    on others only, over a dimension of both; depthwise convolutions are none. Their data is quantized to unsigned
    bytes, of which zero is one, by the `ranges` of its values: the least and the largest for each layer, in order.
    Their weights are quantized to signed bytes, each output channel by its largest. The products are summed exactly
    in i32, and scaled to f32. An elementwise operation that reads the data of a layer later on, as the addition of a
    residual does, reads the bytes. Arguments and results stay what they are: the weights are quantized in the function,
    or once ahead of it (`-kas-prepare-weights`).

    ```mlir
    %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%bias : tensor<8x32xf32>)
    // kas-opt -kas-quantize="ranges=-1.5,2"
    %bytes = linalg.generic ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8x64xi8>)
    %weights = linalg.generic ins(%w, %scales : tensor<64x32xf32>, tensor<32xf32>) outs(%1 : tensor<64x32xi8>)
    %sums = linalg.generic ins(%bytes, %weights : tensor<8x64xi8>, tensor<64x32xi8>) outs(%2 : tensor<8x32xi32>)
    %y = linalg.generic ins(%sums, %sumsOfWeights, %scales, %bias : ...) outs(%3 : tensor<8x32xf32>)
    ```

    Another number of ranges than two for each layer, a range that is not finite or empty, and a function without
    layers are errors.

    Example: `test/Networks/Quantization/quantize.mlir`. Source: Jacob et al., "Quantization and Training of Neural
    Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018, section 2.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to quantize">,
    ListOption<"ranges", "ranges", "double",
               "The least and the largest value of the data of each layer">,
  ];
}

#endif // KAS_NETWORKS_QUANTIZATION_PASSES_TD
