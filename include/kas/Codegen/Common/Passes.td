//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that code generation for all targets runs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_COMMON_PASSES_TD
#define KAS_CODEGEN_COMMON_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasFuseElementwisePass : Pass<"kas-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise linalg operations with one another";
  let description = [{
    Fuses an elementwise `linalg.generic` into the elementwise one that reads
    it. Unlike upstream's `linalg-fuse-elementwise-ops` nothing is fused into a
    reduction, where it would be computed again for each output or keep its
    vectors from the sum; sums whose additions are `fastmath<reassoc>` have
    vectors along the reduction and take it. So have sums of f64, which are made
    for the variances of norms: their order is free.

    What several operations read is computed by each of them where that moves
    less memory: by all, if they read fewer tensors than the operation and they
    do now, or by those that read all of its inputs anyway. So the gradient of a
    rectifier after a batch norm is no tensor of its own.

    What weights alone decide for each channel is not computed at each point
    that reads it, but once, and moved ahead of sums that its reader follows.
    The first argument of the function is the data.

    Bytes that are read as floats are so in 32 bits, and where a byte is made of
    a float and read again in one operation, the rounded float is read instead:
    models that are quantized have such a pair after each operation. Before a
    rounding, products with steps become part of the constants and of the numbers
    of channels that they are applied to, and zero points part of clips: sums of
    int8 take half of the operations then. Such products are rounded in other
    places, so that a value between two bytes may become the other one.

    A residual's sum and the rectifier after it become one operation:

    ```mlir
    %1 = linalg.generic ... { arith.addf }
    %2 = linalg.generic ... ins(%1) { arith.maximumf }
    ```

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/Common/fuse-elementwise.mlir`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def KasDecomposePass : Pass<"kas-decompose", "::mlir::func::FuncOp"> {
  let summary = "Bring operations on tensors to those that later passes take";
  let description = [{
    The first pass of the pipeline for CPUs, for IR of other compilers. Becomes:

    | operation | what it becomes |
    |---|---|
    | TOSA | linalg, arith, tensor and scf, by upstream's conversions |
    | `arith`, `math` and `complex` on tensors | elementwise `linalg.generic` |
    | `linalg.softmax` | maximum, exponentials, sum and quotient |
    | `linalg.pack`, `linalg.unpack` | padding, reshape, transpose and slice |
    | `linalg.winograd_*_transform` | products of matrices of tiles |
    | `tensor.gather` | a `linalg.generic` that reads by index |
    | slices with steps that drop some of their dimensions of size 1 | slices of all dimensions, and reshapes |
    | linalg without an iteration, such as a matmul with no rows | its output |
    | constants of `dense_resource` without elements or of i1, which LLVM's translation does not take | the same as `dense` |

    What is of none of these kinds stays as it is.

    ```mlir
    %0 = arith.addf %x, %y : tensor<4xf32>
    // becomes
    %0 = linalg.generic ... ins(%x, %y : tensor<4xf32>, tensor<4xf32>) { arith.addf }
    ```

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/Common/decompose.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::index::IndexDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def KasCheckOperationsPass : Pass<"kas-check-operations", "::mlir::ModuleOp"> {
  let summary = "Refuse what the pipeline for CPUs does not lower";
  let description = [{
    An error at the first operation that no pass of `-kas-cpu-pipeline` takes:
    of another dialect than affine, arith, bufferization, cf, complex, func,
    index, kas, linalg, llvm, math, memref, omp, scf, tensor, ub and vector, or
    on tensors without a way to buffers. So are types: elements that CPUs have
    no arithmetic for, tensors without a rank or with an encoding, sizes beyond
    64 bits. The error names the operation and the pass that would help. Nothing
    is changed.

    ```
    error: the pipeline for CPUs requires an operation that it lowers, got 'shape.shape_of'; -convert-shape-to-std lowers it
    ```

    Example: `test/Codegen/Common/check-operations.mlir`.
  }];
  let options = [
    Option<"onlyRanks", "only-ranks", "bool", /*default=*/"false",
           "Refuse tensors and buffers without a rank alone, as the pipelines "
           "for GPUs do">
  ];
}

def KasCheckLoweredPass : Pass<"kas-check-lowered", "::mlir::ModuleOp"> {
  let summary = "Refuse what is not of the LLVM dialect";
  let description = [{
    The last pass of `-kas-cpu-pipeline`: an error at the first operation of
    another dialect than llvm and omp. What the pipeline could not lower is never
    left in a module that it reports as done. Nothing is changed.

    Example: `test/Codegen/Common/check-operations.mlir`.
  }];
}

def KasBufferizePass : Pass<"kas-bufferize", "::mlir::ModuleOp"> {
  let summary = "Turn tensors into buffers with plain pointers at the borders";
  let description = [{
    One-shot bufferization of whole functions with the settings that compiled
    kernels need: buffers at function borders have the identity layout; public
    functions do not write their arguments and store their results to buffers
    that the caller passes after the arguments; tensors that are filled for
    several operations are filled for each; what is made of weights alone has a
    buffer of its own, so that it can be made ahead; copies are `linalg.copy`,
    which become loops, and not `memref.copy`, whose strided form calls a
    function that copies element by element. Functions without a body store
    their results to buffers of the caller, too. Where calls have results of
    dynamic shape, functions are inlined before; a result of dynamic shape is
    stored to a buffer whose sizes are asserted.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32>
    // becomes
    func.func @f(%x: memref<4xf32>, %result: memref<4xf32>)
    ```

    Example: `test/Codegen/Common/bufferize.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::cf::ControlFlowDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def KasDelayDeallocationsPass
    : Pass<"kas-delay-deallocations", "::mlir::func::FuncOp"> {
  let summary = "Keep deallocations out of what becomes one loop nest";
  let description = [{
    A bias, the contraction that sums over it and what is computed of each sum
    become one loop nest where they follow each other. Buffers that are no longer
    needed in between, such as a bias that was computed or scaled weights, are
    deallocated after the last of them.

    ```mlir
    linalg.broadcast ins(%bias : memref<8xf32>) outs(%y : memref<4x8xf32>) dimensions = [0]
    memref.dealloc %bias : memref<8xf32>
    linalg.matmul ins(%x, %w : memref<4x2xf32>, memref<2x8xf32>) outs(%y : memref<4x8xf32>)
    // becomes
    linalg.broadcast ins(%bias : memref<8xf32>) outs(%y : memref<4x8xf32>) dimensions = [0]
    linalg.matmul ins(%x, %w : memref<4x2xf32>, memref<2x8xf32>) outs(%y : memref<4x8xf32>)
    memref.dealloc %bias : memref<8xf32>
    ```

    Example: `test/Codegen/Common/delay-deallocations.mlir`.
  }];
}

def KasCheckSamplesPass : Pass<"kas-check-samples", "::mlir::ModuleOp"> {
  let summary = "Check that a network computes samples one by one";
  let description = [{
    Fails unless each sample of the results of a function is computed from the
    same sample of the data alone, and all samples in the same way: then a batch
    may be computed in parts of any size. Samples are the first dimension of the
    first `data` arguments and of all results. The function stays as it is.

    Decides by the indexing maps of linalg operations, reshapes, slices and
    paddings. An operation of which it is not known is an error, too:

    ```
    error: requires samples that are computed one by one, got a sum over samples
    ```

    Example: `test/Codegen/Common/check-samples.mlir`.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to check">,
    Option<"numData", "data", "unsigned", /*default=*/"1",
           "How many arguments are data; the others are weights">
  ];
}

#endif // KAS_CODEGEN_COMMON_PASSES_TD
