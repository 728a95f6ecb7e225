//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tiles take, by kind: their parts of the cost model, and the cache lines
// and pages that the loops around them load again.
//
//===----------------------------------------------------------------------===//

#include "StageTiles.h"
#include "LoopMisses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::schedule;
using LoopSet = StageNest::LoopSet;
using llvm::ArrayRef;
using llvm::divideCeilSigned;

/// Of the sets of the first- and the second-level cache.
static constexpr int64_t ways = 8;

void kas::schedule::addMisses(const StageNest &nest, ArrayRef<unsigned> order,
                              const TileTarget &target, StageWork &work,
                              size_t registerLoops) {
  constexpr int64_t line = 16, page = 1024;
  // Of the third level, a usual share.
  constexpr int64_t l3Lines = 1 << 18, pages = 64;
  LoopMisses lines(nest, order, line, registerLoops);
  // The third level spreads what it holds over its sets.
  auto add = [&](int64_t capacity, Work streamed, Work scattered) {
    LoopMisses::Count count =
        lines.count(static_cast<double>(capacity),
                    capacity == l3Lines ? 1 : capacity / ways);
    work[streamed] += count.streamed;
    work[scattered] += count.scattered;
  };
  add(target.l1Elements / line, Work::StreamedL1, Work::ScatteredL1);
  add(target.l2Elements / line, Work::StreamedL2, Work::ScatteredL2);
  add(l3Lines, Work::StreamedL3, Work::ScatteredL3);
  LoopMisses::Count count =
      LoopMisses(nest, order, page, registerLoops).count(pages);
  work[Work::Pages] += count.streamed + count.scattered;
}

namespace {

/// The loops of a nest, some of them in blocks, outermost first.
class BlockedNest {
public:
  explicit BlockedNest(const StageNest &nest) : source(nest) {
    blocked.data.elements = nest.data.elements;
    blocked.output.elements = nest.output.elements;
    blocked.weight.elements = nest.weight.elements;
    blocked.hasWeight = nest.hasWeight;
  }

  /// `count` iterations of `loop`, each of `step` of it.
  void add(unsigned loop, int64_t count, int64_t step = 1) {
    unsigned number = blocked.loops.size();
    if (count == 1 || number == StageNest::maxLoops)
      return;
    auto copy = [&](const StageNest::Access &from, StageNest::Access &to) {
      to.strides[number] = from.strides[loop] * step;
      to.opaque |= LoopSet(from.opaque >> loop & 1) << number;
    };
    copy(source.data, blocked.data);
    copy(source.output, blocked.output);
    copy(source.weight, blocked.weight);
    blocked.loops.push_back({count, source.loops[loop].isReduction});
    order.push_back(number);
  }
  void add(ArrayRef<unsigned> loops) {
    for (unsigned loop : loops)
      add(loop, source.loops[loop].extent);
  }
  /// The iterations of `loop` in blocks of `block`.
  void addBlocks(unsigned loop, int64_t block) {
    add(loop, divideCeilSigned(source.loops[loop].extent, block), block);
  }

  /// What is added from now on is summed in registers.
  void beginRegisters() { outer = order.size(); }

  void addMissesTo(StageWork &work, const TileTarget &target) const {
    addMisses(blocked, order, target, work, outer ? order.size() - *outer : 0);
  }

  const StageNest &source;
  StageNest blocked;
  llvm::SmallVector<unsigned, 16> order;

private:
  std::optional<size_t> outer;
};

/// Counts the work of one plan.
class Counter {
public:
  Counter(const StageNest &nest, const TileNest &tiles,
          const TileTarget &target, StageWork &work)
      : nest(nest), tiles(tiles), target(target), work(work),
        packsData(!nest.data.dependsOn(tiles.columns.back())) {}

  void count(const PanelPlan &plan);
  void count(const DirectPlan &plan);
  void count(const RowVectorPlan &plan);

private:
  int64_t extent(unsigned loop) const { return tiles.loops[loop].extent; }
  int64_t extent(ArrayRef<unsigned> loops) const {
    return tiles.getExtent(loops);
  }
  void countPacking(const RowVectorPlan &plan);

