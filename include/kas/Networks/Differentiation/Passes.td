//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes on gradients.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_DIFFERENTIATION_PASSES_TD
#define KAS_NETWORKS_DIFFERENTIATION_PASSES_TD

include "mlir/Pass/PassBase.td"

/// Those of operations that gradients are made of.
defvar KasNetworks_GradientDialects = [
  "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
  "::mlir::bufferization::BufferizationDialect",
  "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
  "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
  "::mlir::tensor::TensorDialect"
];

def KasDifferentiatePass : Pass<"kas-differentiate", "::mlir::ModuleOp"> {
  let summary = "Add functions that compute gradients";
  let description = [{
    For a function on tensors of floats with static shapes, adds one named
    `NAME_gradient` by reverse accumulation. It takes the gradient of each
    result as an argument more, and returns the results, then the gradients with
    respect to the arguments that `arguments` names by `kas.name` or number
    (none: all).

    Differentiates linalg operations that add to their result, take the maximum
    or work element by element, with bodies of `arith` and `math`; `tensor.pad`,
    reshapes, slices and insertions of slices, and `kas.apply` of concrete
    operators (`-kas-specialize`). Any other operation between an argument and
    a result is an error. The gradient of a convolution by its data is a
    convolution again; that of an operator is a loop nest, so `-kas-to-linalg`
    before it is faster where it knows the operator.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<f32>
    // kas-opt -kas-differentiate=function=f
    func.func @f_gradient(%x: tensor<4xf32>, %dy: tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
    ```
  }];
  let dependentDialects = KasNetworks_GradientDialects;
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to differentiate">,
    ListOption<"arguments", "arguments", "std::string",
               "Names or numbers of the arguments to differentiate by; none "
               "for all">,
  ];
}

def KasFisherPass : Pass<"kas-fisher", "::mlir::ModuleOp"> {
  let summary = "Add functions that compute the Fisher Potential of layers";
  let description = [{
    For a function from images to one score per class, adds one named
    `NAME_fisher` that takes the labels as an argument more (samples x classes,
    1 at the label) and returns the scores, then the Fisher Potential of each
    convolution: with A its result and g the gradient of the cross entropy
    (averaged over the samples) with respect to it, `sum_c 1/(2N) sum_n
    (sum_{h,w} A g)^2` (Turner et al., "Neural Architecture Search as Program
    Transformation Exploration", eq. 4 and 5). No channel is masked. The
    attribute `kas.layers` of the function has the names of the layers.

    The paper rejects a transformed network whose sum is less than that of the
    original one, at initialization, on one random batch. That says little by
    itself: its rank correlation with trained accuracy has been seen to change
    its sign from one task to another.

    Before a normalization with the statistics of the batch the sum of A g
    over the samples is 0 for each channel, so one sample alone gives 0; with
    normalizations folded into the weights that is not so. `normalize` puts them
    in.

    ```mlir
    func.func @forward(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x10xf32>
    // kas-opt -kas-fisher
    func.func @forward_fisher(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %labels: tensor<2x10xf32>)
        -> (tensor<2x10xf32>, tensor<1xf32>) attributes {kas.layers = ["conv"]}
    ```
  }];
  let dependentDialects = KasNetworks_GradientDialects;
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function that computes the network">,
    Option<"residualOnly", "residual-only", "bool", "false",
           "Only layers whose result goes into a sum with another activation">,
    Option<"normalize", "normalize", "bool", "false",
           "Normalize the result of each layer with the statistics of the "
           "batch">,
  ];
}

def KasProxiesPass : Pass<"kas-proxies", "::mlir::ModuleOp"> {
  let summary = "Add functions that compute zero-cost proxies";
  let description = [{
    For a function from images to one score per class, adds two:

    `NAME_proxies` takes the labels as `-kas-fisher`'s function does, and returns
    the scores, the Fisher Potential of each layer, then of each parameter (the
    arguments after the first of rank 2 or more) SNIP, `sum |w dL/dw|` (Lee et
    al., ICLR 2019), and the norm of `dL/dw`, and last, for each two samples, at
    how many rectifiers both are on or both are off; the log-determinant of that
    is the score of Mellor et al., ICML 2021 (NASWOT). `NAME_synflow` returns
    `sum w dR/dw` of each parameter for an input of ones and magnitudes of all
    arguments, R being the sum of the scores (Tanaka et al., NeurIPS 2020). The
    attributes `kas.layers` and `kas.parameters` have the names.

    None of them suffices by itself: rank correlations with trained accuracy
    have been seen to change from one task to another, that of Fisher Potential
    even its sign (docs/guide/gradients.md).

    ```mlir
    func.func @forward(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x10xf32>
    // kas-opt -kas-proxies
    func.func @forward_proxies(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %labels: tensor<2x10xf32>)
        -> (tensor<2x10xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2x2xf32>)
        attributes {kas.layers = ["conv"], kas.parameters = ["conv.weight"]}
    func.func @forward_synflow(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1xf32>
    ```
  }];
  let dependentDialects = KasNetworks_GradientDialects;
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function that computes the network">,
    Option<"residualOnly", "residual-only", "bool", "false",
           "Fisher Potential of layers alone whose result goes into a sum with "
           "another activation">,
    Option<"normalize", "normalize", "bool", "false",
           "Normalize the result of each layer with the statistics of the "
           "batch">,
  ];
}

#endif // KAS_NETWORKS_DIFFERENTIATION_PASSES_TD
