//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "kas/Codegen/GPU/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

int64_t kas::codegen::getDirectThreads(GPUDeviceAttr device, int64_t tiles) {
  int64_t threads = std::min<int64_t>(256, device.getMaxThreads());
  while (threads > device.getSubgroup() &&
         tiles < threads * device.getProcessors())
    threads /= 2;
  return threads;
}

void CostModel::considerDirect() {
  unsigned numOutputs = coordinates.numOutputs;
  considerDirect(SmallVector<int64_t>(numOutputs, 1));
  // One or two coordinates along which data or weights are used again.
  for (unsigned first = 0; first < numOutputs; ++first)
    for (unsigned second = first; second < numOutputs; ++second)
      for (int64_t a : {2, 4, 8})
        for (int64_t b : {1, 2, 4, 8}) {
          if ((first == second) != (b == 1) ||
              a * b > (isHostDevice(device) ? 64 : 32))
            continue;
          SmallVector<int64_t> tile(numOutputs, 1);
          tile[first] *= a;
          tile[second] *= b;
          considerDirect(tile);
        }
}

/// Whether `exprs` differ within a tile of `size` points along `axis`: the
/// group of a channel does not where tiles do not cross groups.
bool CostModel::differs(ArrayRef<AffineExpr> exprs, unsigned axis,
                        int64_t size) {
  if (size == 1 || !dependsOn(exprs, axis))
    return false;
  auto [entry, isNew] =
      known.try_emplace(std::tuple(exprs.data(), axis, size), true);
  int64_t extent = coordinates.axes[axis].extent;
  if (!isNew || extent % size != 0)
    return entry->second;
  SmallVector<Interval> ranges;
  for (const Axis &other : coordinates.axes)
    ranges.push_back({0, other.extent - 1});
  // Dimension `axis` counts tiles.
  ranges[axis].upper = extent / size - 1;
  AffineExpr dimension = getAffineDimExpr(axis, context);
  entry->second = llvm::any_of(exprs, [&](AffineExpr expr) {
    auto at = [&](int64_t i) {
      return simplifyInRanges(expr.replace(dimension, dimension * size + i),
                              ranges);
    };
    AffineExpr first = at(0);
    for (int64_t i = 1; i < size; ++i)
      if (at(i) != first)
        return true;
    return false;
  });
  return entry->second;
}

/// Elements that a thread loads for one step of a tile.
int64_t CostModel::getLoads(ArrayRef<AffineExpr> exprs,
                            ArrayRef<int64_t> tile) {
  int64_t loads = 1;
  for (auto [axis, size] : llvm::enumerate(tile))
    if (differs(exprs, axis, size))
      loads *= size;
  return loads;
}

void CostModel::considerDirect(ArrayRef<int64_t> tile) {
  int64_t points = 1, tiles = 1;
  for (auto [axis, size] : llvm::enumerate(tile)) {
    int64_t extent = coordinates.axes[axis].extent;
    // No tile without points, and none that computes some in vain.
    if (size > 1 && extent % size != 0)
      return;
    points *= size;
    tiles *= llvm::divideCeil(extent, size);
  }
  int64_t loads = getLoads(coordinates.data, tile);
  int64_t guards = static_cast<int64_t>(coordinates.guards.size()) * loads;
  for (ArrayRef<AffineExpr> weight : coordinates.weights)
    loads += getLoads(weight, tile);
  if (isHostDevice(device))
    return takeOnHost(tile, points, tiles, loads, guards);
  // Values, what is loaded and its addresses, and the rest.
  if (points + 3 * loads + 24 > getMaxRegisters())
    return;
  double products = static_cast<double>(
      points * std::max<int64_t>(1, coordinates.weights.size()));
  double step = products + 2.0 * static_cast<double>(guards) +
                4.0 * static_cast<double>(loads) + 4;
  double perTile = step * getSteps() + 2.0 * static_cast<double>(points) + 8;
  double processors = static_cast<double>(device.getProcessors());
  double cycles =
      perTile * std::max(static_cast<double>(tiles) / processors, busyThreads) /
      128;
  // With a tile along the last coordinate, threads do not read neighbouring
  // elements.
  if (!tile.empty())
    cycles *= 1 + 0.5 * static_cast<double>(tile.back() - 1);
  take(cycles,
       GPUScheduleAttr::get(context, GPUStrategy::Direct,
                            getDirectThreads(device, tiles), getArray(tile),
                            DenseI64ArrayAttr(), 0, 0, 1));
}

