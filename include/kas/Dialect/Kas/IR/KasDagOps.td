//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGOPS_TD
#define KAS_DIALECT_KAS_IR_KASDAGOPS_TD

include "kas/Dialect/Kas/IR/KasDagEnums.td"
include "kas/Dialect/Kas/IR/KasDagInterfaces.td"
include "kas/Dialect/Kas/IR/KasKernelOp.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kas_DagOp<string mnemonic, list<string> methods = []>
    : Kas_Op<"dag." # mnemonic, [
        Pure, HasParent<"KernelOp">, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<Kas_DagOpInterface, methods>]> {
  let results = (outs Kas_SymbolicTensorType:$result);
}

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

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

def Kas_DagShiftOp : Kas_DagOp<"shift"> {
  let summary = "rotate a dimension";
  let description = [{
    `result[..., i, ...] = input[..., (i + d) mod X, ...]`. The amount d is an
    integer of either sign; it is part of the kernel, never drawn at run time.

    Constraints:
    * D3: `dim` is a dimension.
    * D4: 0 < |d| < X, at every binding.

    ```mlir
    %s = kas.dag.shift %x dim 1 by 1 : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, I64Attr:$dim,
                       I64Attr:$amount);
  let assemblyFormat = [{
    $input `dim` $dim `by` $amount attr-dict `:`
    custom<TensorShape>(type($input))
  }];
  let hasVerifier = 1;
}

def Kas_DagUnfoldOp : Kas_DagOp<"unfold"> {
  let summary = "gather the neighbours along spatial dimensions";
  let description = [{
    For each named spatial dimension X, a new last channel dimension K:
    `result[c..., k..., ..., i, ...] = input[c..., ..., i + s*k - s*floor(K/2),
    ...]`, zero where that is outside of [0, X), with dilation s. The new
    dimensions are in the order of `dims`.
    `[... | X, ...] -> [..., K | X, ...]`. Source: Canvas, table 1.

    Constraints:
    * D5: `dims` are different spatial dimensions, at least one, with one window
      each.
    * D6: the dilation is at least 1.

    ```mlir
    %u = kas.dag.unfold %x dims [1, 2] by [KH, KW] : [C | H, W]
    %d = kas.dag.unfold %x dims [1] by [KH] dilation 2 : [C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input, DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$windows,
                       DefaultValuedAttr<I64Attr, "1">:$dilation);
  let assemblyFormat = [{
    $input `dims` $dims `by` custom<SizeList>($windows)
    (`dilation` $dilation^)? attr-dict `:` custom<TensorShape>(type($input))
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

def Kas_DagShuffleOp : Kas_DagOp<"shuffle", ["getImpliedSizes"]> {
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

def Kas_DagReorderOp : Kas_DagOp<"reorder"> {
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

def Kas_DagAmplifyOp : Kas_DagOp<"amplify", ["getImpliedSizes"]> {
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

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def Kas_DagFCOp
    : Kas_DagOp<"fc", ["getImpliedSizes", "getFlops", "getParams"]> {
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
    : Kas_DagOp<"conv", ["getImpliedSizes", "getFlops", "getParams"]> {
  let summary = "a convolution over the channels and windows";
  let description = [{
    `unfold` of `dims` by `windows`, then `fc` with the same groups, as one step:
    the weight has shape [Y, c..., k...], padding keeps the spatial sizes.
    `[X... | ...] -> [Y | ...]`. With all channel dimensions as groups it is
    depthwise. FLOPs: 2*c*k*Y per position; parameters: c*k*Y, with k the
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
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input,
                       DefaultValuedAttr<I64Attr, "0">:$groups,
                       DenseI64ArrayAttr:$dims,
                       TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$windows,
                       DefaultValuedAttr<I64Attr, "1">:$dilation,
                       Kas_SizeAttr:$channels);
  let assemblyFormat = [{
    $input (`groups` $groups^)? `dims` $dims `by` custom<SizeList>($windows)
    (`dilation` $dilation^)? `to` custom<BareSize>($channels) attr-dict `:`
    custom<TensorShape>(type($input))
  }];
}

def Kas_DagMixOp : Kas_DagOp<"mix", ["getFlops", "getParams"]> {
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

def Kas_DagScaleOp : Kas_DagOp<"scale", ["getFlops", "getParams"]> {
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

def Kas_DagNormOp : Kas_DagOp<"norm", ["getFlops", "getParams"]> {
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

def Kas_DagDropoutOp : Kas_DagOp<"dropout"> {
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

def Kas_DagUnaryOp : Kas_DagOp<"unary", ["getFlops"]> {
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

def Kas_DagFoldOp : Kas_DagOp<"fold", ["getFlops"]> {
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

def Kas_DagPoolOp : Kas_DagOp<"pool", ["getFlops"]> {
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

def Kas_DagSoftmaxOp : Kas_DagOp<"softmax", ["getFlops"]> {
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

//===----------------------------------------------------------------------===//
// Blending
//===----------------------------------------------------------------------===//

def Kas_DagBroadcastOp
    : Kas_DagOp<"broadcast", ["getImpliedSizes", "getFlops"]> {
  let summary = "combine two tensors, the left one repeated over the right one";
  let description = [{
    `common [p, s]` says that the first p and the last s dimensions of both are
    the same; what is between are the *blocks*. In row-major order, element i of
    the right block meets element i mod L of the left one, where L is the size
    of the left block. The result has the shape of the right operand; `sub` is
    left minus right. FLOPs: one per element. Source: Canvas, table 1 and section
    6.2.

    Constraints:
    * D10: p and s are at least 0, p + s is at most the rank of either operand,
      and the dimensions they name are equal.
    * K3: L and the ratio of the right block to it are integers.

    ```mlir
    %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*k | H, W], [x | H, W]
    ```
  }];
  let arguments = (ins Kas_DagBroadcastKind:$kind,
                       Kas_SymbolicTensorType:$left,
                       Kas_SymbolicTensorType:$right,
                       DenseI64ArrayAttr:$common);
  let assemblyFormat = [{
    $kind $left `,` $right `common` $common attr-dict `:`
    custom<TensorShape>(type($left)) `,` custom<TensorShape>(type($right))
  }];
}

def Kas_DagMatMulOp : Kas_DagOp<"matmul", ["getFlops"]> {
  let summary = "multiply two tensors as matrices";
  let description = [{
    The first `batch` channel dimensions (none unless written) are common to both
    operands. In each of those, a tensor is a matrix of its other channel
    dimensions (rows) by its spatial ones (columns), in row-major order;
    `transpose_left` and `transpose_right` swap rows and columns. The result has
    the rows of the left matrix as channels and the columns of the right one as
    spatial dimensions. `scaled` divides by the square root of the contracted
    size. FLOPs: two per multiply-add. With `softmax`, this is attention.

    Constraints:
    * D11: `batch` is at most the number of channel dimensions of either operand,
      and the dimensions that it names are equal.
    * D12: the columns of the left matrix are as many as the rows of the right.

    ```mlir
    %s = kas.dag.matmul %k, %q transpose_left scaled : [d | H, W], [d | H, W]
    %o = kas.dag.matmul %v, %p batch 1 : [h, d | H, W], [h, H, W | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$left,
                       Kas_SymbolicTensorType:$right,
                       DefaultValuedAttr<I64Attr, "0">:$batch,
                       UnitAttr:$transpose_left, UnitAttr:$transpose_right,
                       UnitAttr:$scaled);
  let assemblyFormat = [{
    $left `,` $right (`batch` $batch^)? (`transpose_left` $transpose_left^)?
    (`transpose_right` $transpose_right^)? (`scaled` $scaled^)? attr-dict `:`
    custom<TensorShape>(type($left)) `,` custom<TensorShape>(type($right))
  }];
  let extraClassDeclaration = [{
    /// The dimensions of the rows and of the columns of an operand as it is
    /// multiplied, with the batch left out.
    std::pair<::llvm::ArrayRef<::kas::SizeAttr>, ::llvm::ArrayRef<::kas::SizeAttr>>
    getMatrix(bool isRight);
  }];
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

def Kas_DagApplyOp : Kas_Op<"dag.apply", [
    Pure, HasParent<"KernelOp">,
    DeclareOpInterfaceMethods<Kas_DagOpInterface,
                              ["getImpliedSizes", "getFlops", "getParams"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a coordinate-level operator as one step";
  let description = [{
    Each symbol of the operator gets a size of the kernel. The operator's data is
    then the tensor, and its output the result; both may have further dimensions
    of size 1 in front, such as the batch. Its weights are weights of the kernel.
    FLOPs are those of one loop nest, `kas-print-cost` has the ones of the best
    stages.

    Constraints:
    * D16: the operator exists, and each of its symbols gets one size.
    * D17: the operator's data and output have the sizes of the tensor and of the
      result, sizes of 1 in front apart.
    * D18: the operator is legal with these sizes: at every binding, or without
      any its weights have sizes as K3 says.

    ```mlir
    %y = kas.dag.apply @conv1d<N = 1, Cin = C, Cout = x, W = W, k = 3> %x
        : [C | W] -> [x | W]
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$callee,
    StrArrayAttr:$symbols,
    TypedArrayAttrBase<Kas_SizeAttr, "array of sizes">:$sizes,
    Kas_SymbolicTensorType:$input);
  let results = (outs Kas_SymbolicTensorType:$result);
  let assemblyFormat = [{
    $callee `` custom<SizeBinding>($symbols, $sizes) $input attr-dict `:`
    custom<TensorShape>(type($input)) `->` custom<TensorShape>(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The operator, looked up from here; null when there is none.
    ::kas::OperatorOp getOperator();
    /// `size`, of the operator, over the symbols of the kernel; null when it
    /// does not fit or has a symbol without a size.
    ::kas::SizeAttr translate(::kas::SizeAttr size);
    /// The values of the operator's symbols where those of the kernel are
    /// `binding`; nothing when one is no integer.
    std::optional<::kas::Binding> getBinding(::kas::OperatorOp op,
                                             const ::kas::SymbolSet &symbols,
                                             const ::kas::Binding &binding);
  }];
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

def Kas_DagOutputOp : Kas_Op<"dag.output", [
    Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "the result of a kernel";
  let description = [{
    The tensor is viewed, in row-major order, in the shape of the result.

    With `average A of C` it is viewed in A blocks of C channels and the spatial
    dimensions of the result. With X the product of the result's channel
    dimensions, the result has X/C blocks; block j is the mean of the blocks
    whose number is j modulo X/C: a view when X/C is A, the mean of all when it
    is 1. See `kas.dag.amplify`.

    Constraints:
    * K4: it has as many elements, or a variable can still make it so.
    * D15: X/C is at most A, at every binding.
    * K3: X/C is an integer.

    ```mlir
    kas.dag.output %y : [G, C/G | H, W]
    kas.dag.output %z average A of C : [A*C | H, W]
    ```
  }];
  let arguments = (ins Kas_SymbolicTensorType:$input,
                       OptionalAttr<Kas_SizeAttr>:$copies,
                       OptionalAttr<Kas_SizeAttr>:$channels);
  let assemblyFormat = [{
    $input (`average` custom<BareSize>($copies)^ `of`
    custom<BareSize>($channels))? attr-dict `:`
    custom<TensorShape>(type($input))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The dimensions that the tensor is viewed in: those of the result, or the
    /// blocks that are averaged.
    ::llvm::SmallVector<::kas::SizeAttr> getViewedDims();
    /// With `average`, how many blocks the result has; null when it does not
    /// fit.
    ::kas::SizeAttr getNumBlocks();
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASDAGOPS_TD
