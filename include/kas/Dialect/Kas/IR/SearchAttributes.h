//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of discardable attributes by which searches say what they know of an
// operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_SEARCHATTRIBUTES_H
#define KAS_DIALECT_KAS_IR_SEARCHATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace kas {

/// The numbers of the bindings of the space at which a rank is full: there the
/// operator is the same as one with a weight less.
inline constexpr llvm::StringLiteral fullRankAtAttrName = "kas.full_rank_at";

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_SEARCHATTRIBUTES_H
