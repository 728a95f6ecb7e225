//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of work of a stage, in its cheapest layout, for the machine model.
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/StageWork.h"
#include "StageTiles.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::solver;
using LoopSet = StageNest::LoopSet;

//===----------------------------------------------------------------------===//
// Other layouts, as lib/Codegen/CPU/Strategy/Rearrangement.cpp tries them
//===----------------------------------------------------------------------===//

static std::optional<unsigned> getLastLoop(const StageNest &nest) {
  std::optional<unsigned> last;
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
    if (!nest.loops[loop].isReduction && nest.output.strides[loop] == 1)
      last = loop;
  return last;
}

/// Copies the weight where vectors along `vectorLoop` or sums of loops cannot
/// read it as it is. False if they can.
static bool copyWeight(StageNest &nest, unsigned vectorLoop) {
  StageNest::Access &weight = nest.weight;
  int64_t stride = weight.strides[vectorLoop];
  if (!nest.hasWeight || (!weight.opaque && (stride == 0 || stride == 1)))
    return false;
  llvm::SmallVector<unsigned, 12> order;
  for (bool isReduction : {false, true})
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (nest.loops[loop].isReduction == isReduction && loop != vectorLoop)
        order.push_back(loop);
  order.push_back(vectorLoop);
  int64_t step = 1;
  for (unsigned loop : llvm::reverse(order)) {
    if (!weight.dependsOn(loop))
      continue;
    weight.strides[loop] = step;
    step *= nest.loops[loop].extent;
  }
  weight.opaque = 0;
  weight.elements = step;
  return true;
}

/// Puts the loops that the data alone steps with last in the output, in the
/// order of the data. False if they are there already, or too short.
static bool turnOutput(StageNest &nest) {
  constexpr int64_t shortest = 4;
  llvm::SmallVector<unsigned, 12> order, columns;
  int64_t together = 1;
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop) {
    if (nest.loops[loop].isReduction)
      continue;
    bool isColumn = nest.data.dependsOn(loop) &&
                    !(nest.data.opaque >> loop & 1) &&
                    !(nest.hasWeight && nest.weight.dependsOn(loop));
    (isColumn ? columns : order).push_back(loop);
    if (isColumn)
      together *= nest.loops[loop].extent;
  }
  auto outside = [&](unsigned a, unsigned b) {
    return std::pair(-nest.output.strides[a], a) <
           std::pair(-nest.output.strides[b], b);
  };
  llvm::sort(order, outside);
  llvm::sort(columns, [&](unsigned a, unsigned b) {
    return std::pair(-std::abs(nest.data.strides[a]), a) <
           std::pair(-std::abs(nest.data.strides[b]), b);
  });
  order.append(columns);
  if (together < shortest || llvm::is_sorted(order, outside))
    return false;
  int64_t step = 1;
  for (unsigned loop : llvm::reverse(order)) {
    nest.output.strides[loop] = step;
    step *= nest.loops[loop].extent;
  }
  return true;
}

/// Moves the sums from the output of `from` to that of `to`.
static void addTransposition(const StageNest &from, const StageNest &to,
                             const TileTarget &target, StageWork &work) {
  work[Work::Transposed] = static_cast<double>(from.output.elements);
  StageNest moved;
  moved.loops = from.loops;
  moved.data = from.output;
  moved.output = to.output;
  llvm::SmallVector<unsigned, 12> order;
  for (unsigned loop = 0; loop < to.loops.size(); ++loop)
    if (!to.loops[loop].isReduction)
      order.push_back(loop);
  addMisses(moved, order, target, work);
}

