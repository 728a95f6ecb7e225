//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans contractions by inner products: the reduction that vectors lie along,
// the tile of sums in registers, and the loops around it.
//
//===----------------------------------------------------------------------===//

#include "InnerProductPlan.h"
#include "StridedContraction.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

int64_t InnerProductPlan::getNumSums() const {
  int64_t sums = 1;
  for (int64_t size : tile)
    sums *= size;
  return sums;
}

int64_t InnerProductPlan::getNumTiles() const {
  int64_t tiles = 1;
  for (auto [loop, size] : llvm::zip_equal(loops, tile))
    if (!loop.isReduction)
      tiles *= loop.extent / size;
  return tiles;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The address of an element of a tensor with `shape`.
static AffineExpr getAddress(ArrayRef<AffineExpr> indices,
                             ArrayRef<int64_t> shape, MLIRContext *context) {
  AffineExpr address = getAffineConstantExpr(0, context);
  for (auto [index, size] : llvm::zip_equal(indices, shape))
    address = address * size + index;
  return address;
}

/// Whether each index of `input` has its element at all iterations.
static bool staysInside(const Contraction::Input &input,
                        ArrayRef<Interval> ranges) {
  ArrayRef<int64_t> shape = cast<ShapedType>(input.value.getType()).getShape();
  return llvm::all_of(llvm::zip_equal(input.indices, shape), [&](auto entry) {
    Interval interval = getInterval(std::get<0>(entry), ranges);
    return interval.lower >= 0 && interval.upper < std::get<1>(entry);
  });
}

/// Everything but the choices.
static std::optional<InnerProductPlan> begin(const Contraction &contraction,
                                             MemRefType output) {
  InnerProductPlan plan;
  MLIRContext *context = output.getContext();
  plan.loops = contraction.loops;
  plan.factor = contraction.factor;
  plan.tile.assign(plan.loops.size(), 1);
  SmallVector<AffineExpr> dims;
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
    // A loop of one iteration is zero, wherever it is mentioned.
    dims.push_back(plan.loops[loop].extent == 1
                       ? getAffineConstantExpr(0, context)
                       : getAffineDimExpr(loop, context));
  SmallVector<Interval> ranges = contraction.getRanges();
  auto simplify = [&](AffineExpr expr) {
    return simplifyInRanges(expr.replaceDims(dims), ranges);
  };
  for (const Contraction::Input &input : contraction.inputs) {
    auto type = dyn_cast<MemRefType>(input.value.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isF32() ||
        !type.getLayout().isIdentity())
      return std::nullopt;
    plan.inputs.push_back(
        {input.value,
         simplify(getAddress(input.indices, type.getShape(), context)),
         type.getNumElements(), /*step=*/0,
         /*isGuarded=*/!staysInside(input, ranges)});
  }
  plan.output =
      simplify(getAddress(contraction.output, output.getShape(), context));
  for (const Guard &guard : contraction.guards)
    plan.guards.push_back({simplify(guard.expr), guard.extent});
  return plan;
}

/// Replaces `outer * extent of inner + inner` by one loop in the place of
/// `inner` where all tensors step through both as if they were one.
static bool mergeLoops(InnerProductPlan &plan, unsigned outer, unsigned inner) {
  int64_t extent = plan.loops[inner].extent;
  auto areOne = [&](AffineExpr expr) {
    auto outerStep = getCoefficient(expr, outer);
    auto innerStep = getCoefficient(expr, inner);
    return outerStep && innerStep && *outerStep == *innerStep * extent;
  };
  for (const InnerProductPlan::Input &input : plan.inputs)
    if (!areOne(input.address))
      return false;
  for (const Guard &guard : plan.guards)
    if (guard.expr.isFunctionOfDim(outer) || guard.expr.isFunctionOfDim(inner))
      return false;
  MLIRContext *context = plan.output.getContext();
  AffineExpr zero = getAffineConstantExpr(0, context);
  for (InnerProductPlan::Input &input : plan.inputs)
    input.address =
        input.address.replace(getAffineDimExpr(outer, context), zero);
  plan.loops[inner].extent *= plan.loops[outer].extent;
  plan.loops[outer].extent = 1;
  return true;
}

/// Chooses the vector loop: the longest that all inputs step along by one or
/// two (rows of images under strides), or not at all.
static bool chooseVectorLoop(InnerProductPlan &plan) {
  std::optional<unsigned> found;
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop) {
    int64_t extent = plan.loops[loop].extent;
    if (!plan.loops[loop].isReduction || extent < 4 ||
        (found && plan.loops[*found].extent >= extent))
      continue;
    bool hasVector = false;
    bool suits = llvm::all_of(plan.inputs, [&](const auto &input) {
      std::optional<int64_t> step = getCoefficient(input.address, loop);
      hasVector |= step && *step != 0;
      return step && *step >= 0 && *step <= 2;
    });
    suits &= llvm::all_of(plan.guards, [&](const Guard &guard) {
      return getCoefficient(guard.expr, loop).has_value();
    });
    if (suits && hasVector)
      found = loop;
  }
  if (!found)
    return false;
  plan.vectorLoop = *found;
  return true;
}

