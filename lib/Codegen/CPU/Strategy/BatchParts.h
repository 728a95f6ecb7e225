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
  /// Whether a sample is a list of channels: vectors have place for samples
  /// only, so a part fills whole ones.
  bool isOfChannels = false;
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

/// A function that computes `samples` samples.
struct BatchVersion {
  int64_t samples;
  /// Whether one thread computes it, while others compute other parts; else
  /// threads share its steps.
  bool isSerial;
  /// What it takes, by an estimate.
  int64_t cycles;
};

/// The versions of a function from which batches of any size, up to about
/// `work.batch`, are computed nearly as fast as by a function for that size: as
/// `choosePartSize` has it for the largest batch, for a middle one and for one
/// sample. The largest comes first; the last one is for one sample.
llvm::SmallVector<BatchVersion> chooseBatchVersions(const BatchWork &work,
                                                    const Target &target,
                                                    int64_t threads);

/// What to call next: `count` times the version with the number `version`.
struct BatchCall {
  unsigned version;
  int64_t count;
};

/// For batches of 1 to `most` samples what to call first, so that all calls
/// together take the least time. One of the versions is for one sample.
llvm::SmallVector<BatchCall> planBatch(llvm::ArrayRef<BatchVersion> versions,
                                       int64_t most, int64_t threads);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_BATCHPARTS_H
