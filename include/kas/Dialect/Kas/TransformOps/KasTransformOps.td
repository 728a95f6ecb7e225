//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neural transformations as operations of the transform dialect.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_TD
#define KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_TD

include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/IR/TransformTypes.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

/// Takes a handle to structured operations or applications of operators and
/// gives one to what replaces them.
class NeuralTransformOp<string mnemonic>
    : Op<Transform_Dialect, "kas." # mnemonic,
         [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
          DeclareOpInterfaceMethods<TransformOpInterface>,
          ReportTrackingListenerFailuresOpTrait]> {
  let results = (outs TransformHandleTypeInterface:$transformed);
}

def NeuralGroupOp : NeuralTransformOp<"group"> {
  let summary = "grouping: keeps the diagonal blocks of two iterators";
  let description = [{
    Tiles two iterators by a common count G and keeps the diagonal blocks, the
    points with `floor(i * G / N_i) = floor(j * G / N_j)` (Turner et al.,
    "Neural Architecture Search as Program Transformation Exploration", section
    4.2). On the channels of a convolution that is a grouped convolution: work
    and weights are divided by G. Without `iterators` they are those over output
    and input channels of a convolution or matrix product.

    The result is a `linalg.generic` with an iterator over the groups before
    the first iterator; iterators with one point left are dropped. It reads
    the diagonal blocks of the old weight; `transform.kas.new_weights` gives it
    a weight of its own.

    Changes what is computed: whether a network with it is any good must be
    evaluated by other means, such as Fisher Potential.

    A target may also be a `kas.apply`, here and in the other transformations:
    then the result is one of a new concrete `kas.operator`. The iterators of an
    operator are its output coordinates, then its reductions in program order.

    Fails silenceably, with the reason, unless:
      T1. The target has static tensors, one result and no `linalg.index`.
      T2. Iterators are in range and two different ones.
      T3. At least one of them is a reduction.
      T4. G is at least 1 and divides the points of both.
      T5. Both index dimensions of operands alone (no `h + kh`); not required of
          operators.
      T17. Of an operator, one of them at most indexes the data, no weight has
           one of them twice, and two reductions are of one kind.

    Example:

    ```mlir
    %grouped = transform.kas.group %conv by 4 : (!transform.any_op) -> !transform.any_op
    %other = transform.kas.group %product iterators [1, 2] by %groups
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       Optional<TransformParamTypeInterface>:$groups,
                       I64Attr:$static_groups,
                       OptionalAttr<DenseI64ArrayAttr>:$iterators);
  let assemblyFormat = [{
    $target (`iterators` $iterators^)? `by`
    custom<IntegerOrParam>($groups, $static_groups) attr-dict `:`
    functional-type(operands, results)
  }];
}

def NeuralDepthwiseOp : NeuralTransformOp<"depthwise"> {
  let summary = "a group for each point of two iterators";
  let description = [{
    `transform.kas.group` by as many groups as both iterators have points: on
    the channels of a convolution, a depthwise convolution.

    Fails as `transform.kas.group` does, and unless:
      T6. Both iterators have the same number of points.

    Example:

    ```mlir
    %depthwise = transform.kas.depthwise %conv : (!transform.any_op) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       OptionalAttr<DenseI64ArrayAttr>:$iterators);
  let assemblyFormat = [{
    $target (`iterators` $iterators^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def NeuralBottleneckOp : NeuralTransformOp<"bottleneck"> {
  let summary = "bottleneck: computes an N-th of the points of an iterator";
  let description = [{
    Divides the points of an iterator by B (Turner et al., section 4.1). The
    shape of the result stays:

    * A reduction keeps its first N/B points.
    * Of a parallel iterator every B-th point is computed, and stands for the B
      results from there on: N/B output channels, each repeated, or a spatial
      stride of B whose results are spread to the nearest points. Bottlenecks
      along both spatial iterators are the paper's spatial bottleneck (section
      5.3).

    Fails silenceably unless T1 and T2 (see `transform.kas.group`) hold, and:
      T7. B is at least 1 and divides the points of the iterator.
      T8. The iterator occurs in indices that are sums of iterators with
          positive factors.
      T9. A parallel iterator alone indexes a dimension of the result.
      T18. A reduction of an operator, if it goes to the data, indexes a
           dimension of it as it is, or is the window of a `kas.unfold` and what
           is left has the point of the window without offset.

    Example:

    ```mlir
    %inputs = transform.kas.bottleneck %conv iterator 4 by 2 : (!transform.any_op) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       Optional<TransformParamTypeInterface>:$factor,
                       I64Attr:$static_factor, I64Attr:$iterator);
  let assemblyFormat = [{
    $target `iterator` $iterator `by`
    custom<IntegerOrParam>($factor, $static_factor) attr-dict `:`
    functional-type(operands, results)
  }];
}

def NeuralRestrictOp : NeuralTransformOp<"restrict"> {
  let summary = "reduces over the points from an offset on";
  let description = [{
    Drops the first points of a reduction: the second branch of sequence 2
    (Turner et al., section 7.3) leaves out the input channels that the dense
    branch has.

    Fails silenceably unless T1, T2 and T8 (see `transform.kas.bottleneck`)
    hold, and:
      T10. The iterator is a reduction.
      T11. Some of its points are left.
    and T18 (see `transform.kas.bottleneck`).

    Example:

    ```mlir
    %rest = transform.kas.restrict %conv iterator 4 from 16 : (!transform.any_op) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       Optional<TransformParamTypeInterface>:$offset,
                       I64Attr:$static_offset, I64Attr:$iterator);
  let assemblyFormat = [{
    $target `iterator` $iterator `from`
    custom<IntegerOrParam>($offset, $static_offset) attr-dict `:`
    functional-type(operands, results)
  }];
}

def NeuralSlabsOp : NeuralTransformOp<"slabs"> {
  let summary = "cuts data into slabs, each with weights of its own";
  let description = [{
    Sequence 1 of Turner et al. (section 7.3): groups the weights over a spatial
    iterator. Slabs do not see each other: the padding before the operation
    is applied to each. The first input is the data; the others are the weights,
    which become one for each slab. Work stays, weights are multiplied by the
    number of slabs.

    Fails silenceably unless T1 and T2 (see `transform.kas.group`) hold, and:
      T12. The iterator is parallel, and indexes one dimension of the data, a
           dimension of the result alone, and nothing of the weights; in an
           operator it goes to the data by strides and unfolds.
      T13. Padding is static and of one value.
      T14. The number of slabs divides inputs and outputs, and with the padding
           each slab has the inputs that its outputs need.

    Example:

    ```mlir
    %slabs = transform.kas.slabs %conv iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       Optional<TransformParamTypeInterface>:$count,
                       I64Attr:$static_count, I64Attr:$iterator);
  let assemblyFormat = [{
    $target `iterator` $iterator `by`
    custom<IntegerOrParam>($count, $static_count) attr-dict `:`
    functional-type(operands, results)
  }];
}

def NeuralNewWeightsOp : NeuralTransformOp<"new_weights"> {
  let summary = "gives operations weights of their own";
  let description = [{
    Each input but the first becomes a new argument of the function around the
    target, after the argument that it was made from, with `kas.init =
    "kaiming(F)"` where F is the number of products in an element of the result
    (He et al., "Delving Deep into Rectifiers", section 2.2), and with the
    `kas.name` of the old argument and a number. Arguments that nothing reads
    any more are removed.

    Fails silenceably unless T1 (see `transform.kas.group`) holds, and:
      T15. The function is not called.
      T16. The inputs are made from arguments or constants by moving elements.

    Example:

    ```mlir
    %grouped = transform.kas.group %conv by 4 : (!transform.any_op) -> !transform.any_op
    %trained = transform.kas.new_weights %grouped : (!transform.any_op) -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target);
  let assemblyFormat =
      "$target attr-dict `:` functional-type(operands, results)";
}

#endif // KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_TD
