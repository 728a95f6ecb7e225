//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides how many samples of a batch a function computes at once, so that what
// passes between its operations stays in the cache.
//
//===----------------------------------------------------------------------===//

#include "BatchParts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <optional>

using namespace kas;
using namespace kas::codegen;
using llvm::ArrayRef;
using llvm::SmallVector;

/// What it takes to let threads begin and to wait for the last of them.
static constexpr double forkCycles = 8000;

/// How many threads there may be.
static int64_t getKnownThreads(int64_t threads) {
  return threads ? threads : 8;
}

namespace {

/// Estimates cycles. The constants are measured on Intel Sapphire Rapids and
/// Cascade Lake and only have to tell large differences.
class PartCost {
public:
  PartCost(const BatchWork &work, const Target &target, int64_t threads)
      : work(work), l2Bytes(static_cast<double>(target.l2Bytes)),
        flopsPerCycle(static_cast<double>(target.arithmeticBits) / 8),
        threads(getKnownThreads(threads)) {}

  /// All of the batch, step by step.
  double getWhole() const;
  /// In parts of `size` samples.
  double getParts(int64_t size) const;
  /// One of these parts.
  double getPart(int64_t size) const;

private:
  /// What bytes take that come from beyond the second-level cache.
  double getTraffic(int64_t size) const;
  double getStep(const BatchWork::Step &step) const {
    return static_cast<double>(step.flops * work.batch) / flopsPerCycle;
  }

  /// What a call and its buffers take for each step.
  static constexpr double stepCycles = 200;
  /// Shorter steps are not shared.
  static constexpr double minSharedCycles = 40000;
  /// Bytes per cycle: from the next cache; from memory, in addition; of
  /// weights, which are read in order and arrive while others are in use.
  static constexpr double bytesPerCycle = 8, memoryBytesPerCycle = 5,
                          weightBytesPerCycle = 16;
  /// What one core may expect of a cache that cores share.
  static constexpr double sharedBytes = 8 << 20;

  const BatchWork &work;
  double l2Bytes, flopsPerCycle;
  int64_t threads;
};

} // namespace

double PartCost::getTraffic(int64_t size) const {
  int64_t largest = 0;
  double cycles = 0;
  for (const BatchWork::Step &step : work.steps) {
    largest = std::max(largest, step.bytes);
    // With other buffers, weights and pages, a fifth of the cache is what is
    // left for one step. Lists of channels are measured to be fastest in parts
    // that fill it: smaller ones have less to do for each weight.
    double share = work.isOfChannels ? l2Bytes : l2Bytes / 5;
    auto atOnce = static_cast<double>(size * step.bytes);
    auto all = static_cast<double>(work.batch * step.bytes);
    if (atOnce > share)
      cycles += all / bytesPerCycle;
    if (atOnce > sharedBytes)
      cycles += all / memoryBytesPerCycle;
  }
  bool remains =
      static_cast<double>(work.weightBytes + size * largest) <= l2Bytes;
  int64_t times = remains ? 1 : work.batch / size;
  return cycles +
         static_cast<double>(times * work.weightBytes) / weightBytesPerCycle;
}

double PartCost::getWhole() const {
  double cycles = getTraffic(work.batch);
  for (const BatchWork::Step &step : work.steps) {
    double time = getStep(step);
    cycles += threads == 1 || time < minSharedCycles
                  ? time
                  : time / static_cast<double>(threads) + forkCycles;
    cycles += stepCycles;
  }
  return cycles;
}

double PartCost::getPart(int64_t size) const {
  double all = getTraffic(size);
  for (const BatchWork::Step &step : work.steps)
    all += getStep(step);
  int64_t parts = work.batch / size;
  return all / static_cast<double>(parts) +
         stepCycles * static_cast<double>(work.steps.size());
}

double PartCost::getParts(int64_t size) const {
  int64_t parts = work.batch / size;
  return getPart(size) * static_cast<double>(llvm::divideCeil(parts, threads)) +
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
  int64_t best = work.batch, lanes = target.vectorBits / 32;
  for (int64_t parts = 2; parts <= std::min(work.batch, maxBatchParts);
       ++parts) {
    if (work.batch % parts != 0)
      continue;
    int64_t size = work.batch / parts;
    if (work.isOfChannels &&
        (size < lanes || (work.batch % lanes == 0 && size % lanes != 0)))
      continue;
    double cycles = cost.getParts(size);
    if (cycles < least) {
      least = cycles;
      best = size;
    }
  }
  return best;
}

SmallVector<BatchVersion>
kas::codegen::chooseBatchVersions(const BatchWork &work, const Target &target,
                                  int64_t threads) {
  // Between a large batch and one sample.
  constexpr int64_t middle = 8;
  SmallVector<BatchVersion> versions;
  for (int64_t batch : {work.batch, std::min(work.batch, middle), int64_t(1)}) {
    BatchWork part = work;
    part.batch = batch;
    int64_t size = choosePartSize(part, target, threads);
    bool isSerial = threads == 1 || size < batch;
    PartCost cost(part, target, threads);
    double cycles =
        isSerial && size < batch ? cost.getPart(size) : cost.getWhole();
    bool isKnown = llvm::any_of(versions, [&](const BatchVersion &known) {
      return known.samples == size && known.isSerial == isSerial;
    });
    if (!isKnown)
      versions.push_back({size, isSerial, static_cast<int64_t>(cycles)});
  }
  llvm::sort(versions, [](const BatchVersion &a, const BatchVersion &b) {
    return std::pair(b.samples, a.isSerial) < std::pair(a.samples, b.isSerial);
  });
  return versions;
}

SmallVector<BatchCall> kas::codegen::planBatch(ArrayRef<BatchVersion> versions,
                                               int64_t most, int64_t threads) {
  int64_t workers = getKnownThreads(threads);
  auto getCycles = [&](const BatchVersion &version, int64_t count) {
    double cycles = static_cast<double>(version.cycles);
    if (!version.isSerial || workers == 1)
      return static_cast<double>(count) * cycles;
    return static_cast<double>(llvm::divideCeil(count, workers)) * cycles +
           forkCycles;
  };
  SmallVector<double> least(most + 1, 0);
  SmallVector<BatchCall> plan;
  for (int64_t batch = 1; batch <= most; ++batch) {
    std::optional<BatchCall> best;
    for (auto [number, version] : llvm::enumerate(versions)) {
      int64_t all = batch / version.samples;
      // One, all, or as many as keep all threads busy.
      for (int64_t count : {all, all / workers * workers, int64_t(1)}) {
        if (count < 1 || count > all)
          continue;
        double cycles =
            getCycles(version, count) + least[batch - count * version.samples];
        if (best && cycles >= least[batch])
          continue;
        least[batch] = cycles;
        best = {static_cast<unsigned>(number), count};
      }
    }
    assert(best && "one version is for one sample");
    plan.push_back(*best);
  }
  return plan;
}
