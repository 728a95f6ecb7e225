//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The costs of operators that the search lists.
//
//===----------------------------------------------------------------------===//

#include "Enumeration.h"
#include "PublishedSpaces.h"
#include "StageBruteForce.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include <cstdlib>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

namespace {

class CostsTest : public PublishedSpacesTest {
protected:
  void compareWithStages(const std::shared_ptr<SearchProblem> &problem);
};

bool isSlow() { return std::getenv("KAS_SLOW_TESTS") != nullptr; }

/// As `kas-extract` writes them for ResNet-18 and for a Transformer.
constexpr llvm::StringLiteral extracted[] = {
    R"(
kas.space @conv2d<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3> x 4,
              <Cin = 512, Cout = 512, H = 7, N = 1, W = 7, g = 4, k = 3> x 3]
    limits {depth = 10, merge = 2, shift = 1}
    budget {flops = 8.08e+08, min_flops = 1.62e+08}
)",
    R"(
kas.space @conv1x1_strided<N, Cin, Cout, H, W | s, g>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 128, H = 56, N = 1, W = 56, g = 4, s = 2>]
    limits {depth = 8, merge = 2, reduce = 2, shift = 1, stride = 2, unfold = 0}
    budget {flops = 6.4e+06, min_flops = 1.3e+06}
)",
    R"(
kas.space @linear<N, Cin, Cout | g>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<Cin = 512, Cout = 1000, N = 1, g = 4>]
    limits {depth = 8, merge = 2, reduce = 3, shift = 1, unfold = 0, weights = 3}
)"};

/// Different operators, drawn at random.
std::vector<Candidate> draw(const std::shared_ptr<SearchProblem> &problem,
                            unsigned count) {
  RandomSearcher::Options options;
  options.seed = 1;
  options.expansionsPerRollout = options.expansionsPerAsk = uint64_t(1) << 40;
  RandomSearcher searcher(makeGraphState(problem, {}), options);
  std::vector<Candidate> candidates = searcher.ask(count);
  EXPECT_TRUE(candidates.size() == count || searcher.isExhausted());
  return candidates;
}

/// Tries all orders of joining data and weights; returns whether it can.
bool compareWithBruteForce(const SearchProblem &problem,
                           const OperatorGraph &graph) {
  for (schedule::StageCost cost :
       {schedule::StageCost::Prepared, schedule::StageCost::Unprepared,
        schedule::StageCost::Training}) {
    uint64_t flops = 0;
    for (auto [binding, multiplicity] :
         llvm::zip_equal(problem.bindings, problem.multiplicities)) {
      schedule::StageGraph stages = getStageGraph(graph, binding);
      if (hasNestedWeights(stages))
        return false;
      flops += 2 * multiplicity * std::get<0>(findLeastStages(stages, cost));
    }
    EXPECT_EQ(getFlops(problem, graph, cost), flops);
    if (cost == schedule::StageCost::Prepared)
      EXPECT_EQ(graph.cost.flops, flops);
  }
  return true;
}

void compareWithBruteForce(const std::shared_ptr<SearchProblem> &problem,
                           unsigned count) {
  unsigned compared = 0;
  std::vector<Candidate> candidates = draw(problem, count);
  for (const Candidate &candidate : candidates) {
    auto graph =
        std::static_pointer_cast<const OperatorGraph>(candidate.solution);
    compared += compareWithBruteForce(*problem, *graph);
  }
  EXPECT_GE(10 * compared, 9 * candidates.size());
}

} // namespace

/// The fast costs are those of the stages that the compiler plans.
void CostsTest::compareWithStages(
    const std::shared_ptr<SearchProblem> &problem) {
  Enumeration enumeration(problem, {});
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> scratch =
      mlir::ModuleOp::create(builder.getUnknownLoc());
  unsigned count = 0, every = isSlow() ? 25 : 40,
           most = isSlow() ? 20000 : 1200;
  auto check = [&](const GraphState &state) {
    if (++count >= most)
      enumeration.isStopped = true;
    if (count % every != 0)
      return;
    auto graph =
        std::static_pointer_cast<const OperatorGraph>(state.getSolution());
    builder.setInsertionPointToStart(scratch->getBody());
    OperatorOp op = buildOperator(builder, scratch->getLoc(), "candidate",
                                  *problem, *graph);
    uint64_t flops = 0, unprepared = 0, training = 0;
    for (auto [binding, multiplicity] :
         llvm::zip_equal(problem->bindings, problem->multiplicities)) {
      auto cost = getCost(op, binding, [&] { return op.emitError(); });
      ASSERT_TRUE(mlir::succeeded(cost));
      flops += multiplicity * cost->flops;
      unprepared += multiplicity * cost->flopsUnprepared;
      training += multiplicity * cost->trainingFlops;
    }
    EXPECT_EQ(graph->cost.flops, flops);
    auto getPlanned = [&](schedule::StageCost cost) {
      return getFlops(*problem, *graph, cost);
    };
    EXPECT_EQ(getPlanned(schedule::StageCost::Prepared), flops);
    EXPECT_EQ(getPlanned(schedule::StageCost::Unprepared), unprepared);
    EXPECT_EQ(getPlanned(schedule::StageCost::Training), training);
    EXPECT_LE(flops, unprepared);
    EXPECT_LE(unprepared, training);
    op.erase();
  };
  enumeration.onOperator = check;
  enumeration.run();
  EXPECT_GE(count, 1200u);
}

TEST_F(CostsTest, CostsAreThoseOfTheBestStages) {
  compareWithStages(load("syno-resnet18.mlir"));
}

/// The primitives that a window wraps around by cost nothing.
TEST_F(CostsTest, CostsOfCyclicWindowsAreThoseOfTheBestStages) {
  std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
  problem->limits.cyclic = true;
  compareWithStages(problem);
}

/// Both halves of a merge of a stride are more than what is below the stride.
TEST_F(CostsTest, StagesAreCutBelowStrides) {
  auto problem = std::make_shared<SearchProblem>(*parse(extracted[1]));
  problem->budget = {};
  problem->limits.depth = isSlow() ? 8 : 7;
  Enumeration enumeration(problem, {});
  unsigned count = 0;
  auto check = [&](const GraphState &state) {
    auto graph =
        std::static_pointer_cast<const OperatorGraph>(state.getSolution());
    if (++count % 4 == 0)
      EXPECT_EQ(graph->cost.flops,
                getFlops(*problem, *graph, schedule::StageCost::Prepared));
  };
  enumeration.onOperator = check;
  enumeration.run();
  EXPECT_GE(count, 1000u);
}

TEST_F(CostsTest, CostsOfThePublishedListEqualBruteForce) {
  compareWithBruteForce(load("syno-resnet18.mlir"), isSlow() ? 1000 : 20);
}

TEST_F(CostsTest, CostsOfExtractedSpacesEqualBruteForce) {
  for (llvm::StringRef text : extracted) {
    compareWithBruteForce(std::make_shared<SearchProblem>(*parse(text)),
                          isSlow() ? 400 : 10);
  }
}
