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
// Each `consider...` enumerates the schedules of one strategy, drops those that
// the device cannot hold, and adds the others to `points` with their cycles. A
// kernel takes the longer of two times: the issue slots that all its threads
// need on one processor (SM), and the latency that one block waits for by
// itself; `combine` blends the two. `/ 128` turns cycles of a thread into
// cycles of a processor, whose four schedulers issue for 32 lanes each.
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "LibraryProblem.h"
#include "kas/Codegen/GPU/Strategy/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

// Halving stops at a subgroup: a smaller block leaves lanes of a warp idle.
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
  // The p-norm of two times with p = `exponent`, scaled by the longer one so
  // that no power overflows.
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
      // At most 32 accumulators per thread on a GPU, beyond which registers
      // spill or too few threads are resident; a processor keeps them in memory
      // anyway.
      for (int64_t a : {2, 4, 8})
        for (int64_t b : {1, 2, 4, 8}) {
          // `b` is 1 exactly where the tile extends along one coordinate only,
          // so that each tile occurs once.
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
  // Expressions are identified by their address: they belong to `coordinates`,
  // which outlives the model. Until it is computed the entry is true, the
  // expensive answer, which also stands for extents that `size` does not
  // divide.
  auto [entry, isNew] =
      known.try_emplace(std::tuple(exprs.data(), axis, size), true);
  int64_t extent = coordinates.axes[axis].extent;
  if (!isNew || extent % size != 0)
    return entry->second;
  int64_t tiles = extent / size;
  AffineMap map = AffineMap::get(coordinates.axes.size(), 0, exprs, context);
  // Compares the first and the last element of one tile, with all other axes at
  // the start, the middle or the end of their range (`part` 0, 1, 2).
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

/// The tile has one size for each output axis. Example: a 3x3 convolution with
/// the tile [1, 4, 1, 2] loads 2 elements of the data (the channel does not
/// matter) and 4 of the weight.
/// Elements that a thread loads for one step of a tile.
int64_t CostModel::getLoads(ArrayRef<AffineExpr> exprs,
                            ArrayRef<int64_t> tile) {
  int64_t loads = 1;
  for (auto [axis, size] : llvm::enumerate(tile))
    if (differs(exprs, axis, size))
      loads *= size;
  return loads;
}

/// Adds the direct kernel in which a thread computes `tile` outputs, if the
/// tile divides all extents and its values fit the registers of a thread.
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
  // In registers of 32 bits: one accumulator per output, three per load (the
  // value and an address of 64 bits), 24 for indices, guards and the loop.
  // Values, what is loaded and its addresses, and the rest.
  if (points + 3 * loads + 24 > getMaxRegisters())
    return;
  take(getDirectCycles(tile, points, tiles, loads, guards),
       GPUScheduleAttr::get(context, GPUStrategy::Direct,
                            getDirectThreads(device, tiles), getArray(tile),
                            DenseI64ArrayAttr(), 0, 0, 1));
}

/// Cycles of a direct kernel. `points` outputs make a tile, of which there are
/// `tiles`; `loads` elements and `guards` comparisons belong to one iteration
/// of the reductions. The factors are cycles per instruction group, from the
/// fit.
double CostModel::getDirectCycles(ArrayRef<int64_t> tile, int64_t points,
                                  int64_t tiles, int64_t loads,
                                  int64_t guards) {
  double dataLoads = static_cast<double>(getLoads(coordinates.data, tile));
  // A thread that computes neighbours reads and writes far from those beside
  // it.
  double neighbours = tile.empty() ? 0 : static_cast<double>(tile.back() - 1);
  double all = static_cast<double>(loads);
  // A term multiplies one element of each weight; without weights (a pooling)
  // it is one addition.
  double products = static_cast<double>(
      points * std::max<int64_t>(1, coordinates.weights.size()));
  double step = 2.3 * products + 0.5 * static_cast<double>(guards) +
                3.7 * dataLoads * (1 + 0.12 * neighbours) +
                1.8 * (all - dataLoads) + 1.1;
  double storing = 16 * static_cast<double>(points) * (1 + 0.5 * neighbours);
  // 50: the prologue of a thread, which computes its indices.
  double perTile = step * getSteps() + storing + 50;
  double perProcessor =
      static_cast<double>(tiles) / static_cast<double>(device.getProcessors());
  // What a thread waits for where there are few.
  double alone = getSteps() * (16 + 20 * all);
  // A processor runs 1024 threads of such kernels at once, whose latencies
  // overlap.
  return launchCycles + combine(perTile * perProcessor / 128,
                                std::max(1.0, perProcessor / 1024) * alone, 2);
}

/// Each element of the matrix is read once, so there is nothing to gain by
/// tiles that use some again; what counts is that enough threads read, and that
/// neighbours do. Elsewhere the other strategies are faster.
void CostModel::considerShared() {
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  if (!view || std::min(MatrixView::getExtent(coordinates, view->rows),
                        MatrixView::getExtent(coordinates, view->columns)) != 1)
    return;
  int64_t points = 1;
  unsigned inner = 0;
  for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
    points *= coordinates.axes[axis].extent;
    if (coordinates.axes[axis].extent > 1)
      inner = axis;
  }
  for (int64_t depth : {8, 32})
    for (int64_t size : {1, 2, 4, 8})
      for (int64_t threads : {64, 128, 256}) {
        if (threads > device.getMaxThreads() ||
            !getSharedAxis(coordinates, depth) ||
            (size > 1 && (coordinates.numOutputs == 0 ||
                          coordinates.axes[inner].extent % size != 0)))
          continue;
        SmallVector<int64_t> tile(coordinates.numOutputs, 1);
        if (size > 1)
          tile[inner] = size;
        auto schedule =
            GPUScheduleAttr::get(context, GPUStrategy::Direct, threads,
                                 getArray(tile), DenseI64ArrayAttr(), depth,
                                 /*padding=*/0, /*stages=*/1);
        if (schedule.getSharedBytes() <= device.getSharedBytes())
          take(getSharedCycles(tile, points / size, schedule), schedule);
      }
}

/// The factors are those of other direct kernels; a barrier with what follows
/// from workgroup memory takes some 60 cycles. All elements of weights come
/// from memory once.
double CostModel::getSharedCycles(ArrayRef<int64_t> tile, int64_t tiles,
                                  GPUScheduleAttr schedule) {
  auto depth = static_cast<double>(schedule.getDepth());
  auto dataLoads = static_cast<double>(getLoads(coordinates.data, tile));
  double points = 1, loads = dataLoads;
  for (int64_t size : tile)
    points *= static_cast<double>(size);
  for (ArrayRef<AffineExpr> weight : coordinates.weights)
    loads += static_cast<double>(getLoads(weight, tile));
  double steps = getSteps() / depth, halves = std::log2(depth);
  double step =
      2.3 * points + 3.7 * dataLoads + 1.8 * (loads - dataLoads) +
      0.5 * static_cast<double>(coordinates.guards.size()) * dataLoads + 1.1;
  double perThread = step * steps + 8 * points * halves + 16 * points + 50;
  int64_t blocks =
      llvm::divideCeil(tiles * schedule.getDepth(), schedule.getThreads());
  auto threads = static_cast<double>(
      llvm::divideCeil(blocks, device.getProcessors()) * schedule.getThreads());
  double alone = steps * (16 + 20 * loads) + 60 * halves;
  // Four bytes for each product, of the matrix.
  double memory = 4 * static_cast<double>(tiles) * points * getSteps() /
                  (bytesPerCycle * static_cast<double>(device.getProcessors()));
  return launchCycles + combine(std::max(perThread * threads / 128, memory),
                                std::max(1.0, threads / 1024) * alone, 2);
}

// As `getDirectCycles` of one weight less and tiles of one point.
double CostModel::getPoolingCycles(double steps, double points, double rounds) {
  double perElement = (2.3 + 3.7 + 1.1) * steps + 16 + 50;
  return combine(perElement * points / 128, rounds * steps * (16 + 20), 2);
}

/// A load takes each lane of a vector for itself, wherever the elements are,
/// and costs as much as eight products of vectors.
void CostModel::takeOnHost(ArrayRef<int64_t> tile, int64_t points,
                           int64_t tiles, int64_t loads, int64_t guards) {
  // 4: the overhead of the loop.
  double step = static_cast<double>(
                    points * std::max<int64_t>(1, coordinates.weights.size()) +
                    2 * guards + 8 * loads) +
                4;
  double perTile = step * getSteps() + 8.0 * static_cast<double>(points);
  // Neighbours along the last coordinate share cache lines: a tile along it
  // uses each line in one thread.
  if (!tile.empty() && tile.back() == 1)
    perTile *= 1.05;
  int64_t vectors = llvm::divideCeil(tiles, device.getSubgroup());
  take(perTile * static_cast<double>(vectors),
       GPUScheduleAttr::get(context, GPUStrategy::Direct,
                            getDirectThreads(device, tiles), getArray(tile),
                            DenseI64ArrayAttr(), 0, 0, 1));
}

