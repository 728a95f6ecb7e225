//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formulas of tiles that code generation and prediction share: lanes, panel
// columns, conflicts in caches.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/TilePlan.h"
#include "kas/Schedule/LoopNest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace kas;
using namespace kas::schedule;
using llvm::ArrayRef;

TileTarget::TileTarget(const Target &target)
    : lanes(target.vectorBits / 32),
      arithmeticLanes(target.arithmeticBits / 32),
      registers(target.vectorRegisters),
      accumulators(target.vectorRegisters * 3 / 4),
      l1Elements(target.l1Bytes / sizeof(float)),
      l2Elements(target.l2Bytes / sizeof(float)),
      panelElements(l2Elements * 3 / 8), hasByteDots(target.byteDotBits > 0),
      hasMaskedLoads(target.vectorBits > 128),
      hasMaskRegisters(target.vectorBits > 256) {}

TileTarget TileTarget::forProductsOf(const TileNest &nest) const {
  TileTarget result = *this;
  result.productRegisters = nest.isOfInt16 ? 1 : 0;
  return result;
}

int64_t TileTarget::getLanes(int64_t elements) const {
  int64_t size = lanes;
  while (size > 4 && size / 2 >= elements)
    size /= 2;
  return size;
}

bool kas::schedule::hasConflicts(int64_t steps, int64_t stride,
                                 const TileTarget &target) {
  constexpr int64_t cacheLineElements = 16, ways = 16;
  if (stride == 0 || stride % cacheLineElements != 0)
    return false;
  int64_t sets =
      std::max<int64_t>(1, target.l2Elements / cacheLineElements / ways);
  int64_t used = sets / std::gcd(sets, stride / cacheLineElements);
  return steps * 2 > used * ways;
}

int64_t kas::schedule::getLargestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = std::min(value, limit); divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

PanelColumns kas::schedule::cutPanelColumns(ArrayRef<int64_t> extents,
                                            ArrayRef<int64_t> strides,
                                            int64_t maxColumns) {
  PanelColumns cut;
  cut.blocked = extents.size() - 1;
  for (unsigned position = extents.size(); position-- > 0;) {
    // Only what is contiguous in the output can be stored as vectors.
    if (strides[position] != cut.tile)
      break;
    int64_t extent = extents[position];
    cut.blocked = position;
    cut.block = getLargestDivisor(extent, maxColumns / cut.tile);
    cut.tile *= cut.block;
    if (cut.block != extent)
      break;
  }
  return cut;
}

/// Lanes that the vectors of a tile have for each of its columns, in percent;
/// those of a narrow one count half where vectors are wide.
static int64_t getLaneShare(int64_t columns, const TileTarget &target) {
  int64_t whole = columns / target.lanes * target.lanes;
  int64_t tail = columns == whole ? 0 : target.lanes;
  if (tail && target.lanes > 8 && target.getLanes(columns - whole) <= 8)
    tail = target.lanes / 2;
  return (whole + tail) * 100 / columns;
}

PanelColumns kas::schedule::choosePanelColumns(ArrayRef<int64_t> extents,
                                               ArrayRef<int64_t> strides,
                                               const TileTarget &target) {
  constexpr int64_t maxColumns = 128;
  PanelColumns cut = cutPanelColumns(extents, strides, maxColumns);
  // Larger ones, if that wastes fewer lanes.
  PanelColumns larger = cutPanelColumns(extents, strides, 2 * maxColumns);
  return getLaneShare(larger.tile, target) + 2 < getLaneShare(cut.tile, target)
             ? larger
             : cut;
}

/// One step of all sums: their products, or the loads of all columns and rows,
/// or the latency of a sum. `narrow` vectors take half the time of the others.
static int64_t getStepTime(int64_t rows, int64_t vectors, int64_t narrow) {
  constexpr int64_t latency = 16;
  if (!rows || vectors + narrow == 0)
    return 0;
  return std::max({rows * (2 * vectors + narrow), latency,
                   2 * (rows + vectors + narrow)}) +
         2;
}

std::optional<PanelRegisters> kas::schedule::choosePanelRegisters(
    int64_t columns, int64_t rows, const TileTarget &target, int64_t limit,
    int64_t maxRows, int64_t maxVectors,
    llvm::function_ref<bool(int64_t, int64_t)> isAllowed) {
  int64_t whole = columns / target.lanes;
  int64_t tail = columns % target.lanes;
  int64_t isNarrow = tail && target.getLanes(tail) <= 8 && target.lanes > 8;
  int64_t isWide = tail && !isNarrow;
  // Beside the sums, columns and a row, which products on vectors of 512 bits
  // take from memory.
  auto fits = [&](int64_t r, int64_t v) {
    int64_t row = target.lanes > 8 ? 0 : 1;
    return r * v <= limit &&
           r * v + v + row + target.productRegisters <= target.registers;
  };
  std::optional<PanelRegisters> best;
  for (int64_t v = 1; v <= maxVectors; ++v)
    for (int64_t r = 1; r <= std::min(maxRows, rows); ++r) {
      if (!fits(r, v) || (v > 1 && v > whole + isWide) || !isAllowed(r, v))
        continue;
      int64_t looped = whole / v * v;
      // The tail alone would wait for each of its sums.
      if (tail && looped == whole && looped && fits(r, v + 1))
        looped -= v;
      auto getTime = [&](int64_t r) {
        return looped / v * getStepTime(r, v, 0) +
               getStepTime(r, whole - looped + isWide, isNarrow);
      };
      int64_t time = rows / r * getTime(r) + getTime(rows % r);
      if (!best || time < best->time)
        best = {r, v, looped, time};
    }
  return best;
}

