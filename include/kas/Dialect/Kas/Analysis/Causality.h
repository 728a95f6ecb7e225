//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether an operator looks back only along a sequence.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_CAUSALITY_H
#define KAS_DIALECT_KAS_ANALYSIS_CAUSALITY_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// A position of the output along a sequence, and a later one of the data that
/// an element there reads.
struct Lookahead {
  int64_t output;
  int64_t input;
};

/// Looks in the access relation of the concrete operator `op` for a point that
/// reads the data at more than `stride` times the position of its output, along
/// dimension `input` of the data and dimension `output` of the output. Exact:
/// decided for all points at once by MLIR's Presburger library. Points that a
/// `kas.unfold` clips do not exist.
std::optional<Lookahead> findLookahead(OperatorOp op, unsigned output,
                                       unsigned input, int64_t stride = 1);

/// Whether there is no such point: no element of the output depends on a later
/// position of the data, whatever the weights are.
inline bool isCausal(OperatorOp op, unsigned output, unsigned input,
                     int64_t stride = 1) {
  return !findLookahead(op, output, input, stride);
}

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_CAUSALITY_H
