//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface of schedules, for CPUs.
//
// Adapts recorded schedules to other shapes (transfer between networks) and
// turns schedules into features for the tuner's models (docs/guide/tuning.md).
// The numbers are those of `#kas_cpu.schedule`: register tile (rows, columns,
// vectors), tile of a panel in columns, depth in reductions.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <set>

using namespace kas;

namespace {
/// The knobs by position.
/// In the order of `getKnobs`.
enum Knob { Rows, Columns, Vectors, Tile, Depth };
} // namespace

unsigned CPUScheduleAttr::getStrategyNumber() const {
  return static_cast<unsigned>(getStrategy());
}

llvm::SmallVector<ScheduleKnob> CPUScheduleAttr::getKnobs() const {
  return {{"rows", getRows()},
          {"columns", getColumns()},
          {"vectors", getVectors()},
          {"tile", getTile()},
          {"depth", getDepth()}};
}

//===----------------------------------------------------------------------===//
// Adaptation
//===----------------------------------------------------------------------===//

/// The iterations that a knob of `strategy` cuts, for panels of `tile` columns.
static int64_t getExtent(Knob knob, CPUStrategy strategy,
                         const ScheduleSpace &space, int64_t tile) {
  switch (knob) {
  case Rows:
    return space.innermostRows;
  // Direct tiles take whole innermost runs of columns as vectors.
  case Columns:
    return strategy == CPUStrategy::Direct
               ? space.columns / space.innermostColumns
               : space.columns;
  case Vectors: {
    int64_t elements = strategy == CPUStrategy::RowVectors ? space.rows
                       : strategy == CPUStrategy::Panels
                           ? tile
                           : space.innermostColumns;
    return llvm::divideCeil(elements, space.lanes);
  }
  case Tile:
    return space.columns;
  case Depth:
    return space.outermostReduction;
  }
  llvm_unreachable("all knobs are handled");
}

/// One of `allowed` for `recorded`, and how it fits; 0 if there is none.
/// 0 stands for "not said". More than half of the recorded number, so that a
/// divisor does not make tiles much smaller.
static std::pair<int64_t, ScheduleFit>
choose(int64_t recorded, const std::set<int64_t> &allowed, int64_t extent) {
  if (recorded == 0)
    return {0, ScheduleFit::Exact};
  bool isAllowed = allowed.count(recorded);
  if (isAllowed && extent % recorded == 0)
    return {recorded, ScheduleFit::Exact};
  for (int64_t number : llvm::reverse(allowed))
    if (number < recorded && number * 2 > recorded && extent % number == 0)
      return {number, ScheduleFit::Divisors};
  if (isAllowed)
    return {recorded, ScheduleFit::Masked};
  for (int64_t number : llvm::reverse(allowed))
    if (number < recorded)
      return {number, extent % number == 0 ? ScheduleFit::Divisors
                                           : ScheduleFit::Masked};
  return {0, ScheduleFit::Invalid};
}