int64_t kas::schedule::getPanelTime(int64_t tiles, int64_t columns,
                                    int64_t rows, int64_t depth,
                                    int64_t stepTime, PanelCopy copy,
                                    const TileTarget &target) {
  int64_t copyTime = 2 * target.lanes;
  if (copy == PanelCopy::Vectors)
    copyTime = 6;
  if (copy == PanelCopy::StridedVectors)
    copyTime = 24;
  if (copy == PanelCopy::None)
    copyTime = 0;
  // Wide arithmetic speeds up products, and not what reads and writes.
  int64_t operationTime = target.getOperationTime(target.lanes);
  int64_t products = rows * operationTime * 17 / 16, stores = 0;
  if (target.hasWideArithmetic()) {
    constexpr int64_t storeTime = 16;
    products = rows * 19 / 16;
    copyTime *= 2;
    stores = rows * storeTime;
  }
  int64_t lanes = columns * getLaneShare(columns, target) / 100;
  // Small register tiles wait for loads or for their sums. A step's time counts
  // two for a product of whole vectors.
  int64_t waits = std::max<int64_t>(0, stepTime * operationTime / 2 -
                                           lanes * products / target.lanes);
  return tiles *
         (lanes * (depth * (products + copyTime) + stores) / target.lanes +
          depth * waits);
}

//===----------------------------------------------------------------------===//
// Vectors along the rows
//===----------------------------------------------------------------------===//

namespace {

/// Of one register tile and one size of vectors.
struct RowTimeModel {
  const RowTileShape &shape;
  const TileTarget &target;
  int64_t lanes, parts = 1, operation = target.getOperationTime(lanes);

  int64_t getProducts(int64_t columns, int64_t outerColumns,
                      int64_t vectors) const {
    int64_t size = columns * outerColumns;
    int64_t time = shape.depth * getStep(columns, outerColumns, vectors);
    // Weights that do not stay in the second-level cache come from beyond.
    if (shape.depth * lanes * vectors * 3 > target.l2Elements * 2 * parts)
      time += (time + getStores(size, vectors)) / 8;
    // A part loads and stores each sum, and begins a loop.
    constexpr int64_t sumTime = 3, partTime = 32;
    if (parts > 1)
      time += parts * (size * vectors * sumTime + partTime);
    return time;
  }
  int64_t getStep(int64_t columns, int64_t outerColumns,
                  int64_t vectors) const {
    int64_t sums = columns * outerColumns * vectors;
    int64_t loads = operation * (columns * outerColumns + vectors);
    if (target.hasMaskRegisters) {
      // Both the next data and the next weights are fetched ahead.
      constexpr int64_t prefetches = 2;
      return std::max(operation * sums, loads + prefetches) + 2;
    }
    // As measured on a Zen 5, whose other instructions take no time beside the
    // products: a sum of few waits for that of the step before, four cycles,
    // and of fewer than twelve still now and then.
    constexpr int64_t latency = 8, enough = 12;
    return std::max({operation * sums, loads + 1, latency}) + (sums < enough) +
           getLines(columns, outerColumns, vectors);
  }
  /// What a step waits for the second-level cache, a cycle for some 48 bytes of
  /// weights and lines of the data, where a tile reads more of them than the
  /// first level holds. Tiles of vectors of 512 bits have products enough.
  int64_t getLines(int64_t columns, int64_t outerColumns,
                   int64_t vectors) const {
    constexpr int64_t elementsPerHalf = 6;
    int64_t elements = getStepElements(columns, outerColumns, vectors);
    if (elements * shape.depth <= target.l1Elements * parts)
      return 0;
    return llvm::divideCeil(elements, elementsPerHalf);
  }
  int64_t getStepElements(int64_t columns, int64_t outerColumns,
                          int64_t vectors) const {
    constexpr int64_t line = 16;
    int64_t elements = lanes * vectors;
    if (shape.columnStride)
      elements += outerColumns * ((columns - 1) * shape.columnStride + line);
    return elements;
  }
  /// Parts of the steps whose weights and data the first-level cache holds; 1
  /// where these would be as many as there are steps.
  int64_t getNumParts(int64_t columns, int64_t outerColumns,
                      int64_t vectors) const {
    int64_t elements =
        shape.depth * getStepElements(columns, outerColumns, vectors);
    int64_t count = llvm::divideCeil(elements, target.l1Elements);
    return target.hasMaskRegisters || count > shape.outerSteps ? 1 : count;
  }
  /// A transposition takes an instruction per vector and halving, a store of
  /// part of a vector two.
  int64_t getStores(int64_t columns, int64_t vectors) const {
    int64_t chunks = llvm::divideCeil(columns, lanes);
    return chunks * lanes * vectors * (llvm::Log2_64(lanes) + 4) * operation;
  }
};

/// What it takes to read `elements` elements that no cache holds, not the one
/// that cores share either: a line of 16 takes some 16 cycles.
int64_t getMemoryTime(int64_t elements, const TileTarget &target) {
  constexpr int64_t elementTime = 2, sharedCaches = 8;
  return elements > sharedCaches * target.l2Elements ? elements * elementTime
                                                     : 0;
}

} // namespace

