//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_PASSES_TD
#define KAS_DIALECT_KAS_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasSpecializePass : Pass<"kas-specialize"> {
  let summary = "Make the operators that are applied concrete";
  let description = [{
    Input: any op with a symbol table that holds `kas.operator`s and functions
    with `kas.apply`s. Output: every `kas.apply` refers to a concrete operator,
    one per distinct pair of operator and binding, named after the original with
    a number; the original operators stay. With `operator` and `bind`, that one
    operator is made concrete as well, applied or not.

    Exposed as `specialize()` and `specializeApplies()` in `Specialize.h`.
    Example: `test/Dialect/Kas/Transforms/specialize.mlir`.
  }];
  let options = [
    Option<"operatorName", "operator", "std::string", "\"\"",
           "Name of an operator to make concrete beside those applied">,
    ListOption<"bind", "bind", "std::string",
               "Values of that operator's symbols, e.g. N=1,Cin=64">];
  let statistics = [
    Statistic<"numSpecialized", "specialized", "Concrete operators made">];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasPrintAxesPass : Pass<"kas-print-axes"> {
  let summary = "Report what operators do along their axes";
  let description = [{
    Input: any op with a symbol table that holds `kas.operator`s. Output: the
    same, and one remark for each axis of each operator with symbols that says
    whether its weights fit any grid. With `operator` and `bind`, one more remark
    for each axis of that operator: how many positions of the data along the axis
    an element of the output reads at this binding, at least and at most, and
    which translations move the output: `cyclic`, `zero_padded` or `none`
    ([Properties](properties.md)).

    Axes are those of `kas.space`; where an operator marks no dimension as
    `unordered`, the second one is channels.

    Exposed as `getAxisProperties()` and `fitsAnyGrid()` in `AxisProperties.h`.
    Example: `test/Dialect/Kas/Transforms/axes.mlir`.
  }];
  let options = [
    Option<"operatorName", "operator", "std::string", "\"\"",
           "Name of an operator to look at with numbers">,
    ListOption<"bind", "bind", "std::string",
               "Values of that operator's symbols, e.g. N=1,Cin=64">];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasStrideOutputsPass : Pass<"kas-stride-outputs"> {
  let summary = "Let operators compute every s-th point of their outputs";
  let description = [{
    Input: `kas.operator`s that nothing applies. Output: the same operators with
    one more coefficient, `symbol`, which divides the output dimensions `dims`: of
    a convolution of stride 1, one whose stride is the value of the coefficient.
    Weights stay as they are.

    Exposed as `strideOutputs()` in `StrideOutputs.h`. Example:
    `test/Dialect/Kas/Transforms/stride-outputs.mlir`.
  }];
  let options = [
    ListOption<"dims", "dims", "int64_t", "Output dimensions, from 0 on">,
    Option<"symbol", "symbol", "std::string", "\"s\"",
           "Name of the new coefficient">];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasCanonicalizePass : Pass<"kas-canonicalize"> {
  let summary = "Simplify operators by exact identities";
  let description = [{
    Input: `kas.operator`s, symbolic or concrete. Output: the same functions at
    every binding, written with fewer or simpler primitives; idempotent. Every
    rule is listed with its identity and side condition above its pattern in
    `CanonicalizePatterns.cpp` and `ShiftPatterns.cpp` and in `docs/reference/dialect.md`.

    In `kas.kernel`s it applies the rules E1 to E12 of `docs/reference/tensor-level.md`
    (`CanonicalizeKernel.cpp`).

    Exposed as `populateCanonicalizePatterns()` in `Canonicalize.h` and
    `populateKernelCanonicalizePatterns()` in `CanonicalizeKernel.h`. Examples:
    `test/Dialect/Kas/Transforms/canonicalize.mlir`, `canonicalize-nested.mlir`
    and `canonicalize-kernel.mlir` beside it.
  }];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasRFactorPass : Pass<"kas-rfactor"> {
  let summary = "Compute operators in stages that share partial results";
  let description = [{
    Input: `kas.apply`s of concrete operators (run `kas-specialize` before).
    Output: an operator whose best plan has several stages is applied as a chain
    of concrete operators, one per stage, each a `kas.operator` that can be read
    and edited; others are left as they are.

    The plan has the fewest multiply-adds; among those the least traffic, then
    the fewest stages. Weights may be multiplied with one another first: such a
    stage is an operator whose data is a weight. With `cost=prepared` these
    stages count nothing, as they can be computed once for many evaluations
    (what `prepack-weights` of the pipeline for the CPU does). With `traffic=8`,
    as the pipelines have it, an element that a stage reads or writes counts as
    much as eight multiply-adds, so that weights are rather combined than data is
    made larger, but not to weights that are larger still. Operators with a `max`
    reduction stay whole: it does not commute with the sums of other stages.

    Exposed as `planStages()` and `buildStages()` in `RFactor.h`. Example:
    `test/Dialect/Kas/Transforms/rfactor.mlir`. Source: Syno, section 7.
  }];
  let options = [
    Option<"maxIntermediateBytes", "max-intermediate-bytes", "uint64_t", "0",
           "No intermediate may be larger (f32); 0 sets no limit">,
    Option<"cost", "cost", "::kas::schedule::StageCost",
           "::kas::schedule::StageCost::Unprepared",
           "The cost to minimize: the multiply-adds of a call, unprepared or with "
           "prepared weights, or those of training",
           [{::llvm::cl::values(
             clEnumValN(::kas::schedule::StageCost::Unprepared, "unprepared",
                        "a call with new weights"),
             clEnumValN(::kas::schedule::StageCost::Prepared, "prepared",
                        "a call; what depends on weights alone was computed"),
             clEnumValN(::kas::schedule::StageCost::Training, "training",
                        "a call with new weights, and all gradients"))}]>,
    Option<"traffic", "traffic", "uint64_t", "0",
           "Multiply-adds that take as long as an element that a stage reads or "
           "writes">,
    Option<"verifyLowering", "verify-lowering", "bool", "false",
           "Prove that what is made computes the operators">];
  let statistics = [
    Statistic<"numFactored", "factored", "Operators computed in stages">];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasSolveShapesPass : Pass<"kas-solve-shapes"> {
  let summary = "Give free variables the values that let shapes match";
  let description = [{
    Input: `kas.kernel`s. Output: no `kas.dag.broadcast` has a variable in the
    denominator of its ratio, and the output has as many elements as the result;
    the variables that this takes are declared no more. Ops are solved in
    program order, each with all legal substitutions for the whole kernel in
    view; a choice after which a later op has none is undone. An integer `choice`
    on an op says which of its matches to take, and then no other is tried.
    Kernels without open shapes are left as they are.

    Exposed as `solveShapes()` in `SolveKernel.h`. Example:
    `test/Dialect/Kas/Tensor/solve-shapes.mlir`. Source: Canvas, section 6.2; the
    model is in `docs/reference/tensor-level.md`.
  }];
  let options = [
    Option<"choice", "choice", "unsigned", "0",
           "Which match of each op to try first, in their order">,
    Option<"list", "list", "bool", "false",
           "Only list the matches, as remarks">];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasSolveBudgetPass : Pass<"kas-solve-budget"> {
  let summary = "Give free variables the values that use a budget";
  let description = [{
    Input: `kas.kernel`s with bindings and a budget on FLOPs or parameters (those
    without a budget are left as they are). Output: every binding has a value for
    each variable, and `solution` holds the totals, a bound on the total of the
    cost that is maximized (FLOPs, or parameters when only those have an upper
    budget) and a status: `optimal`, or `bounded` when no more than the bound can
    be used. When nothing fits, the error names the smallest set of demands that
    conflict.

    Exposed as `solveBudget()` in `SolveKernel.h`. Example:
    `test/Dialect/Kas/Tensor/solve-budget.mlir`. Source: Canvas, section 6.3; both
    models are in `docs/reference/tensor-level.md`.
  }];
  let options = [
    Option<"mode", "mode", "::kas::BudgetMode", "::kas::BudgetMode::Exact",
           "exact: as much of the budget as possible; canvas: the paper's heuristic",
           [{::llvm::cl::values(
             clEnumValN(::kas::BudgetMode::Exact, "exact",
                        "as much of the budget as possible"),
             clEnumValN(::kas::BudgetMode::Canvas, "canvas",
                        "the paper's heuristic"))}]>,
    Option<"groups", "groups", "std::string", "\"\"",
           "A symbol that divides others: choose its value, one for all layers, "
           "among the common factors of what it divides">,
    Option<"spread", "spread", "int64_t", "0",
           "exact: values within this factor of those in proportion to the channels, if possible; 0: any values">,
    Option<"batch", "batch", "int64_t", "1",
           "Samples that the limit on elements is for">,
    Option<"maxElements", "max-elements", "int64_t", "2147483647",
           "No tensor may have more elements">];
  let dependentDialects = ["::kas::KasDialect"];
}

#endif // KAS_DIALECT_KAS_TRANSFORMS_PASSES_TD