/// A load takes each lane of a vector for itself, wherever the elements are,
/// and costs as much as eight products of vectors.
void CostModel::takeOnHost(ArrayRef<int64_t> tile, int64_t points,
                           int64_t tiles, int64_t loads, int64_t guards) {
  double step = static_cast<double>(
                    points * std::max<int64_t>(1, coordinates.weights.size()) +
                    2 * guards + 8 * loads) +
                4;
  double perTile = step * getSteps() + 8.0 * static_cast<double>(points);
  // Neighbours along the last coordinate share lines of the cache.
  if (!tile.empty() && tile.back() == 1)
    perTile *= 1.05;
  int64_t vectors = llvm::divideCeil(tiles, device.getSubgroup());
  take(perTile * static_cast<double>(vectors),
       GPUScheduleAttr::get(context, GPUStrategy::Direct,
                            getDirectThreads(device, tiles), getArray(tile),
                            DenseI64ArrayAttr(), 0, 0, 1));
}

void CostModel::considerStaged() {
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  if (!view)
    return;
  for (int64_t tileRows : {2, 4, 8})
    for (int64_t tileColumns : {4, 8})
      for (int64_t threadRows : {4, 8, 16})
        for (int64_t threadColumns : {8, 16})
          for (int64_t depth : {8, 16})
            considerStaged(*view, {tileRows, tileColumns},
                           {threadRows * tileRows, threadColumns * tileColumns},
                           depth);
}

void CostModel::considerStaged(const MatrixView &view,
                               std::array<int64_t, 2> tile,
                               std::array<int64_t, 2> block, int64_t depth) {
  int64_t threads = (block[0] / tile[0]) * (block[1] / tile[1]);
  auto schedule = GPUScheduleAttr::get(context, GPUStrategy::Staged, threads,
                                       getArray(tile), getArray(block), depth,
                                       /*padding=*/4, /*stages=*/2);
  int64_t shared = schedule.getSharedBytes();
  int64_t copies = llvm::divideCeil((block[0] + block[1]) * depth, threads);
  int64_t registers =
      tile[0] * tile[1] + 2 * (tile[0] + tile[1]) + 3 * copies + 32;
  if (threads > device.getMaxThreads() || shared > device.getSharedBytes() ||
      registers > getMaxRegisters())
    return;
  auto extent = [&](ArrayRef<unsigned> axes) {
    return MatrixView::getExtent(coordinates, axes);
  };
  int64_t blocks = extent(view.batches) *
                   llvm::divideCeil(extent(view.rows), block[0]) *
                   llvm::divideCeil(extent(view.columns), block[1]);
  double steps = static_cast<double>(llvm::alignTo(extent(view.steps), depth));
  double products = static_cast<double>(block[0] * block[1]) / 128;
  // A vector of four takes three cycles of a subgroup, since some lanes read
  // the same.
  double reads = static_cast<double>(threads) / 32 *
                 static_cast<double>(tile[0] + tile[1]) / 4 * 3;
  double perElement = 14 + 6.0 * static_cast<double>(coordinates.guards.size());
  double copying = static_cast<double>(block[0] + block[1]) * perElement / 128;
  double perBlock =
      steps * (std::max(products, reads) + copying) + products * 4 + 400;
  int64_t processors = device.getProcessors();
  int64_t perProcessor = llvm::divideCeil(blocks, processors);
  int64_t resident =
      std::min({perProcessor, device.getProcessorThreads() / threads,
                device.getProcessorSharedBytes() / shared,
                device.getRegisters() / (registers * threads)});
  double busy = std::min(
      1.0, static_cast<double>(std::max<int64_t>(resident, 1) * threads) /
               (busyThreads / 2));
  take(perBlock * static_cast<double>(perProcessor) / busy, schedule);
}

void CostModel::considerTensorCore(GPUPrecision precision) {
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  if (!view)
    return;
  constexpr std::array<int64_t, 2> tiles[] = {
      {64, 64}, {64, 32}, {32, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}};
  for (std::array<int64_t, 2> tile : tiles)
    for (int64_t down : {1, 2, 4})
      for (int64_t across : {1, 2, 4})
        for (int64_t depth : {16, 32})
          for (int64_t stages : {2, 3, 4})
            considerTensorCore(*view, tile, {down * tile[0], across * tile[1]},
                               depth, stages, precision);
}