llvm::SmallVector<int64_t, 3>
kas::schedule::getRowLaneCounts(int64_t rows, const TileTarget &target) {
  constexpr int64_t minLanes = 4;
  if (rows % target.lanes == 0)
    return {target.lanes};
  llvm::SmallVector<int64_t, 3> counts;
  for (int64_t lanes = target.lanes;
       lanes >= minLanes && lanes * 4 >= target.lanes; lanes /= 2)
    if (rows * 2 > lanes)
      counts.push_back(lanes);
  return counts;
}

RowTile kas::schedule::chooseRowTile(
    const RowTileShape &shape, const TileTarget &target,
    llvm::function_ref<bool(int64_t, int64_t)> isAllowed) {
  constexpr int64_t maxVectors = 5;
  RowTile best;
  auto consider = [&](RowTile tile) {
    int64_t size = tile.columns * tile.outerColumns;
    if (size * tile.vectors + tile.vectors + 1 + target.productRegisters >
            target.registers ||
        !isAllowed(size, tile.vectors))
      return;
    auto add = [&](int64_t tiles, int64_t columns, int64_t outerColumns) {
      RowTimeModel model{shape, target, tile.lanes, tile.parts};
      tile.products +=
          tiles * model.getProducts(columns, outerColumns, tile.vectors);
      tile.stores +=
          tiles * model.getStores(columns * outerColumns, tile.vectors);
    };
    BalancedTiles balanced(shape.width, tile.columns);
    int64_t lines = shape.height / tile.outerColumns;
    int64_t narrow = balanced.numAll - balanced.numWide;
    if (tile.isBalanced && narrow)
      add(lines * narrow, balanced.narrow, 1);
    add(lines * (tile.isBalanced ? balanced.numWide : balanced.numAll),
        tile.columns, tile.outerColumns);
    if (int64_t rest = shape.height % tile.outerColumns)
      add(1, tile.columns, rest);
    int64_t rowBlocks =
        llvm::divideCeilSigned(shape.rows, tile.lanes * tile.vectors);
    int64_t blocks = shape.outer * rowBlocks;
    tile.products *= blocks;
    tile.products += rowBlocks * getMemoryTime(shape.dataElements, target);
    // Code for two sizes is to be worth it.
    if (tile.isBalanced)
      tile.products += tile.products / 64;
    tile.stores *= blocks;
    if (best.getTime() == 0 || tile.getTime() < best.getTime())
      best = tile;
  };
  // With sums that wait in memory only where each is computed once.
  auto considerParts = [&](RowTile tile) {
    consider(tile);
    tile.parts = RowTimeModel{shape, target, tile.lanes}.getNumParts(
        tile.columns, tile.outerColumns, tile.vectors);
    if (tile.parts > 1)
      consider(tile);
  };
  auto considerColumns = [&](RowTile tile) {
    if (shape.width % tile.columns == 0)
      return considerParts(tile);
    if (shape.mayOverlap)
      consider(tile);
    tile.isBalanced = true;
    if (!target.hasMaskRegisters &&
        BalancedTiles(shape.width, tile.columns).getWidest() == tile.columns)
      considerParts(tile);
  };
  for (int64_t lanes : getRowLaneCounts(shape.rows, target))
    for (int64_t vectors = 1; vectors <= maxVectors; ++vectors) {
      // No block has vectors of nothing but padding.
      if (vectors > llvm::divideCeilSigned(shape.rows, lanes))
        continue;
      for (int64_t size = 1; size <= std::min(shape.width, target.registers);
           ++size)
        considerColumns({size, 1, vectors, lanes});
      for (int64_t size = 2; size <= std::min(shape.height, target.registers);
           ++size)
        considerParts({shape.width, size, vectors, lanes});
    }
  return best;
}

int64_t kas::schedule::getRowPackingTime(int64_t elements) {
  constexpr int64_t elementTime = 16;
  return elements * elementTime;
}
