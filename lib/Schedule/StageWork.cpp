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

#include "kas/Schedule/StageWork.h"
#include "StageTiles.h"
#include "kas/Schedule/Rearrangement.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::schedule;

/// What tiles are chosen for where weights are packed ahead.
static TileOptions getOptions() {
  TileOptions options;
  options.prepacked = true;
  return options;
}

std::optional<LayoutPlan> kas::schedule::planStage(const LoopNest &nest,
                                                   const TileTarget &target) {
  return planLayout(nest, target, getOptions());
}

//===----------------------------------------------------------------------===//
// Other layouts
//===----------------------------------------------------------------------===//

/// Whether a `StageNest` holds all loops, and one of a single row.
static bool isCountable(const LoopNest &nest) {
  return nest.loops.size() < StageNest::maxLoops;
}

/// Moves the sums from the output of `from` to that of `to`.
static void addTransposition(const LoopNest &from, const LoopNest &to,
                             const TileTarget &target, StageWork &work) {
  StageNest moved = StageNest::get(from);
  work[Work::Transposed] = static_cast<double>(moved.output.elements);
  moved.data = moved.output;
  moved.output = StageNest::get(to).output;
  moved.weight = {};
  moved.hasWeight = false;
  llvm::SmallVector<unsigned, 12> order;
  for (unsigned loop = 0; loop < moved.loops.size(); ++loop)
    if (!moved.loops[loop].isReduction)
      order.push_back(loop);
  addMisses(moved, order, target, work);
}

/// Of the cheapest of all layouts; nothing where tiles suit none.
static std::optional<StageWork> getLayoutWork(const LoopNest &nest,
                                              const TileTarget &target) {
  if (!isCountable(nest))
    return std::nullopt;
  std::optional<LayoutPlan> plan = planStage(nest, target);
  if (!plan)
    return std::nullopt;
  StageWork work = getTileWork(plan->nest, plan->tiles, target);
  if (plan->rearrangement && !plan->rearrangement->outputLoops.empty())
    addTransposition(plan->nest, nest, target, work);
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
  for (const Loop &loop : nest.loops)
    hasReduction |= loop.isReduction;
  std::optional<unsigned> vectorLoop;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (!nest.loops[loop].isReduction && nest.output.strides[loop] == 1)
      vectorLoop = loop;
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

/// Whether the address is a sum of loops.
static bool isLinear(const LoopNest::Tensor &tensor) {
  return llvm::all_of(tensor.indices,
                      [](const IndexExpr &index) { return index.isLinear(); });
}

/// The nest on copies of the tensors that have a dimension for each loop.
static LoopNest getMaterialized(const LoopNest &nest) {
  LoopNest result = nest;
  result.guards.clear();
  for (LoopNest::Tensor &tensor : result.inputs) {
    IndexExpr address = tensor.getAddress();
    tensor.indices.clear();
    tensor.shape.clear();
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (address.dependsOn(loop)) {
        tensor.indices.push_back(IndexExpr::getLoop(loop));
        tensor.shape.push_back(nest.loops[loop].extent);
      }
  }
  return result;
}

/// The way over linalg: rearranged and padded copies of the tensors first.
static StageWork planLinalg(const LoopNest &nest, const TileTarget &target) {
  StageWork work;
  bool isOpaque = !llvm::all_of(nest.inputs, isLinear);
  LoopNest linear = isOpaque ? getMaterialized(nest) : nest;
  LoopNest plain = linear;
  plain.guards.clear();
  std::optional<TileChoice> tiles;
  if (nest.inputs.size() > 1 && isCountable(nest))
    tiles = chooseTiles(plain, target, getOptions());
  if (tiles)
    work = getTileWork(plain, *tiles, target);
  else
    planLoops(StageNest::get(linear), target, work);
  auto elements = static_cast<double>(linear.inputs.front().getNumElements());
  if (isOpaque)
    work[Work::CopyPoints] += elements;
  if (!nest.guards.empty())
    work[Work::CopyVectors] += elements;
  return work;
}

StageWork kas::schedule::getStageWork(const LoopNest &nest,
                                      const TileTarget &target) {
  std::optional<StageWork> tiled = getLayoutWork(nest, target);
  StageWork work = tiled ? *tiled : planLinalg(nest, target);
  work[Work::Stage] = 1;
  return work;
}
