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
using schedule::LoopNest;
using schedule::StageGraph;

namespace {
class OperatorNestsTest : public ProblemTest {};
} // namespace

/// The multiply-adds of a nest; none for a view.
static uint64_t countMacs(const LoopNest &nest) {
  bool hasSum = llvm::any_of(
      nest.loops, [](const schedule::Loop &loop) { return loop.isReduction; });
  return nest.getNumPoints() *
         std::max<size_t>(nest.inputs.size() - 1, hasSum ? 1 : 0);
}

/// The nests of all operators have the operations that the costs count, read
/// what the stage before wrote, and stay inside of it.
static void expectNestsOfAll(std::shared_ptr<const SearchProblem> problem) {
  OperatorNests nests(problem, /*traffic=*/0);
  unsigned staged = 0;
  for (const auto &graph : enumerate(problem)) {
    uint64_t flops = 0;
    nests.describe(*graph, [&](unsigned binding,
                               llvm::ArrayRef<LoopNest> stages) {
      staged += stages.size() > 1;
      for (auto [index, nest] : llvm::enumerate(stages)) {
        flops += 2 * countMacs(nest) * problem->multiplicities[binding];
        int64_t points = 1;
        for (const schedule::Loop &loop : nest.loops)
          points *= loop.isReduction ? 1 : loop.extent;
        EXPECT_EQ(points, nest.output.getNumElements());
        if (index)
          EXPECT_EQ(nest.inputs.front().shape, stages[index - 1].output.shape);
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

/// What the nests take is what the planner of stages counts, by multiply-adds
/// and by the elements that stages read and write.
static void expectNestsOfPlans(std::shared_ptr<const SearchProblem> problem,
                               uint64_t traffic) {
  OperatorNests nests(problem, traffic);
  schedule::StagePlanOptions options;
  options.cost = schedule::StageCost::Prepared;
  options.traffic = traffic;
  unsigned numChanged = 0;
  for (const auto &graph : enumerate(problem)) {
    uint64_t flops = 0;
    nests.describe(
        *graph, [&](unsigned binding, llvm::ArrayRef<LoopNest> stages) {
          uint64_t work = 0;
          for (const LoopNest &nest : stages) {
            flops += 2 * countMacs(nest) * problem->multiplicities[binding];
            int64_t elements = nest.output.getNumElements();
            for (const LoopNest::Tensor &input : nest.inputs)
              elements += input.getNumElements();
            work += countMacs(nest) + traffic * elements;
          }
          StageGraph plain = getStageGraph(*graph, problem->bindings[binding]);
          EXPECT_EQ(work, planStages(plain, options).macs);
        });
    numChanged += flops != graph->cost.flops;
  }
  // Those with other stages than the ones with the fewest multiply-adds.
  EXPECT_EQ(numChanged != 0, traffic != 0);
}

TEST_F(OperatorNestsTest, AreThoseOfThePlans) {
  for (uint64_t traffic : {uint64_t(0), uint64_t(2), schedule::usualTraffic})
    expectNestsOfPlans(parse(conv1d), traffic);
}
