//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Discardable attributes that say how a network is trained.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_TRAININGATTRIBUTES_H
#define KAS_DIALECT_KAS_IR_TRAININGATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace kas {

/// The weight decay of an argument (`-kas-training-step`).
inline constexpr llvm::StringLiteral weightDecayAttrName = "kas.weight_decay";
/// On an argument that is not trained, such as a mask.
inline constexpr llvm::StringLiteral constantAttrName = "kas.constant";
/// On an argument of rank 0: multiplication by it stands for a dropout with
/// this probability (`-kas-mark-dropout`).
inline constexpr llvm::StringLiteral dropoutAttrName = "kas.dropout";
/// On the running mean of a normalization: the weight of the batch in its
/// running statistics. Without it that of the training counts.
inline constexpr llvm::StringLiteral momentumAttrName = "kas.momentum";

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_TRAININGATTRIBUTES_H