  const StageNest &nest;
  const TileNest &tiles;
  const TileTarget &target;
  StageWork &work;
  /// The data takes the place of the weights.
  bool packsData;
};

} // namespace

static std::optional<Work> getCopyKind(PanelCopy copy) {
  switch (copy) {
  case PanelCopy::Vectors:
    return Work::PanelCopies;
  case PanelCopy::StridedVectors:
    return Work::PanelStridedCopies;
  case PanelCopy::Elements:
    return Work::PanelSingleCopies;
  case PanelCopy::None:
    return std::nullopt;
  }
  llvm_unreachable("all ways are above");
}

void Counter::count(const PanelPlan &plan) {
  ArrayRef<unsigned> columns = tiles.columns;
  int64_t allRows = extent(tiles.rows), innerRows = extent(tiles.rows.back());
  int64_t numTiles = extent(tiles.batches) * extent(columns) / plan.tileColumns;
  int64_t depth = extent(tiles.reductions);
  auto copied = static_cast<double>(numTiles) * depth * plan.tileColumns;
  work[Work::PanelProducts] = static_cast<double>(numTiles) * depth * allRows /
                              innerRows * plan.stepTime / 2 *
                              target.getOperationTime(target.lanes);
  std::optional<Work> copy = getCopyKind(plan.copy);
  if (copy)
    work[*copy] = copied * tiles.vectorInputs.size() *
                  std::max<size_t>(tiles.segments.size(), 1);
  work[Work::PanelStores] =
      static_cast<double>(numTiles) * plan.tileColumns * allRows *
      divideCeilSigned(depth * plan.tileColumns * 8, target.l2Elements * 3);

  // The copy of each panel, then its products.
  auto addTile = [&](BlockedNest &blocked) {
    for (unsigned place = plan.blockedColumn; place < columns.size(); ++place)
      blocked.add(columns[place], place == plan.blockedColumn
                                      ? plan.columnBlock
                                      : extent(columns[place]));
  };
  auto addTiles = [&](BlockedNest &blocked) {
    blocked.add(tiles.batches);
    blocked.add(columns.take_front(plan.blockedColumn));
    blocked.addBlocks(columns[plan.blockedColumn], plan.columnBlock);
  };
  if (copy) {
    BlockedNest copies(nest);
    addTiles(copies);
    copies.add(tiles.reductions);
    addTile(copies);
    copies.blocked.output = {};
    if (packsData)
      copies.blocked.data = {};
    else if (tiles.vectorInputs.size() == 1)
      copies.blocked.hasWeight = false;
    copies.addMissesTo(work, target);
  }
  StageNest products = nest;
  (packsData ? products.weight : products.data) = {};
  BlockedNest tiled(products);
  addTiles(tiled);
  tiled.add(ArrayRef(tiles.rows).drop_back());
  tiled.addBlocks(tiles.rows.back(), plan.registerRows);
  tiled.beginRegisters();
  tiled.add(tiles.reductions);
  tiled.add(tiles.rows.back(), plan.registerRows);
  addTile(tiled);
  tiled.addMissesTo(work, target);
}

void Counter::count(const RowVectorPlan &plan) {
  ArrayRef<unsigned> columns = tiles.columns;
  unsigned row = tiles.rows.front();
  int64_t allRows = extent(row), depth = extent(tiles.reductions);
  int64_t blockRows = plan.getBlockRows();
  work[Work::RowProducts] = static_cast<double>(plan.productTime);
  work[Work::RowStores] = static_cast<double>(plan.storeTime);
  if (!plan.paddedShape.empty())
    work[Work::CopyVectors] = static_cast<double>(nest.data.elements);
  if (packsData)
    countPacking(plan);
  // Weights lie in the order of the steps.
  StageNest packed = nest;
  StageNest::Access &weight = packsData ? packed.data : packed.weight;
  weight.strides.fill(0);
  weight.elements = extent(tiles.batches) * allRows * depth;
  int64_t step = 1;
  auto pack = [&](ArrayRef<unsigned> loops) {
    for (unsigned loop : llvm::reverse(loops)) {
      weight.strides[loop] = step;
      step *= extent(loop);
    }
  };
  pack(tiles.rows);
  pack(tiles.reductions);
  pack(tiles.batches);
  BlockedNest tiled(packed);
  tiled.add(tiles.batches);
  tiled.add(row, plan.getNumBlocks(allRows), blockRows * depth);
  bool isJoined = plan.tileOuterColumns > 1;
  tiled.add(columns.drop_back(isJoined ? 2 : 1));
  if (isJoined)
    tiled.addBlocks(columns[columns.size() - 2], plan.tileOuterColumns);
  tiled.addBlocks(columns.back(), plan.tileColumns);
  tiled.beginRegisters();
  tiled.add(tiles.reductions);
  if (isJoined)
    tiled.add(columns[columns.size() - 2], plan.tileOuterColumns);
  tiled.add(columns.back(), plan.tileColumns);
  tiled.add(row, std::min(blockRows, allRows));
  tiled.addMissesTo(work, target);
}