/// Of the cheapest of all layouts; nothing where tiles suit none.
static std::optional<StageWork> getLayoutWork(const StageNest &nest,
                                              const TileTarget &target) {
  constexpr int64_t transpositionTime = 4;
  std::optional<int64_t> time = getTileTime(nest, target);
  int64_t ideal =
      nest.getPoints() / target.lanes * target.getOperationTime(target.lanes);
  std::optional<unsigned> last = getLastLoop(nest);
  if ((time && *time * 5 <= 6 * ideal) || !last || !nest.hasWeight)
    return time ? getTileWork(nest, target) : std::nullopt;
  const StageNest *best = time ? &nest : nullptr;
  auto consider = [&](const StageNest &tried, int64_t more) {
    std::optional<int64_t> found = getTileTime(tried, target);
    if (!found || (time && *found + more >= *time))
      return;
    time = *found + more;
    best = &tried;
  };
  StageNest copied = nest, turned = nest;
  if (copyWeight(copied, *last))
    consider(copied, 0);
  if (turnOutput(turned)) {
    copyWeight(turned, *getLastLoop(turned));
    consider(turned, turned.output.elements * transpositionTime);
  }
  if (!best)
    return std::nullopt;
  std::optional<StageWork> work = getTileWork(*best, target);
  if (best == &turned)
    addTransposition(turned, nest, target, *work);
  return work;
}

//===----------------------------------------------------------------------===//
// Plain loops
//===----------------------------------------------------------------------===//

static void planLoops(const StageNest &nest, const TileTarget &target,
                      StageWork &work) {
  auto extent = [&](unsigned loop) { return nest.loops[loop].extent; };
  unsigned numLoops = nest.loops.size();
  auto points = static_cast<double>(nest.getPoints());
  bool hasReduction = false;
  for (const StageNest::Loop &loop : nest.loops)
    hasReduction |= loop.isReduction;
  std::optional<unsigned> vectorLoop = getLastLoop(nest);
  if (vectorLoop && (extent(*vectorLoop) < 8 || nest.data.opaque))
    vectorLoop.reset();
  llvm::SmallVector<unsigned, 12> order;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (loop != vectorLoop || !hasReduction)
      order.push_back(loop);
  if (vectorLoop && hasReduction)
    order.push_back(*vectorLoop);
  auto isUnit = [&](const StageNest::Access &access) {
    return std::abs(access.strides[order.back()]) <= 1 &&
           !(access.opaque >> order.back() & 1);
  };
  bool isVector = !order.empty() && isUnit(nest.data) && isUnit(nest.output) &&
                  (!nest.hasWeight || isUnit(nest.weight)) &&
                  extent(order.back()) >= 4;
  if (!hasReduction && !nest.hasWeight)
    work[isVector ? Work::CopyVectors : Work::CopyPoints] += points;
  else if (!order.empty() && nest.loops[order.back()].isReduction)
    work[Work::LoopSums] += points;
  else
    work[isVector ? Work::LoopVectors : Work::LoopPoints] += points;
  addMisses(nest, order, target, work);
}

/// The nest on a copy of the data that has a dimension for each loop.
static StageNest getMaterialized(const StageNest &nest) {
  StageNest result = nest;
  result.borders.clear();
  result.data.opaque = result.weight.opaque = 0;
  for (StageNest::Access *access : {&result.data, &result.weight}) {
    llvm::SmallVector<unsigned, 12> order;
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (access->strides[loop])
        order.push_back(loop);
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::pair(access->strides[a], a) <
             std::pair(access->strides[b], b);
    });
    int64_t step = 1;
    for (unsigned loop : order) {
      access->strides[loop] = step;
      step *= nest.loops[loop].extent;
    }
    access->elements = step;
  }
  return result;
}

/// The way over linalg: rearranged and padded copies of the tensors first.
static StageWork planLinalg(const StageNest &nest, const TileTarget &target) {
  StageWork work;
  bool isOpaque = nest.data.opaque || nest.weight.opaque;
  StageNest linear = isOpaque ? getMaterialized(nest) : nest;
  StageNest plain = linear;
  plain.borders.clear();
  std::optional<StageWork> tiled =
      nest.hasWeight ? getTileWork(plain, target) : std::nullopt;
  if (tiled)
    work = *tiled;
  else
    planLoops(linear, target, work);
  if (isOpaque)
    work[Work::CopyPoints] += static_cast<double>(linear.data.elements);
  if (!nest.borders.empty())
    work[Work::CopyVectors] += static_cast<double>(linear.data.elements);
  return work;
}

StageWork kas::solver::getStageWork(const StageNest &nest,
                                    const TileTarget &target) {
  std::optional<StageWork> tiled = getLayoutWork(nest, target);
  StageWork work = tiled ? *tiled : planLinalg(nest, target);
  work[Work::Stage] = 1;
  return work;
}
