//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASPRIMITIVEOPS_TD
#define KAS_DIALECT_KAS_IR_KASPRIMITIVEOPS_TD

include "kas/Dialect/Kas/IR/KasInterfaces.td"
include "kas/Dialect/Kas/IR/KasTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A primitive is not `Pure` on purpose: an unused coordinate is an error (C9),
// not dead code, and two equal reductions are two loops, not one.
class Kas_PrimitiveOp<string mnemonic, list<string> methods,
                      list<Trait> traits = []>
    : Kas_Op<mnemonic, traits # [
        HasParent<"OperatorOp">, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
        DeclareOpInterfaceMethods<Kas_PrimitiveOpInterface,
                                  methods # ["getTopExpressions"]>]>;

def Kas_SplitOp : Kas_PrimitiveOp<"split", []> {
  let summary = "join an outer and an inner coordinate into one";
  let description = [{
    `%t = B * %i + %j`, with %i in [0, G), %j in [0, B) and %t in [0, G*B). The
    input dimension is *split* into the two bottom ones, hence the name (Syno,
    table 1).

    Constraints:
    * C1: the product G*B is a legal size.

    ```mlir
    %t = kas.split %i, %j : G, B
    ```
  }];
  let arguments = (ins Kas_CoordType:$outer, Kas_CoordType:$inner);
  let results = (outs Kas_CoordType:$result);
  let assemblyFormat = [{
    $outer `,` $inner `` custom<PrimitiveAttributes>(attr-dict) `:`
    custom<CoordSize>(type($outer)) `,` custom<CoordSize>(type($inner))
  }];
}