/// The data is packed at each call, by rows, then batches, then reductions.
void Counter::countPacking(const RowVectorPlan &plan) {
  StageNest packing;
  llvm::SmallVector<unsigned, 12> order;
  auto add = [&](unsigned loop, int64_t step) {
    order.push_back(packing.loops.size());
    packing.data.strides[order.back()] = nest.data.strides[loop];
    packing.output.strides[order.back()] = step;
    packing.loops.push_back(nest.loops[loop]);
  };
  int64_t depth = extent(tiles.reductions), allRows = extent(tiles.rows);
  add(tiles.rows.front(), 1);
  int64_t step = allRows * depth * extent(tiles.batches);
  for (unsigned loop : tiles.batches)
    add(loop, step /= extent(loop));
  step = plan.getBlockRows() * depth;
  for (unsigned loop : tiles.reductions)
    add(loop, step /= extent(loop));
  packing.data.elements = nest.data.elements;
  packing.output.elements = allRows * depth * extent(tiles.batches);
  work[Work::RowPacking] = static_cast<double>(packing.output.elements);
  addMisses(packing, order, target, work);
}

void Counter::count(const DirectPlan &plan) {
  bool isSimple = tiles.hasStrides({1}) && tiles.guards.empty() &&
                  tiles.segments.size() == 1;
  work[isSimple ? Work::Direct : Work::DirectBorders] =
      static_cast<double>(plan.time);
  BlockedNest tiled(nest);
  tiled.add(tiles.batches);
  for (unsigned loop : ArrayRef(tiles.columns).drop_back())
    if (loop != plan.columnLoop)
      tiled.add(loop, extent(loop));
  if (plan.rowLoop)
    tiled.add(ArrayRef(tiles.rows).drop_back());
  if (plan.columnLoop)
    tiled.addBlocks(*plan.columnLoop, plan.registerColumns);
  if (plan.rowLoop)
    tiled.addBlocks(*plan.rowLoop, plan.registerRows);
  int64_t block =
      std::min(plan.lanes * plan.registerVectors, extent(plan.vectorLoop));
  tiled.addBlocks(plan.vectorLoop, block);
  tiled.beginRegisters();
  tiled.add(tiles.reductions);
  if (plan.rowLoop)
    tiled.add(*plan.rowLoop, plan.registerRows);
  if (plan.columnLoop)
    tiled.add(*plan.columnLoop, plan.registerColumns);
  tiled.add(plan.vectorLoop, block);
  tiled.addMissesTo(work, target);
}

StageWork kas::schedule::getTileWork(const LoopNest &source,
                                     const TileChoice &choice,
                                     const TileTarget &target) {
  StageNest nest = StageNest::get(source);
  TileNest tiles = *TileNest::get(source, [](const llvm::Twine &) {});
  if (std::optional<CombinedInputs> combined = CombinedInputs::get(tiles))
    tiles = combined->getRemainder(tiles);
  // Panels for one row.
  if (tiles.rows.empty() && choice.getStrategy() == TileStrategy::Panels) {
    tiles = tiles.withOneRow();
    nest.loops.push_back({});
  }
  StageWork work;
  std::visit(
      [&](const auto &plan) { Counter(nest, tiles, target, work).count(plan); },
      choice.plan);
  return work;
}
