//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_PASSES_TD
#define KAS_DIALECT_KAS_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasPrintCostPass : Pass<"kas-print-cost"> {
  let summary = "Report what operators cost";
  let description = [{
    Input: `kas.operator`s and `kas.apply`s anywhere. Output: the same, and one
    remark per `kas.operator` with its multiply-adds, FLOPs (2 per multiply-add),
    parameters and bytes moved (f32, each element once) over its symbols, and one
    per `kas.apply` with numbers. With `operator` and `bind`, one more remark
    gives that operator's numbers at this binding.

    The multiply-adds of a formula are those of one loop nest over outputs and
    reductions: its points, times the number of tensors multiplied less one;
    without weights the additions count. Numbers are those of the best stages
    (`-kas-rfactor`), since that is what runs.

    Exposed as `getSymbolicCost()` and `getCost()` in `Cost.h`. Example:
    `test/Dialect/Kas/Analysis/cost.mlir`.
  }];
  let options = [
    Option<"operatorName", "operator", "std::string", "\"\"",
           "Name of an operator to give numbers for">,
    ListOption<"bind", "bind", "std::string",
               "Values of that operator's symbols, e.g. N=1,Cin=64">];
}

def KasVerifyLoweringPass : Pass<"kas-verify-lowering", "::mlir::ModuleOp"> {
  let summary = "Prove that lowered functions compute their operators";
  let description = [{
    Input: a module with concrete `kas.operator`s and functions that
    `-kas-to-affine`, `-kas-to-linalg` or `-kas-rfactor` made of one `kas.apply`
    each, or that are written by hand: arguments are the data and the weights,
    the result is the output. Output: the same, or an error for each function
    that reads another element for some term of some output, leaves one out,
    takes one twice, or multiplies by another number. Code that cannot be
    compared is an error, too, which says why.

    The index expressions and conditions of the function, from its result back
    to its arguments, and those of the primitives are relations between loops
    and elements; that they are equal at the sizes of the operator is decided by
    MLIR's Presburger library, for all points at once. What is not looked at:
    how sums are rounded, and memory that nothing of the result depends on.

    `-kas-to-affine`, `-kas-to-linalg`, `-kas-rfactor` and the pipelines compare
    each operator that they lower when their option `verify-lowering` is set. The
    remark `Proven` of the category `kas-verify-lowering` names each operator.

    Exposed as `verifyLowering()` in `VerifyLowering.h`. Example:
    `test/Dialect/Kas/Analysis/verify-lowering.mlir`.
  }];
  let options = [
    ListOption<"lowered", "lowered", "std::string",
               "Pairs FUNCTION:OPERATOR that are to be compared">];
  let statistics = [
    Statistic<"numCompared", "compared", "functions compared">];
}

#endif // KAS_DIALECT_KAS_ANALYSIS_PASSES_TD
