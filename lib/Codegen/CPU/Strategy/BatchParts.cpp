//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchParts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace kas;
using namespace kas::codegen;

namespace {

/// Estimates cycles. The constants are measured on Intel Sapphire Rapids and
/// only have to tell large differences.
class PartCost {
public:
  PartCost(const BatchWork &work, const Target &target, int64_t threads)
      : work(work), l2Bytes(static_cast<double>(target.l2Bytes)),
        flopsPerCycle(static_cast<double>(target.arithmeticBits) / 8),
        threads(threads ? threads : 8) {}

  /// All of the batch, step by step.
  double getWhole() const;
  /// In parts of `size` samples.
  double getParts(int64_t size) const;

private:
  /// Bytes that come from beyond the second-level cache.
  double getTraffic(int64_t size) const;
  double getStep(const BatchWork::Step &step) const {
    return static_cast<double>(step.flops * work.batch) / flopsPerCycle;
  }

  /// What a call and its buffers take for each step, and what it takes to let
  /// threads begin and to wait for the last of them.
  static constexpr double stepCycles = 200, forkCycles = 8000;
  /// Shorter steps are not shared.
  static constexpr double minSharedCycles = 40000;
  static constexpr double bytesPerCycle = 8;

  const BatchWork &work;
  double l2Bytes, flopsPerCycle;
  int64_t threads;
};

} // namespace

double PartCost::getTraffic(int64_t size) const {
  int64_t largest = 0;
  double bytes = 0;
  for (const BatchWork::Step &step : work.steps) {
    largest = std::max(largest, step.bytes);
    // With other buffers, weights and pages, a fifth of the cache is what is
    // left for one step.
    if (static_cast<double>(size * step.bytes) > l2Bytes / 5)
      bytes += static_cast<double>(work.batch * step.bytes);
  }
  bool remains =
      static_cast<double>(work.weightBytes + size * largest) <= l2Bytes;
  int64_t times = remains ? 1 : work.batch / size;
  return bytes + static_cast<double>(times * work.weightBytes);
}

double PartCost::getWhole() const {
  double cycles = getTraffic(work.batch) / bytesPerCycle;
  for (const BatchWork::Step &step : work.steps) {
    double time = getStep(step);
    cycles += threads == 1 || time < minSharedCycles
                  ? time
                  : time / static_cast<double>(threads) + forkCycles;
    cycles += stepCycles;
  }
  return cycles;
}

double PartCost::getParts(int64_t size) const {
  double all = getTraffic(size) / bytesPerCycle;
  for (const BatchWork::Step &step : work.steps)
    all += getStep(step);
  int64_t parts = work.batch / size;
  double one = all / static_cast<double>(parts) +
               stepCycles * static_cast<double>(work.steps.size());
  return one * static_cast<double>(llvm::divideCeil(parts, threads)) +
         (threads == 1 ? 0 : forkCycles);
}

int64_t kas::codegen::choosePartSize(const BatchWork &work,
                                     const Target &target, int64_t threads) {
  // One step alone is cut better by those that know it.
  if (work.steps.size() < 2)
    return work.batch;
  PartCost cost(work, target, threads);
  // The whole has nothing that could go wrong.
  double least = 0.97 * cost.getWhole();
  int64_t best = work.batch;
  for (int64_t parts = 2; parts <= std::min(work.batch, maxBatchParts);
       ++parts) {
    if (work.batch % parts != 0)
      continue;
    int64_t size = work.batch / parts;
    double cycles = cost.getParts(size);
    if (cycles < least) {
      least = cycles;
      best = size;
    }
  }
  return best;
}
