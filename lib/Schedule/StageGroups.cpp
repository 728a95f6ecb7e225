//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cheapest way to multiply a set of weights in one stage or in stages of
// weights alone.
//
//===----------------------------------------------------------------------===//

#include "StageGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using namespace kas;
using namespace kas::schedule;
using llvm::ArrayRef;

PlanCost kas::schedule::operator+(const PlanCost &a, const PlanCost &b) {
  return {llvm::SaturatingAdd(a.macs, b.macs),
          llvm::SaturatingAdd(a.traffic, b.traffic), a.stages + b.stages};
}

bool kas::schedule::operator<(const PlanCost &a, const PlanCost &b) {
  return std::tie(a.macs, a.traffic, a.stages) <
         std::tie(b.macs, b.traffic, b.stages);
}

uint64_t kas::schedule::getStageMacs(StageCost cost, uint64_t points,
                                     uint64_t numOperands, bool hasSums) {
  if (numOperands == 1)
    return hasSums ? points : 0;
  uint64_t factor = cost == StageCost::Training ? numOperands * numOperands - 1
                                                : numOperands - 1;
  return llvm::SaturatingMultiply(points, factor);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

WeightGroups::WeightGroups(const StageGraph &graph, const StageCuts &cuts,
                           const StagePlanOptions &options)
    : graph(graph), cuts(cuts), options(options),
      reductionSizes(graph.numReductions, 1) {
  for (const StageGraph::Coordinate &coordinate : graph.coordinates)
    if (coordinate.producerKind == StageGraph::Producer::Reduction)
      reductionSizes[coordinate.producer] = coordinate.size;
  for (ArrayRef<unsigned> weight : graph.weights)
    weightSizes.push_back(getTensorSize(weight));
  findReached();
}

/// The results of a primitive come after its operands.
void WeightGroups::findReached() {
  reachedWeights.assign(graph.numReductions, 0);
  reachesData.assign(graph.numReductions, false);
  weightsOfPrimitive.assign(graph.numPrimitives, 0);
  hasData.assign(graph.numPrimitives, false);
  for (unsigned index = graph.coordinates.size(); index-- > 0;) {
    const StageGraph::Coordinate &coordinate = graph.coordinates[index];
    uint32_t weights = cuts.getWeights(index);
    bool isData = cuts.isData(index);
    if (coordinate.consumer != StageGraph::noPrimitive) {
      weights |= weightsOfPrimitive[coordinate.consumer];
      isData |= hasData[coordinate.consumer];
    }
    if (coordinate.producerKind == StageGraph::Producer::Primitive) {
      weightsOfPrimitive[coordinate.producer] |= weights;
      hasData[coordinate.producer] |= isData;
    } else if (coordinate.producerKind == StageGraph::Producer::Reduction) {
      reachedWeights[coordinate.producer] = weights;
      reachesData[coordinate.producer] = isData;
    }
  }
}

uint64_t WeightGroups::getPrimitivesOf(uint32_t weights) const {
  uint64_t primitives = 0;
  for (unsigned index = 0; index < graph.numPrimitives; ++index)
    if (!hasData[index] && weightsOfPrimitive[index] != 0 &&
        (weightsOfPrimitive[index] & ~weights) == 0)
      primitives |= uint64_t(1) << index;
  return primitives;
}

uint64_t WeightGroups::getTensorSize(ArrayRef<unsigned> coordinates) const {
  uint64_t elements = 1;
  for (unsigned coordinate : coordinates)
    elements = llvm::SaturatingMultiply(
        elements, uint64_t(graph.coordinates[coordinate].size));
  return elements;
}

uint64_t WeightGroups::getOutputSize() const {
  uint64_t elements = 1;
  for (const StageGraph::Coordinate &coordinate : graph.coordinates)
    if (coordinate.producerKind == StageGraph::Producer::Output)
      elements = llvm::SaturatingMultiply(elements, uint64_t(coordinate.size));
  return elements;
}

uint32_t WeightGroups::getOwnReductions(uint32_t weights) const {
  uint32_t own = 0;
  for (unsigned index = 0; index < graph.numReductions; ++index)
    if (!reachesData[index] && reachedWeights[index] != 0 &&
        (reachedWeights[index] & ~weights) == 0)
      own |= uint32_t(1) << index;
  return own;
}

/// What stages among `operands` sum.
static uint32_t getSummed(ArrayRef<GroupOperand> operands) {
  uint32_t summed = 0;
  for (const GroupOperand &operand : operands)
    summed |= operand.reductions;
  return summed;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

uint64_t WeightGroups::getPoints(const StageShape &shape,
                                 ArrayRef<GroupOperand> operands) const {
  uint64_t points = shape.elements;
  uint32_t reductions = shape.reductions & ~getSummed(operands);
  for (; reductions != 0; reductions &= reductions - 1)
    points = llvm::SaturatingMultiply(
        points, reductionSizes[llvm::countr_zero(reductions)]);
  return points;
}

PlanCost WeightGroups::getCost(const StageShape &shape,
                               ArrayRef<GroupOperand> operands) {
  bool isPrepacked = options.cost == StageCost::Prepared;
  uint32_t reductions = shape.reductions & ~getSummed(operands);
  PlanCost cost;
  cost.macs = getStageMacs(isPrepacked ? StageCost::Unprepared : options.cost,
                           getPoints(shape, operands),
                           operands.size() + shape.hasData, reductions != 0);
  cost.traffic = llvm::SaturatingAdd(shape.read, shape.elements);
  cost.stages = 1;
  PlanCost ofOperands;
  for (const GroupOperand &operand : operands) {
    PlanCost ofOperand;
    if (operand.isStage) {
      const Group &group = getGroup(operand);
      ofOperand = group.cost;
      // Computed before.
      if (isPrepacked && shape.hasData)
        ofOperand.macs = ofOperand.traffic = 0;
      cost.traffic = llvm::SaturatingAdd(cost.traffic, group.cut.elements);
    } else {
      cost.traffic = llvm::SaturatingAdd(
          cost.traffic, weightSizes[llvm::countr_zero(operand.weights)]);
    }
    ofOperands = ofOperands + ofOperand;
  }
  cost.macs = llvm::SaturatingAdd(cost.macs, getTrafficMacs(cost.traffic));
  return cost + ofOperands;
}

/// What elements that are read and written count as.
uint64_t WeightGroups::getTrafficMacs(uint64_t elements) const {
  uint64_t times = options.cost == StageCost::Training ? 3 : 1;
  return llvm::SaturatingMultiply(
      llvm::SaturatingMultiply(times, options.traffic), elements);
}

StageShape WeightGroups::getShape(const GroupOperand &operand,
                                  const Group &group) const {
  StageShape shape;
  shape.reductions = operand.reductions;
  shape.primitives = group.cut.primitives;
  shape.elements = group.cut.elements;
  return shape;
}

/// A coordinate indexes the first operand of a stage once, and is an operand of
/// none of its primitives (C8, C9).
bool WeightGroups::canBeFirst(const GroupOperand &operand,
                              uint64_t primitives) const {
  for (uint32_t left = operand.weights; left != 0; left &= left - 1) {
    ArrayRef<unsigned> weight = graph.weights[llvm::countr_zero(left)];
    for (auto [index, coordinate] : llvm::enumerate(weight)) {
      unsigned consumer = graph.coordinates[coordinate].consumer;
      bool isOperand =
          consumer != StageGraph::noPrimitive && (primitives >> consumer & 1);
      bool isRepeated =
          !operand.isStage &&
          llvm::is_contained(weight.take_front(index), coordinate);
      if (isOperand || isRepeated)
        return false;
    }
  }
  return true;
}

std::optional<unsigned>
WeightGroups::findFirst(const StageShape &shape,
                        ArrayRef<GroupOperand> operands) {
  uint64_t primitives = shape.primitives;
  for (const GroupOperand &operand : operands)
    if (operand.isStage)
      primitives &= ~getGroup(operand).cut.primitives;
  for (auto [index, operand] : llvm::enumerate(operands))
    if (canBeFirst(operand, primitives))
      return index;
  return std::nullopt;
}

/// The best operands of a stage on weights with this cut replace those of
/// `group` when they are better. Whether better ones would have been had some
/// operand been possible as the first one.
bool WeightGroups::tryCut(const GroupOperand &operand, const StageCut &cut,
                          Group &group) {
  if (cut.elements > options.maxIntermediateElements)
    return false;
  Group tried;
  tried.cut = cut;
  StageShape shape = getShape(operand, tried);
  bool isBlocked = false;
  auto visit = [&](ArrayRef<GroupOperand> operands) {
    tried.cost = getCost(shape, operands);
    if (group.isPossible && !isBetter(tried, group))
      return;
    if (!findFirst(shape, operands)) {
      isBlocked = true;
      return;
    }
    tried.isPossible = true;
    tried.operands.assign(operands.begin(), operands.end());
    group = tried;
  };
  forEachPartition(operand.weights, shape, visit);
  return isBlocked;
}

/// What is computed before counts by the elements that are read.
bool WeightGroups::isBetter(const Group &a, const Group &b) const {
  auto getKey = [&](const Group &group) {
    bool isPrepacked = options.cost == StageCost::Prepared;
    PlanCost cost = group.cost;
    cost.macs =
        llvm::SaturatingAdd(cost.macs, getTrafficMacs(group.cut.elements));
    cost.traffic = llvm::SaturatingAdd(cost.traffic, group.cut.elements);
    return std::tuple(isPrepacked ? group.cut.elements : 0, cost.macs,
                      cost.traffic, cost.stages);
  };
  return getKey(a) < getKey(b);
}

const WeightGroups::Group &WeightGroups::getGroup(const GroupOperand &operand) {
  auto key =
      std::make_tuple(operand.weights, operand.reductions, operand.excluded);
  auto it = known.find(key);
  if (it != known.end())
    return it->second;
  Group group;
  DoneSet done{operand.reductions, operand.weights, /*hasData=*/false};
  bool isBlocked = false;
  for (const StageCut &cut :
       cuts.find(done, /*primitives=*/0, operand.excluded))
    isBlocked = tryCut(operand, cut, group);
  // Some other cut may let an operand be the first one.
  uint64_t free = getPrimitivesOf(operand.weights) & ~operand.excluded;
  if (isBlocked && llvm::popcount(free) <= StageGraph::maxTried) {
    uint64_t above = 0;
    do {
      for (const StageCut &cut :
           cuts.find(done, above, operand.excluded | (free & ~above)))
        tryCut(operand, cut, group);
      above = (above - free) & free;
    } while (above != 0);
  }
  return known.emplace(key, std::move(group)).first->second;
}

/// The ways to have weights as operands of a stage: each block of a partition
/// is a weight as it is, or the result of a stage.
class WeightGroups::Partitions {
public:
  Partitions(WeightGroups &groups, uint32_t all, const StageShape &shape,
             llvm::function_ref<void(ArrayRef<GroupOperand>)> visit)
      : groups(groups), all(all), shape(shape), visit(visit),
        isLarge(unsigned(llvm::popcount(all)) > StageGraph::maxGrouped) {}

  void partition(uint32_t left, uint32_t reductions) {
    if (left == 0)
      return visit(operands);
    uint32_t first = left & -left, others = left & ~first;
    take(left, reductions, {first, 0, 0, /*isStage=*/false});
    // The subsets of the others, from none to all.
    uint32_t subset = 0;
    do {
      takeStages(left, reductions, first | subset);
      subset = (subset - others) & others;
    } while (subset != 0);
  }

private:
  void take(uint32_t left, uint32_t reductions, GroupOperand block) {
    operands.push_back(block);
    partition(left & ~block.weights, reductions & ~block.reductions);
    operands.pop_back();
  }

  /// The stages on a block of weights: by the reductions that they sum.
  void takeStages(uint32_t left, uint32_t reductions, uint32_t block) {
    // All operands of a stage on weights are no operand of it.
    if ((block == all && !shape.hasData) || (block != all && isLarge))
      return;
    uint32_t own = groups.getOwnReductions(block) & reductions;
    uint32_t sums = own;
    do {
      GroupOperand operand{block, sums, 0, /*isStage=*/true};
      if ((sums != 0 || !llvm::has_single_bit(block)) && isPossible(operand))
        take(left, reductions, operand);
      sums = (sums - 1) & own;
    } while (sums != own);
  }

  bool isPossible(GroupOperand &operand) const {
    const Group *group = &groups.getGroup(operand);
    if (group->isPossible && (group->cut.primitives & ~shape.primitives)) {
      operand.excluded = ~shape.primitives;
      group = &groups.getGroup(operand);
    }
    return group->isPossible;
  }

  WeightGroups &groups;
  uint32_t all;
  const StageShape &shape;
  llvm::function_ref<void(ArrayRef<GroupOperand>)> visit;
  bool isLarge;
  llvm::SmallVector<GroupOperand, 4> operands;
};

void WeightGroups::forEachPartition(
    uint32_t weights, const StageShape &shape,
    llvm::function_ref<void(ArrayRef<GroupOperand>)> visit) {
  Partitions(*this, weights, shape, visit).partition(weights, shape.reductions);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static void addBits(uint64_t bits, llvm::SmallVectorImpl<unsigned> &list) {
  for (; bits != 0; bits &= bits - 1)
    list.push_back(llvm::countr_zero(bits));
}

StageOperand WeightGroups::addStages(const GroupOperand &operand,
                                     StagePlan &plan) {
  if (!operand.isStage)
    return {StageOperand::Kind::Weight,
            unsigned(llvm::countr_zero(operand.weights))};
  const Group &group = getGroup(operand);
  Stage stage = makeStage(getShape(operand, group), group.operands, plan);
  stage.isOfWeights = true;
  DoneSet done{operand.reductions, operand.weights, /*hasData=*/false};
  for (unsigned index = 0; index < graph.coordinates.size(); ++index)
    if (cuts.crosses(index, done, group.cut.primitives))
      stage.frontier.push_back(index);
  plan.stages.push_back(std::move(stage));
  return {StageOperand::Kind::Stage, unsigned(plan.stages.size() - 1)};
}

Stage WeightGroups::makeStage(const StageShape &shape,
                              ArrayRef<GroupOperand> operands,
                              StagePlan &plan) {
  Stage stage;
  uint64_t primitives = shape.primitives;
  for (const GroupOperand &operand : operands) {
    stage.operands.push_back(addStages(operand, plan));
    if (operand.isStage)
      primitives &= ~getGroup(operand).cut.primitives;
  }
  if (!shape.hasData) {
    auto *first = stage.operands.begin() + *findFirst(shape, operands);
    std::rotate(stage.operands.begin(), first, std::next(first));
  }
  uint32_t reductions = shape.reductions & ~getSummed(operands);
  addBits(reductions, stage.reductions);
  addBits(primitives, stage.primitives);
  stage.macs = getStageMacs(StageCost::Unprepared, getPoints(shape, operands),
                            operands.size() + shape.hasData, reductions != 0);
  stage.elements = shape.elements;
  return stage;
}
