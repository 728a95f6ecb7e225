//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/StageWork.h"
#include "LoopMisses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::solver;
using LoopSet = StageNest::LoopSet;
using llvm::divideCeil;

WorkTarget::WorkTarget(const Target &target)
    : lanes(target.vectorBits / 32),
      arithmeticLanes(target.arithmeticBits / 32),
      registers(target.vectorRegisters), l1(target.l1Bytes / 4),
      l2(target.l2Bytes / 4) {}

int64_t WorkTarget::getLanes(int64_t elements) const {
  int64_t size = lanes;
  while (size > 4 && size / 2 >= elements)
    size /= 2;
  return size;
}

namespace {

int64_t largestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = std::min(value, limit); divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

/// Describes one stage: see lib/Codegen/CPU/Strategy for what is done.
class Planner {
public:
  Planner(const StageNest &nest, const WorkTarget &target)
      : nest(nest), target(target) {}
  StageWork run();

private:
  std::optional<StageWork> planTiles();
  int64_t extent(unsigned loop) const { return nest.loops[loop].extent; }
  int64_t extent(llvm::ArrayRef<unsigned> loops) const {
    int64_t product = 1;
    for (unsigned loop : loops)
      product *= extent(loop);
    return product;
  }
  bool classify();
  void countSegments();
  bool hasSteps(bool allowTwo) const;

  std::optional<int64_t> planPanels(StageWork &work) const;
  std::optional<int64_t> planRows(StageWork &work) const;
  void addPacking(StageWork &work, int64_t allRows, int64_t depth) const;
  std::optional<int64_t> planDirect(StageWork &work) const;
  void planLoops(StageWork &work) const;
  void addTraffic(StageWork &work) const;

  const StageNest &nest;
  const WorkTarget &target;
  llvm::SmallVector<unsigned, 8> batches, rows, columns, reductions;
  /// The inputs that step with the innermost column, and the other one.
  llvm::SmallVector<const StageNest::Access *, 2> vectorInputs;
  const StageNest::Access *scalarInput = nullptr;
  LoopSet vectorLoops = 0;
  bool hasGuards = false;
  int64_t segments = 1;
};

} // namespace

