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

#endif // KAS_DIALECT_KAS_IR_KASTYPES_TD
