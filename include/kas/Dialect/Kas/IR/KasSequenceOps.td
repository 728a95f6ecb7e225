//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of operators with steps between them, and the search for them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_TD
#define KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_TD

include "kas/Dialect/Kas/IR/KasBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Kas_SequenceStep
    : I32EnumAttr<"SequenceStep", "what is between two operators of a sequence", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Relu", 1, "relu">,
    I32EnumAttrCase<"Normalize", 2, "normalize">,
    I32EnumAttrCase<"NormalizeRelu", 3, "normalize_relu">,
    I32EnumAttrCase<"Add", 4, "add">,
    I32EnumAttrCase<"Multiply", 5, "multiply">,
    I32EnumAttrCase<"Join", 6, "join">]> {
  let cppNamespace = "::kas";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// SequenceOp
//===----------------------------------------------------------------------===//

def Kas_SequenceOp : Kas_Op<"sequence", [
    Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "operators one after the other, with steps between them";
  let description = [{
    The result of each operator (`stages`), after the step that `between` has
    for it, is the data of the next one. A symbol is the same size in all of
    them. Steps in the list are

    * `none`;
    * `relu`: max(x, 0);
    * `normalize`: batch normalization of dimension 1, as `kas.batch_norm` in
      training and by running statistics in evaluation, with an epsilon of 1e-5
      and a scale and an offset per channel, which are weights of the sequence;
    * `normalize_relu`: both, in this order.

    Operators may be *parallel*: then they have the same data, and what they give
    becomes one tensor. `add` and `multiply` (a gate) between two operators do so
    element by element, `join` puts their results one after the other along
    dimension 1; several are done from left to right. The next step is for the
    one tensor. The attribute `between` has these among the other steps, in the
    order of the text.

    What a search for a `kas.sequence_space` finds; `-kas-substitute` puts it in
    the place of layers.

    Constraints:
    * J1: the stages are operators, one at least.
    * J2: there is a step between each two stages.
    * J3: the result of a stage has the sizes that the data of the next one has.
    * J4: symbols of one name are all primary or all coefficients.
    * J5: what is normalized has two dimensions at least.
    * J11: parallel operators have data of the same sizes; results that are added
      or multiplied have the same sizes, those that are joined the same but for
      dimension 1, and the sum of these is a size (C/2 and C, but not C and D).

    ```mlir
    kas.sequence @separable [@depthwise, @pointwise] between [normalize_relu]
    kas.sequence @two_branches [@rows add @window, @pointwise] between [relu]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    FlatSymbolRefArrayAttr:$stages,
    DenseI32ArrayAttr:$between);
  let assemblyFormat = [{
    (custom<Visibility>($sym_visibility)^)? $sym_name
    custom<StagesAndSteps>($stages, $between) attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::kas::SequenceStep getStep(unsigned index) {
      return static_cast<::kas::SequenceStep>(getBetween()[index]);
    }
    /// The operators, looked up from here; null for what is none.
    ::llvm::SmallVector<::kas::OperatorOp> getOperators();
    /// Of the last operator, or of what the last parallel ones give together;
    /// only of a verified op.
    ::llvm::SmallVector<::kas::SizeAttr> getOutputSizes();
    /// Stage `index` has the data of the stage before it.
    bool isParallel(unsigned index) {
      return index > 0 && ::kas::combines(getStep(index - 1));
    }
  }];
}

//===----------------------------------------------------------------------===//
// SequenceSpaceOp
//===----------------------------------------------------------------------===//

def Kas_SequenceSpaceOp : Kas_Op<"sequence_space", [
    Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a search problem: which sequences of operators to look for";
  let description = [{
    A candidate is a `kas.sequence` for the layers of the space `of`: an
    operator of each of the spaces `stages`, one of the steps of `between`
    between each two of them, and one of the `widths` for each symbol that has
    some. A width takes the place of its symbol, so that with `M = [C, 2*C]` an
    operator from C to M channels is one from C to C, with the channels of its
    own that such operators may have, or one from C to 2*C.

    What one stage must see or reach are limits of its space. The budget of `of`
    is that of all stages together, with two operations for each element that is
    normalized, one for each that is rectified, and two weights per normalized
    channel; a stage may have a budget of its own.

    With `add` or `multiply` among the steps operators may be parallel. Those that
    can be exchanged (all that are added, or multiplied, without another such step
    between them) and are of one space are in one order; an operator with one
    weight is not added to itself, which would be the operator with another
    weight.

    A candidate is given by the widths, the steps and the operators. Two
    candidates may compute the same: without a step between them two operators
    may be one of another space. A dimension that is `unordered` in the result
    of a stage and in the data of the next one is permuted freely between them:
    of sequences that differ by such a permutation, as those with and without a
    shuffle of groups, only one is a candidate.

    Constraints:
    * J6: `of` and the stages are spaces, one stage at least.
    * J7: the input of the first stage has the sizes of that of the layers, each
      other one those of the output before it, the last output those of the
      output of the layers. Stages that may be parallel have inputs of the same
      sizes, and outputs, too; where all must be, inputs need not be as outputs.
    * J8: a stage has as many bindings as the layers have, with the same
      multiplicities and values; symbols of one name are all primary or all
      coefficients, and those that the layers do not have are widths.
    * J9: a width is a primary symbol of a stage and none of the layers; its
      sizes, one at least and each once, have symbols of the layers that each
      stage with the width declares, and are integers of at least 1.
    * J10: each step is given once, and one at least where there are two stages;
      `join` is none of them.

    ```mlir
    kas.sequence_space @separable of @conv2d [@window, @mixing]
        between [normalize_relu, none] widths {M = [Cin, 2*Cin]}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    FlatSymbolRefAttr:$layers,
    FlatSymbolRefArrayAttr:$stages,
    DenseI32ArrayAttr:$between,
    DictionaryAttr:$widths);
  let assemblyFormat = [{
    (custom<Visibility>($sym_visibility)^)? $sym_name `of` $layers $stages
    `between` custom<StepsAndWidths>($between, $widths) attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The space of the layers and those of the stages, looked up from here;
    /// null for what is none.
    ::kas::SpaceOp getLayerSpace();
    ::llvm::SmallVector<::kas::SpaceOp> getStageSpaces();
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_TD
