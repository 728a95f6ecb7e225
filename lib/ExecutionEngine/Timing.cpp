//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs functions until a time and a number of runs are reached, several of them
// interleaved, and summarizes the times by median and minimum.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Timing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <cassert>
#include <chrono>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace kas;
using namespace kas::execution;

// glibc returns blocks above the thresholds to the system at each `free`; their
// pages are then zeroed again at each call. Few buffers take more than 1 GiB.
void kas::execution::keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// Never goes back, unlike the time of day.
double kas::execution::monotonicSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Timing Timing::summarize(llvm::ArrayRef<double> milliseconds) {
  assert(!milliseconds.empty() && "nothing was timed");
  llvm::SmallVector<double> sorted(milliseconds);
  llvm::sort(sorted);
  // The median of an even number is the mean of the two in the middle.
  size_t half = sorted.size() / 2;
  double median =
      sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return {median, sorted.front(), static_cast<int64_t>(sorted.size())};
}

/// Appends the times of single runs to `times`.
static void run(llvm::function_ref<void()> function,
                const TimingOptions &options,
                llvm::SmallVectorImpl<double> &times) {
  for (int64_t index = 0; index < options.warmUpRuns; ++index)
    function();
  // Until there are `minRuns`; then until the time is up or `maxRuns` are
  // there.
  double start = monotonicSeconds(), now = start;
  for (int64_t count = 0;
       count < options.minRuns ||
       (now - start < options.seconds && count < options.maxRuns);
       ++count) {
    double before = monotonicSeconds();
    function();
    now = monotonicSeconds();
    times.push_back((now - before) * 1e3);
  }
}

Timing kas::execution::measure(llvm::function_ref<void()> function,
                               const TimingOptions &options) {
  llvm::SmallVector<double> times;
  run(function, options, times);
  return Timing::summarize(times);
}

llvm::SmallVector<Timing> kas::execution::measureInterleaved(
    llvm::ArrayRef<std::function<void()>> functions,
    const TimingOptions &options, int64_t rounds) {
  assert(rounds > 0 && "nothing would be timed");
  // Each round has its share of runs and seconds. All functions meet the same
  // changes of the machine's speed, as one round is short.
  TimingOptions part = options;
  // Rounded up: at least one run in each round.
  part.minRuns = (options.minRuns + rounds - 1) / rounds;
  part.maxRuns = (options.maxRuns + rounds - 1) / rounds;
  part.seconds = options.seconds / static_cast<double>(rounds);
  llvm::SmallVector<llvm::SmallVector<double>> times(functions.size());
  for (int64_t round = 0; round < rounds; ++round)
    for (auto [function, own] : llvm::zip_equal(functions, times))
      run(function, part, own);
  return llvm::map_to_vector(times, [](const llvm::SmallVector<double> &own) {
    return Timing::summarize(own);
  });
}