/// The roles of the loops. False where tiles do not suit.
bool Planner::classify() {
  unsigned numLoops = nest.loops.size();
  std::optional<unsigned> vectorLoop;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (nest.output.strides[loop] == 1 && !nest.loops[loop].isReduction)
      vectorLoop = loop;
  if (!vectorLoop)
    return false;
  LoopSet guards = 0;
  bool hasBorders = !nest.borders.empty();
  for (const StageNest::Border &border : nest.borders)
    if (!border.isCyclic && border.loops) {
      guards |= border.loops;
      hasGuards = true;
    }
  if (nest.data.dependsOn(*vectorLoop)) {
    vectorInputs.push_back(&nest.data);
  } else {
    if (hasBorders || nest.data.opaque)
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
  vectorLoops = guards;
  for (const StageNest::Access *access : vectorInputs)
    vectorLoops |= access->getLoops(numLoops);
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
  if (columns.empty())
    return false;
  llvm::sort(columns, [&](unsigned a, unsigned b) {
    return std::pair(-nest.output.strides[a], a) <
           std::pair(-nest.output.strides[b], b);
  });
  llvm::sort(rows, [&](unsigned a, unsigned b) {
    return std::pair(extent(a), a) < std::pair(extent(b), b);
  });
  if (nest.output.strides[columns.back()] != 1)
    return false;
  countSegments();
  return true;
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

static void addMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
                      const WorkTarget &target, StageWork &work) {
  constexpr int64_t line = 16, page = 1024, pages = 64;
  auto capacity = [](int64_t elements) {
    return static_cast<double>(elements) / line;
  };
  work[Work::LoopMissesL1] +=
      countMisses(nest, order, line, capacity(target.l1));
  work[Work::LoopMissesL2] +=
      countMisses(nest, order, line, capacity(target.l2));
  work[Work::LoopMissesPages] += countMisses(nest, order, page, pages);
}

static int64_t getPanelStep(int64_t rows, int64_t vectors, int64_t narrow) {
  constexpr int64_t latency = 16;
  if (!rows || vectors + narrow == 0)
    return 0;
  return std::max({rows * (2 * vectors + narrow), latency,
                   2 * (rows + vectors + narrow)}) +
         2;
}

std::optional<int64_t> Planner::planPanels(StageWork &work) const {
  if (reductions.empty() || rows.empty())
    return std::nullopt;
  auto cut = [&](int64_t maxColumns) {
    int64_t inner = 1;
    for (unsigned loop : llvm::reverse(columns)) {
      if (nest.output.strides[loop] != inner)
        break;
      int64_t block = largestDivisor(extent(loop), maxColumns / inner);
      inner *= block;
      if (block != extent(loop))
        break;
    }
    return inner;
  };
  auto share = [&](int64_t tile) {
    int64_t whole = tile / target.lanes * target.lanes;
    int64_t tail = target.getLanes(tile - whole);
    if (tile == whole)
      tail = 0;
    else if (target.lanes > 8 && tail <= 8)
      tail = target.lanes / 2;
    return (whole + tail) * 100 / tile;
  };
  int64_t tile = cut(128), larger = cut(256);
  if (share(larger) + 2 < share(tile))
    tile = larger;
  if (tile * 2 < target.lanes)
    return std::nullopt;
  bool vectors = hasSteps(true), contiguous = hasSteps(false);
  int64_t copyTime = vectors ? 6 : 2 * target.lanes;
  if (vectors && !contiguous)
    copyTime = 24;
  int64_t operationTime = target.getOperationTime(target.lanes);
  if (target.lanes > 8 && operationTime == 1)
    copyTime *= 2;
  int64_t allRows = extent(rows);
  int64_t products = allRows * operationTime * 17 / 16;
  int64_t tiles = extent(batches) * extent(columns) / tile;
  int64_t depth = extent(reductions);
  int64_t lanes = tiles * depth * tile * share(tile) / 100;
  int64_t time = lanes * (products + copyTime) / target.lanes;

  // What the registers do.
  int64_t limit = target.registers * 3 / 4;
  int64_t innerRows = extent(rows.back());
  int64_t whole = tile / target.lanes, tail = tile % target.lanes;
  int64_t isNarrow = tail && target.getLanes(tail) <= 8 && target.lanes > 8;
  int64_t isWide = tail && !isNarrow;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t v = 1; v <= 4; ++v)
    for (int64_t r = 1; r <= std::min<int64_t>(8, innerRows); ++r) {
      if (r * v > limit || (v > 1 && v > whole + isWide))
        continue;
      int64_t looped = whole / v * v;
      if (tail && looped == whole && looped && r * (v + 1) <= limit)
        looped -= v;
      auto step = [&](int64_t count) {
        return looped / v * getPanelStep(count, v, 0) +
               getPanelStep(count, whole - looped + isWide, isNarrow);
      };
      int64_t total = innerRows / r * step(r) + step(innerRows % r);
      best = std::min(best, total);
    }
  double steps = static_cast<double>(tiles) * depth * allRows / innerRows;
  work[Work::PanelProducts] = steps * best / 2 * operationTime;
  double copied = static_cast<double>(tiles) * depth * tile *
                  vectorInputs.size() * std::max<int64_t>(segments, 1);
  work[vectors ? contiguous ? Work::PanelCopies : Work::PanelStridedCopies
               : Work::PanelSingleCopies] = copied;
  work[Work::PanelStores] = static_cast<double>(tiles) * tile * allRows *
                            divideCeil(depth * tile * 4, target.l2 * 3 / 2);
  return time;
}

