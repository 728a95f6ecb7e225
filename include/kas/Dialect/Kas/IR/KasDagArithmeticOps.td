//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor-level ops that compute on one tensor.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGARITHMETICOPS_TD
#define KAS_DIALECT_KAS_IR_KASDAGARITHMETICOPS_TD

include "kas/Dialect/Kas/IR/KasDagBase.td"

def Kas_DagFCOp
    : Kas_DagOp<"fc", ["getStep"]> {
  let summary = "a fully-connected layer over the channels";
  let description = [{
    Maps all channel dimensions to one of size Y, with a learned weight and no
    bias, alike at every spatial position. The first `groups` channel dimensions
    (none unless written) say the group: with g the product of those and c that
    of the others, the weight has shape [Y, c...], and output channel o reads
    the inputs of group o / (Y/g). `[X... | ...] -> [Y | ...]`.
    FLOPs: 2*c*Y per position; parameters: c*Y. Source: Canvas, table 1.

    Constraints:
    * D8: `groups` is at most the number of channel dimensions.
    * K3: Y/g is an integer.

    ```mlir
    %y = kas.dag.fc %x to C : [C, KH, KW | H, W]
    %z = kas.dag.fc %g groups 1 to x : [G, C/G | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input,
                       DefaultValuedAttr<I64Attr, "0">:$groups,
                       Kas_SizeAttr:$channels);
  let assemblyFormat = [{
    $input (`groups` $groups^)? `to` custom<BareSize>($channels) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagConvOp
    : Kas_DagOp<"conv", ["getStep"]> {
  let summary = "a convolution over the channels and windows";
  let description = [{
    `unfold` of `dims` by `windows`, then `fc` with the same groups, as one step:
    the weight has shape [Y, c..., k...], padding keeps the spatial sizes.
    `[X... | ...] -> [Y | ...]`. With all channel dimensions as groups it is
    depthwise; with `causal` the windows look back only. FLOPs: 2*c*k*Y per position; parameters: c*k*Y, with k the
    product of the windows. Source: Canvas's implementation.

    Constraints:
    * D5: `dims` are different spatial dimensions, at least one, with one window
      each.
    * D6: the dilation is at least 1.
    * D8: `groups` is at most the number of channel dimensions.
    * K3: Y/g is an integer.

    ```mlir
    %y = kas.dag.conv %x dims [1, 2] by [KH, KW] to C : [C | H, W]
    %z = kas.dag.conv %g groups 1 dims [2] by [KH] dilation 2 to C : [G, C/G | H, W]
    %s = kas.dag.conv %x groups 1 dims [1] by [K] causal to C : [C | L]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input,
                       DefaultValuedAttr<I64Attr, "0">:$groups,
                       DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$windows,
                       DefaultValuedAttr<I64Attr, "1">:$dilation,
                       Kas_SizeAttr:$channels, UnitAttr:$causal);
  let assemblyFormat = [{
    $input (`groups` $groups^)? `dims` $dims `by` custom<SizeList>($windows)
    (`dilation` $dilation^)? (`causal` $causal^)? `to` custom<BareSize>($channels) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagMixOp : Kas_DagOp<"mix", ["getStep"]> {
  let summary = "a learned linear map along any dimensions";
  let description = [{
    The named dimensions X... are contracted with a weight of shape [Y..., X...],
    alike at every position of the others; each becomes the Y at its place. A
    dimension that should vanish becomes 1, which `fold` takes away. FLOPs: 2 per
    multiply-add. Source: Canvas's implementation.

    Constraints:
    * D9: `dims` are different dimensions, at least one.
    * D13: there is one new size for each of `dims`.

    ```mlir
    %t = kas.dag.mix %x dims [1, 2] to [H, W] : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$sizes);
  let assemblyFormat = [{
    $input `dims` $dims `to` custom<SizeList>($sizes) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagScaleOp : Kas_DagSameShapeOp<"scale", "verifyAllDims", ["getStep"]> {
  let summary = "multiply by a learned factor along some dimensions";
  let description = [{
    The weight has the sizes of `dims`, in their order, and is repeated over the
    other dimensions. FLOPs: one per element.

    Constraints:
    * D9: `dims` are different dimensions, at least one.

    ```mlir
    %s = kas.dag.scale %x dims [0] : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $input `dims` $dims attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagNormOp : Kas_DagSameShapeOp<"norm", "verifyChannels", ["getStep"]> {
  let summary = "batch normalization, as it is in inference";
  let description = [{
    `(x - mean) / sqrt(|variance| + 1e-5) * factor + offset`, with four weights in
    the order factor, offset, mean, variance, each of the channel dimensions'
    shape. A variance is not negative, so its absolute value makes every weight
    legal. FLOPs: two per element. Source: Canvas, table 1.

    Constraints:
    * D2: there is a channel dimension.

    ```mlir
    %n = kas.dag.norm %x : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input);
  let assemblyFormat = [{
    $input attr-dict `:` custom<TensorShape>(type($input))
  }];
  let extraClassDeclaration = [{
    static constexpr double epsilon = 1e-5;
  }];
}

def Kas_DagDropoutOp : Kas_DagSameShapeOp<"dropout", "verifyNothing"> {
  let summary = "zero some elements while training";
  let description = [{
    In training each element is zero with probability `rate`, and the others are
    divided by 1 - rate. kas evaluates and compiles inference, where it is the
    identity. Source: Canvas, table 1.

    Constraints:
    * D14: 0 <= rate < 1.

    ```mlir
    %d = kas.dag.dropout %x rate 4.0e-01 : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, F64Attr:$rate);
  let assemblyFormat = [{
    $input `rate` $rate attr-dict `:` custom<TensorShape>(type($input))
  }];
  let hasVerifier = 1;
}

def Kas_DagUnaryOp : Kas_DagSameShapeOp<"unary", "verifyNothing", ["getStep"]> {
  let summary = "an element-wise function";
  let description = [{
    `relu` max(x, 0), `gelu` x * Phi(x) with the normal distribution function
    Phi, `sigmoid`, `tanh`, `abs`, `exp`, `neg`, `sin` sin(pi/2 * x), `sqrt`
    sqrt(|x|), `sqr` x * x. FLOPs per element: gelu 4, sigmoid 3, tanh 5, others 1.

    ```mlir
    %r = kas.dag.unary relu %x : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_DagUnaryKind:$kind, Kas_SymbolicTensorType:$input);
  let assemblyFormat = [{
    $kind $input attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagFoldOp : Kas_DagOp<"fold", ["getStep"]> {
  let summary = "reduce over dimensions";
  let description = [{
    Sum, mean or maximum over all of `dims` together, which disappear. Over all
    spatial dimensions it is global pooling. FLOPs: one per element of the input.

    Constraints:
    * D9: `dims` are different dimensions, at least one.

    ```mlir
    %m = kas.dag.fold mean %x dims [1, 2] : [C, KH, KW | H, W]
    ```
  }];
  let arguments = (ins Kas_DagFoldKind:$kind, Kas_SymbolicTensorType:$input,
                       DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $kind $input `dims` $dims attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagPoolOp : Kas_DagOp<"pool", ["getStep"]> {
  let summary = "reduce windows that do not overlap";
  let description = [{
    Each named spatial dimension X becomes X/S: element i is the sum, mean or
    maximum of elements S*i to S*i + S - 1, over all of `dims` together. Where a
    layer has a stride, the kernel begins with it. FLOPs: one per element of the
    input. Source: the inputs of Canvas, section 5.

    Constraints:
    * D5: `dims` are different spatial dimensions, at least one, with one window
      each.
    * K3: X/S is an integer.

    ```mlir
    %p = kas.dag.pool mean %x dims [1, 2] by [s, s] : [C | H*s, W*s]
    ```
  }];
  let arguments = (ins Kas_DagFoldKind:$kind, Kas_SymbolicTensorType:$input,
                       DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$windows);
  let assemblyFormat = [{
    $kind $input `dims` $dims `by` custom<SizeList>($windows) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagSoftmaxOp : Kas_DagSameShapeOp<"softmax", "verifyAllDims", ["getStep"]> {
  let summary = "softmax over dimensions";
  let description = [{
    exp(x - m) divided by its sum over all of `dims` together, where m is the
    maximum there. FLOPs: three per element.

    Constraints:
    * D9: `dims` are different dimensions, at least one.

    ```mlir
    %s = kas.dag.softmax %x dims [1, 2] : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $input `dims` $dims attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagCumSumOp : Kas_DagSameShapeOp<"cumsum", "verifyOneDim", ["getStep"]> {
  let summary = "the sum of all elements up to each one";
  let description = [{
    `result[..., t, ...] = sum over s <= t of input[..., s, ...]` along dimension
    `dim`: no element depends on a later one. FLOPs: one per element.

    `-kas-kernel-to-linalg` makes it, and a `scan`, by doubling: step j adds what
    is 2^j positions before, for 2^j < X. All positions are computed at once, so
    a GPU has work for all its threads, with as many additions per element as
    there are steps. Gradients go back the same steps, from later positions to
    earlier ones.

    Constraints:
    * D3: `dim` is a dimension.

    ```mlir
    %s = kas.dag.cumsum %x dim 1 : [C | L]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim);
  let assemblyFormat = [{
    $input `dim` $dim attr-dict `:` custom<TensorShape>(type($input))
  }];
}

def Kas_DagScanOp : Kas_DagSameShapeOp<"scan", "verifyScan", ["getStep"]> {
  let summary = "a linear recurrence of the first order";
  let description = [{
    `result[..., t, ...] = factor[..., t, ...] * result[..., t - 1, ...] +
    input[..., t, ...]` along dimension `dim`, with 0 before the first element,
    whose factor is not read. With factors of 1 it is a `cumsum`, which says how
    it is lowered. FLOPs: two per element. Source: Blelloch, Prefix sums and
    their applications, 1990, section 1.4.

    Constraints:
    * D3: `dim` is a dimension.
    * D19: the factor has the shape of the input.

    ```mlir
    %h = kas.dag.scan %a, %x dim 1 : [C | L], [C | L]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$factor,
                       Kas_SymbolicTensorType:$input, I64Attr:$dim);
  let assemblyFormat = [{
    $factor `,` $input `dim` $dim attr-dict `:`
    custom<TensorShape>(type($factor)) `,` custom<TensorShape>(type($input))
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASDAGARITHMETICOPS_TD
