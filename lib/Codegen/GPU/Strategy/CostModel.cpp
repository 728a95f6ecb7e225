//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Estimates the cycles of a kernel for every schedule of an operator and
// proposes the cheapest. Its factors were fitted to times on an H200
// (research/reports/gpu.md).
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

/// What takes `left` or `right`, whatever is longer, and more where both are as
/// long: the sum for an `exponent` of 1, the longer one for a large one.
static double combine(double left, double right, double exponent) {
  double longer = std::max(left, right), shorter = std::min(left, right);
  return longer *
         std::pow(1 + std::pow(shorter / longer, exponent), 1 / exponent);
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
/// group of a channel does not where tiles do not cross groups. Some tiles
/// stand for all.
bool CostModel::differs(ArrayRef<AffineExpr> exprs, unsigned axis,
                        int64_t size) {
  if (size == 1 || !dependsOn(exprs, axis))
    return false;
  auto [entry, isNew] =
      known.try_emplace(std::tuple(exprs.data(), axis, size), true);
  int64_t extent = coordinates.axes[axis].extent;
  if (!isNew || extent % size != 0)
    return entry->second;
  int64_t tiles = extent / size;
  AffineMap map = AffineMap::get(coordinates.axes.size(), 0, exprs, context);
  auto differsIn = [&](int64_t part, int64_t tile) {
    SmallVector<int64_t> point;
    for (const Axis &other : coordinates.axes)
      point.push_back((other.extent - 1) * part / 2);
    point[axis] = tile * size;
    SmallVector<int64_t> last = point;
    last[axis] += size - 1;
    return map.compose(point) != map.compose(last);
  };
  entry->second = false;
  for (int64_t part : {0, 1, 2})
    for (int64_t tile : {int64_t(0), tiles / 2, tiles - 1})
      entry->second = entry->second || differsIn(part, tile);
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
  take(getDirectCycles(tile, points, tiles, loads, guards),
       GPUScheduleAttr::get(context, GPUStrategy::Direct,
                            getDirectThreads(device, tiles), getArray(tile),
                            DenseI64ArrayAttr(), 0, 0, 1));
}

double CostModel::getDirectCycles(ArrayRef<int64_t> tile, int64_t points,
                                  int64_t tiles, int64_t loads,
                                  int64_t guards) {
  double dataLoads = static_cast<double>(getLoads(coordinates.data, tile));
  // A thread that computes neighbours reads and writes far from those beside
  // it.
  double neighbours = tile.empty() ? 0 : static_cast<double>(tile.back() - 1);
  double all = static_cast<double>(loads);
  double products = static_cast<double>(
      points * std::max<int64_t>(1, coordinates.weights.size()));
  double step = 2.3 * products + 0.5 * static_cast<double>(guards) +
                3.7 * dataLoads * (1 + 0.12 * neighbours) +
                1.8 * (all - dataLoads) + 1.1;
  double storing = 16 * static_cast<double>(points) * (1 + 0.5 * neighbours);
  double perTile = step * getSteps() + storing + 50;
  double perProcessor =
      static_cast<double>(tiles) / static_cast<double>(device.getProcessors());
  // What a thread waits for where there are few.
  double alone = getSteps() * (16 + 20 * all);
  return launchCycles + combine(perTile * perProcessor / 128,
                                std::max(1.0, perProcessor / 1024) * alone, 2);
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

bool CostModel::isContiguous(ArrayRef<unsigned> tensors,
                             ArrayRef<unsigned> axes) {
  auto axis = llvm::find_if(llvm::reverse(axes), [&](unsigned axis) {
    return coordinates.axes[axis].extent != 1;
  });
  if (axis == axes.rend())
    return false;
  AffineExpr dimension = getAffineDimExpr(*axis, context);
  return llvm::all_of(tensors, [&](unsigned tensor) {
    ArrayRef<AffineExpr> exprs =
        tensor == 0 ? ArrayRef(coordinates.data)
                    : ArrayRef(coordinates.weights[tensor - 1]);
    while (!exprs.empty() && isa<AffineConstantExpr>(exprs.back()))
      exprs = exprs.drop_back();
    if (exprs.empty() || dependsOn(exprs.drop_back(), *axis))
      return false;
    AffineExpr next = exprs.back().replace(dimension, dimension + 1);
    return simplifyAffineExpr(next - exprs.back(), coordinates.axes.size(),
                              0) == getAffineConstantExpr(1, context);
  });
}

CostModel::Copies CostModel::getCopies(const MatrixView &view, int64_t depth) {
  MatrixView ordered = view;
  ordered.orderSteps(coordinates, depth);
  return {.numGuards = static_cast<double>(coordinates.guards.size()),
          .isLeftContiguous = isContiguous(view.left, view.rows) ||
                              isContiguous(view.left, ordered.steps)};
}

double CostModel::getBlockCycles(const Blocks &blocks, double work,
                                 double alone, double together) {
  int64_t processors = device.getProcessors();
  int64_t perProcessor = llvm::divideCeil(blocks.count, processors);
  int64_t resident = std::max<int64_t>(
      1,
      std::min({perProcessor, int64_t(32),
                device.getProcessorThreads() / blocks.threads,
                device.getProcessorSharedBytes() / (blocks.shared + 1024),
                device.getRegisters() / (blocks.registers * blocks.threads)}));
  int64_t waves = llvm::divideCeil(blocks.count, processors * resident);
  return launchCycles + combine(static_cast<double>(perProcessor) * work,
                                static_cast<double>(waves) * alone, together);
}

void CostModel::considerStaged() {
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  if (!view)
    return;
  for (int64_t depth : {8, 16}) {
    Copies copies = getCopies(*view, depth);
    for (int64_t tileRows : {2, 4, 8})
      for (int64_t tileColumns : {4, 8})
        for (int64_t threadRows : {4, 8, 16})
          for (int64_t threadColumns : {8, 16})
            considerStaged(*view, copies, {tileRows, tileColumns},
                           {threadRows * tileRows, threadColumns * tileColumns},
                           depth);
  }
}

void CostModel::considerStaged(const MatrixView &view, const Copies &copies,
                               std::array<int64_t, 2> tile,
                               std::array<int64_t, 2> block, int64_t depth) {
  int64_t threads = (block[0] / tile[0]) * (block[1] / tile[1]);
  auto schedule = GPUScheduleAttr::get(context, GPUStrategy::Staged, threads,
                                       getArray(tile), getArray(block), depth,
                                       /*padding=*/4, /*stages=*/2);
  int64_t shared = schedule.getSharedBytes();
  int64_t perThread = llvm::divideCeil((block[0] + block[1]) * depth, threads);
  int64_t registers =
      tile[0] * tile[1] + 2 * (tile[0] + tile[1]) + 3 * perThread + 32;
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
  auto rows = static_cast<double>(block[0]),
       columns = static_cast<double>(block[1]);
  auto points = static_cast<double>(tile[0] * tile[1]);
  double products = 0.47 * rows * columns / 128;
  // A vector of four takes three cycles of a subgroup, since some lanes read
  // the same.
  double reads = 1.2 * static_cast<double>(threads) / 32 *
                 static_cast<double>(tile[0] + tile[1]) / 4 * 3;
  double copying = ((copies.isLeftContiguous ? 7.6 : 77.0) * rows +
                    (7.6 + 1.6 * copies.numGuards) * columns) /
                   128;
  double storing = 0.034 * rows * columns;
  double work = steps * (combine(products, reads, 4) + copying) + storing;
  bool isGuarded = copies.numGuards != 0;
  double latency = 255 + static_cast<double>(depth) *
                             (((copies.isLeftContiguous ? 0.7 : 5.9) * rows +
                               (isGuarded ? 2.2 : 0.7) * columns) /
                                  static_cast<double>(threads) +
                              2 * points);
  double alone = steps / static_cast<double>(depth) * latency + storing;
  take(getBlockCycles({blocks, threads, shared, registers}, work, alone, 1.4),
       schedule);
}

void CostModel::considerTensorCore(GPUPrecision precision) {
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  if (!view)
    return;
  constexpr std::array<int64_t, 2> tiles[] = {
      {64, 64}, {64, 32}, {32, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}};
  for (int64_t depth : {16, 32}) {
    Copies copies = getCopies(*view, depth);
    for (std::array<int64_t, 2> tile : tiles)
      for (int64_t down : {1, 2, 4})
        for (int64_t across : {1, 2, 4})
          for (int64_t stages : {2, 3, 4})
            considerTensorCore(*view, copies, tile,
                               {down * tile[0], across * tile[1]}, depth,
                               stages, precision);
  }
}

/// A processor is taken to begin 1024 products of f16 per cycle, half as many
/// of tf32, and to read 128 bytes of workgroup memory. Source of the former:
/// NVIDIA, "A100 Tensor Core GPU Architecture", 2020.
void CostModel::considerTensorCore(const MatrixView &view, const Copies &copies,
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
  int64_t units = llvm::divideCeil(
      (block[0] + block[1]) * depth * (isTF32 ? 4 : 2), 16 * threads);
  int64_t registers = tile[0] * tile[1] / 32 + (tile[0] + tile[1]) / 4 +
                      (coordinates.guards.empty() ? 6 : 12) * units + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::TensorCore) ||
      registers > 240 || units > 8)
    return;
  auto extent = [&](ArrayRef<unsigned> axes) {
    return MatrixView::getExtent(coordinates, axes);
  };
  // The kernel exchanges both where rows are neighbours in the result.
  int64_t rows = extent(view.rows), columns = extent(view.columns);
  std::array<double, 2> lines{static_cast<double>(block[0]),
                              static_cast<double>(block[1])};
  if (view.areRowsInner(coordinates)) {
    std::swap(rows, columns);
    std::swap(lines[0], lines[1]);
  }
  int64_t blocks = extent(view.batches) * llvm::divideCeil(rows, block[0]) *
                   llvm::divideCeil(columns, block[1]);
  double steps = static_cast<double>(llvm::alignTo(extent(view.steps), depth));
  double rounds = steps / static_cast<double>(depth);
  // No more buffers than rounds.
  shared =
      static_cast<int64_t>(static_cast<double>(shared) *
                           std::min(1.0, rounds / static_cast<double>(stages)));
  double products = 0.75 * lines[0] * lines[1] / (isTF32 ? 512 : 1024);
  double elementBytes = isTF32 ? 4 : 2;
  double reads =
      static_cast<double>(warps * (tile[0] + tile[1])) * elementBytes / 128;
  bool isGuarded = copies.numGuards != 0;
  double left = copies.isLeftContiguous ? 12 : 71;
  double right = isGuarded ? 5.7 + 8.6 * copies.numGuards : 12;
  double copying =
      (isTF32 ? 1.4 : 1.0) * (left * lines[0] + right * lines[1]) / 128;
  double storing = 0.68 * lines[0] * lines[1];
  double work = steps * (std::max(products, reads) + copying) + storing;
  // Copies that are further ahead hide more.
  double latency =
      (stages > 2 ? 460 : 540) +
      static_cast<double>(depth) / static_cast<double>(threads) *
          ((isGuarded && !copies.isLeftContiguous ? 2.8 : 3.7) * lines[0] +
           (isGuarded ? 24 : 3.7) * lines[1]);
  take(getBlockCycles({blocks, threads, shared, registers}, work,
                      rounds * latency + storing, 3.3),
       schedule);
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
/// of workgroup memory. Source of the first: NVIDIA, "H100 Tensor Core GPU
/// Architecture", 2022.
void CostModel::considerWarpgroup(const WarpgroupView &view,
                                  GPUScheduleAttr schedule) {
  ArrayRef<int64_t> tile = schedule.getTile(), block = schedule.getBlock();
  int64_t threads = schedule.getThreads(), shared = schedule.getSharedBytes();
  int64_t registers = tile[0] * tile[1] / 128 + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::Warpgroup) ||
      registers * threads > device.getRegisters())
    return;
  double products = static_cast<double>(block[0] * block[1]) * 64 / 2048;
  int64_t instructions = threads / 128 * (tile[0] / 64);
  double reads = static_cast<double>(instructions * (64 + tile[1]));
  double round = std::max(products, reads) + 20;
  double rounds = static_cast<double>(
      view.numBlocks * llvm::divideCeil(view.numSteps, int64_t(64)));
  auto stages = static_cast<double>(schedule.getStages());
  // No more buffers than rounds.
  shared = static_cast<int64_t>(static_cast<double>(shared) *
                                std::min(1.0, rounds / stages));
  double storing = 0.71 * static_cast<double>(block[0] * block[1]);
  // Of what the copy engine brings.
  double latency = std::max(round, 2600 / (stages - 1));
  take(getBlockCycles({view.getNumBlocks(schedule), threads, shared, registers},
                      rounds * round + storing,
                      600 + rounds * latency + storing, 3),
       schedule);
}
