//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts which register tiles code generation chooses for a stage, and what
// they take: the strategies of Codegen/CPU/Strategy on plain loop nests.
//
//===----------------------------------------------------------------------===//

#include "StageTiles.h"
#include "LoopMisses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::solver;
using LoopSet = StageNest::LoopSet;
using llvm::ArrayRef;
using llvm::divideCeilSigned;

/// Of the sets of the first- and the second-level cache.
static constexpr int64_t ways = 8;

void kas::solver::addMisses(const StageNest &nest, ArrayRef<unsigned> order,
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

struct TiledWork {
  /// By the cost model of the strategies, in halves of a cycle.
  int64_t time = 0;
  StageWork work;
};

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

/// Describes one stage: see lib/Codegen/CPU/Strategy for what is done.
class Planner {
public:
  Planner(const StageNest &nest, const TileTarget &target)
      : nest(nest), target(target) {}
  std::optional<TiledWork> run(bool countsWork);

private:
  int64_t extent(unsigned loop) const { return nest.loops[loop].extent; }
  int64_t extent(ArrayRef<unsigned> loops) const {
    int64_t product = 1;
    for (unsigned loop : loops)
      product *= extent(loop);
    return product;
  }
  bool classify();
  void sortLoops(LoopSet vectorLoops);
  void countSegments();
  bool hasSteps(bool allowTwo) const;

  std::optional<TiledWork> planPanels(bool countsWork) const;
  std::optional<TiledWork> planRows(bool countsWork) const;
  bool isClipped(const RowTile &tile) const;
  void addPacking(StageWork &work, const RowTile &tile) const;
  std::optional<TiledWork> planDirect(bool countsWork) const;

  const StageNest &nest;
  const TileTarget &target;
  llvm::SmallVector<unsigned, 8> batches, rows, columns, reductions;
  /// The inputs that step with the innermost column, and the other one.
  llvm::SmallVector<const StageNest::Access *, 2> vectorInputs;
  const StageNest::Access *scalarInput = nullptr;
  bool hasGuards = false;
  int64_t segments = 1;
};

} // namespace

//===----------------------------------------------------------------------===//
// Roles of loops
//===----------------------------------------------------------------------===//

/// False where tiles do not suit.
bool Planner::classify() {
  std::optional<unsigned> vectorLoop;
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
    if (nest.output.strides[loop] == 1 && !nest.loops[loop].isReduction)
      vectorLoop = loop;
  if (!vectorLoop)
    return false;
  LoopSet vectorLoops = 0;
  for (const StageNest::Border &border : nest.borders)
    if (!border.isCyclic && border.loops) {
      vectorLoops |= border.loops;
      hasGuards = true;
    }
  if (nest.data.dependsOn(*vectorLoop)) {
    vectorInputs.push_back(&nest.data);
  } else {
    // What is clipped or goes around cannot be read element by element.
    if (!nest.borders.empty() || nest.data.opaque)
      return false;
    scalarInput = &nest.data;
  }
  if (nest.hasWeight) {
    if (nest.weight.dependsOn(*vectorLoop))
      vectorInputs.push_back(&nest.weight);
    else if (nest.weight.opaque)
      return false;
    else
      scalarInput = &nest.weight;
  }
  if (vectorInputs.empty())
    return false;
  for (const StageNest::Access *access : vectorInputs)
    vectorLoops |= access->getLoops(nest.loops.size());
  sortLoops(vectorLoops);
  if (columns.empty() || nest.output.strides[columns.back()] != 1)
    return false;
  countSegments();
  return true;
}

void Planner::sortLoops(LoopSet vectorLoops) {
  unsigned numLoops = nest.loops.size();
  LoopSet scalarLoops = scalarInput ? scalarInput->getLoops(numLoops) : 0;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    bool vector = vectorLoops >> loop & 1, scalar = scalarLoops >> loop & 1;
    if (nest.loops[loop].isReduction) {
      if (vector || scalarInput != &nest.weight)
        reductions.push_back(loop);
    } else if (vector == scalar) {
      batches.push_back(loop);
    } else {
      (vector ? columns : rows).push_back(loop);
    }
  }
  llvm::sort(columns, [&](unsigned a, unsigned b) {
    return std::pair(-nest.output.strides[a], a) <
           std::pair(-nest.output.strides[b], b);
  });
  llvm::sort(rows, [&](unsigned a, unsigned b) {
    return std::pair(extent(a), a) < std::pair(extent(b), b);
  });
}

