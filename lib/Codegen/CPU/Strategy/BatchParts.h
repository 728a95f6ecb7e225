//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In how many parts a batch is computed.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_BATCHPARTS_H
#define LIB_CODEGEN_CPU_STRATEGY_BATCHPARTS_H

#include "kas/Support/Target.h"
#include "llvm/ADT/SmallVector.h"

namespace kas::codegen {

/// What a function does for each sample of a batch, operation by operation.
struct BatchWork {
  struct Step {
    /// Of one sample.
    int64_t flops, bytes;
  };

  int64_t batch = 1;
  /// Of all weights, which each part of the batch reads.
  int64_t weightBytes = 0;
  llvm::SmallVector<Step> steps;
};

/// Each part has a place for its message on the stack.
inline constexpr int64_t maxBatchParts = 4096;

/// The number of samples to compute at once, all steps of them, before the next
/// ones: a divisor of the batch, or the batch itself. Small parts remain in the
/// cache from step to step and are shared by threads, 0 for an unknown number
/// of them; large ones read weights less often.
int64_t choosePartSize(const BatchWork &work, const Target &target,
                       int64_t threads);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_BATCHPARTS_H
