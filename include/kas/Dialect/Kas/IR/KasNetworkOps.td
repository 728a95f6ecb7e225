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
    `-kas-lower-batch-norm` takes it apart.

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

#endif // KAS_DIALECT_KAS_IR_KASNETWORKOPS_TD