/// Sets the vector loop and the other reductions, of which those that are
/// contiguous have become one.
static bool orderLoops(InnerProductPlan &plan) {
  if (!chooseVectorLoop(plan))
    return false;
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (unsigned outer = 0; outer < plan.loops.size(); ++outer) {
      const Contraction::Loop &loop = plan.loops[outer];
      if (loop.isReduction && loop.extent > 1 && outer != plan.vectorLoop)
        isChanged |= mergeLoops(plan, outer, plan.vectorLoop);
    }
  }
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
    if (plan.loops[loop].isReduction && plan.loops[loop].extent > 1 &&
        loop != plan.vectorLoop)
      plan.reductions.push_back(loop);
  for (InnerProductPlan::Input &input : plan.inputs)
    input.step = *getCoefficient(input.address, plan.vectorLoop);
  return true;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {
/// Finds the tile that takes the least time for each sum.
class TileChooser {
public:
  TileChooser(InnerProductPlan &plan, const ContractionTarget &target)
      : plan(plan), target(target) {}

  /// Returns the time of one vector of a sum.
  double run();

private:
  void tryLoops(unsigned position);
  bool isAllowed(unsigned loop) const;
  int64_t getStepTime() const;
  int64_t countOffsets(AffineExpr expr) const;
  /// Whether masks are known when the loops are emitted.
  bool hasKnownMasks() const;

  InnerProductPlan &plan;
  const ContractionTarget &target;
  SmallVector<unsigned> loops;
  SmallVector<int64_t> best;
  double bestTime = 0;
};
} // namespace

/// How many values `expr` takes in a tile.
int64_t TileChooser::countOffsets(AffineExpr expr) const {
  int64_t count = 1;
  for (unsigned loop : loops)
    if (expr.isFunctionOfDim(loop))
      count *= plan.tile[loop];
  return count;
}

/// Other guards than those of the vector loop are tested once for a tile.
bool TileChooser::isAllowed(unsigned loop) const {
  return llvm::all_of(plan.inputs,
                      [&](const auto &input) {
                        return getCoefficient(input.address, loop).has_value();
                      }) &&
         llvm::all_of(plan.guards, [&](const Guard &guard) {
           return !guard.expr.isFunctionOfDim(loop) ||
                  guard.expr.isFunctionOfDim(plan.vectorLoop);
         });
}

bool TileChooser::hasKnownMasks() const {
  return llvm::all_of(plan.guards, [&](const Guard &guard) {
    if (!guard.expr.isFunctionOfDim(plan.vectorLoop))
      return true;
    for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
      if (loop != plan.vectorLoop && guard.expr.isFunctionOfDim(loop) &&
          plan.tile[loop] != plan.loops[loop].extent)
        return false;
    return true;
  });
}

/// One vector of all sums of the tile.
int64_t TileChooser::getStepTime() const {
  constexpr int64_t latency = 8, maskOperations = 3;
  int64_t products = plan.getNumSums() * (plan.inputs.size() - 1);
  int64_t loads = 0, masks = 0;
  for (const InnerProductPlan::Input &input : plan.inputs)
    // Every other element: two loads and a permutation.
    loads += countOffsets(input.address) * (input.step == 2 ? 3 : 1);
  if (!hasKnownMasks())
    for (const Guard &guard : plan.guards)
      if (guard.expr.isFunctionOfDim(plan.vectorLoop))
        masks += countOffsets(guard.expr) * maskOperations;
  int64_t time = target.getOperationTime(plan.lanes);
  // Loads hardly ever wait for products alone.
  return std::max({latency, products * time, (loads + masks) * time}) +
         (loads + masks) * time / 4;
}

