//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/StagePlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <map>
#include <random>

using namespace kas;
using namespace kas::solver;

namespace {

using End = StageGraph::End;

/// Random graphs: primitives with one or two operands and up to two results in
/// any order that has no cycle, tensors with random coordinates.
class RandomGraph {
public:
  explicit RandomGraph(uint64_t seed) : engine(seed) {}

  /// As in operators, every reduction reaches a tensor (C11).
  StageGraph next(unsigned maxReductions, unsigned maxWeights,
                  unsigned maxPrimitives) {
    do
      make(maxReductions, maxWeights, maxPrimitives);
    while (!isReached());
    return graph;
  }

private:
  void make(unsigned maxReductions, unsigned maxWeights,
            unsigned maxPrimitives) {
    graph = StageGraph();
    graph.numReductions = below(maxReductions + 1);
    graph.numWeights = below(maxWeights + 1);
    open.clear();
    for (unsigned i = 0, e = 1 + below(3); i < e; ++i)
      add(End::Output, 0);
    for (unsigned i = 0; i < graph.numReductions; ++i)
      add(End::Reduction, i);
    unsigned numPrimitives = below(maxPrimitives + 1);
    for (unsigned i = 0; i < numPrimitives && !open.empty(); ++i)
      addPrimitive();
    for (unsigned position : open)
      graph.coordinates[position].consumer = below(graph.numWeights + 1);
  }

  bool isReached() const {
    uint64_t live = 0;
    auto isLive = [&](const StageGraph::Coordinate &coordinate) {
      return coordinate.consumerKind == End::Tensor ||
             (live >> coordinate.consumer & 1);
    };
    // The results of a primitive come after its operands.
    for (const StageGraph::Coordinate &coordinate :
         llvm::reverse(graph.coordinates)) {
      if (coordinate.producerKind == End::Primitive && isLive(coordinate))
        live |= uint64_t(1) << coordinate.producer;
      if (coordinate.producerKind == End::Reduction && !isLive(coordinate))
        return false;
    }
    return true;
  }

  unsigned below(unsigned bound) { return engine() % bound; }

  void add(End kind, unsigned producer) {
    open.push_back(graph.coordinates.size());
    StageGraph::Coordinate &coordinate = graph.coordinates.emplace_back();
    static constexpr int64_t sizes[] = {1, 2, 2, 3, 4, 7, 32};
    coordinate.size = sizes[below(std::size(sizes))];
    coordinate.producerKind = kind;
    coordinate.producer = producer;
  }

  /// Takes a coordinate that has no consumer yet; returns its size.
  int64_t consume(unsigned primitive) {
    unsigned *taken = open.begin() + below(open.size());
    StageGraph::Coordinate &coordinate = graph.coordinates[*taken];
    coordinate.consumerKind = End::Primitive;
    coordinate.consumer = primitive;
    open.erase(taken);
    return coordinate.size;
  }

  void addPrimitive() {
    unsigned primitive = graph.numPrimitives++;
    // A share: both results have the size of the operand.
    if (below(4) == 0) {
      int64_t size = consume(primitive);
      for (bool isBound : {false, below(2) == 0}) {
        add(End::Primitive, primitive);
        graph.coordinates.back().size = size;
        graph.coordinates.back().isBound = isBound;
        graph.coordinates.back().isExclusive = true;
      }
      return;
    }
    for (unsigned i = 0, e = 1 + below(2); i < e && !open.empty(); ++i)
      consume(primitive);
    for (unsigned i = 0, e = below(3); i < e; ++i)
      add(End::Primitive, primitive);
  }

  std::mt19937_64 engine;
  StageGraph graph;
  llvm::SmallVector<unsigned> open;
};

/// The least (multiply-adds, traffic, stages) over every chain of sets of
/// reductions and weights and every place to cut, by trying all of them.
class BruteForce {
public:
  explicit BruteForce(const StageGraph &graph) : graph(graph) {}

  using Cost = std::tuple<uint64_t, uint64_t, unsigned>;

  Cost solve() { return best(0, 0, tensorSize(0)); }

private:
  uint64_t tensorSize(unsigned tensor) const {
    uint64_t size = 1;
    for (const auto &c : graph.coordinates)
      if (c.consumerKind == End::Tensor && c.consumer == tensor)
        size *= c.size;
    return size;
  }

  bool producedAbove(const StageGraph::Coordinate &c, uint32_t done,
                     uint64_t cut) const {
    if (c.producerKind == End::Primitive)
      return cut >> c.producer & 1;
    return c.producerKind == End::Reduction && (done >> c.producer & 1);
  }
  bool consumedAbove(const StageGraph::Coordinate &c, uint32_t done,
                     uint64_t cut) const {
    if (c.consumerKind == End::Primitive)
      return cut >> c.consumer & 1;
    return c.consumer == 0 ||
           (done >> (graph.numReductions + c.consumer - 1) & 1);
  }

