//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Runtime/Timing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cassert>
#include <chrono>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace kas;

void kas::keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

double kas::monotonicSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Timing Timing::summarize(llvm::ArrayRef<double> milliseconds) {
  assert(!milliseconds.empty() && "nothing was timed");
  llvm::SmallVector<double> sorted(milliseconds);
  llvm::sort(sorted);
  size_t half = sorted.size() / 2;
  double median =
      sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return {median, sorted.front(), static_cast<int64_t>(sorted.size())};
}

Timing kas::measure(llvm::function_ref<void()> function,
                    const TimingOptions &options) {
  for (int64_t run = 0; run < options.warmUpRuns; ++run)
    function();
  llvm::SmallVector<double> times;
  double start = monotonicSeconds(), now = start;
  auto count = [&] { return static_cast<int64_t>(times.size()); };
  while (count() < options.minRuns ||
         (now - start < options.seconds && count() < options.maxRuns)) {
    double before = monotonicSeconds();
    function();
    now = monotonicSeconds();
    times.push_back((now - before) * 1e3);
  }
  return Timing::summarize(times);
}
