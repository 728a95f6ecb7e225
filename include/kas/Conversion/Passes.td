//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_PASSES_TD
#define KAS_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasToAffinePass : Pass<"kas-to-affine"> {
  let summary = "Lower kas.apply to affine loops";
  let description = [{
    Input: `kas.apply`s of concrete operators (`-kas-specialize` makes them so)
    on tensors. Output: for each a buffer, a nest of `affine.for` that fills it,
    and the buffer as a tensor (`bufferization.to_tensor restrict writable`), so
    that one-shot bufferization folds the tensors away. Exact for every operator:
    reductions nest in program order, and `affine.if` skips the points that do
    not exist, at the outermost loop where that is known. The output loops are
    outermost; with `parallel`, the first of them that is not trivial becomes
    `affine.parallel`.

    Exposed as `convertToAffine()` in `KasToAffine.h`. Example:
    `test/Conversion/KasToAffine/kas-to-affine.mlir`.
  }];
  let options = [
    Option<"parallel", "parallel", "bool", "false", "Make parallel loops">,
    Option<"minParallelWork", "min-parallel-work", "int64_t", "32768",
           "Points below which threads cost more than they bring">,
    Option<"verifyLowering", "verify-lowering", "bool", "false",
           "Prove that what is made computes the operators">];
  let statistics = [
    Statistic<"numConverted", "converted", "kas.apply ops lowered to loops">];
  let dependentDialects = [
    "::kas::KasDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"];
}

def KasToLinalgPass : Pass<"kas-to-linalg"> {
  let summary = "Lower kas.apply, kas.batch_norm and kas.dropout to linalg";
  let description = [{
    Input: `kas.apply`s of concrete operators (`-kas-specialize` makes them so)
    on tensors. Output: for each the reshapes, paddings and slices of its
    operands that take the primitives off, and one contraction: a named linalg op
    where it is one, a `linalg.generic` otherwise. No indexing map has floordiv
    or mod in it, since tiling such maps is unsound.

    | primitive | becomes |
    |---|---|
    | `split` | `tensor.expand_shape`, or a sum in the indexing map |
    | `merge` | two loops for one (the result is collapsed at the end), or `tensor.collapse_shape`, with the operand repeated along a half that it lacks |
    | `shift` | two `tensor.extract_slice` |
    | `unfold` | `tensor.pad` and the sum of two dimensions in the map |
    | `stride` | a factor in the map |
    | `expand` | nothing; where a clipped coordinate is dropped, a factor of ones and zeros |

    A `kas.apply` stays, with a remark that says why, when its operator mixes
    `max` with other reductions, clips under a `max` of products, or needs a
    copy of more than `max-elements` elements. `-kas-to-affine` takes those.

    `kas.batch_norm` becomes sums over samples and places, and one elementwise
    operation, `kas.dropout` one elementwise operation that draws its random
    numbers; without a seed it becomes its data.

    Exposed as `convertToLinalg()` in `KasToLinalg.h`. Example:
    `test/Conversion/KasToLinalg/named-ops.mlir`.
  }];
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "16777216",
           "Largest copy of a tensor that may be made">,
    Option<"namedOps", "named-ops", "bool", "true",
           "Use named linalg ops where the contraction is one">,
    Option<"verifyLowering", "verify-lowering", "bool", "false",
           "Prove that what is made computes the operators">];
  let statistics = [
    Statistic<"numConverted", "converted", "kas.apply ops lowered to linalg">,
    Statistic<"numLeft", "left", "kas.apply ops left to -kas-to-affine">];
  let dependentDialects = [
    "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

def KasKernelToLinalgPass : Pass<"kas-kernel-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower kernels of the tensor level to functions on tensors";
  let description = [{
    Input: `kas.kernel`s whose variables have values. Output: for each binding a
    `func.func` on tensors of f32, of tensor, arith, math and linalg ops, in the
    kernel's place; named as the kernel, or `NAME_0`, `NAME_1`, ... when there are
    several bindings. Arguments are the inputs, with the batch as a first
    dimension, then the weights in program order. A `kas.dag.apply` becomes a
    `kas.apply`, which the other lowerings take.

    | step | becomes |
    |---|---|
    | `group`, `group_all`, `output` | `tensor.expand_shape`, `tensor.collapse_shape` |
    | `shift`, `reorder` | two slices, with strides |
    | `unfold`, `conv` | `tensor.pad`, and a sum of two loops in the indexing map |
    | `fc`, `conv`, `mix`, `matmul` | one `linalg.generic` that sums products, with a loop over groups where there are any |
    | `softmax` | maximum, powers, sum, quotients |
    | `broadcast` | one `linalg.generic`; the left operand is not copied |
    | others | `linalg.generic`s, which `kas-cpu-pipeline` fuses |

    An `unfold` that only an `fc` reads is never made: the two are a `conv`.

    Exposed as `emitKernel()` and `createKernelFunction()` in
    `KasKernelToLinalg.h`. Example:
    `test/Conversion/KasKernelToLinalg/kas-kernel-to-linalg.mlir`.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", "1",
           "Samples that the functions take at once">,
    Option<"maxElements", "max-elements", "int64_t", "1073741824",
           "Most elements of a tensor between steps, with padding">];
  let statistics = [
    Statistic<"numFunctions", "functions", "functions made of kernels">];
  let dependentDialects = [
    "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def KasEraseOperatorsPass : Pass<"kas-erase-operators"> {
  let summary = "Erase operators, spaces and kernels once no kas.apply is left";
  let description = [{
    Input: any op. Output: the same without `kas.operator`, `kas.space` and
    `kas.kernel`, or unchanged when a `kas.apply` is left. Lowerings end with it, since nothing
    outside of kas can translate these ops.

    Example: `test/Conversion/KasToAffine/kas-erase-operators.mlir`.
  }];
  let dependentDialects = ["::kas::KasDialect"];
}

#endif // KAS_CONVERSION_PASSES_TD
