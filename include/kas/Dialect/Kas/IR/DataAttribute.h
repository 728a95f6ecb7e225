//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The mark of arguments that are data, not weights.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_DATAATTRIBUTE_H
#define KAS_DIALECT_KAS_IR_DATAATTRIBUTE_H

#include "mlir/IR/Value.h"

namespace kas {

/// Of an argument of a function that is not the first: it is data, too, and may
/// have other values in each call. A unit.
inline constexpr llvm::StringLiteral dataAttrName = "kas.data";

/// Whether an argument is data: the first one of a function, one that says so,
/// or one of another block. The others are weights, which may be packed ahead
/// of the calls.
bool isData(mlir::BlockArgument argument);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_DATAATTRIBUTE_H
