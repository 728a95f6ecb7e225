//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages that depend on weights alone.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_SCHEDULE_STAGEGROUPS_H
#define KAS_LIB_SCHEDULE_STAGEGROUPS_H

#include "StageCut.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <optional>
#include <tuple>

namespace kas::schedule {

/// What plans are compared by, in this order.
struct PlanCost {
  uint64_t macs = 0, traffic = 0;
  unsigned stages = 0;

  friend PlanCost operator+(const PlanCost &a, const PlanCost &b);
  friend bool operator<(const PlanCost &a, const PlanCost &b);
};

/// The multiply-adds of a stage with so many points and operands; `hasSums`
/// says whether it sums anything.
uint64_t getStageMacs(StageCost cost, uint64_t points, uint64_t numOperands,
                      bool hasSums);

/// What a stage multiplies besides what it has the data from: a weight as it
/// is, or the result of a stage on a set of weights.
struct GroupOperand {
  /// Bit sets: the weights, and what the stage sums.
  uint32_t weights = 0, reductions = 0;
  /// Primitives that the stage may not take; none where its smallest result
  /// takes none of them anyway.
  uint64_t excluded = 0;
  bool isStage = false;
};

/// What a stage takes and leaves, without the weights.
struct StageShape {
  /// A bit set, with those that only its groups of weights have.
  uint32_t reductions = 0;
  /// The primitives between its result and what it takes the data from: stages
  /// on weights that it takes have no others.
  uint64_t primitives = 0;
  /// Elements of its result and of the one that it takes the data from.
  uint64_t elements = 1, read = 0;
  bool hasData = false;
};

/// The best stages for each set of weights.
class WeightGroups {
public:
  WeightGroups(const StageGraph &graph, const StageCuts &cuts,
               const StagePlanOptions &options);

  uint64_t getTensorSize(llvm::ArrayRef<unsigned> coordinates) const;
  uint64_t getOutputSize() const;
  /// Calls `visit` with each way to have a set of weights as operands of a
  /// stage.
  void forEachPartition(
      uint32_t weights, const StageShape &shape,
      llvm::function_ref<void(llvm::ArrayRef<GroupOperand>)> visit);

  /// The cost of a stage and of those on the weights that it takes.
  PlanCost getCost(const StageShape &shape,
                   llvm::ArrayRef<GroupOperand> operands);

  /// A stage without its frontier and without the operand that has the data;
  /// the stages on weights that it takes are added to the plan.
  Stage makeStage(const StageShape &shape,
                  llvm::ArrayRef<GroupOperand> operands, StagePlan &plan);

private:
  /// A stage on a set of weights.
  struct Group {
    bool isPossible = false;
    StageCut cut;
    PlanCost cost;
    llvm::SmallVector<GroupOperand, 2> operands;
  };

  const Group &getGroup(const GroupOperand &operand);
  bool tryCut(const GroupOperand &operand, const StageCut &cut, Group &group);
  uint64_t getTrafficMacs(uint64_t elements) const;
  bool isBetter(const Group &a, const Group &b) const;
  /// The primitives from which these weights are reached and nothing else.
  uint64_t getPrimitivesOf(uint32_t weights) const;
  bool canBeFirst(const GroupOperand &operand, uint64_t primitives) const;
  /// Which operand of a stage on weights takes the place of the data.
  std::optional<unsigned> findFirst(const StageShape &shape,
                                    llvm::ArrayRef<GroupOperand> operands);
  StageShape getShape(const GroupOperand &operand, const Group &group) const;
  class Partitions;
  /// The reductions that reach these weights and nothing else.
  uint32_t getOwnReductions(uint32_t weights) const;
  uint64_t getPoints(const StageShape &shape,
                     llvm::ArrayRef<GroupOperand> operands) const;
  StageOperand addStages(const GroupOperand &operand, StagePlan &plan);
  void findReached();

  const StageGraph &graph;
  const StageCuts &cuts;
  const StagePlanOptions &options;
  llvm::SmallVector<uint64_t> reductionSizes, weightSizes;
  /// By reduction: the weights that it reaches, and whether it reaches the
  /// data.
  llvm::SmallVector<uint32_t> reachedWeights;
  llvm::SmallVector<bool> reachesData;
  /// The same of primitives.
  llvm::SmallVector<uint32_t> weightsOfPrimitive;
  llvm::SmallVector<bool> hasData;
  /// By weights, what is summed and what is excluded.
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Group> known;
};

} // namespace kas::schedule

#endif // KAS_LIB_SCHEDULE_STAGEGROUPS_H