void TileChooser::tryLoops(unsigned position) {
  // Sums, and one vector of each input.
  int64_t limit = target.registers - 2 * plan.inputs.size() - 2;
  if (plan.getNumSums() > limit)
    return;
  if (position == loops.size()) {
    double time = static_cast<double>(getStepTime()) /
                  static_cast<double>(plan.getNumSums());
    if (best.empty() || time < bestTime) {
      bestTime = time;
      best = plan.tile;
    }
    return;
  }
  unsigned loop = loops[position];
  for (int64_t size = 1; size <= std::min(limit, plan.loops[loop].extent);
       ++size) {
    if (plan.loops[loop].extent % size)
      continue;
    plan.tile[loop] = size;
    tryLoops(position + 1);
  }
  plan.tile[loop] = 1;
}

double TileChooser::run() {
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
    if (!plan.loops[loop].isReduction && plan.loops[loop].extent > 1 &&
        isAllowed(loop))
      loops.push_back(loop);
  tryLoops(0);
  plan.tile = best;
  return bestTime;
}

/// What a tile reads in one iteration of the outermost reduction, in elements.
static int64_t getTileElements(const InnerProductPlan &plan) {
  int64_t elements = 0;
  for (const InnerProductPlan::Input &input : plan.inputs) {
    int64_t line = plan.loops[plan.vectorLoop].extent * input.step, read = 1;
    for (unsigned loop = 0; loop < plan.loops.size(); ++loop) {
      if (loop == plan.reductions.front() ||
          !input.address.isFunctionOfDim(loop))
        continue;
      std::optional<int64_t> stride = getCoefficient(input.address, loop);
      // Places of a window are in the same lines.
      bool isSame = stride && *stride < line && loop != plan.vectorLoop;
      if (plan.loops[loop].isReduction || !isSame)
        read *= plan.loops[loop].isReduction ? plan.loops[loop].extent
                                             : plan.tile[loop];
    }
    elements += read;
  }
  return elements;
}

/// As many iterations of the outermost reduction as half of the second-level
/// cache has room for, or three quarters of the first-level one for what a tile
/// reads, where little memory has the sums in between.
static void chooseBlock(InnerProductPlan &plan,
                        const ContractionTarget &target) {
  if (plan.reductions.empty())
    return;
  unsigned loop = plan.reductions.front();
  int64_t extent = plan.loops[loop].extent, elements = 0;
  for (const InnerProductPlan::Input &input : plan.inputs)
    if (input.address.isFunctionOfDim(loop))
      elements += llvm::divideCeil(input.size, extent);
  auto choose = [&](int64_t most) {
    return schedule::getLargestDivisor(extent, std::max<int64_t>(1, most));
  };
  plan.block = elements ? choose(target.l2Elements / 2 / elements) : extent;
  int64_t sums = plan.getNumTiles() * plan.getNumSums() * plan.lanes;
  int64_t read = getTileElements(plan);
  // Where other tiles hardly read the same again, longer blocks take less time.
  constexpr int64_t minReads = 4;
  if (sums * 4 > target.l2Elements ||
      plan.getNumTiles() * read < minReads * elements)
    return;
  plan.block = std::min(plan.block, choose(target.l1Elements * 3 / 4 / read));
  plan.keepsVectors = plan.hasBlocks();
}

/// `stepTime` is that of one vector of a sum.
static int64_t getTime(const InnerProductPlan &plan, double stepTime) {
  double steps = 1;
  for (unsigned loop : plan.reductions)
    steps *= static_cast<double>(plan.loops[loop].extent);
  steps *= static_cast<double>(
      llvm::divideCeil(plan.loops[plan.vectorLoop].extent, plan.lanes));
  // What is added up at the end of each block, or loaded and stored.
  constexpr double sumTime = 24, moveTime = 4;
  auto blocks = static_cast<double>(plan.getNumBlocks());
  double ends =
      plan.keepsVectors ? blocks * moveTime + sumTime : blocks * sumTime;
  auto sums = static_cast<double>(plan.getNumTiles() * plan.getNumSums());
  return static_cast<int64_t>(sums * (steps * stepTime + ends));
}

std::optional<InnerProductPlan>
kas::codegen::makeInnerProductPlan(const Contraction &contraction,
                                   MemRefType output,
                                   const ContractionTarget &target) {
  std::optional<InnerProductPlan> plan = begin(contraction, output);
  if (!plan || !target.hasMaskedLoads || !orderLoops(*plan))
    return std::nullopt;
  plan->lanes = target.getLanes(plan->loops[plan->vectorLoop].extent);
  double stepTime = TileChooser(*plan, target).run();
  chooseBlock(*plan, target);
  plan->time = getTime(*plan, stepTime);
  return plan;
}
