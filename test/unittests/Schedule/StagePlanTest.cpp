//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageBruteForce.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <map>
#include <optional>
#include <random>

using namespace kas;
using namespace kas::schedule;
using namespace kas::test;

namespace {

using Producer = StageGraph::Producer;

/// Random graphs: primitives with one or two operands and up to two results in
/// any order that has no cycle, tensors with random coordinates.
class RandomGraph {
public:
  explicit RandomGraph(uint64_t seed) : engine(seed) {}

  /// As in operators, every reduction reaches a tensor (C11), and tensors have
  /// a coordinate at least (C10).
  StageGraph next(unsigned minWeights, unsigned maxReductions,
                  unsigned maxWeights, unsigned maxPrimitives,
                  bool isExact = false) {
    do
      make(minWeights, maxReductions, maxWeights, maxPrimitives);
    while (!isLegal() || (isExact && hasNestedWeights(graph)));
    return graph;
  }

private:
  void make(unsigned minWeights, unsigned maxReductions, unsigned maxWeights,
            unsigned maxPrimitives) {
    graph = StageGraph();
    graph.numReductions = below(maxReductions + 1);
    graph.weights.resize(minWeights + below(maxWeights - minWeights + 1));
    open.clear();
    reduced = 0;
    for (unsigned i = 0, e = 1 + below(3); i < e; ++i)
      add(Producer::Output, 0);
    for (unsigned i = 0; i < graph.numReductions; ++i)
      add(Producer::Reduction, i);
    unsigned numPrimitives = below(maxPrimitives + 1);
    for (unsigned i = 0; i < numPrimitives && !open.empty(); ++i)
      addPrimitive();
    for (unsigned position : open) {
      addWeights(position);
      // What only weights have, and what the data has.
      if (below(2) != 0 || !isInWeight(position))
        graph.data.push_back(position);
    }
  }

  bool isInWeight(unsigned position) const {
    return llvm::any_of(graph.weights, [&](const auto &weight) {
      return llvm::is_contained(weight, position);
    });
  }

  bool isLegal() const {
    if (graph.data.empty() ||
        llvm::any_of(graph.weights, [](const auto &w) { return w.empty(); }))
      return false;
    uint64_t live = 0;
    // The results of a primitive come after its operands.
    for (unsigned index = graph.coordinates.size(); index-- > 0;) {
      const StageGraph::Coordinate &coordinate = graph.coordinates[index];
      bool isLive = llvm::is_contained(graph.data, index) ||
                    isInWeight(index) ||
                    (coordinate.consumer != StageGraph::noPrimitive &&
                     (live >> coordinate.consumer & 1));
      if (coordinate.producerKind == Producer::Primitive && isLive)
        live |= uint64_t(1) << coordinate.producer;
      if (coordinate.producerKind == Producer::Reduction && !isLive)
        return false;
    }
    return true;
  }

  unsigned below(unsigned bound) { return engine() % bound; }

  void add(Producer kind, unsigned producer) {
    open.push_back(graph.coordinates.size());
    StageGraph::Coordinate &coordinate = graph.coordinates.emplace_back();
    static constexpr int64_t sizes[] = {1, 2, 2, 3, 4, 7, 32};
    coordinate.size = sizes[below(std::size(sizes))];
    coordinate.producerKind = kind;
    coordinate.producer = producer;
  }

  void addWeights(unsigned position) {
    for (auto &weight : graph.weights)
      if (below(3) == 0)
        weight.push_back(position);
  }

  /// Takes a coordinate that has no consumer yet; returns whether it depends on
  /// a reduction.
  bool consume(unsigned primitive) {
    unsigned *taken = open.begin() + below(open.size());
    StageGraph::Coordinate &coordinate = graph.coordinates[*taken];
    coordinate.consumer = primitive;
    bool isReduced = coordinate.producerKind == Producer::Reduction ||
                     (coordinate.producerKind == Producer::Primitive &&
                      (reduced >> coordinate.producer & 1));
    addWeights(*taken);
    open.erase(taken);
    return isReduced;
  }

  /// Only what does not depend on a reduction is dropped.
  void addPrimitive() {
    unsigned primitive = graph.numPrimitives++;
    bool isReduced = false;
    unsigned numOperands = 0;
    for (unsigned e = 1 + below(2); numOperands < e && !open.empty();
         ++numOperands)
      isReduced |= consume(primitive);
    reduced |= uint64_t(isReduced) << primitive;
    bool hasResult = isReduced || numOperands > 1;
    for (unsigned i = 0, e = hasResult ? 1 + below(2) : below(3); i < e; ++i)
      add(Producer::Primitive, primitive);
  }

