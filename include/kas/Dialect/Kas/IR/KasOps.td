//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASOPS_TD
#define KAS_DIALECT_KAS_IR_KASOPS_TD

include "kas/Dialect/Kas/IR/KasPrimitiveOps.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// OperatorOp, YieldOp
//===----------------------------------------------------------------------===//

def Kas_OperatorOp : Kas_Op<"operator", [
    IsolatedFromAbove, SingleBlock, Symbol,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "an operator: a graph of primitives from output to input";
  let description = [{
    Declares the primary and the coefficient symbols, the output coordinates (the
    block arguments; their sizes are the output shape) and the shape of the data.
    For each output point the value is the reduction, over all `kas.reduce`
    coordinates, of the data element times one element of each weight, where
    `kas.yield` says which. A dimension marked `unordered` may be permuted by the
    network around the operator without changing what it can learn.

    An operator without symbols is *concrete*: all its sizes are numbers.

    Constraints:
    * C9: each coordinate is used exactly once.
    * C10: the coordinates of `data(...)` have the declared sizes, in order.
    * C11: every reduction is reached from data or a weight.

    ```mlir
    kas.operator @conv1d<N, Cin, Cout, W | k>
        (%n: N, %co: Cout, %w: W) from [N, Cin, W] {
      %ci = kas.reduce sum : Cin
      %kw = kas.reduce sum : k
      %ci_d, %ci_w = kas.share %ci : Cin
      %kw_d, %kw_w = kas.share %kw : k
      %iw = kas.unfold %w, %kw_d : W, k
      kas.yield data(%n, %ci_d, %iw) weight(%co, %ci_w, %kw_w)
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    StrArrayAttr:$primaries,
    StrArrayAttr:$coefficients,
    DenseBoolArrayAttr:$output_unordered,
    TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$input_sizes,
    DenseBoolArrayAttr:$input_unordered);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The declared symbols, primaries first. The op must be verified.
    ::kas::SymbolSet getSymbolSet();
    /// No symbol is declared, so every size is a number.
    bool isConcrete() {
      return getPrimaries().empty() && getCoefficients().empty();
    }
    ::llvm::SmallVector<::kas::SizeAttr> getOutputSizes();
    ::llvm::SmallVector<::kas::SizeAttr> getDataSizes();
    /// The sizes of the dimensions of each weight.
    ::llvm::SmallVector<::llvm::SmallVector<::kas::SizeAttr>> getWeightSizes();
    unsigned getNumWeights();
    ::kas::YieldOp getYield();
    ::mlir::Block::BlockArgListType getOutputs() {
      return getBody().getArguments();
    }
  }];
}

def Kas_YieldOp : Kas_Op<"yield", [
    Terminator, HasParent<"OperatorOp">, AttrSizedOperandSegments]> {
  let summary = "say which coordinates index the data and the weights";
  let description = [{
    `data(...)` lists the coordinates of the data in the declared order; each
    `weight(...)` lists the dimensions of one weight in order. Neither may be
    empty; there may be any number of weights.

    ```mlir
    kas.yield data(%n, %ci_d, %iw) weight(%co, %ci_w, %kw_w)
    ```
  }];
  let arguments = (ins
    Variadic<Kas_CoordType>:$data,
    VariadicOfVariadic<Kas_CoordType, "weight_segments">:$weights,
    DenseI32ArrayAttr:$weight_segments);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// ApplyOp
//===----------------------------------------------------------------------===//

def Kas_ApplyOp : Kas_Op<"apply", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "apply an operator to tensors";
  let description = [{
    The bridge from the coordinate level to everything else. Each primary symbol
    that is a bare dimension of the data's or the result's shape is bound from
    the types; the coefficients, and any primary left open, are given in `<...>`.
    Every size must then be an integer of at least 1, every tensor must fit, and
    nothing may be bound to two values. Shapes are static; all tensors have the
    same floating-point element type.

    Made by `kas-substitute` and by hand; `kas-specialize` turns the operator
    into a concrete one; `kas-to-linalg` and `kas-to-affine` take it apart.
    One-shot bufferization takes it as it is and makes the loops of
    `kas-to-affine`. It is tiled as linalg: a tile of an operator is no operator,
    since no primitive adds an offset.

    ```mlir
    %y = kas.apply @conv2d<k = 3>(%x, %w)
        : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$callee,
    Kas_BindingAttr:$binding,
    StaticShapeTensorOf<[AnyFloat]>:$data,
    Variadic<StaticShapeTensorOf<[AnyFloat]>>:$weights);
  let results = (outs StaticShapeTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $callee `` custom<ApplyBinding>($binding) `` `(` $data (`,` $weights^)? `)`
    attr-dict `:` functional-type(operands, $result)
  }];
  let extraClassDeclaration = [{
    /// The operator, looked up from here; null when there is none.
    ::kas::OperatorOp getOperator();
  }];
}

//===----------------------------------------------------------------------===//
// SpaceOp
//===----------------------------------------------------------------------===//

