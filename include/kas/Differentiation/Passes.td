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

#ifndef KAS_DIFFERENTIATION_PASSES
#define KAS_DIFFERENTIATION_PASSES

include "mlir/Pass/PassBase.td"

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
    in front is faster where it knows the operator.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<f32>
    // kas-opt -kas-differentiate=function=f
    func.func @f_gradient(%x: tensor<4xf32>, %dy: tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to differentiate">,
    ListOption<"arguments", "arguments", "std::string",
               "Names or numbers of the arguments to differentiate by; none "
               "for all">,
  ];
}

#endif // KAS_DIFFERENTIATION_PASSES