/// Cyclic shifts cut the innermost columns.
void Planner::countSegments() {
  for (const StageNest::Border &border : nest.borders)
    if (border.isCyclic && (border.loops >> columns.back() & 1))
      segments *= 2;
  for (const StageNest::Access *access : vectorInputs)
    if (access->opaque >> columns.back() & 1)
      segments = 0;
  if (segments > 4)
    segments = 0;
}

bool Planner::hasSteps(bool allowTwo) const {
  return segments != 0 &&
         llvm::all_of(vectorInputs, [&](const StageNest::Access *access) {
           int64_t stride = access->strides[columns.back()];
           return stride == 1 || (allowTwo && stride == 2);
         });
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

static Work getCopyKind(PanelCopy copy) {
  if (copy == PanelCopy::Vectors)
    return Work::PanelCopies;
  if (copy == PanelCopy::StridedVectors)
    return Work::PanelStridedCopies;
  return Work::PanelSingleCopies;
}

std::optional<TiledWork> Planner::planPanels(bool countsWork) const {
  if (reductions.empty() || rows.empty())
    return std::nullopt;
  llvm::SmallVector<int64_t, 8> extents, strides;
  for (unsigned loop : columns) {
    extents.push_back(extent(loop));
    strides.push_back(nest.output.strides[loop]);
  }
  PanelColumns cut = choosePanelColumns(extents, strides, target);
  if (cut.tile * 2 < target.lanes)
    return std::nullopt;
  PanelCopy copy = hasSteps(false)  ? PanelCopy::Vectors
                   : hasSteps(true) ? PanelCopy::StridedVectors
                                    : PanelCopy::Elements;
  int64_t allRows = extent(rows), innerRows = extent(rows.back());
  int64_t tiles = extent(batches) * extent(columns) / cut.tile;
  int64_t depth = extent(reductions);
  TiledWork result;
  result.time = getPanelTime(tiles, cut.tile, allRows, depth, copy, target);
  if (!countsWork)
    return result;
  std::optional<PanelRegisters> registers = choosePanelRegisters(
      cut.tile, innerRows, target, target.accumulators, /*maxRows=*/8,
      /*maxVectors=*/4, [](int64_t, int64_t) { return true; });
  StageWork &work = result.work;
  double copied = static_cast<double>(tiles) * depth * cut.tile;
  work[Work::PanelProducts] = static_cast<double>(tiles) * depth * allRows /
                              innerRows * registers->time / 2 *
                              target.getOperationTime(target.lanes);
  work[getCopyKind(copy)] =
      copied * vectorInputs.size() * std::max<int64_t>(segments, 1);
  work[Work::PanelStores] =
      static_cast<double>(tiles) * cut.tile * allRows *
      divideCeilSigned(depth * cut.tile * 8, target.l2Elements * 3);

  // The copy of each panel, then its products.
  auto addTile = [&](BlockedNest &blocked) {
    for (unsigned place = cut.blocked; place < columns.size(); ++place)
      blocked.add(columns[place],
                  place == cut.blocked ? cut.block : extents[place]);
  };
  auto addTiles = [&](BlockedNest &blocked) {
    blocked.add(batches);
    blocked.add(ArrayRef(columns).take_front(cut.blocked));
    blocked.addBlocks(columns[cut.blocked], cut.block);
  };
  BlockedNest copies(nest);
  addTiles(copies);
  copies.add(reductions);
  addTile(copies);
  copies.blocked.output = {};
  if (scalarInput == &nest.data)
    copies.blocked.data = {};
  else if (vectorInputs.size() == 1)
    copies.blocked.hasWeight = false;
  copies.addMissesTo(work, target);
  StageNest products = nest;
  StageNest::Access &panel =
      scalarInput == &nest.data ? products.weight : products.data;
  panel = {};
  BlockedNest tiled(products);
  addTiles(tiled);
  for (unsigned loop : ArrayRef(rows).drop_back())
    tiled.add(loop, extent(loop));
  tiled.addBlocks(rows.back(), registers->rows);
  tiled.beginRegisters();
  tiled.add(reductions);
  tiled.add(rows.back(), registers->rows);
  addTile(tiled);
  tiled.addMissesTo(work, target);
  return result;
}

//===----------------------------------------------------------------------===//
// Vectors along the rows
//===----------------------------------------------------------------------===//

/// Whether steps that borders forbid can be left out: without a copy that has
/// zeros around it, and where shifts go around.
bool Planner::isClipped(const RowTile &tile) const {
  constexpr int64_t maxProducts = 256;
  LoopSet tileLoops = LoopSet(1) << columns.back();
  if (tile.outerColumns > 1)
    tileLoops |= LoopSet(1) << columns[columns.size() - 2];
  LoopSet reductionLoops = 0, unrolled = 0, looped = 0;
  for (unsigned loop : reductions)
    reductionLoops |= LoopSet(1) << loop;
  for (const StageNest::Border &border : nest.borders) {
    LoopSet inTile = border.loops & tileLoops;
    LoopSet steps = border.loops & reductionLoops;
    if (!inTile) {
      if (!border.isCyclic && llvm::popcount(steps) > 1)
        return false;
      looped |= steps;
      continue;
    }
    if (llvm::popcount(inTile) > 1 || (border.loops & ~inTile & ~steps))
      return false;
    unrolled |= steps;
  }
  return (looped & unrolled) == 0 && nest.getExtent(unrolled) * tile.columns *
                                             tile.outerColumns * tile.vectors <=
                                         maxProducts;
}

std::optional<TiledWork> Planner::planRows(bool countsWork) const {
  if (vectorInputs.size() != 1 || !scalarInput || rows.size() != 1 ||
      reductions.empty() || vectorInputs.front()->opaque)
    return std::nullopt;
  int64_t allRows = extent(rows), depth = extent(reductions);
  int64_t width = extent(columns.back()), height = 1;
  if (columns.size() > 1 &&
      nest.output.strides[columns[columns.size() - 2]] == width)
    height = extent(columns[columns.size() - 2]);
  RowTile tile =
      chooseRowTile({extent(batches) * extent(columns) / (width * height),
                     height, width, allRows, depth, /*mayOverlap=*/true},
                    target, [](int64_t, int64_t) { return true; });
  if (tile.getTime() == 0)
    return std::nullopt;
  TiledWork result;
  StageWork &work = result.work;
  result.time = tile.getTime();
  work[Work::RowProducts] = static_cast<double>(tile.products);
  work[Work::RowStores] = static_cast<double>(tile.stores);
  if (!nest.borders.empty() && !isClipped(tile)) {
    if (llvm::any_of(nest.borders, [](const StageNest::Border &border) {
          return border.isCyclic;
        }))
      return std::nullopt;
    work[Work::CopyVectors] = static_cast<double>(nest.data.elements);
  }
  int64_t blockRows = tile.lanes * tile.vectors;
  bool packsData = scalarInput == &nest.data;
  if (packsData)
    result.time += getRowPackingTime(extent(batches) *
                                     llvm::alignTo(allRows, blockRows) * depth);
  if (!countsWork)
    return result;
  if (packsData)
    addPacking(work, tile);
  // Weights lie in the order of the steps.
  StageNest packed = nest;
  StageNest::Access &weight = packsData ? packed.data : packed.weight;
  weight.strides.fill(0);
  weight.elements = extent(batches) * allRows * depth;
  int64_t step = 1;
  auto pack = [&](ArrayRef<unsigned> loops) {
    for (unsigned loop : llvm::reverse(loops)) {
      weight.strides[loop] = step;
      step *= extent(loop);
    }
  };
  pack(rows);
  pack(reductions);
  pack(batches);
  BlockedNest tiled(packed);
  tiled.add(batches);
  tiled.add(rows.front(), divideCeilSigned(allRows, blockRows),
            blockRows * depth);
  bool isJoined = tile.outerColumns > 1;
  tiled.add(ArrayRef(columns).drop_back(isJoined ? 2 : 1));
  if (isJoined)
    tiled.addBlocks(columns[columns.size() - 2], tile.outerColumns);
  tiled.addBlocks(columns.back(), tile.columns);
  tiled.beginRegisters();
  tiled.add(reductions);
  if (isJoined)
    tiled.add(columns[columns.size() - 2], tile.outerColumns);
  tiled.add(columns.back(), tile.columns);
  tiled.add(rows.front(), std::min(blockRows, allRows));
  tiled.addMissesTo(work, target);
  return result;
}

/// The data is packed at each call, by rows, then batches, then reductions.
void Planner::addPacking(StageWork &work, const RowTile &tile) const {
  StageNest packing;
  llvm::SmallVector<unsigned, 12> order;
  auto add = [&](unsigned loop, int64_t step) {
    order.push_back(packing.loops.size());
    packing.data.strides[order.back()] = scalarInput->strides[loop];
    packing.output.strides[order.back()] = step;
    packing.loops.push_back(nest.loops[loop]);
  };
  int64_t depth = extent(reductions), allRows = extent(rows);
  add(rows.front(), 1);
  int64_t step = allRows * depth * extent(batches);
  for (unsigned loop : batches)
    add(loop, step /= extent(loop));
  step = tile.lanes * tile.vectors * depth;
  for (unsigned loop : reductions)
    add(loop, step /= extent(loop));
  packing.data.elements = scalarInput->elements;
  packing.output.elements = allRows * depth * extent(batches);
  work[Work::RowPacking] = static_cast<double>(packing.output.elements);
  addMisses(packing, order, target, work);
}

//===----------------------------------------------------------------------===//
// Direct tiles
//===----------------------------------------------------------------------===//

std::optional<TiledWork> Planner::planDirect(bool countsWork) const {
  unsigned vectorLoop = columns.back();
  bool hasStride = !hasSteps(false);
  if (hasStride && (!hasSteps(true) || segments > 1))
    return std::nullopt;
  int64_t width = extent(vectorLoop);
  if (width * 2 < std::min<int64_t>(8, target.lanes))
    return std::nullopt;
  constexpr int64_t latency = 8, loopTime = 4, tileTime = 12;
  int64_t lanes = target.getLanes(width);
  int64_t depth = extent(reductions), numRows = extent(rows);
  int64_t innerRows = rows.empty() ? 1 : extent(rows.back());
  int64_t vectorsWide = divideCeilSigned(width, lanes);
  // A column of the image that shares what it reads with a reduction.
  std::optional<unsigned> columnLoop, shared;
  for (unsigned loop : ArrayRef(columns).drop_back()) {
    int64_t stride = vectorInputs.front()->strides[loop];
    if (vectorInputs.front()->opaque >> loop & 1)
      continue;
    if (!columnLoop)
      columnLoop = loop;
    for (unsigned reduction : reductions)
      if (stride && vectorInputs.front()->strides[reduction] == stride &&
          extent(reduction) <= 8) {
        columnLoop = loop;
        shared = reduction;
      }
  }
  int64_t best = 0, bestColumns = 1, bestRows = 1, bestVectors = 1;
  int64_t maxColumns =
      columnLoop ? std::min<int64_t>(28, extent(*columnLoop)) : 1;
  int64_t unrolled = shared ? extent(*shared) : 1;
  for (int64_t c : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 20, 28}) {
    if (c > maxColumns)
      break;
    for (int64_t r : {1, 2, 3, 4, 6, 8, 12}) {
      if (r > std::min<int64_t>(12, innerRows))
        break;
      for (int64_t v = 1; v <= std::min<int64_t>(4, vectorsWide); ++v) {
        for (int64_t steps : {int64_t(1), unrolled}) {
          int64_t sums = r * c * v;
          int64_t loads = steps > 1 ? c + steps - 1 : c;
          int64_t inside = loads * v + 1, outside = steps * (r + v);
          if (sums + std::min(inside, outside) > target.registers ||
              (sums > 1 && sums * steps > 256))
            continue;
          int64_t operation = target.getOperationTime(lanes);
          int64_t reads = loads * v * vectorInputs.size() * segments;
          int64_t operations = sums * steps + (hasStride ? reads : 0);
          int64_t products = operations * operation * 19 / 16;
          int64_t load = 2 * operation + (hasGuards ? 1 : 0);
          int64_t allReads = reads * (hasStride ? 2 : 1) * load +
                             r * steps * (scalarInput ? 1 : 0);
          int64_t step =
              std::max({products, allReads, latency * steps}) + loopTime;
          int64_t tile =
              step * (depth / steps) + sums * 2 * operation + tileTime;
          double tiles = static_cast<double>(extent(batches)) *
                         extent(columns) / width / c *
                         divideCeilSigned(vectorsWide, v) * numRows /
                         innerRows * divideCeilSigned(innerRows, r);
          auto time = static_cast<int64_t>(tile * tiles);
          if (best != 0 && time >= best)
            continue;
          best = time;
          bestColumns = c;
          bestRows = r;
          bestVectors = v;
        }
      }
    }
  }
  if (best == 0)
    return std::nullopt;
  TiledWork result;
  result.time = best;
  if (!countsWork)
    return result;
  result.work[hasStride || hasGuards || segments > 1 ? Work::DirectBorders
                                                     : Work::Direct] =
      static_cast<double>(best);
  BlockedNest tiled(nest);
  tiled.add(batches);
  for (unsigned loop : ArrayRef(columns).drop_back())
    if (loop != columnLoop)
      tiled.add(loop, extent(loop));
  if (!rows.empty())
    tiled.add(ArrayRef(rows).drop_back());
  if (columnLoop)
    tiled.addBlocks(*columnLoop, bestColumns);
  if (!rows.empty())
    tiled.addBlocks(rows.back(), bestRows);
  int64_t block = std::min(lanes * bestVectors, width);
  tiled.addBlocks(vectorLoop, block);
  tiled.beginRegisters();
  tiled.add(reductions);
  if (!rows.empty())
    tiled.add(rows.back(), bestRows);
  if (columnLoop)
    tiled.add(*columnLoop, bestColumns);
  tiled.add(vectorLoop, block);
  tiled.addMissesTo(result.work, target);
  return result;
}