std::optional<int64_t> Planner::planRows(StageWork &work) const {
  if (vectorInputs.size() != 1 || !scalarInput || rows.size() != 1 ||
      reductions.empty() || vectorInputs.front()->opaque)
    return std::nullopt;
  int64_t allRows = extent(rows), depth = extent(reductions);
  int64_t width = extent(columns.back()), height = 1;
  if (columns.size() > 1 &&
      nest.output.strides[columns[columns.size() - 2]] == width)
    height = extent(columns[columns.size() - 2]);
  int64_t outer = extent(batches) * extent(columns) / (width * height);
  int64_t best = 0;
  auto consider = [&](int64_t tileColumns, int64_t tileOuter, int64_t vectors,
                      int64_t lanes) {
    int64_t size = tileColumns * tileOuter;
    if (size * vectors + vectors + 1 > target.registers)
      return;
    int64_t operation = target.getOperationTime(lanes);
    auto getTile = [&](int64_t count, bool isStore) {
      int64_t step =
          std::max(operation * count * vectors, operation * (count + vectors)) +
          2;
      int64_t store = divideCeil(count, lanes) * lanes * vectors *
                      (llvm::Log2_64(lanes) + 4) * operation;
      int64_t products = depth * step;
      if (depth * lanes * vectors * 3 > target.l2 * 2)
        products += (products + store) / 8;
      return isStore ? store : products;
    };
    int64_t tiles = (height / tileOuter) * (width / tileColumns);
    int64_t blocks =
        outer * static_cast<int64_t>(divideCeil(allRows, lanes * vectors));
    int64_t products = tiles * getTile(size, false),
            stores = tiles * getTile(size, true);
    if (int64_t rest = height % tileOuter) {
      products += getTile(rest * tileColumns, false);
      stores += getTile(rest * tileColumns, true);
    }
    products *= blocks;
    stores *= blocks;
    if (best != 0 && products + stores >= best)
      return;
    best = products + stores;
    work[Work::RowProducts] = products;
    work[Work::RowStores] = stores;
  };
  for (int64_t lanes = target.lanes; lanes >= 4 && lanes * 4 >= target.lanes;
       lanes /= 2) {
    if (allRows * 2 <= lanes)
      continue;
    for (int64_t vectors = 1; vectors <= 5; ++vectors) {
      if (vectors > static_cast<int64_t>(divideCeil(allRows, lanes)))
        continue;
      for (int64_t size = 1; size <= std::min(width, target.registers); ++size)
        if (width % size == 0)
          consider(size, 1, vectors, lanes);
      for (int64_t size = 2; size <= height && size * width < target.registers;
           ++size)
        consider(width, size, vectors, lanes);
    }
    if (allRows % target.lanes == 0)
      break;
  }
  if (best == 0)
    return std::nullopt;
  if (scalarInput == &nest.data)
    addPacking(work, allRows, depth);
  return best;
}

/// The data is packed at each call, by rows, then batches, then reductions.
void Planner::addPacking(StageWork &work, int64_t allRows,
                         int64_t depth) const {
  StageNest packing;
  llvm::SmallVector<unsigned, 12> order;
  constexpr int64_t blockRows = 32;
  auto add = [&](unsigned loop, int64_t step) {
    order.push_back(packing.loops.size());
    packing.data.strides[order.back()] = scalarInput->strides[loop];
    packing.output.strides[order.back()] = step;
    packing.loops.push_back(nest.loops[loop]);
  };
  add(rows.front(), 1);
  int64_t step = allRows * depth * extent(batches);
  for (unsigned loop : batches)
    add(loop, step /= extent(loop));
  step = blockRows * depth;
  for (unsigned loop : reductions)
    add(loop, step /= extent(loop));
  packing.data.elements = scalarInput->elements;
  packing.output.elements = allRows * depth * extent(batches);
  work[Work::RowPacking] = static_cast<double>(packing.output.elements);
  addMisses(packing, order, target, work);
}

std::optional<int64_t> Planner::planDirect(StageWork &work) const {
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
  int64_t vectorsWide = divideCeil(width, lanes);
  // A column of the image that shares what it reads with a reduction.
  std::optional<unsigned> columnLoop, shared;
  for (unsigned loop : llvm::ArrayRef(columns).drop_back()) {
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
  int64_t best = 0;
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
                         divideCeil(vectorsWide, v) * numRows / innerRows *
                         divideCeil(innerRows, r);
          auto time = static_cast<int64_t>(tile * tiles);
          if (best == 0 || time < best)
            best = time;
        }
      }
    }
  }
  if (best == 0)
    return std::nullopt;
  work[hasStride || hasGuards || segments > 1 ? Work::DirectBorders
                                              : Work::Direct] = best;
  return best;
}

void Planner::planLoops(StageWork &work) const {
  unsigned numLoops = nest.loops.size();
  double points = 1;
  bool hasReduction = false;
  std::optional<unsigned> vectorLoop;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    points *= extent(loop);
    hasReduction |= nest.loops[loop].isReduction;
    if (nest.output.strides[loop] == 1 && !nest.loops[loop].isReduction)
      vectorLoop = loop;
  }
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
    work[isVector ? Work::CopyVectors : Work::CopyPoints] = points;
  else if (!order.empty() && nest.loops[order.back()].isReduction)
    work[Work::LoopSums] = points;
  else
    work[isVector ? Work::LoopVectors : Work::LoopPoints] = points;
  addMisses(nest, order, target, work);
}

void Planner::addTraffic(StageWork &work) const {
  auto add = [&](int64_t elements) {
    double bytes = 4.0 * elements;
    if (elements > target.l1 / 2)
      work[Work::BytesL2] += bytes;
    if (elements > target.l2 / 2)
      work[Work::BytesL3] += bytes;
  };
  add(nest.data.elements);
  add(nest.output.elements);
  if (nest.hasWeight)
    add(nest.weight.elements);
}