// Neighbours along the innermost axis that varies must be neighbours in each
// tensor: its last index that is not constant grows by 1, no other index
// depends on the axis.
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

// The steps are ordered as the emitters order them, so that the innermost step
// is the one that a copy runs along.
CostModel::Copies CostModel::getCopies(const MatrixView &view, int64_t depth) {
  MatrixView ordered = view;
  ordered.orderSteps(coordinates, depth);
  return {.numGuards = static_cast<double>(coordinates.guards.size()),
          .isLeftContiguous = isContiguous(view.left, view.rows) ||
                              isContiguous(view.left, ordered.steps)};
}

/// Cycles of a grid. `work`: issue cycles of one block; `alone`: its latency
/// with the processor to itself; `together`: the exponent of `combine`, the
/// larger the better the two overlap.
double CostModel::getBlockCycles(const Blocks &blocks, double work,
                                 double alone, double together) {
  int64_t processors = device.getProcessors();
  // Blocks are distributed evenly; the processor with the most determines the
  // time.
  int64_t perProcessor = llvm::divideCeil(blocks.count, processors);
  // Occupancy: blocks of one processor at a time, limited by its threads,
  // workgroup memory (the system takes 1 KiB of each block), and registers. 32
  // is the limit of blocks per SM of sm_80 and sm_90.
  int64_t resident = std::max<int64_t>(
      1,
      std::min({perProcessor, int64_t(32),
                device.getProcessorThreads() / blocks.threads,
                device.getProcessorSharedBytes() / (blocks.shared + 1024),
                device.getRegisters() / (blocks.registers * blocks.threads)}));
  // Waves of resident blocks follow each other; within a wave latencies
  // overlap.
  int64_t waves = llvm::divideCeil(blocks.count, processors * resident);
  return launchCycles + combine(static_cast<double>(perProcessor) * work,
                                static_cast<double>(waves) * alone, together);
}

/// Enumerates staged kernels: register tiles of 2x4 to 8x8 outputs, blocks of 4
/// to 16 by 8 to 16 threads.
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

