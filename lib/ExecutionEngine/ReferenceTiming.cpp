//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reference kernel that is timed interleaved with what is measured, so that
// changes of the machine's speed cancel, as of a virtual machine with busy
// neighbours or of a core that changes its frequency.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ReferenceTiming.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cassert>

using namespace kas;
using namespace kas::execution;

double kas::execution::timeReferenceKernel() {
  // 4 KiB, in the first-level cache: its time depends on the clock of the core
  // only.
  constexpr int size = 1024, repetitions = 1000;
  alignas(64) float values[size];
  for (int i = 0; i < size; ++i)
    values[i] = static_cast<float>(i);
  double start = monotonicSeconds();
  // A million multiply-adds: long enough for the clock, short next to what is
  // measured.
  for (int repetition = 0; repetition < repetitions; ++repetition)
    for (int i = 0; i < size; ++i)
      values[i] = values[i] * 0.75f + 1.0f;
  double end = monotonicSeconds();
  // The values are used, so the loop stays.
  [[maybe_unused]] static volatile float sink;
  sink = values[size / 2];
  return (end - start) * 1e3;
}

// The least time is that of an undisturbed machine.
double kas::execution::calibrateReferenceKernel(int64_t runs) {
  double least = timeReferenceKernel();
  for (int64_t run = 1; run < runs; ++run)
    least = std::min(least, timeReferenceKernel());
  return least;
}

double kas::execution::getDriftFreeMedian(llvm::ArrayRef<double> times,
                                          llvm::ArrayRef<double> references,
                                          double nominal) {
  // r0 t0 r1 t1 r2: each time lies between two references.
  assert(references.size() == times.size() + 1 && "one before and one after");
  // Each time is divided by the mean of the references right before and after
  // it, and is then that of a machine on which the reference takes `nominal`.
  llvm::SmallVector<double> corrected;
  for (auto [index, time] : llvm::enumerate(times))
    corrected.push_back(2 * time * nominal /
                        (references[index] + references[index + 1]));
  return Timing::summarize(corrected).median;
}

double
kas::execution::measureAgainstReference(llvm::function_ref<void()> function,
                                        double nominal,
                                        const TimingOptions &options) {
  for (int64_t run = 0; run < options.warmUpRuns; ++run)
    function();
  llvm::SmallVector<double> times, references = {timeReferenceKernel()};
  double start = monotonicSeconds(), now = start;
  auto count = [&] { return static_cast<int64_t>(times.size()); };
  while (count() < options.minRuns ||
         (now - start < options.seconds && count() < options.maxRuns)) {
    double before = monotonicSeconds();
    function();
    now = monotonicSeconds();
    times.push_back((now - before) * 1e3);
    references.push_back(timeReferenceKernel());
  }
  return getDriftFreeMedian(times, references, nominal);
}