/// Whether neighbouring loops are one for all tensors.
static bool canMerge(const StageNest &nest, unsigned loop) {
  auto merges = [&](const StageNest::Access &access) {
    return access.strides[loop] ==
           access.strides[loop + 1] * nest.loops[loop + 1].extent;
  };
  return nest.loops[loop].isReduction == nest.loops[loop + 1].isReduction &&
         merges(nest.output) && merges(nest.data) &&
         (!nest.hasWeight || merges(nest.weight));
}

/// The nest on padded data, with as few loops as may be; nothing where an index
/// is not linear.
static std::optional<StageNest> getMerged(const StageNest &nest) {
  if (nest.data.opaque || nest.weight.opaque || !nest.hasWeight)
    return std::nullopt;
  StageNest merged = nest;
  merged.borders.clear();
  for (unsigned loop = 0; loop + 1 < merged.loops.size();) {
    if (!canMerge(merged, loop)) {
      ++loop;
      continue;
    }
    merged.loops[loop + 1].extent *= merged.loops[loop].extent;
    for (StageNest::Access *access :
         {&merged.output, &merged.data, &merged.weight})
      std::copy(access->strides.begin() + loop + 1, access->strides.end(),
                access->strides.begin() + loop);
    merged.loops.erase(merged.loops.begin() + loop);
  }
  return merged;
}

std::optional<StageWork> Planner::planTiles() {
  StageWork best;
  std::optional<int64_t> bestTime;
  if (classify()) {
    auto consider = [&](auto plan) {
      StageWork work;
      std::optional<int64_t> time = (this->*plan)(work);
      if (time && (!bestTime || *time < *bestTime)) {
        best = work;
        bestTime = time;
      }
    };
    consider(&Planner::planPanels);
    consider(&Planner::planDirect);
    consider(&Planner::planRows);
  }
  return bestTime ? std::optional(best) : std::nullopt;
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

/// The nest with the loops of all inputs before the others, if they follow
/// columns and are too short for vectors of their own: a batch of matrix
/// products, whose result is transposed after.
static std::optional<StageNest> getBatchesFirst(const StageNest &nest) {
  constexpr int64_t shortest = 8;
  llvm::SmallVector<unsigned, 12> first, others, sums;
  bool followsColumn = false, hasColumn = false;
  int64_t innermost = 0;
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop) {
    bool data = nest.data.dependsOn(loop), weight = nest.weight.dependsOn(loop);
    if (nest.loops[loop].isReduction) {
      sums.push_back(loop);
    } else if (data && weight) {
      followsColumn |= hasColumn;
      first.push_back(loop);
      innermost = nest.loops[loop].extent;
    } else {
      others.push_back(loop);
      hasColumn |= data;
      innermost = 0;
    }
  }
  if (!nest.hasWeight || sums.size() != 1 || !followsColumn || innermost == 0 ||
      innermost >= shortest)
    return std::nullopt;
  first.append(others);
  first.append(sums);
  StageNest turned = nest;
  int64_t step = nest.output.elements;
  for (auto [place, loop] : llvm::enumerate(first)) {
    turned.loops[place] = nest.loops[loop];
    turned.data.strides[place] = nest.data.strides[loop];
    turned.weight.strides[place] = nest.weight.strides[loop];
    bool isSum = nest.loops[loop].isReduction;
    if (!isSum)
      step /= nest.loops[loop].extent;
    turned.output.strides[place] = isSum ? 0 : step;
  }
  return turned;
}

StageWork Planner::run() {
  std::optional<StageWork> work = planTiles();
  if (!work) {
    // The way over linalg: rearranged copies of the tensors first.
    bool isOpaque = nest.data.opaque || nest.weight.opaque;
    StageNest linear = isOpaque ? getMaterialized(nest) : nest;
    std::optional<StageNest> turned = getBatchesFirst(linear);
    if (turned)
      linear = *turned;
    if (std::optional<StageNest> merged = getMerged(linear))
      work = Planner(*merged, target).planTiles();
    if (!work) {
      work.emplace();
      Planner(linear, target).planLoops(*work);
    }
    if (turned)
      (*work)[Work::CopyPoints] += static_cast<double>(nest.output.elements);
    if (isOpaque)
      (*work)[Work::CopyPoints] += static_cast<double>(linear.data.elements);
    if (!nest.borders.empty())
      (*work)[Work::CopyVectors] += static_cast<double>(linear.data.elements);
  }
  (*work)[Work::Stage] = 1;
  addTraffic(*work);
  return *work;
}

StageWork kas::solver::getStageWork(const StageNest &nest,
                                    const WorkTarget &target) {
  return Planner(nest, target).run();
}