/// Adds the staged kernel with these sizes, in rows and columns, if the device
/// can hold it. `depth` iterations of the reduction are copied at once.
void CostModel::considerStaged(const MatrixView &view, const Copies &copies,
                               std::array<int64_t, 2> tile,
                               std::array<int64_t, 2> block, int64_t depth) {
  int64_t threads = (block[0] / tile[0]) * (block[1] / tile[1]);
  auto schedule = GPUScheduleAttr::get(context, GPUStrategy::Staged, threads,
                                       getArray(tile), getArray(block), depth,
                                       /*padding=*/4, /*stages=*/2);
  // Registers: accumulators, two buffers of fragments, and per element of the
  // next copy a value and an address; 32 for the rest.
  int64_t shared = schedule.getSharedBytes();
  // Elements of both matrices that one thread copies for a block of steps.
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
  // The last block of steps is filled up with zeros, which are multiplied like
  // all others.
  double steps = static_cast<double>(llvm::alignTo(extent(view.steps), depth));
  auto rows = static_cast<double>(block[0]),
       columns = static_cast<double>(block[1]);
  auto points = static_cast<double>(tile[0] * tile[1]);
  // Cycles of a processor for one step of the reduction.
  double products = 0.47 * rows * columns / 128;
  // A vector of four takes three cycles of a subgroup, since some lanes read
  // the same.
  double reads = 1.2 * static_cast<double>(threads) / 32 *
                 static_cast<double>(tile[0] + tile[1]) / 4 * 3;
  // Elements of weights in PyTorch's order, not contiguous along rows or steps,
  // are copied one by one at ten times the cost of a vector's. Guards count for
  // the data only, the columns.
  double copying = ((copies.isLeftContiguous ? 7.6 : 77.0) * rows +
                    (7.6 + 1.6 * copies.numGuards) * columns) /
                   128;
  double storing = 0.034 * rows * columns;
  double work = steps * (combine(products, reads, 4) + copying) + storing;
  // Latency of one block of steps: 255 cycles for the memory, then what one
  // thread issues for its share of the copy and for its multiply-adds.
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

/// Enumerates kernels with `mma.sync`: one to four warps along rows and
/// columns, each with a tile of 16x16 to 64x64 sums.
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
void CostModel::considerTensorCore(MatrixView view, const Copies &copies,
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
  // `units`: what one thread copies per block of steps.
  int64_t units = llvm::divideCeil(
      (block[0] + block[1]) * depth * (isTF32 ? 4 : 2), 16 * threads);
  // A lane holds 1/32 of the sums; a fragment of both sides; addresses of the
  // units, and their values where guards forbid `cp.async`.
  int64_t registers = tile[0] * tile[1] / 32 + (tile[0] + tile[1]) / 4 +
                      (coordinates.guards.empty() ? 6 : 12) * units + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::TensorCore) ||
      // ptxas can give 255; the estimate leaves some for what it does not
      // count.
      registers > 240 || units > 8)
    return;
  auto extent = [&](ArrayRef<unsigned> axes) {
    return MatrixView::getExtent(coordinates, axes);
  };
  bool areLinesWhole = view.keepLinesWhole(coordinates, inputType, block);
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
  // Per step: cycles of matrix instructions, and of fragments that all warps
  // read from workgroup memory, 128 bytes per cycle.
  double products = 0.75 * lines[0] * lines[1] / (isTF32 ? 512 : 1024);
  double elementBytes = isTF32 ? 4 : 2;
  double reads =
      static_cast<double>(warps * (tile[0] + tile[1])) * elementBytes / 128;
  bool isGuarded = copies.numGuards != 0;
  // Cycles of a thread for each element of a row and of a column that it
  // copies. Without contiguous neighbours, or with guards, elements are
  // collected one by one.
  double left = copies.isLeftContiguous ? 12 : 71;
  double right = isGuarded ? 5.7 + 8.6 * copies.numGuards : 12;
  double copying =
      (isTF32 ? 1.4 : 1.0) * (left * lines[0] + right * lines[1]) / 128;
  // Fitted to results that are stored one by one or two by two; where they go
  // as vectors because of the block alone, to those of staged kernels.
  double storing = (areLinesWhole ? 0.034 : 0.68) * lines[0] * lines[1];
  double work = steps * (std::max(products, reads) + copying) + storing;
  // Copies that are further ahead hide more.
  // `stages > 2`: at least one copy is in flight while another is awaited.
  double latency =
      (stages > 2 ? 460 : 540) +
      static_cast<double>(depth) / static_cast<double>(threads) *
          ((isGuarded && !copies.isLeftContiguous ? 2.8 : 3.7) * lines[0] +
           (isGuarded ? 24 : 3.7) * lines[1]);
  take(getBlockCycles({blocks, threads, shared, registers}, work,
                      rounds * latency + storing, 3.3),
       schedule);
}

/// Enumerates kernels with `wgmma`, of one to four warpgroups. A block has at
/// most 256 rows and columns, which is the limit of a box of the copy engine
/// (`cuTensorMapEncodeTiled`).
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
              // 64 steps of 16 bits are the 128 bytes of a swizzled row of a
              // box.
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
  // A thread of the warpgroup holds 1/128 of the sums, in f32.
  int64_t registers = tile[0] * tile[1] / 128 + 40;
  if (threads > device.getMaxThreads() ||
      shared > getMaxSharedBytes(device, GPUStrategy::Warpgroup) ||
      // One block must fit the register file of the processor.
      registers * threads > device.getRegisters())
    return;
  double products = static_cast<double>(block[0] * block[1]) * 64 / 2048;
  // `wgmma` reads both operands from workgroup memory: 64 rows and all columns
  // of the tile, 64 steps of two bytes each, which are 128 bytes or one cycle.
  int64_t instructions = threads / 128 * (tile[0] / 64);
  double reads = static_cast<double>(instructions * (64 + tile[1]));
  // 20 cycles for the barriers of a block of steps.
  double round = std::max(products, reads) + 20;
  double rounds = static_cast<double>(
      view.numBlocks * llvm::divideCeil(view.numSteps, int64_t(64)));
  auto stages = static_cast<double>(schedule.getStages());
  // No more buffers than rounds.
  shared = static_cast<int64_t>(static_cast<double>(shared) *
                                std::min(1.0, rounds / stages));
  // A fitted cost per element of the result, which is stored by twos.
  double storing = 0.71 * static_cast<double>(block[0] * block[1]);
  // Of what the copy engine brings.
  // A copy takes about 2600 cycles from request to arrival; `stages - 1` of
  // them are in flight.
  double latency = std::max(round, 2600 / (stages - 1));
  take(getBlockCycles({view.getNumBlocks(schedule), threads, shared, registers},
                      rounds * round + storing,
                      600 + rounds * latency + storing, 3),
       schedule);
}