def Kas_SpaceOp : Kas_Op<"space", [Symbol]> {
  let summary = "a search problem: which operators to look for";
  let description = [{
    Holds the signature (output and input sizes, and which are unordered), the
    symbols, one binding per distinct layer to replace with its multiplicity,
    limits on the primitives and budgets. `kas-extract` writes one from a model;
    `kas-search` reads it and appends operators.

    `limits` maps names to numbers; each has a default, see `kas-search`.
    * How often a step may occur (0 forbids it): `depth` (all steps), `reduce`,
      `split`, `merge`, `shift`, `expand`, `unfold`, `stride`, `weights` (each
      one step with all its coordinates); `chain` (steps in a row on one
      coordinate).
    * Sizes: `occurrences.SYMBOL` (how often a symbol may occur in reductions and
      weights), `size_symbols` (different symbols in a size), `size_powers` (sum
      of the exponents' absolute values), `reduce_ratio` (points of all
      reductions per element of the input).
    * Weights: `weight_elements` (at least), `merge_elements` (the product of the
      output's coordinates that one weight takes from the data, at most),
      `rank_min`, `rank_max` (a reduction that only weights have), `pooling` (the
      product of the reductions that no weight indexes, at most).
    * Views: `window` (of an unfold, at most), `unfold_ratio` (points of the base
      per point of the window, at least), `stride_size` (a strided coordinate, at
      most), `shift_block` (merges above and splits below a shift have blocks up
      to this; with larger ones they nearly commute).
    * 0 or 1: `weight_takes` and `weight_shares` (every weight has a coordinate
      that the data does not keep, and one that it does: without the first there
      are depthwise weights), `weights_by_position` (weights may be indexed by
      what depends on an ordered dimension of the output other than a batch;
      without them operators do the same everywhere, but for borders and
      strides), `rank_saves` (weights with a reduction that only they have have
      fewer elements than the weight that they are together, under one binding
      at least), `shift_backward` (shifts by -1, too), `look_back` (windows are
      `causal`: they look back; as much as `causal` unless given), `cyclic` (windows
      wrap around, those on one base with fewer points together than it has; not
      with `look_back`), `swap_axes` (equal ordered dimensions of the output
      count as interchangeable, and so do those of the input).
    * Properties of operators, decided exactly in the search: `sees` (a list with
      an odd window for each axis that output and input share, a number or a size
      as text: each output whose window lies in the image reads all of it; "*" is
      the whole axis, a global receptive field), `reaches` (1: each output channel
      depends on each input channel; 2: so it is after two layers in the right
      order of channels), `equivariant` (what translations of the input along each
      axis do to the output, a list: "cyclic", they move it; "zero_padded", they
      would if windows went on at the other end; "none"; 1: "zero_padded" along all
      axes), and, 0 or 1, `any_grid` (no weight has a size with a primary symbol of
      an axis), `one_product` (an input and an output value are joined by one
      product of weights at most), `linear_path` (no reduction that only weights
      have), `causal` (no output depends on a later position of the input along an
      axis).

    `budget` maps names to numbers: `flops`, `min_flops`, `params` (absolute,
    summed over the layers), `flops_ratio`, `min_flops_ratio`, `params_ratio`
    (relative to what is replaced, which then must be given as `baseline_flops`,
    `baseline_params`), `latency_ms`. FLOPs are two per multiply-add of the best
    stages (`kas-rfactor`).

    The symbols and the prime factors of the constants in the signature are 16 at
    most together (S2), the dimensions of output and input 8 each (S3).

    ```mlir
    kas.space @layers<N, Cin, Cout, H, W | k>
        [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
        bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, k = 3> x 4]
        limits {depth = 8, reduce = 3}
        budget {flops_ratio = 5.0e-01, baseline_flops = 231211008}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    StrArrayAttr:$primaries,
    StrArrayAttr:$coefficients,
    TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$output_sizes,
    DenseBoolArrayAttr:$output_unordered,
    TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$input_sizes,
    DenseBoolArrayAttr:$input_unordered,
    TypedArrayAttrBase<Kas_BindingAttr, "array of bindings">:$bindings,
    DenseI64ArrayAttr:$multiplicities,
    DictionaryAttr:$limits,
    DictionaryAttr:$budget);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The declared symbols, primaries first. The op must be verified.
    ::kas::SymbolSet getSymbolSet();
    /// The bindings, in the order of `getSymbolSet`.
    ::llvm::SmallVector<::kas::Binding> getBindingValues();
    /// The integer limit `name`, or `otherwise` when it is not given.
    int64_t getLimit(::llvm::StringRef name, int64_t otherwise);
    /// The limit `name` that need not be an integer, if it is given.
    std::optional<double> getLimitRatio(::llvm::StringRef name);
    /// The number `name` of the budget, if it is given.
    std::optional<double> getBudgetValue(::llvm::StringRef name);
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASOPS_TD
