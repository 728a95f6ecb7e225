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
#include <optional>
#include <random>

using namespace kas;
using namespace kas::solver;

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
    while (!isLegal() || (isExact && hasNestedWeights()));
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

  /// Whether a coordinate of a weight is an operand of a primitive from which
  /// only weights are reached: not every weight can take the place of the data
  /// in a stage then, and only the smallest results are tried.
  bool hasNestedWeights() const {
    uint64_t ofData = 0;
    for (unsigned index = graph.coordinates.size(); index-- > 0;) {
      const StageGraph::Coordinate &coordinate = graph.coordinates[index];
      bool isOperand = coordinate.consumer != StageGraph::noPrimitive;
      bool hasData = llvm::is_contained(graph.data, index) ||
                     (isOperand && (ofData >> coordinate.consumer & 1));
      if (isOperand && !hasData && isInWeight(index))
        return true;
      if (coordinate.producerKind == Producer::Primitive && hasData)
        ofData |= uint64_t(1) << coordinate.producer;
    }
    return false;
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

/// The least (multiply-adds, traffic, stages) over every tree of the data and
/// the weights, every set of reductions at each of its nodes and every place to
/// cut, by trying all of them.
class BruteForce {
public:
  BruteForce(const StageGraph &graph, StageCost cost)
      : graph(graph), cost(cost) {
    for (unsigned i = 0; i < graph.numReductions; ++i) {
      reductionSizes.push_back(1);
      for (const auto &c : graph.coordinates)
        if (c.producerKind == Producer::Reduction && c.producer == i)
          reductionSizes[i] = c.size;
    }
  }

  using Cost = std::tuple<uint64_t, uint64_t, unsigned>;
  /// The cost of a stage on weights, and its primitives.
  using Group = std::pair<Cost, uint64_t>;

  Cost solve() { return chain({0, 0}, 0, size(graph.data)); }

private:
  struct Done {
    uint32_t reductions, weights;
    bool operator<(const Done &other) const {
      return std::tie(reductions, weights) <
             std::tie(other.reductions, other.weights);
    }
  };

  uint64_t size(const llvm::SmallVectorImpl<unsigned> &tensor) const {
    uint64_t product = 1;
    for (unsigned coordinate : tensor)
      product *= graph.coordinates[coordinate].size;
    return product;
  }

  bool isAbove(const StageGraph::Coordinate &c, Done done,
               uint64_t above) const {
    if (c.producerKind == Producer::Primitive)
      return above >> c.producer & 1;
    return c.producerKind == Producer::Reduction &&
           (done.reductions >> c.producer & 1);
  }

  /// The primitives from which a tensor is reached.
  uint64_t getLive() const {
    uint64_t live = 0;
    for (unsigned i = graph.coordinates.size(); i-- > 0;) {
      const auto &c = graph.coordinates[i];
      bool isUsed =
          llvm::is_contained(graph.data, i) ||
          llvm::any_of(graph.weights,
                       [&](const auto &weight) {
                         return llvm::is_contained(weight, i);
                       }) ||
          (c.consumer != StageGraph::noPrimitive && (live >> c.consumer & 1));
      if (isUsed && c.producerKind == Producer::Primitive)
        live |= uint64_t(1) << c.producer;
    }
    return live;
  }

  /// Whether a primitive that no tensor is reached from is above for its
  /// operands to cross: only the data is repeated so.
  bool isRepeating(Done done, uint64_t above) const {
    uint64_t forced = getLive();
    for (const auto &c : graph.coordinates)
      if (c.consumer != StageGraph::noPrimitive && isAbove(c, done, above))
        forced |= uint64_t(1) << c.consumer;
    return (above & ~forced) != 0;
  }

  /// The elements that cross, or 0 when there is no such cut.
  uint64_t crossing(Done done, bool hasData, uint64_t above) const {
    uint64_t elements = 1;
    bool any = false;
    for (unsigned i = 0; i < graph.coordinates.size(); ++i) {
      const auto &c = graph.coordinates[i];
      bool inTensor = false, needed = false;
      auto use = [&](bool isAbove) { (isAbove ? inTensor : needed) = true; };
      if (llvm::is_contained(graph.data, i))
        use(hasData);
      for (unsigned w = 0; w < graph.weights.size(); ++w)
        if (llvm::is_contained(graph.weights[w], i))
          use(done.weights >> w & 1);
      bool isOperand = c.consumer != StageGraph::noPrimitive;
      bool operandAbove = isOperand && (above >> c.consumer & 1);
      if (isAbove(c, done, above)) {
        if (needed || (isOperand && !operandAbove))
          return 0;
        continue;
      }
      if (inTensor && isOperand && !operandAbove && hasData)
        return 0;
      if (!inTensor && !operandAbove)
        continue;
      elements *= c.size;
      any = true;
    }
    return any ? elements : 0;
  }

  static Cost plus(const Cost &a, const Cost &b) {
    return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
            std::get<2>(a) + std::get<2>(b)};
  }

  /// Calls `visit` with the subsets of `set`.
  template <typename Set, typename Visit>
  static void forEachSubset(Set set, Visit visit) {
    Set subset = 0;
    do {
      visit(subset);
      subset = (subset - set) & set;
    } while (subset != 0);
  }

  /// The operands of a stage that are weights, or stages on weights.
  struct Operands {
    Cost cost;
    unsigned count = 0;
    uint32_t summed = 0;
    /// The weights and primitives of each.
    llvm::SmallVector<std::pair<uint32_t, uint64_t>, 3> parts;
  };

  /// Whether one of them can be the data of the operator that computes a stage
  /// with the primitives `above`.
  bool hasFirst(const Operands &operands, uint64_t above) const {
    for (auto [weights, primitives] : operands.parts)
      above &= ~primitives;
    return llvm::any_of(operands.parts, [&](const auto &part) {
      for (unsigned w = 0; w < graph.weights.size(); ++w)
        if (part.first >> w & 1)
          for (unsigned coordinate : graph.weights[w]) {
            unsigned consumer = graph.coordinates[coordinate].consumer;
            if (consumer != StageGraph::noPrimitive && (above >> consumer & 1))
              return false;
          }
      return true;
    });
  }

  /// Calls `visit` with the ways in which a stage can have `weights` as
  /// operands.
  template <typename Visit>
  void forEachOperands(uint32_t weights, uint32_t reductions, uint64_t inside,
                       bool isPart, Operands operands, Visit visit,
                       uint32_t all) {
    if (weights == 0)
      return visit(operands);
    uint32_t first = weights & -weights;
    forEachSubset(weights & ~first, [&](uint32_t subset) {
      uint32_t block = first | subset;
      if (subset == 0) {
        uint64_t read = size(graph.weights[llvm::countr_zero(first)]);
        Operands more = operands;
        more.cost = plus(more.cost, Cost(0, read, 0));
        ++more.count;
        more.parts.emplace_back(block, 0);
        forEachOperands(weights & ~block, reductions, inside, isPart, more,
                        visit, all);
      }
      forEachSubset(reductions & ~operands.summed, [&](uint32_t sums) {
        // All of them as one again changes nothing.
        if ((subset == 0 && sums == 0) || (isPart && block == all))
          return;
        std::optional<Group> stage = group(block, sums, inside, !isPart);
        if (!stage)
          return;
        Operands more = operands;
        more.cost = plus(more.cost, stage->first);
        ++more.count;
        more.summed |= sums;
        more.parts.emplace_back(block, stage->second);
        forEachOperands(weights & ~block, reductions, inside, isPart, more,
                        visit, all);
      });
    });
  }

  /// What an operand costs that is a stage on weights, summing `sums`, with the
  /// primitives of its cut among `inside`.
  std::optional<Group> group(uint32_t weights, uint32_t sums, uint64_t inside,
                             bool isOperandOfData) {
    auto key = std::make_tuple(weights, sums, inside, isOperandOfData);
    auto it = groups.find(key);
    if (it != groups.end())
      return it->second;
    // What is computed before counts only among the smallest results.
    bool isFree = isOperandOfData && cost == StageCost::Prepared;
    uint64_t smallest = UINT64_MAX;
    std::optional<Group> result;
    forEachSubset(inside, [&](uint64_t above) {
      if (isRepeating({sums, weights}, above))
        return;
      uint64_t elements = crossing({sums, weights}, false, above);
      if (elements == 0 || (isFree && elements > smallest))
        return;
      if (elements < smallest && isFree)
        result.reset();
      smallest = std::min(smallest, elements);
      Operands start;
      start.cost = Cost(0, elements, 1);
      forEachOperands(
          weights, sums, above, true, start,
          [&](const Operands &operands) {
            if (!hasFirst(operands, above))
              return;
            Cost cost = operands.cost;
            std::get<0>(cost) +=
                macs(elements, sums & ~operands.summed, operands.count);
            // Its result is read.
            std::get<1>(cost) += elements;
            Group group(cost, above);
            result = result ? std::min(*result, group) : group;
          },
          weights);
    });
    if (isFree && result)
      result->first = Cost(0, smallest, std::get<2>(result->first));
    return groups[key] = result;
  }

  uint64_t macs(uint64_t elements, uint32_t reductions,
                unsigned operands) const {
    uint64_t points = elements;
    for (unsigned i = 0; i < graph.numReductions; ++i)
      if (reductions >> i & 1)
        points *= reductionSizes[i];
    if (operands == 1)
      return reductions ? points : 0;
    bool isTraining = cost == StageCost::Training;
    return points * (isTraining ? operands * operands - 1 : operands - 1);
  }

  Cost chain(Done done, uint64_t cut, uint64_t elements) {
    auto [it, isNew] = memo.try_emplace({done, cut});
    if (!isNew)
      return it->second;
    std::optional<Cost> result;
    uint32_t reductions = (1u << graph.numReductions) - 1;
    uint32_t weights = (1u << graph.weights.size()) - 1;
    uint64_t primitives = (uint64_t(1) << graph.numPrimitives) - 1;
    auto tryStage = [&](Done next, uint64_t above, uint64_t size,
                        const Cost &rest) {
      uint32_t sums = next.reductions & ~done.reductions;
      uint32_t taken = next.weights & ~done.weights;
      Operands start;
      start.cost = Cost(0, elements + size, 1);
      start.count = 1;
      forEachOperands(
          taken, sums, above & ~cut, false, start,
          [&](const Operands &operands) {
            Cost cost = plus(operands.cost, rest);
            std::get<0>(cost) +=
                macs(size, sums & ~operands.summed, operands.count);
            result = result ? std::min(*result, cost) : cost;
          },
          taken);
    };
    uint64_t outputSize = 1;
    for (const auto &c : graph.coordinates)
      if (c.producerKind == Producer::Output)
        outputSize *= c.size;
    tryStage({reductions, weights}, primitives, outputSize, Cost(0, 0, 0));
    forEachSubset(reductions & ~done.reductions, [&](uint32_t sums) {
      forEachSubset(weights & ~done.weights, [&](uint32_t taken) {
        if (sums == 0 && taken == 0)
          return;
        Done next = {done.reductions | sums, done.weights | taken};
        forEachSubset(primitives & ~cut, [&](uint64_t added) {
          uint64_t size = crossing(next, true, cut | added);
          if (size != 0)
            tryStage(next, cut | added, size, chain(next, cut | added, size));
        });
      });
    });
    return memo[{done, cut}] = *result;
  }

  const StageGraph &graph;
  StageCost cost;
  llvm::SmallVector<uint64_t> reductionSizes;
  std::map<std::pair<Done, uint64_t>, Cost> memo;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, bool>, std::optional<Group>>
      groups;
};

/// A plan is a partition in which every stage can be computed.
void checkPlan(const StageGraph &graph, const StagePlan &plan,
               StageCost cost = StageCost::Unprepared) {
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
  if (cost != StageCost::Training)
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
                                  unsigned trials) {
  unsigned staged = 0, ofWeights = 0, sumsOfWeights = 0;
  for (unsigned seed = 0; seed < trials; ++seed) {
    StageGraph graph = RandomGraph(seed).next(minWeights, 4, 3, 4, true);
    StagePlanOptions options;
    options.cost = cost;
    StagePlan plan = planStages(graph, options);
    checkPlan(graph, plan, cost);
    auto [macs, traffic, stages] = BruteForce(graph, cost).solve();
    ASSERT_EQ(plan.macs, macs) << "seed " << seed;
    ASSERT_EQ(plan.traffic, traffic) << "seed " << seed;
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
