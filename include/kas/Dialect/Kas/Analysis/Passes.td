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

#endif // KAS_DIALECT_KAS_ANALYSIS_PASSES_TD