def Kas_MergeOp : Kas_PrimitiveOp<"merge", ["getParameterSizes"]> {
  let summary = "take a coordinate apart into block index and index in the block";
  let description = [{
    `%q = %i / B`, `%r = %i mod B`, with %i in [0, N), %q in [0, N/B) and %r in
    [0, B). Two input dimensions are *merged* into the bottom one.

    Constraints:
    * C2: B and N/B are legal sizes.

    ```mlir
    %q, %r = kas.merge %i by B : N
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord, Kas_SizeAttr:$block);
  let results = (outs Kas_CoordType:$quotient, Kas_CoordType:$remainder);
  let assemblyFormat = [{
    $coord `by` custom<BareSize>($block) `` custom<PrimitiveAttributes>(attr-dict)
    `:` custom<CoordSize>(type($coord))
  }];
}

def Kas_ShiftOp : Kas_PrimitiveOp<"shift", ["verifyAtBinding"]> {
  let summary = "rotate a coordinate";
  let description = [{
    `%t = (%i + d) mod N`, with both in [0, N). The amount d is an integer of
    either sign; it is part of the operator, never drawn at run time.

    Constraints:
    * C3: 0 < |d| < N, so a size of 1 cannot be shifted.

    ```mlir
    %t = kas.shift %i by 1 : N
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord, I64Attr:$amount);
  let results = (outs Kas_CoordType:$result);
  let assemblyFormat = [{
    $coord `by` custom<Amount>($amount) `` custom<PrimitiveAttributes>(attr-dict)
    `:` custom<CoordSize>(type($coord))
  }];
}

def Kas_ExpandOp : Kas_PrimitiveOp<"expand", []> {
  let summary = "drop a coordinate: the input is repeated along it";
  let description = [{
    %i has no top coordinate. Marks low quality: counted and limited in search.

    Constraints:
    * C4: none that can be violated statically.

    ```mlir
    kas.expand %i : C
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord);
  let assemblyFormat = [{
    $coord `` custom<PrimitiveAttributes>(attr-dict) `:` custom<CoordSize>(type($coord))
  }];
}

def Kas_UnfoldOp
    : Kas_PrimitiveOp<"unfold", ["getParameterSizes", "verifyAtBinding"]> {
  let summary = "a sliding window over a coordinate";
  let description = [{
    `%t = %i + %j - low`, clipped to [0, N), with %i in [0, N) and the window
    coordinate %j in [0, K). `low` is floor(K/2) unless written. With `causal` it
    is K - 1, at every binding: the window looks back only, and the last of its
    points is %i. A point of the iteration space at which any unfold leaves its
    range does not exist: zero padding at this coordinate, whatever is above it.

    Constraints:
    * C5: K is a legal size and 0 <= low < K. `low` is an integer or a size, or
      the unit attribute for `causal`.

    ```mlir
    %t = kas.unfold %i, %j : N, K
    %t = kas.unfold %i, %j low 2 : N, K
    %t = kas.unfold %i, %j causal : N, K
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord, Kas_CoordType:$window,
                       OptionalAttr<AnyAttrOf<[I64Attr, Kas_SizeAttr, UnitAttr]>>:$low);
  let results = (outs Kas_CoordType:$result);
  let assemblyFormat = [{
    $coord `,` $window `` custom<Low>($low) `` custom<PrimitiveAttributes>(attr-dict)
    `:` custom<CoordSize>(type($coord)) `,` custom<CoordSize>(type($window))
  }];
  let extraClassDeclaration = [{
    /// The window looks back only.
    bool isCausal() { return ::llvm::isa_and_nonnull<::mlir::UnitAttr>(getLowAttr()); }
    /// The lower padding, given the value of every size at one binding.
    int64_t getLowValue(::llvm::function_ref<int64_t(::kas::SizeAttr)> valueOf);
  }];
}

def Kas_StrideOp : Kas_PrimitiveOp<"stride", ["getParameterSizes"]> {
  let summary = "multiply a coordinate";
  let description = [{
    `%t = S * %i`, with %i in [0, K) and %t in [0, S*K): the values between are
    skipped. Low quality in search, where its top must reach an unfold.

    Constraints:
    * C6: S and S*K are legal sizes.

    ```mlir
    %t = kas.stride %i by S : K
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord, Kas_SizeAttr:$factor);
  let results = (outs Kas_CoordType:$result);
  let assemblyFormat = [{
    $coord `by` custom<BareSize>($factor) `` custom<PrimitiveAttributes>(attr-dict)
    `:` custom<CoordSize>(type($coord))
  }];
}

def Kas_ReduceOp : Kas_PrimitiveOp<"reduce", []> {
  let summary = "a loop that the output is reduced over";
  let description = [{
    Makes a new coordinate %r in [0, N) and combines over its values: `sum`,
    `mean` (the sum divided by the whole N, also where points are clipped) or
    `max` (which skips points that do not exist). Reductions nest in program
    order, the first outermost. A reduction without points has no value, is
    skipped by the one outside, and is zero at the output.

    Constraints:
    * C7: N is a legal size.

    ```mlir
    %r = kas.reduce sum : N
    ```
  }];
  let arguments = (ins Kas_ReduceKindAttr:$kind, Kas_SizeAttr:$size);
  let results = (outs Kas_CoordType:$result);
  let assemblyFormat = [{
    custom<BareReduceKind>($kind) `` custom<PrimitiveAttributes>(attr-dict) `:`
    custom<BareSize>($size)
  }];
}

def Kas_ShareOp : Kas_PrimitiveOp<"share", []> {
  let summary = "let the data and a weight use the same coordinate";
  let description = [{
    Both results equal %i. The first is the data side and may be transformed
    further; the second is the weight side.

    Constraints:
    * C8: the weight side may only go to a weight, as it is.

    ```mlir
    %d, %w = kas.share %i : N
    ```
  }];
  let arguments = (ins Kas_CoordType:$coord);
  let results = (outs Kas_CoordType:$data, Kas_CoordType:$weight);
  let assemblyFormat = [{
    $coord `` custom<PrimitiveAttributes>(attr-dict) `:` custom<CoordSize>(type($coord))
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASPRIMITIVEOPS_TD
