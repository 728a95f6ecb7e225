//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of networks between their layers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASNETWORKOPS_TD
#define KAS_DIALECT_KAS_IR_KASNETWORKOPS_TD

include "kas/Dialect/Kas/IR/KasBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

def Kas_BatchNormOp : Kas_Op<"batch_norm", [
    Pure, AllElementTypesMatch<["data", "scale", "offset", "result"]>]> {
  let summary = "normalize channels by the statistics of the batch";
  let description = [{
    Normalization of training (Ioffe and Szegedy, ICML 2015): over the samples
    (dimension 0) and places (dimensions from 2) of each channel c,

        result = (data - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + offset[c]

    `mean` and `variance` are those of the channel in this batch; the variance
    is divided by the number of elements.

    Made by `-kas-training-step` of normalizations by running statistics;
    `-kas-to-linalg` takes it apart.

    Constraints:
    * B1: the data has at least the dimensions of samples and channels, and the
      type of the result.
    * B2: scale, offset, mean and variance have one element for each channel.
    * B3: the samples and places of a channel are at least two, so that there
      is a variance.
    * B4: `epsilon` is a number greater than zero.

    ```mlir
    %y, %mean, %variance = kas.batch_norm %x, %scale, %offset epsilon 1.0e-05
        : tensor<8x16x4x4xf32>, tensor<16xf32>
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[AnyFloat]>:$data,
                       StaticShapeTensorOf<[AnyFloat]>:$scale,
                       StaticShapeTensorOf<[AnyFloat]>:$offset,
                       F64Attr:$epsilon);
  let results = (outs StaticShapeTensorOf<[AnyFloat]>:$result,
                      StaticShapeTensorOf<[AnyFloat]>:$mean,
                      StaticShapeTensorOf<[AnyFloat]>:$variance);
  let assemblyFormat = [{
    $data `,` $scale `,` $offset `epsilon` $epsilon attr-dict `:`
    custom<BatchNormTypes>(type($data), type($scale), type($offset),
                           type($result), type($mean), type($variance))
  }];
  let extraClassDeclaration = [{
    /// How many elements each channel has.
    int64_t getNumElementsOfChannel();
  }];
  let hasVerifier = 1;
}

def Kas_DropoutOp : Kas_Op<"dropout", [
    Pure, AllTypesMatch<["data", "result"]>]> {
  let summary = "leave out elements at random";
  let description = [{
    Dropout (Srivastava et al., JMLR 15, 2014): each element becomes zero with the
    given probability p, all others are divided by 1 - p. Without a seed, in
    evaluation, the result is the data.

    Elements are left out by numbers that depend on nothing but the seed, the
    stream and the position of the element, on every machine and with any number
    of threads: by the first word of Philox4x32-10 (Salmon et al., "Parallel Random
    Numbers: As Easy as 1, 2, 3", SC 2011), whose key is the two numbers of the
    seed (their bits as f32) and whose counter is (low and high half of the
    position in row-major order, stream, 0). An element stays where that word is
    at least p * 2^32, rounded to a whole number.

    The gradient is the dropout of the gradient by the same seed and stream.
    `kas.torch.to_mlir` writes the op without a seed, `-kas-training-step` gives it
    one, `-kas-to-linalg` makes it one elementwise operation.

    Constraints:
    * P1: `probability` is a number from 0 to less than 1.
    * P2: a seed is two numbers of f32 or f64; it comes with a stream.
    * P3: a stream is a number from 0 to less than 2^32; it comes with a seed.

    ```mlir
    %y = kas.dropout %x probability 1.0e-01 : tensor<8x16xf32>
    %z = kas.dropout %x probability 1.0e-01 seed %seed stream 0 : tensor<8x16xf32>, tensor<2xf32>
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[AnyFloat]>:$data,
                       Optional<StaticShapeTensorOf<[AnyFloat]>>:$seed,
                       F64Attr:$probability,
                       OptionalAttr<I64Attr>:$stream);
  let results = (outs StaticShapeTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $data `probability` $probability (`seed` $seed^)? (`stream` $stream^)?
    attr-dict `:` type($data) (`,` type($seed)^)?
  }];
  let hasVerifier = 1;
}

def Kas_ApplyGradientOp : Kas_Op<"apply_gradient", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the gradient of an operator by one of its tensors";
  let description = [{
    The gradient of a concrete operator that sums, by its data (tensor 0) or one
    of its weights (1, 2, ...). Takes the other tensors of `kas.apply`, in their
    order, then the gradient of its result. Since the operator is linear in each
    tensor, that tensor itself is not needed.

    Made by `-kas-differentiate` and `-kas-training-step`.
    `-kas-pack-operators` makes register tiles of it, `-kas-to-affine` loops.

    Constraints:
    * G1: the callee is a concrete operator without maxima.
    * G2: `tensor` is the number of one of its tensors.
    * G3: operands and result are the other tensors, the gradient of the
      output and that of the tensor, in their shapes and of one element type.

    ```mlir
    %dw = kas.apply_gradient @conv of 1(%x, %dy)
        : (tensor<1x8x4x4xf32>, tensor<1x16x4x4xf32>) -> tensor<16x8x3x3xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, I64Attr:$tensor,
                       Variadic<StaticShapeTensorOf<[AnyFloat]>>:$inputs);
  let results = (outs StaticShapeTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $callee `of` $tensor `(` $inputs `)` attr-dict `:`
    functional-type(operands, $result)
  }];
  let extraClassDeclaration = [{
    /// The operator, looked up from here; null when there is none.
    ::kas::OperatorOp getOperator();
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASNETWORKOPS_TD