/// A processor is taken to begin 1024 products of f16 per cycle, half as many
/// of tf32, and to read 128 bytes of workgroup memory. Source of the former:
/// NVIDIA, "A100 Tensor Core GPU Architecture", 2020.
void CostModel::considerTensorCore(const MatrixView &view,
                                   std::array<int64_t, 2> tile,
                                   std::array<int64_t, 2> block, int64_t depth,
                                   int64_t stages, GPUPrecision precision) {
  bool isTF32 = precision == GPUPrecision::TF32;
  int64_t warps = (block[0] / tile[0]) * (block[1] / tile[1]);
  int64_t threads = 32 * warps;
  if (threads > 256)
    return;
  auto schedule = GPUScheduleAttr::get(
      context, GPUStrategy::TensorCore, threads, getArray(tile),
      getArray(block), depth, /*padding=*/isTF32 ? 4 : 8, stages, precision);
  int64_t shared = schedule.getSharedBytes();
  // Units of 16 bytes that a thread copies; those that go through registers
  // stay there during the products.
  int64_t copies = llvm::divideCeil(
      (block[0] + block[1]) * depth * (isTF32 ? 4 : 2), 16 * threads);
  int64_t registers = tile[0] * tile[1] / 32 + (tile[0] + tile[1]) / 4 +
                      (coordinates.guards.empty() ? 6 : 12) * copies + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::TensorCore) ||
      registers > 240 || copies > 8)
    return;
  auto extent = [&](ArrayRef<unsigned> axes) {
    return MatrixView::getExtent(coordinates, axes);
  };
  // The kernel exchanges both where rows are neighbours in the result.
  int64_t rows = extent(view.rows), columns = extent(view.columns);
  if (view.areRowsInner(coordinates))
    std::swap(rows, columns);
  int64_t blocks = extent(view.batches) * llvm::divideCeil(rows, block[0]) *
                   llvm::divideCeil(columns, block[1]);
  double steps = static_cast<double>(llvm::alignTo(extent(view.steps), depth));
  double products =
      static_cast<double>(block[0] * block[1]) / (isTF32 ? 512 : 1024);
  double elementBytes = isTF32 ? 4 : 2;
  double reads =
      static_cast<double>(warps * (tile[0] + tile[1])) * elementBytes / 128;
  double perElement = 2 + 3.0 * static_cast<double>(coordinates.guards.size());
  double copying = static_cast<double>(block[0] + block[1]) * perElement / 128;
  double rounds = steps / static_cast<double>(depth);
  double perBlock = steps * (std::max(products, reads) + copying) +
                    rounds * 40 + static_cast<double>(block[0] * block[1]) / 8 +
                    600;
  int64_t processors = device.getProcessors();
  int64_t perProcessor = llvm::divideCeil(blocks, processors);
  int64_t resident =
      std::min({perProcessor, device.getProcessorThreads() / threads,
                device.getProcessorSharedBytes() / shared,
                device.getRegisters() / (registers * threads)});
  // Copies that are further ahead need fewer threads to hide them.
  double needed = stages > 2 ? 256 : 384;
  double busy = std::min(
      1.0,
      static_cast<double>(std::max<int64_t>(resident, 1) * threads) / needed);
  take(perBlock * static_cast<double>(perProcessor) / busy, schedule);
}

void CostModel::considerWarpgroup(const WarpgroupView &view,
                                  GPUPrecision precision) {
  constexpr std::array<int64_t, 2> tiles[] = {
      {64, 256}, {128, 128}, {64, 128}, {128, 64}, {64, 64}};
  for (std::array<int64_t, 2> tile : tiles)
    for (int64_t down : {1, 2})
      for (int64_t across : {1, 2})
        for (int64_t stages : {3, 4, 6}) {
          std::array<int64_t, 2> block{down * tile[0], across * tile[1]};
          if (block[0] > 256 || block[1] > 256)
            continue;
          considerWarpgroup(
              view, GPUScheduleAttr::get(context, GPUStrategy::Warpgroup,
                                         128 * down * across, getArray(tile),
                                         getArray(block), /*depth=*/64,
                                         /*padding=*/0, stages, precision));
        }
}

/// A processor is taken to begin 2048 products per cycle, and to read 128 bytes
/// of workgroup memory; a read of global memory takes 1000 cycles. Source of
/// the first: NVIDIA, "H100 Tensor Core GPU Architecture", 2022.
void CostModel::considerWarpgroup(const WarpgroupView &view,
                                  GPUScheduleAttr schedule) {
  ArrayRef<int64_t> tile = schedule.getTile(), block = schedule.getBlock();
  int64_t threads = schedule.getThreads(), shared = schedule.getSharedBytes();
  int64_t registers = tile[0] * tile[1] / 128 + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::Warpgroup) ||
      registers * threads > device.getRegisters())
    return;
  int64_t processors = device.getProcessors();
  int64_t perProcessor =
      llvm::divideCeil(view.getNumBlocks(schedule), processors);
  // A system takes 1 KiB for each block, and lines begin at multiples of that.
  int64_t resident = std::min(
      {perProcessor, device.getProcessorSharedBytes() / (shared + 2048),
       device.getRegisters() / (registers * threads)});
  double products = static_cast<double>(block[0] * block[1]) * 64 / 2048;
  double reads =
      static_cast<double>(threads / 128 * (tile[0] / 64) * (64 + tile[1])) *
      64 * 2 / 128;
  double ahead = static_cast<double>(std::max<int64_t>(resident, 1) *
                                     (schedule.getStages() - 1));
  double round = std::max({products, reads, 1000 / ahead}) + 20;
  double rounds = static_cast<double>(
      view.numBlocks * llvm::divideCeil(view.numSteps, int64_t(64)));
  double perBlock =
      rounds * round + static_cast<double>(block[0] * block[1]) / 8 + 1000;
  take(perBlock * static_cast<double>(perProcessor), schedule);
}