  std::mt19937_64 engine;
  StageGraph graph;
  llvm::SmallVector<unsigned> open;
  /// The primitives that depend on a reduction.
  uint64_t reduced = 0;
};

/// A plan is a partition in which every stage can be computed.
void checkPlan(const StageGraph &graph, const StagePlan &plan,
               StageCost cost = StageCost::Unprepared, uint64_t traffic = 0) {
  llvm::SmallVector<unsigned> reductions, weights, primitives, results;
  uint64_t macs = 0;
  for (const Stage &stage : plan.stages) {
    reductions.append(stage.reductions.begin(), stage.reductions.end());
    primitives.append(stage.primitives.begin(), stage.primitives.end());
    for (const StageOperand &operand : stage.operands) {
      if (operand.kind == StageOperand::Kind::Weight)
        weights.push_back(operand.index);
      if (operand.kind == StageOperand::Kind::Stage)
        results.push_back(operand.index);
    }
    if (cost == StageCost::Unprepared || !stage.isOfWeights)
      macs += stage.macs;
    uint64_t elements = 1;
    for (unsigned position : stage.frontier)
      elements *= graph.coordinates[position].size;
    EXPECT_EQ(elements, stage.elements);
  }
  if (cost != StageCost::Training && traffic == 0)
    EXPECT_EQ(macs, plan.macs);
  auto isComplete = [](llvm::SmallVector<unsigned> list, unsigned count) {
    llvm::sort(list);
    return llvm::equal(list, llvm::seq(count));
  };
  EXPECT_FALSE(plan.stages.back().isOfWeights);
  EXPECT_TRUE(isComplete(reductions, graph.numReductions));
  EXPECT_TRUE(isComplete(weights, graph.weights.size()));
  EXPECT_TRUE(isComplete(primitives, graph.numPrimitives));
  EXPECT_TRUE(isComplete(results, plan.stages.size() - 1));
}

} // namespace

static void compareWithBruteForce(StageCost cost, unsigned minWeights,
                                  unsigned trials, uint64_t traffic = 0) {
  unsigned staged = 0, ofWeights = 0, sumsOfWeights = 0;
  for (unsigned seed = 0; seed < trials; ++seed) {
    StageGraph graph = RandomGraph(seed).next(minWeights, 4, 3, 4, true);
    StagePlanOptions options;
    options.cost = cost;
    options.traffic = traffic;
    StagePlan plan = planStages(graph, options);
    checkPlan(graph, plan, cost, traffic);
    auto [macs, elements, stages] = findLeastStages(graph, cost, traffic);
    ASSERT_EQ(plan.macs, macs) << "seed " << seed;
    ASSERT_EQ(plan.traffic, elements) << "seed " << seed;
    ASSERT_EQ(plan.stages.size(), stages) << "seed " << seed;
    unsigned numOfWeights = llvm::count_if(
        plan.stages, [](const Stage &stage) { return stage.isOfWeights; });
    staged += stages - numOfWeights > 1;
    ofWeights += numOfWeights != 0;
    sumsOfWeights += llvm::any_of(plan.stages, [](const Stage &stage) {
      return stage.isOfWeights && !stage.reductions.empty();
    });
  }
  // The generator makes graphs that gain from stages, and others.
  EXPECT_GT(staged, trials / 20);
  EXPECT_LT(staged, trials * 19 / 20);
  EXPECT_GT(ofWeights, trials / 10);
  EXPECT_GT(sumsOfWeights, trials / 20);
}

TEST(StagePlan, EqualsBruteForce) {
  compareWithBruteForce(StageCost::Unprepared, 0, 2000);
}

TEST(StagePlan, WithWeightsEqualsBruteForce) {
  compareWithBruteForce(StageCost::Unprepared, 2, 10000);
}

TEST(StagePlan, PreparedEqualsBruteForce) {
  compareWithBruteForce(StageCost::Prepared, 2, 10000);
}

TEST(StagePlan, TrainingEqualsBruteForce) {
  compareWithBruteForce(StageCost::Training, 2, 10000);
}

TEST(StagePlan, WithTrafficEqualsBruteForce) {
  compareWithBruteForce(StageCost::Unprepared, 2, 4000, 1);
  compareWithBruteForce(StageCost::Prepared, 2, 10000, 1);
  compareWithBruteForce(StageCost::Training, 2, 10000, usualTraffic);
}

TEST(StagePlan, ObeysTheMemoryLimit) {
  unsigned limited = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    StageGraph graph = RandomGraph(seed).next(0, 4, 3, 6);
    StagePlan free = planStages(graph);
    StagePlanOptions options;
    options.maxIntermediateElements = 10;
    StagePlan plan = planStages(graph, options);
    checkPlan(graph, plan);
    EXPECT_GE(plan.macs, free.macs);
    limited += plan.macs > free.macs;
    for (const Stage &stage : llvm::drop_end(plan.stages))
      EXPECT_LE(stage.elements, 10u) << "seed " << seed;
  }
  EXPECT_GT(limited, 10u);
}

TEST(StagePlan, PlansLargeGraphsAsOneNest) {
  StageGraph graph;
  graph.numReductions = StageGraph::maxChoices + 1;
  graph.coordinates.emplace_back().size = 5;
  for (unsigned i = 0; i < graph.numReductions; ++i) {
    StageGraph::Coordinate &coordinate = graph.coordinates.emplace_back();
    graph.data.push_back(i + 1);
    coordinate.size = 2;
    coordinate.producerKind = StageGraph::Producer::Reduction;
    coordinate.producer = i;
  }
  StagePlan plan = planStages(graph);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.macs, 5u << graph.numReductions);
  checkPlan(graph, plan);
}

TEST(StagePlan, SaturatesInsteadOfWrapping) {
  StageGraph graph;
  for (int i = 0; i < 4; ++i)
    graph.coordinates.emplace_back().size = int64_t(1) << 31;
  graph.numReductions = 1;
  StageGraph::Coordinate &coordinate = graph.coordinates.emplace_back();
  coordinate.size = int64_t(1) << 31;
  coordinate.producerKind = StageGraph::Producer::Reduction;
  EXPECT_EQ(planStages(graph).macs, UINT64_MAX);
}
