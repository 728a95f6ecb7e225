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

/// With `traffic` the nests are those of the plan that the compiler makes, or
/// of one that is as good. Returns how many operators have other stages by it.
static unsigned expectNestsOfPlans(std::shared_ptr<const SearchProblem> problem,
                                   uint64_t traffic) {
  OperatorNests nests(problem, traffic);
  unsigned changed = 0;
  for (const auto &graph : enumerate(problem)) {
    uint64_t flops = 0;
    nests.describe(*graph, [&](unsigned binding,
                               llvm::ArrayRef<StageNest> stages) {
      uint64_t macs = 0;
      for (const StageNest &nest : stages) {
        bool hasSum = llvm::any_of(nest.loops, [](const StageNest::Loop &loop) {
          return loop.isReduction;
        });
        if (hasSum || nest.hasWeight) {
          macs += nest.getPoints();
          flops += 2 * nest.getPoints() * problem->multiplicities[binding];
        }
        macs += traffic * (nest.data.elements + nest.output.elements);
      }
      solver::StagePlanOptions options;
      options.cost = solver::StageCost::Prepared;
      options.traffic = traffic;
      EXPECT_EQ(
          macs,
          planStages(getStageGraph(*graph, problem->bindings[binding]), options)
              .macs);
    });
    changed += flops != graph->cost.flops;
  }
  return changed;
}

TEST_F(OperatorNestsTest, AreThoseOfThePlansByTraffic) {
  EXPECT_EQ(expectNestsOfPlans(parse(conv1d), 0), 0u);
  EXPECT_GT(expectNestsOfPlans(parse(conv1d), 2), 0u);
  EXPECT_GT(expectNestsOfPlans(parse(conv1d), solver::usualTraffic), 0u);
}
