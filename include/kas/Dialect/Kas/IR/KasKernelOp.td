//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASKERNELOP_TD
#define KAS_DIALECT_KAS_IR_KASKERNELOP_TD

include "kas/Dialect/Kas/IR/KasTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Kas_KernelOp : Kas_Op<"kernel", [
    IsolatedFromAbove, SingleBlock, Symbol,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a kernel of the tensor level: a graph of tensors";
  let description = [{
    Declares three lists of symbols, separated by bars: primary symbols (sizes of
    inputs and outputs), coefficients, and *variables*, which are free until
    `kas-solve-shapes` and `kas-solve-budget` give them values. `where` lists
    which size divides which symbol at every layer. The block arguments are the
    input tensors; `kas.dag.output` ends the body.

    `bindings` gives the symbols their values at every layer that the kernel
    replaces, with how often the network has that layer: all symbols, or all but
    the variables, which then are free. `budget` bounds the sums over all layers:
    `flops`, `flops_min`, `params`, `params_min`. `solution` is what
    `kas-solve-budget` found.

    A kernel marked `canvas` obeys Theorem 1 of the Canvas paper (section 6.2).

    Constraints:
    * K1: every size is made of declared symbols.
    * K2: facts and bindings make sense: a fact holds at every binding and is
      not about variables, facts do not go in circles, every binding has all
      symbols, or all but the variables.
    * K3: every dimension, and every size that an op implies, is an integer of at
      least 1 at every binding, or for some values of its variables; without
      bindings, the facts prove it.
    * K4: the output has as many elements as the result, or a variable can still
      make it so.
    * K5, for `canvas`: (1) no variable in a spatial dimension, (2) none in the
      denominator of a channel dimension, (3) at most one, to the first power, in
      a channel dimension, (4) at most one across all dimensions of a tensor.
    * K6: budgets have the names above, and are integers of at least 0.
    * K7: the body holds ops of the tensor level only, and ends in
      `kas.dag.output`.

    ```mlir
    kas.kernel canvas @product<C, H, W | G, k | x> where [G divides C]
        (%in: [C | H, W]) -> [C | H, W]
        bindings [<C = 16, G = 4, H = 8, W = 8, k = 3>, <C = 64, G = 4, H = 8, W = 8, k = 5> x 2]
        budget {flops = 8000000} {
      %a = kas.dag.fc %in to G*k : [C | H, W]
      %b = kas.dag.fc %in to x : [C | H, W]
      %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*k | H, W], [x | H, W]
      %c = kas.dag.fc %m to C : [x | H, W]
      kas.dag.output %c : [C | H, W]
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    UnitAttr:$canvas,
    StrArrayAttr:$primaries,
    StrArrayAttr:$coefficients,
    StrArrayAttr:$variables,
    TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$divisors,
    StrArrayAttr:$multiples,
    TypeAttrOf<Kas_SymbolicTensorType>:$result_type,
    TypedArrayAttrBase<Kas_BindingAttr, "array of bindings">:$bindings,
    DenseI64ArrayAttr:$multiplicities,
    DictionaryAttr:$budget,
    DictionaryAttr:$solution);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The declared symbols: primaries, coefficients, variables. The op must be
    /// verified.
    ::kas::SymbolSet getSymbolSet();
    /// The bindings give values to the variables too.
    bool isSolved();
    ::kas::DagOutputOp getOutput();
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASKERNELOP_TD
