//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor-level ops.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGOPS_TD
#define KAS_DIALECT_KAS_IR_KASDAGOPS_TD

include "kas/Dialect/Kas/IR/KasDagBase.td"
include "kas/Dialect/Kas/IR/KasDagRearrangementOps.td"
include "kas/Dialect/Kas/IR/KasDagArithmeticOps.td"

//===----------------------------------------------------------------------===//
// Blending
//===----------------------------------------------------------------------===//

def Kas_DagBroadcastOp
    : Kas_DagOp<"broadcast", ["getStep"]> {
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

def Kas_DagMatMulOp : Kas_DagOp<"matmul", ["getStep"]> {
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
    of size 1 before these, such as the batch. Its weights are weights of the
    kernel. FLOPs are those of one loop nest, `kas-print-cost` has the ones of
    the best stages.

    Constraints:
    * D16: the operator exists, and each of its symbols gets one size.
    * D17: the operator's data and output have the sizes of the tensor and of the
      result, leading sizes of 1 apart.
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
