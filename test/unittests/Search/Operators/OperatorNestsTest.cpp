//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/OperatorNests.h"
#include "Problems.h"

using namespace kas;
using namespace kas::search;
using solver::StageGraph;
using solver::StageNest;

namespace {
class OperatorNestsTest : public ProblemTest {};
} // namespace

/// The nests of all operators have the operations that the costs count, read
/// what the stage before wrote, and stay inside of it.
static void expectNestsOfAll(std::shared_ptr<const SearchProblem> problem) {
  OperatorNests nests(problem, /*traffic=*/0);
  unsigned staged = 0;
  for (const auto &graph : enumerate(problem)) {
    uint64_t flops = 0;
    nests.describe(*graph, [&](unsigned binding,
                               llvm::ArrayRef<StageNest> stages) {
      staged += stages.size() > 1;
      for (auto [index, nest] : llvm::enumerate(stages)) {
        bool hasSum = llvm::any_of(nest.loops, [](const StageNest::Loop &loop) {
          return loop.isReduction;
        });
        if (hasSum || nest.hasWeight)
          flops += 2 * nest.getPoints() * problem->multiplicities[binding];
        int64_t last = 0, points = 1;
        for (auto [loop, stride] : llvm::zip(nest.loops, nest.output.strides)) {
          last += (loop.extent - 1) * stride;
          points *= loop.isReduction ? 1 : loop.extent;
        }
        EXPECT_EQ(last + 1, nest.output.elements);
        EXPECT_EQ(points, nest.output.elements);
        if (index)
          EXPECT_EQ(nest.data.elements, stages[index - 1].output.elements);
      }
    });
    EXPECT_EQ(flops, graph->cost.flops);
  }
  EXPECT_GT(staged, 0u);
}

TEST_F(OperatorNestsTest, HaveTheOperationsOfTheCosts) {
  expectNestsOfAll(parse(conv1d));
}

TEST_F(OperatorNestsTest, OfStridedOperatorsToo) {
  expectNestsOfAll(parse(strided));
}

namespace {
struct PlanComparison {
  unsigned numPlans = 0;
  /// As good as the plan that the compiler makes.
  unsigned numAsGood = 0;
  /// Operators with other stages than those with the fewest multiply-adds.
  unsigned numChanged = 0;
};
} // namespace

/// What `nests` take at a binding, by multiply-adds and elements.
static uint64_t countWork(llvm::ArrayRef<StageNest> nests, uint64_t traffic,
                          uint64_t &macs) {
  uint64_t work = 0;
  for (const StageNest &nest : nests) {
    bool hasSum = llvm::any_of(nest.loops, [](const StageNest::Loop &loop) {
      return loop.isReduction;
    });
    uint64_t points = hasSum || nest.hasWeight ? nest.getPoints() : 0;
    macs += points;
    work += points + traffic * (nest.data.elements + nest.output.elements +
                                (nest.hasWeight ? nest.weight.elements : 0));
  }
  return work;
}

static PlanComparison
compareWithPlans(std::shared_ptr<const SearchProblem> problem,
                 uint64_t traffic) {
  OperatorNests nests(problem, traffic);
  PlanComparison result;
  solver::StagePlanOptions options;
  options.cost = solver::StageCost::Prepared;
  options.traffic = traffic;
  for (const auto &graph : enumerate(problem)) {
    uint64_t flops = 0;
    nests.describe(
        *graph, [&](unsigned binding, llvm::ArrayRef<StageNest> stages) {
          uint64_t macs = 0, work = countWork(stages, traffic, macs);
          flops += 2 * macs * problem->multiplicities[binding];
          StageGraph plain = getStageGraph(*graph, problem->bindings[binding]);
          uint64_t best = planStages(plain, options).macs;
          EXPECT_GE(work, best);
          ++result.numPlans;
          result.numAsGood += work == best;
        });
    result.numChanged += flops != graph->cost.flops;
  }
  return result;
}

TEST_F(OperatorNestsTest, AreThoseOfThePlans) {
  PlanComparison plain = compareWithPlans(parse(conv1d), 0);
  EXPECT_EQ(plain.numAsGood, plain.numPlans);
  EXPECT_EQ(plain.numChanged, 0u);
}

// A stage multiplies by all of its weights at once here, and the planner may
// take them one by one where they are large together.
TEST_F(OperatorNestsTest, AreThoseOfThePlansByTraffic) {
  for (uint64_t traffic : {uint64_t(2), solver::usualTraffic}) {
    PlanComparison counted = compareWithPlans(parse(conv1d), traffic);
    EXPECT_GT(counted.numAsGood, counted.numPlans * 9 / 10);
    EXPECT_GT(counted.numChanged, 0u);
  }
}
