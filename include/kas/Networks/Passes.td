//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes on models.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_PASSES_TD
#define KAS_NETWORKS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasExtractPass : Pass<"kas-extract", "::mlir::ModuleOp"> {
  let summary = "Find the layers of a model and write search problems for them";
  let description = [{
    Finds the convolutions (dense, strided, dilated, grouped, depthwise, in one
    or two dimensions) and the linear layers of a model in linalg on tensors:
    named operations and `linalg.generic` of the same shape, together with the
    zero `tensor.pad` before them. Convolutions with their channels last, as TOSA
    and TensorFlow have them, become convolutions with their channels first, of
    transposed data, before. For each kind of layer it writes one `kas.space` at the beginning of the module, with one
    binding per distinct layer and its multiplicity, and marks each layer with
    `kas.site`: the space, the binding, and the name of the layer, which is the
    `kas.name` of its weight less `.weight`. A weight is an argument (other than
    `input`) or a constant, reshaped or transposed. Layers that are marked
    already stay as they are.

    The output sizes are the input sizes divided by the stride; a layer with
    other sizes (a convolution without padding, say) has no signature that an
    operator could have. A remark gives the reason for each operation that is
    nearly a layer:

    ```
    remark: not extracted: requires padding that gives 32 outputs for 32 inputs at stride 1, got 30
    ```

    | kind | from | to | coefficients |
    |---|---|---|---|
    | `conv2d` | `[N, Cin, H, W]` | `[N, Cout, H, W]` | `k` |
    | `conv2d_strided` | `[N, Cin, H, W]` | `[N, Cout, H/s, W/s]` | `k, s` |
    | `conv1x1`, `conv1x1_strided` | the same | the same | none, `s` |
    | `..._dilated` | the same | the same | `d`, and `p` for the padding: any that is not centred |
    | `..._unpadded` | the same | the same | `d`; kernels as large as the stride |
    | `conv2d_grouped` | the same | the same | `g` |
    | `conv2d_depthwise` | `[N, C, H, W]` | `[N, C, H, W]` | `k` |
    | `conv1d`, ... | `[N, Cin, L]` | `[N, Cout, L]` | `k` |
    | `..._rectangular` | the same | the same | `kh, kw` for `k`, and so on, where they differ |
    | `..._stem` | the same | the same | at most `stem-channels` input channels |
    | `linear` | `[N, Cin]` | `[N, Cout]` | none |
    | `batched_linear` | `[N, L, Cin]` | `[N, L, Cout]` | none |
    | `batch_matmul` | `[B, M, K]` | `[B, M, N]` | none |

    The budget holds the FLOPs (2 per multiply-add) and the parameters (weights
    without biases, which stay) of all layers of the space as the baselines.
    `kas.named_operator` names the operator of the library that computes what the
    layers compute, where there is one.

    The limits ask for properties that the layers have (`properties=false` leaves
    them out): `sees` is the kernel of layers with centred windows without
    dilation, when all images are larger than it (else a remark names the
    binding), and `reaches = 2` is written where every output channel is made from
    every input channel. For images less than twice as large as the kernel
    `unfold_ratio` is smaller than usual, so that there are such windows.

    ```mlir
    kas.space @conv2d<N, Cin, Cout, H, W | k, g>
        [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
        bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3> x 4]
        limits {reaches = 2, sees = ["k", "k"], ...} budget {...}
        attributes {kas.named_operator = "kas.conv2d"}
    ...
    %y = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64,
        name = "layer1.0.conv1", space = @conv2d}, ...} ...
    ```

    With `sequences`, a `kas.sequence_space @S_sequences` of translation-equivariant
    operators is written for each space `@S` of
    dense convolutions with centred windows: an operator with their window
    (`@S_window`), per channel or in groups, normalization with or without a
    rectifier, and an operator that mixes all channels (`@S_mixing`). Between them are
    as many channels as before them, twice as many, and fewer by each of the
    `coefficients` that divides the channels of all layers.

    With `kernel`, layers and blocks are problems of the tensor level instead, one
    for each family that the model has, with one binding per distinct layer:

    | kernel | stands for |
    |---|---|
    | `@convolutions<C, H, W \| G, k>` | dense convolutions of any stride and numbers of channels |
    | `@token_linears<C, L \| G, k>` | linear layers of L tokens: `[N, L, C]`, or rows that are collapsed from it |
    | `@linears<C \| G>` | linear layers of samples, `[N, C]` |
    | `@attentions<C, L \| G, k>` | blocks of self-attention with G heads: from the projections to queries, keys and values (three layers, or one) over scores, softmax and product to the output projection |

    They work from C channels to C. A layer of c*p and c*q channels counts
    max(p, q) times as one of C = c, the greatest common divisor; of a linear
    layer one number must divide the other, at most eight times. The layers of a
    block of attention are no sites themselves. The budget is `flops-ratio` of the
    FLOPs of one sample and all of the parameters.
    `kas-search="kernel=@convolutions groups=G"` finds kernels for it.
  }];
  let options = [
    Option<"stemChannels", "stem-channels", "int64_t", /*default=*/"4",
           "Layers of at most this many input channels get a space of their "
           "own: few operators have sizes that divide their channels">,
    Option<"coefficients", "coefficients", "std::string",
           /*default=*/"\"g=4\"",
           "Coefficients that every space declares beside those of its layers, "
           "such as g=4,s=2">,
    Option<"flopsRatio", "flops-ratio", "double", /*default=*/"0.5",
           "The budget of FLOPs, relative to the layers of the space">,
    Option<"minFlopsRatio", "min-flops-ratio", "double", /*default=*/"0.1",
           "The least FLOPs, relative to the layers of the space: with too few "
           "an operator can hardly learn what the layers do">,
    Option<"properties", "properties", "bool", /*default=*/"true",
           "Require the properties of the layers of what may replace them">,
    Option<"sequences", "sequences", "bool", /*default=*/"false",
           "Write a kas.sequence_space for each kind of layers with windows, "
           "too">,
    Option<"kernel", "kernel", "bool", /*default=*/"false",
           "Write a kas.kernel for each family of layers, not spaces">
  ];
  let statistics = [
    Statistic<"numSites", "num-sites", "Number of layers found">,
    Statistic<"numNearMisses", "num-near-misses", "Number of near misses">
  ];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasSubstitutePass : Pass<"kas-substitute", "::mlir::ModuleOp"> {
  let summary = "Replace the layers of a model by another operator";
  let description = [{
    Replaces the layers that `kas-extract` has marked by `kas.apply` of an
    operator: a `kas.operator` of the module (`operator=@x`), one of the library
    (`operator=kas.conv2d`, which the pass puts into the module as
    `@kas.conv2d`), or, without the option, the one that computes what the layer
    computes (`kas.named_operator` of the space, or one written for the layer
    where the library has none). Symbols that the shapes do not
    bind take their values from `bind`, else from the layer's binding in the
    space. A layer that the operator does not fit stays; a remark says why.

    The operator works on the data before the zero padding. What the layer
    adds its products to (the bias) is added after the operator. Padding and
    reshapes that nothing uses any more go.

    The weights become new arguments of the function where the old weight was,
    which goes unless something else uses it. A single weight of the old shape
    takes the old name, so that files of weights still fit; else the names are
    the old one and a number: `conv1.weight.0`, `conv1.weight.1`. Layers that
    share their weight share the new ones. `kas.init` says how to fill them
    when no file gives their values: `kaiming(F)`, normal with variance `2 / F`,
    where `F` keeps the size of activations after rectifiers; of several weights
    each has the same variance.

    With `same-weights` nothing is new: the layer's weight, its dimensions put
    in the operator's order, is the operator's only weight.

    ```
    kas-opt resnet18.mlir -kas-extract
        -kas-substitute="operator=kas.conv2d_depthwise_separable space=@conv2d"
    ```
    ```mlir
    %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] ...
    %init = linalg.broadcast ins(%bias ...) ...
    %y = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64, name = "layer1.0.conv1", space = @conv2d}, ...}
        ins(%padded, %weight : tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%init ...)
    // becomes
    %0 = kas.apply @kas.conv2d_depthwise_separable<k = 3>(%x, %weight0, %weight1)
        : (tensor<1x64x56x56xf32>, tensor<64x3x3xf32>, tensor<64x64xf32>) -> tensor<1x64x56x56xf32>
    %y = linalg.generic ... ins(%0, %bias ...) ... { arith.addf ... }
    ```

    With `kernel=@x`, a solved kernel of the module takes the place of what
    `kas-extract=kernel` has marked for the kernel `space`, or, without that, for
    `@x` or the kernel that the search for `@x` began with. A stride becomes
    means of windows before the kernel, and each block of C channels gets a copy
    of the kernel with weights of its own. Inputs with fewer blocks than outputs
    are repeated; outputs with fewer are means of the blocks at the same place.
    Tokens are transposed, `[N, L, C]` to `[N, C, L]` and back. The bias of a
    layer, and that of the output projection of a block of attention, stays.
  }];
  let options = [
    Option<"operatorName", "operator", "std::string", /*default=*/"\"\"",
           "The operator: @NAME of the module, or kas.NAME of the library">,
    Option<"bind", "bind", "std::string", /*default=*/"\"\"",
           "Values for symbols of the operator, such as g=4,s=2">,
    Option<"space", "space", "std::string", /*default=*/"\"\"",
           "Only the layers of this space, or those marked for this kernel">,
    ListOption<"layers", "layers", "std::string",
               "Only the layers of these names, such as layer1.0.conv1">,
    Option<"sameWeights", "same-weights", "bool", /*default=*/"false",
           "Keep the weights of the layers">,
    Option<"kernel", "kernel", "std::string", /*default=*/"\"\"",
           "A solved kas.kernel of the module, for what is marked for one">
  ];
  let statistics = [
    Statistic<"numReplaced", "num-replaced", "Number of layers replaced">,
    Statistic<"numLeft", "num-left", "Number of layers left as they were">
  ];
  let dependentDialects = [
    "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

#endif // KAS_NETWORKS_PASSES_TD
