//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that quantize layers to int8.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_QUANTIZATION_PASSES_TD
#define KAS_NETWORKS_QUANTIZATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasDataRangesPass : Pass<"kas-data-ranges", "::mlir::ModuleOp"> {
  let summary = "Add a function that computes ranges of the data of layers";
  let description = [{
    For a function on tensors, whose first argument is the data and whose others are weights, adds one named
    `NAME_ranges` with the same arguments. It returns, for each layer that `-kas-quantize` would quantize to int8,
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

def KasFuseDequantizePass : Pass<"kas-fuse-dequantize", "::mlir::ModuleOp"> {
  let summary = "Compute layers whose inputs are dequantized in int8";
  let description = [{
    Networks that other tools have quantized hold pairs of quantization and dequantization ("QDQ"): their layers are of
    f32, of data and weights that are bytes before. Where linalg operations turn both into f32, `(byte - zero) * step`,
    the layer is computed in int8, as those of `-kas-quantize` are: sums are exact, in i32, and scaled to f32. Data has one
    step and one zero point, weights one step or one for each output channel, and no zero point (or 128, if they are
    unsigned). Signed data becomes unsigned, 128 more. Between the bytes and the layer may be reshapes, transposes, and
    paddings of data with zeros. Other readers of the floats still read them; other layers, depthwise ones among them, stay.

    Where the quotient of a value and a constant step is rounded, the value is
    multiplied by the inverse of the step instead: a value between two bytes may
    become the other one.

    The named operations of linalg on bytes with zero points, such as `linalg.conv_2d_nchw_fchw_q`, multiply unsigned data
    likewise, if the zero point of the weights is 0; their sums stay i32.

    ```mlir
    %x = linalg.generic ins(%bytes : tensor<8x64xi8>) outs(%0 : tensor<8x64xf32>) {...}
    %w = linalg.generic ins(%weights, %steps : tensor<64x32xi8>, tensor<32xf32>) outs(%1 : tensor<64x32xf32>) {...}
    %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%bias : tensor<8x32xf32>)
    // kas-opt -kas-fuse-dequantize
    %sums = linalg.generic ins(%bytes, %weights : tensor<8x64xi8>, tensor<64x32xi8>) outs(%2 : tensor<8x32xi32>)
    %y = linalg.generic ins(%sums, %steps, %offsets : ...) outs(%3 : tensor<8x32xf32>)
    ```

    Example: `test/Networks/Quantization/fuse-dequantize.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [Option<"function", "function", "std::string", "\"forward\"",
                        "The function with the layers">];
  let statistics = [
    Statistic<"numFused", "fused", "layers in int8">
  ];
}

def KasQuantizationErrorsPass : Pass<"kas-quantization-errors", "::mlir::ModuleOp"> {
  let summary = "Add a function that computes what bytes change in layers";
  let description = [{
    For a function on tensors, whose first argument is the data and whose others are weights, adds one named
    `NAME_errors` with the same arguments. It returns two numbers for each layer that `-kas-quantize` with these `ranges`
    would quantize to int8, in order: the sum of the squares of what that changes in the layer's result where all
    other layers are of f32, and the sum of the squares of the result. Their ratio tells which layers to keep in f32.

    ```mlir
    func.func @forward(%x: tensor<1x64xf32>, %w: tensor<64x32xf32>) -> tensor<1x32xf32>
    // kas-opt -kas-quantization-errors="ranges=-1.5,2"
    func.func @forward_errors(%x: tensor<1x64xf32>, %w: tensor<64x32xf32>) -> tensor<1x2xf32>
    ```

    Errors are those of `-kas-quantize`.

    Example: `test/Networks/Quantization/quantization-errors.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to measure">,
    ListOption<"ranges", "ranges", "double",
               "The least and the largest value of the data of each layer">,
  ];
}

def KasQuantizePass : Pass<"kas-quantize", "::mlir::ModuleOp"> {
  let summary = "Quantize layers to int8";
  let description = [{
    Layers are linalg operations that sum products of f32, of what depends on the first argument and of what depends
    on others only, over a dimension of both; depthwise convolutions are none. Their data is quantized to unsigned
    bytes, of which zero is one, by the `ranges` of its values: the least and the largest for each layer, in order.
    Their weights are quantized to signed bytes, each output channel by its largest. The products are summed exactly
    in i32, and scaled to f32. An elementwise operation that reads the data of a layer later on, as the addition of a
    residual does, reads the bytes. Arguments and results stay what they are: the weights are quantized in the function,
    or once ahead of it (`-kas-prepack-weights`).

    ```mlir
    %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%bias : tensor<8x32xf32>)
    // kas-opt -kas-quantize="ranges=-1.5,2"
    %bytes = linalg.generic ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8x64xi8>)
    %weights = linalg.generic ins(%w, %scales : tensor<64x32xf32>, tensor<32xf32>) outs(%1 : tensor<64x32xi8>)
    %sums = linalg.generic ins(%bytes, %weights : tensor<8x64xi8>, tensor<64x32xi8>) outs(%2 : tensor<8x32xi32>)
    %y = linalg.generic ins(%sums, %sumsOfWeights, %scales, %bias : ...) outs(%3 : tensor<8x32xf32>)
    ```

    Layers that are `kept`, by their numbers, stay f32; they have ranges as well. Another number of ranges than two for
    each layer, a range that is not finite or empty, a number of no layer, and a function without layers are errors.

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
    ListOption<"kept", "kept", "int64_t",
               "Numbers of layers, from 0 on, that stay f32">,
  ];
}

def KasSplitWeightsPass : Pass<"kas-split-weights", "::mlir::ModuleOp"> {
  let summary = "Move what weights alone decide to a function of its own";
  let description = [{
    Adds, for a function on tensors of static shape in one block, one named `NAME_weights`, which takes the weights: all
    arguments but the first one and those with `kas.data`. The function itself takes what that one returns in place of
    them, in order: those of the weights that it still reads, then what was computed of weights alone. What would be
    larger than what it is made of, as a bias that is repeated for each point, stays.

    After `-kas-quantize`, a file thus holds bytes, steps and offsets for each channel instead of weights in f32, and
    the target need not quantize them.

    ```mlir
    func.func @forward(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>) -> tensor<8x32xf32> {
      ... // %bytes and %steps of %w, then %y of %x, %bytes and %steps
    // kas-opt -kas-split-weights
    func.func @forward(%x: tensor<8x64xf32>, %bytes: tensor<64x32xi8>, %steps: tensor<32xf32>) -> tensor<8x32xf32>
    func.func @forward_weights(%w: tensor<64x32xf32>) -> (tensor<64x32xi8>, tensor<32xf32>)
    ```

    Several blocks, and weights of dynamic shape, are errors.

    Example: `test/Networks/Quantization/split-weights.mlir`.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to split">,
  ];
}

#endif // KAS_NETWORKS_QUANTIZATION_PASSES_TD