/// Knob by knob (tile, depth, vectors, columns, rows): the number itself if it
/// divides its loop, else its largest divisor that does and is larger than half
/// of it, else the number itself with a last tile that is not full, where that
/// suits, else the largest number below that suits.
AdaptedPoint CPUScheduleAttr::adapt(const ScheduleSpace &space) const {
  std::vector<size_t> left;
  for (auto [index, point] : llvm::enumerate(space.points))
    if (point.strategy == getStrategyNumber())
      left.push_back(index);
  AdaptedPoint result{ScheduleFit::Exact, 0};
  llvm::SmallVector<ScheduleKnob> wanted = getKnobs();
  int64_t tile = 0;
  // The tile first: what vectors cut depends on it. Each choice narrows the
  // points that are left.
  for (Knob knob : {Tile, Depth, Vectors, Columns, Rows}) {
    auto getNumber = [&](size_t point) {
      return space.points[point].knobs[knob].second;
    };
    std::set<int64_t> allowed;
    for (size_t point : left)
      allowed.insert(getNumber(point));
    auto [value, fit] = choose(wanted[knob].second, allowed,
                               getExtent(knob, getStrategy(), space, tile));
    if (fit == ScheduleFit::Invalid)
      return {};
    if (wanted[knob].second == 0 && allowed.size() == 1)
      value = *allowed.begin();
    if (knob == Tile)
      tile = value;
    result.fit = std::max(result.fit, fit);
    llvm::erase_if(left, [&, value = value](size_t point) {
      return value != 0 && getNumber(point) != value;
    });
    if (left.empty())
      return {};
  }
  // What a schedule does not say is what the first one that suits has.
  result.point = left.front();
  return result;
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

/// How much of the last of `extent / block` blocks is used.
/// 1 when tiles fit; 10 rows in tiles of 4 fill 10/12.
static float getFill(int64_t extent, int64_t block) {
  if (block <= 0 || extent <= 0)
    return 1;
  int64_t covered = llvm::divideCeil(extent, block) * block;
  return static_cast<float>(extent) / static_cast<float>(covered);
}

/// Of 0 (not said) as of 1.
template <typename T>
static float getLog(T value) {
  return std::log2(static_cast<float>(std::max<T>(1, value)));
}

// Where features tell the iterations of loops.
static constexpr size_t firstLoopFeature = 10, numLoopFeatures = 5;

/// The strategy, the logarithms of the numbers, of the loops and of the costs,
/// the latter also relative to the least of the space, and how well tiles fill
/// the loops.
/// The order is part of the database's format: recorded features are compared
/// with new ones by position.
std::vector<float> CPUScheduleAttr::getFeatures(const ScheduleSpace &space,
                                                ScheduleCost cost) const {
  std::vector<float> features;
  for (CPUStrategy strategy :
       {CPUStrategy::Panels, CPUStrategy::Direct, CPUStrategy::RowVectors})
    features.push_back(getStrategy() == strategy);
  int64_t sums = 1;
  for (auto [name, number] : getKnobs())
    features.push_back(getLog(number));
  for (int64_t number : {getRows(), getColumns(), getVectors()})
    sums *= std::max<int64_t>(1, number);
  // Accumulators of the register tile, also over the number of registers.
  features.push_back(getLog(sums));
  features.push_back(static_cast<float>(sums) /
                     static_cast<float>(space.registers));
  assert(features.size() == firstLoopFeature);
  for (int64_t extent : {space.batches, space.rows, space.columns,
                         space.reductions, space.innermostColumns})
    features.push_back(getLog(extent));
  assert(features.size() == firstLoopFeature + numLoopFeatures);
  features.push_back(getFill(space.innermostRows, getRows()));
  int64_t width = getTile() ? getTile() : space.innermostColumns;
  bool isAlongRows = getStrategy() == CPUStrategy::RowVectors;
  features.push_back(
      getFill(isAlongRows ? space.rows : width, getVectors() * space.lanes));
  features.push_back(getFill(space.columns, getColumns()));
  // Per product, so that large kernels look like small ones.
  double products = static_cast<double>(space.batches) *
                    static_cast<double>(space.rows) *
                    static_cast<double>(space.columns) *
                    static_cast<double>(space.reductions);
  features.push_back(
      static_cast<float>(std::log2(std::max(1., cost.first) / products)));
  features.push_back(getLog(cost.second));
  // Ratios are to the cost model's choice.
  features.push_back(getLog(cost.first) - getLog(space.leastCost));
  // Elements of a packed panel, which should fit a cache.
  int64_t packed =
      getTile() * getDepth() *
      (space.reductions / std::max<int64_t>(1, space.outermostReduction));
  features.push_back(getLog(packed));
  return features;
}

llvm::ArrayRef<float>
CPUScheduleAttr::getLoopFeatures(llvm::ArrayRef<float> features) const {
  return features.slice(firstLoopFeature, numLoopFeatures);
}