  /// The elements that cross, or 0 when there is no such cut.
  uint64_t crossing(uint32_t done, uint64_t cut) const {
    uint64_t elements = 1;
    bool any = false;
    uint64_t exclusive = 0;
    for (const auto &c : graph.coordinates) {
      bool from = producedAbove(c, done, cut), to = consumedAbove(c, done, cut);
      if (from && !to)
        return 0;
      if (from || !to)
        continue;
      if (c.isBound || (c.isExclusive && (exclusive >> c.producer & 1)))
        return 0;
      exclusive |= c.isExclusive ? uint64_t(1) << c.producer : 0;
      elements *= c.size;
      any = true;
    }
    return any ? elements : 0;
  }

  Cost stage(uint32_t taken, uint64_t from, uint64_t to) const {
    uint64_t macs = to, traffic = from + to;
    unsigned weights = 0;
    for (const auto &c : graph.coordinates)
      if (c.producerKind == End::Reduction && (taken >> c.producer & 1))
        macs *= c.size;
    for (unsigned i = 0; i < graph.numWeights; ++i)
      if (taken >> (graph.numReductions + i) & 1) {
        ++weights;
        traffic += tensorSize(i + 1);
      }
    macs *= taken == 0 ? 0 : std::max(weights, 1u);
    return {macs, traffic, 1};
  }

  static Cost plus(const Cost &a, const Cost &b) {
    return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
            std::get<2>(a) + std::get<2>(b)};
  }

  Cost best(uint32_t done, uint64_t cut, uint64_t elements) {
    auto [it, isNew] = memo.try_emplace({done, cut});
    if (!isNew)
      return it->second;
    uint32_t all = (1u << (graph.numReductions + graph.numWeights)) - 1;
    uint64_t outputSize = 1;
    for (const auto &c : graph.coordinates)
      if (c.producerKind == End::Output)
        outputSize *= c.size;
    Cost result = stage(all & ~done, elements, outputSize);
    uint32_t reductions = (1u << graph.numReductions) - 1;
    for (uint32_t next = done; next <= all; ++next) {
      if ((done & ~next) != 0 || ((next & ~done) & reductions) == 0)
        continue;
      for (uint64_t above = 0; above >> graph.numPrimitives == 0; ++above) {
        uint64_t size = (cut & ~above) == 0 ? crossing(next, above) : 0;
        if (size != 0)
          result = std::min(result, plus(stage(next & ~done, elements, size),
                                         best(next, above, size)));
      }
    }
    return memo[{done, cut}] = result;
  }

  const StageGraph &graph;
  std::map<std::pair<uint32_t, uint64_t>, Cost> memo;
};

/// A plan is a partition in which every stage can be computed.
void checkPlan(const StageGraph &graph, const StagePlan &plan) {
  llvm::SmallVector<unsigned> reductions, weights, primitives;
  uint64_t macs = 0;
  for (const Stage &stage : plan.stages) {
    reductions.append(stage.reductions.begin(), stage.reductions.end());
    weights.append(stage.weights.begin(), stage.weights.end());
    primitives.append(stage.primitives.begin(), stage.primitives.end());
    macs += stage.macs;
    uint64_t elements = 1;
    for (unsigned position : stage.frontier)
      elements *= graph.coordinates[position].size;
    EXPECT_EQ(elements, stage.elements);
  }
  EXPECT_EQ(macs, plan.macs);
  auto isComplete = [](llvm::SmallVector<unsigned> list, unsigned count) {
    llvm::sort(list);
    return llvm::equal(list, llvm::seq(count));
  };
  EXPECT_TRUE(isComplete(reductions, graph.numReductions));
  EXPECT_TRUE(isComplete(weights, graph.numWeights));
  EXPECT_TRUE(isComplete(primitives, graph.numPrimitives));
}

} // namespace

TEST(StagePlan, EqualsBruteForce) {
  unsigned staged = 0, trials = 10000;
  for (unsigned seed = 0; seed < trials; ++seed) {
    StageGraph graph = RandomGraph(seed).next(5, 3, 6);
    StagePlan plan = planStages(graph);
    checkPlan(graph, plan);
    auto [macs, traffic, stages] = BruteForce(graph).solve();
    ASSERT_EQ(plan.macs, macs) << "seed " << seed;
    ASSERT_EQ(plan.traffic, traffic) << "seed " << seed;
    ASSERT_EQ(plan.stages.size(), stages) << "seed " << seed;
    staged += stages > 1;
  }
  // The generator makes graphs that gain from stages, and others.
  EXPECT_GT(staged, trials / 20);
  EXPECT_LT(staged, trials * 19 / 20);
}

TEST(StagePlan, ObeysTheMemoryLimit) {
  unsigned limited = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    StageGraph graph = RandomGraph(seed).next(4, 3, 6);
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
    coordinate.size = 2;
    coordinate.producerKind = End::Reduction;
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
  coordinate.producerKind = End::Reduction;
  EXPECT_EQ(planStages(graph).macs, UINT64_MAX);
}
