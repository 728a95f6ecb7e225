//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASTYPES_TD
#define KAS_DIALECT_KAS_IR_KASTYPES_TD

include "kas/Dialect/Kas/IR/KasAttrs.td"

def Kas_CoordType : Kas_Type<"Coord", "coord"> {
  let summary = "a coordinate: an index expression over the domain [0, size)";
  let description = [{
    The size is symbolic; a coordinate takes the values 0 to size - 1. Inside
    `kas.operator` the type is written as the bare size.

    ```mlir
    !kas.coord<C*k/s>
    ```
  }];
  let parameters = (ins "::kas::SizeAttr":$size);
  let hasCustomAssemblyFormat = 1;
}

def Kas_SymbolicTensorType : Kas_Type<"SymbolicTensor", "tensor"> {
  let summary = "a tensor of symbolic shape: channel dimensions, then spatial ones";
  let description = [{
    The values of the tensor level. The channel dimensions are before the bar,
    the spatial ones after it; without a bar all are channel dimensions. The
    batch is implicit. Inside `kas.kernel` the shape is written bare.

    ```mlir
    !kas.tensor<[G, C/G, KH | H, W]>
    !kas.tensor<[C]>
    !kas.tensor<[| H, W]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::kas::SizeAttr">:$dims,
                        "unsigned":$numChannelDims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getRank() const { return getDims().size(); }
    bool isChannelDim(unsigned dim) const { return dim < getNumChannelDims(); }
    ::llvm::ArrayRef<::kas::SizeAttr> getChannelDims() const {
      return getDims().take_front(getNumChannelDims());
    }
    ::llvm::ArrayRef<::kas::SizeAttr> getSpatialDims() const {
      return getDims().drop_front(getNumChannelDims());
    }
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASTYPES_TD
