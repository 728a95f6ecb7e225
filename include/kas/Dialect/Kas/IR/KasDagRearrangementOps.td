//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor-level ops that rearrange.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGREARRANGEMENTOPS_TD
#define KAS_DIALECT_KAS_IR_KASDAGREARRANGEMENTOPS_TD

include "kas/Dialect/Kas/IR/KasDagBase.td"

def Kas_DagGroupOp : Kas_DagOp<"group"> {
  let summary = "split a channel dimension into groups";
  let description = [{
    Dimension X becomes F, X/F, in this order: a view.
    `[..., X, ... | ...] -> [..., F, X/F, ... | ...]`. Source: Canvas, table 1.

    Constraints:
    * D1: `dim` is a channel dimension.
    * K3: X/F is an integer.

    ```mlir
    %g = kas.dag.group %x dim 0 by G : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim,
                       Kas_SizeAttr:$factor);
  let assemblyFormat = [{
    $input `dim` $dim `by` custom<BareSize>($factor) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagGroupAllOp : Kas_DagOp<"group_all"> {
  let summary = "make every channel its own group";
  let description = [{
    All channel dimensions become one, with a single channel in each group: a
    view. `[X, Y, ... | ...] -> [X*Y*..., 1 | ...]`. Source: Canvas, table 1.

    Constraints:
    * D2: there is a channel dimension.

    ```mlir
    %g = kas.dag.group_all %x : [C, KH | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input);
  let assemblyFormat = [{
    $input attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagShiftOp : Kas_DagSameShapeOp<"shift", "verifyOneDim"> {
  let summary = "rotate a dimension";
  let description = [{
    `result[..., i, ...] = input[..., (i + d) mod X, ...]`. The amount d is an
    integer of either sign; it is part of the kernel, never drawn at run time.
    With `causal` nothing comes around: elements that would be before the first
    one are zero, so no element depends on a later one.

    Constraints:
    * D3: `dim` is a dimension.
    * D4: 0 < |d| < X, at every binding.
    * D20: d is negative with `causal`.

    ```mlir
    %s = kas.dag.shift %x dim 1 by 1 : [C | H, W]
    %p = kas.dag.shift %x dim 1 by -1 causal : [C | L]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim,
                       I64Attr:$amount, UnitAttr:$causal);
  let assemblyFormat = [{
    $input `dim` $dim `by` $amount (`causal` $causal^)? attr-dict `:`
    custom<TensorShape>(type($input))
  }];
  let hasVerifier = 1;
}

def Kas_DagUnfoldOp : Kas_DagOp<"unfold"> {
  let summary = "gather the neighbours along spatial dimensions";
  let description = [{
    For each named spatial dimension X, a new last channel dimension K:
    `result[c..., k..., ..., i, ...] = input[c..., ..., i + s*k - s*floor(K/2),
    ...]`, zero where that is outside of [0, X), with dilation s. With `causal`
    the windows look back only: it is `i + s*k - s*(K-1)`. The new dimensions are
    in the order of `dims`.
    `[... | X, ...] -> [..., K | X, ...]`. Source: Canvas, table 1.

    Constraints:
    * D5: `dims` are different spatial dimensions, at least one, with one window
      each.
    * D6: the dilation is at least 1.

    ```mlir
    %u = kas.dag.unfold %x dims [1, 2] by [KH, KW] : [C | H, W]
    %d = kas.dag.unfold %x dims [1] by [KH] dilation 2 : [C | H, W]
    %b = kas.dag.unfold %x dims [1] by [K] causal : [C | L]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$windows,
                       DefaultValuedAttr<I64Attr, "1">:$dilation,
                       UnitAttr:$causal);
  let assemblyFormat = [{
    $input `dims` $dims `by` custom<SizeList>($windows)
    (`dilation` $dilation^)? (`causal` $causal^)? attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagTransposeOp : Kas_DagOp<"transpose"> {
  let summary = "swap two dimensions";
  let description = [{
    Data and shape: `[... | H, W] -> [... | W, H]`.

    Constraints:
    * D7: `dims` are two different dimensions, both channel or both spatial.

    ```mlir
    %t = kas.dag.transpose %x dims [1, 2] : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $input `dims` $dims attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagShuffleOp : Kas_DagSameShapeOp<"shuffle", "verifyOneDim", ["getStep"]> {
  let summary = "interleave the groups of a dimension";
  let description = [{
    Dimension X is seen as F groups of X/F, which are transposed:
    `result[..., a*F + b, ...] = input[..., b*(X/F) + a, ...]` with b in [0, F).
    With F = 2, 1 2 3 4 5 6 becomes 1 4 2 5 3 6.

    Constraints:
    * D3: `dim` is a dimension.
    * K3: X/F is an integer.

    ```mlir
    %s = kas.dag.shuffle %x dim 0 by G : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim,
                       Kas_SizeAttr:$factor);
  let assemblyFormat = [{
    $input `dim` $dim `by` custom<BareSize>($factor) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagReorderOp : Kas_DagSameShapeOp<"reorder", "verifyOneDim"> {
  let summary = "even positions first, then odd ones";
  let description = [{
    1 2 3 4 5 becomes 1 3 5 2 4; `inverse` undoes that.

    Constraints:
    * D3: `dim` is a dimension.

    ```mlir
    %r = kas.dag.reorder %x dim 1 : [C | H, W]
    %i = kas.dag.reorder %r dim 1 inverse : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim,
                       UnitAttr:$inverse);
  let assemblyFormat = [{
    $input `dim` $dim (`inverse` $inverse^)? attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagAmplifyOp : Kas_DagOp<"amplify", ["getStep"]> {
  let summary = "repeat the channels in blocks";
  let description = [{
    The input of a kernel for layers whose numbers of input and output channels
    differ. With X the product of the channel dimensions, they are X/C blocks of C
    channels; block a of the A blocks of the result is block a mod (X/C).
    `[X... | ...] -> [A, C | ...]`. A layer with c and a*c channels, either way,
    has A = a and C = c, where this is a view or a repetition, as in the paper;
    otherwise C is a common divisor and A the larger number of blocks.
    `kas.dag.output` with `average` is the other end. Source: the channel
    amplifier of Canvas, figure 2.

    Constraints:
    * D2: there is a channel dimension.
    * D15: X/C is at most A, at every binding.
    * K3: X/C is an integer.

    ```mlir
    %x = kas.dag.amplify %in by A of C : [X | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, Kas_SizeAttr:$copies,
                       Kas_SizeAttr:$channels);
  let assemblyFormat = [{
    $input `by` custom<BareSize>($copies) `of` custom<BareSize>($channels)
    attr-dict `:` custom<TensorShape>(type($input))
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASDAGREARRANGEMENTOPS_TD
