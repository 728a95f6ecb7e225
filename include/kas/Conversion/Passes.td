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
    not exist, at the outermost loop where that is known. The output loops stand
    outermost; with `parallel`, the first of them that is not trivial becomes
    `affine.parallel`.

    Exposed as `convertToAffine()` in `KasToAffine.h`. Example:
    `test/Conversion/KasToAffine/kas-to-affine.mlir`.
  }];
  let options = [
    Option<"parallel", "parallel", "bool", "false", "Make parallel loops">,
    Option<"minParallelWork", "min-parallel-work", "int64_t", "32768",
           "Points below which threads cost more than they bring">];
  let statistics = [
    Statistic<"numConverted", "converted", "kas.apply ops lowered to loops">];
  let dependentDialects = [
    "::kas::KasDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"];
}

def KasEraseOperatorsPass : Pass<"kas-erase-operators"> {
  let summary = "Erase operators and spaces once no kas.apply is left";
  let description = [{
    Input: any op. Output: the same without `kas.operator` and `kas.space`, or
    unchanged when a `kas.apply` is left. Lowerings end with it, since nothing
    outside of kas can translate these ops.

    Example: `test/Conversion/KasToAffine/kas-erase-operators.mlir`.
  }];
  let dependentDialects = ["::kas::KasDialect"];
}

#endif // KAS_CONVERSION_PASSES_TD
