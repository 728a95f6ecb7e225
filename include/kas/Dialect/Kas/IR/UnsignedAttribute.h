//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The mark of arguments and results whose integers are unsigned.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_UNSIGNEDATTRIBUTE_H
#define KAS_DIALECT_KAS_IR_UNSIGNEDATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace kas {

/// Of an argument or a result of a function: its integers are unsigned. A unit.
inline constexpr llvm::StringLiteral unsignedAttrName = "kas.unsigned";

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_UNSIGNEDATTRIBUTE_H