std::optional<TiledWork> Planner::run(bool countsWork) {
  if (!classify())
    return std::nullopt;
  using Plan = decltype(&Planner::planPanels);
  std::optional<TiledWork> best;
  Plan bestPlan = nullptr;
  for (Plan plan :
       {&Planner::planPanels, &Planner::planRows, &Planner::planDirect}) {
    // Direct tiles take no less than their products.
    if (plan == &Planner::planDirect && best &&
        best->time <= nest.getPoints() / target.lanes *
                          target.getOperationTime(target.lanes) * 19 / 16)
      continue;
    std::optional<TiledWork> tried = (this->*plan)(/*countsWork=*/false);
    if (!tried || (best && tried->time >= best->time))
      continue;
    best = tried;
    bestPlan = plan;
  }
  return best && countsWork ? (this->*bestPlan)(/*countsWork=*/true) : best;
}

std::optional<int64_t> kas::solver::getTileTime(const StageNest &nest,
                                                const TileTarget &target) {
  std::optional<TiledWork> planned =
      Planner(nest, target).run(/*countsWork=*/false);
  return planned ? std::optional(planned->time) : std::nullopt;
}

std::optional<StageWork> kas::solver::getTileWork(const StageNest &nest,
                                                  const TileTarget &target) {
  std::optional<TiledWork> planned =
      Planner(nest, target).run(/*countsWork=*/true);
  return planned ? std::optional(planned->work) : std::nullopt;
}
