//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operators compute each example of a batch by itself.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_BATCH_H
#define KAS_DIALECT_KAS_ANALYSIS_BATCH_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// Whether the first dimension of the data and of the output is a batch: a
/// primary symbol that no other size has, and a coordinate that no primitive
/// and no weight uses. What `op` computes of an example is then the same in
/// every batch.
bool hasBatch(OperatorOp op);

/// Whether the first coordinate of the output is the first one of the data,
/// of the same size, and nothing else uses it. A concrete operator of this kind
/// computes each example by itself.
bool keepsFirstCoordinate(OperatorOp op);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_BATCH_H
