//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface of schedules, for GPUs.
//
// The nearest point by logarithms for adaptation, and features for the tuner's
// models (docs/guide/tuning.md, docs/internals/gpu.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;

unsigned GPUScheduleAttr::getStrategyNumber() const {
  return static_cast<unsigned>(getStrategy());
}

/// Arrays are flattened: schedules of one strategy over tensors of one rank
/// have equally many knobs.
llvm::SmallVector<ScheduleKnob> GPUScheduleAttr::getKnobs() const {
  llvm::SmallVector<ScheduleKnob> knobs = {{"threads", getThreads()},
                                           {"depth", getDepth()},
                                           {"stages", getStages()},
                                           {"padding", getPadding()}};
  auto append = [&](llvm::StringRef name, mlir::DenseI64ArrayAttr array) {
    if (array)
      for (int64_t entry : array.asArrayRef())
        knobs.emplace_back(name, entry);
  };
  append("tile", getTile());
  append("block", getBlock());
  return knobs;
}

/// Numbers are mostly powers of two: the nearest point is the one with the
/// least sum of the differences of their logarithms.
AdaptedPoint GPUScheduleAttr::adapt(const ScheduleSpace &space) const {
  llvm::SmallVector<ScheduleKnob> wanted = getKnobs();
  AdaptedPoint best;
  double bestDistance = 0;
  for (auto [index, point] : llvm::enumerate(space.points)) {
    if (point.strategy != getStrategyNumber() ||
        point.knobs.size() != wanted.size())
      continue;
    double distance = 0;
    // Plus one: depth, padding and stages may be 0.
    for (auto [a, b] : llvm::zip_equal(wanted, point.knobs))
      distance += std::abs(std::log2(static_cast<double>(a.second + 1)) -
                           std::log2(static_cast<double>(b.second + 1)));
    // The first of equal ones: points are in a fixed order.
    if (best.fit != ScheduleFit::Invalid && distance >= bestDistance)
      continue;
    best = {distance == 0 ? ScheduleFit::Exact : ScheduleFit::Masked, index};
    bestDistance = distance;
  }
  return best;
}

/// Ratios below 1 count, zeros do not.
static float getLog(double value) {
  return static_cast<float>(std::log2(std::max(1e-3, value)));
}

/// The strategy, the logarithms of the schedule's numbers, of its points and
/// bytes, and of the cost model's cycles, also relative to the least of the
/// space.
std::vector<float> GPUScheduleAttr::getFeatures(const ScheduleSpace &space,
                                                ScheduleCost cost) const {
  std::vector<float> features;
  for (GPUStrategy strategy : {GPUStrategy::Direct, GPUStrategy::Staged,
                               GPUStrategy::TensorCore, GPUStrategy::Warpgroup})
    features.push_back(getStrategy() == strategy);
  auto getPoints = [](mlir::DenseI64ArrayAttr array) {
    double points = 1;
    if (array)
      for (int64_t entry : array.asArrayRef())
        points *= static_cast<double>(entry);
    return points;
  };
  // Neighbours in memory are along the last coordinate.
  // Its size along that coordinate tells how well loads coalesce.
  mlir::DenseI64ArrayAttr tile = getTile();
  int64_t last = tile && !tile.empty() ? tile.asArrayRef().back() : 1;
  for (double number :
       {static_cast<double>(getThreads()), getPoints(tile),
        static_cast<double>(last), getPoints(getBlock()),
        static_cast<double>(getDepth()), static_cast<double>(getStages()),
        static_cast<double>(getSharedBytes()), cost.first,
        cost.first / space.leastCost})
    features.push_back(getLog(number));
  return features;
}
