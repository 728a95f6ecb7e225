//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wall-clock timing of code that is short and runs on a shared machine.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_TIMING_H
#define KAS_EXECUTIONENGINE_TIMING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <functional>

namespace kas::execution {

/// Times in milliseconds.
struct Timing {
  double median = 0;
  double min = 0;
  /// The number of timed runs.
  int64_t count = 0;

  /// The summary of single times; there must be at least one.
  static Timing summarize(llvm::ArrayRef<double> milliseconds);
};

/// When `measure` stops: after `minRuns` runs and `seconds` seconds, whatever
/// is later, but not after more than `maxRuns` runs.
struct TimingOptions {
  int64_t minRuns = 20;
  int64_t maxRuns = 10000;
  double seconds = 0.2;
  int64_t warmUpRuns = 2;
};

/// Runs `function` again and again and times each run by the monotonic clock.
Timing measure(llvm::function_ref<void()> function,
               const TimingOptions &options = {});

/// Times several functions interleaved, in `rounds` rounds, so that what slows
/// the machine down for a while slows all of them. Each gets the runs and the
/// time of `options`; the warm-up runs come in every round.
llvm::SmallVector<Timing>
measureInterleaved(llvm::ArrayRef<std::function<void()>> functions,
                   const TimingOptions &options = {}, int64_t rounds = 5);

/// Lets the C library keep large blocks that are freed instead of giving them
/// back to the system, for the whole process: compiled functions allocate their
/// intermediate tensors at each call, and fresh pages would cost more than some
/// kernels do. Does nothing on systems without glibc.
void keepFreedMemory();

/// Seconds of the monotonic clock, from an arbitrary start.
double monotonicSeconds();

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_TIMING_H
