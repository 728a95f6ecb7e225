//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sampled kernels are legal: as IR, to the solvers, within their budgets.
//
//===----------------------------------------------------------------------===//

#include "KernelProblems.h"
#include "kas/Dialect/Kas/Transforms/SolveKernel.h"
#include "mlir/IR/Verifier.h"

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

namespace {

class KernelStateTest : public KernelProblemTest {
protected:
  /// Of the kernels that were looked at: those with a free variable, those with
  /// one that must divide something, those with a learned map.
  struct Counts {
    unsigned free = 0, dividing = 0, mixed = 0;
  };
  void check(const KernelGraph &graph, Counts &counts);
};

void KernelStateTest::check(const KernelGraph &graph, Counts &counts) {
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  KernelOp kernel = buildKernel(builder, builder.getUnknownLoc(), "k", graph);
  ASSERT_TRUE(succeeded(mlir::verify(*module))) << print(kernel);
  EXPECT_EQ(kernel.getCanvas(), graph.problem->requiresTheorem);
  std::string before = print(kernel);
  ASSERT_TRUE(succeeded(solveShapes(kernel))) << before;
  EXPECT_EQ(print(kernel), before) << "a shape was not solved";
  ASSERT_EQ(llvm::toString(graph.getBudgetProblem().check()), "") << before;
  const BudgetSolution &solution = graph.solve();
  ASSERT_FALSE(solution.totals.empty()) << before;
  ASSERT_TRUE(succeeded(solveBudget(kernel))) << before;
  // The certificate holds for the problem of the IR.
  EXPECT_EQ(print(buildKernel(builder, builder.getUnknownLoc(), "k", graph,
                              &solution)),
            print(kernel));
  counts.free += !graph.variables.empty();
  counts.mixed += llvm::any_of(graph.nodes, [](const KernelNode &node) {
    return node.step == KernelStep::Mix;
  });
  counts.dividing += llvm::any_of(graph.nodes, [&](const KernelNode &node) {
    return llvm::any_of(node.impliedSizes, [&](const Size &size) {
      return llvm::any_of(graph.variables, [&](unsigned variable) {
        return size.getExponent(variable) < 0;
      });
    });
  });
}

// Every kernel is IR that verifies, under Theorem 1, whose shapes are solved,
// and that says the same to the solver of budgets as the plain data.
TEST_F(KernelStateTest, KernelsAreLegal) {
  auto problem = load("canvas-resnet18.mlir");
  auto graphs = sample(problem, 300);
  ASSERT_EQ(graphs.size(), 300u);
  Counts counts;
  for (const auto &graph : graphs)
    ASSERT_NO_FATAL_FAILURE(check(*graph, counts));
  EXPECT_GT(counts.free, 20u);
}

// The same with all primitives, among them maps along dimensions, with and
// without Theorem 1.
TEST_F(KernelStateTest, KernelsOfAllPrimitivesAreLegal) {
  KernelLimits limits;
  limits.steps.set();
  limits.maxSteps = 6;
  auto theorem = load("canvas-resnet18.mlir", limits);
  auto free = std::make_shared<KernelProblem>(*theorem);
  free->requiresTheorem = false;
  for (std::shared_ptr<const KernelProblem> problem : {theorem, {free}}) {
    Counts counts;
    for (const auto &graph : sample(problem, 200))
      ASSERT_NO_FATAL_FAILURE(check(*graph, counts));
    EXPECT_GT(counts.mixed, 10u);
  }
}

// Where groups are free, their number divides the channels of the output.
TEST_F(KernelStateTest, FreeNumbersOfGroupsDivide) {
  KernelLimits limits;
  limits.maxSteps = 5;
  limits.steps.reset();
  for (llvm::StringRef step : {"fc", "group_all", "unfold", "mul", "relu"})
    llvm::cantFail(parseKernelLimit((step + "=1").str(), limits));
  Counts counts;
  for (const auto &graph : sample(load("canvas-resnet18.mlir", limits), 300))
    ASSERT_NO_FATAL_FAILURE(check(*graph, counts));
  EXPECT_GE(counts.dividing, 5u);
}

// The problem of the budget is of the solver's class, and its solution holds.
TEST_F(KernelStateTest, BudgetsAreSolved) {
  bool isSlow = std::getenv("KAS_SLOW_TESTS");
  auto problem = load("canvas-resnet18.mlir");
  unsigned free = 0;
  double use = 0;
  for (const auto &graph : sample(problem, isSlow ? 12000 : 2000, /*seed=*/1)) {
    BudgetProblem budget = graph->getBudgetProblem();
    ASSERT_EQ(llvm::toString(budget.check()), "") << print(*graph);
    const BudgetSolution &solution = graph->solve();
    ASSERT_FALSE(solution.totals.empty()) << print(*graph);
    ASSERT_EQ(llvm::toString(verify(budget, solution)), "") << print(*graph);
    if (graph->variables.empty())
      continue;
    ++free;
    use += static_cast<double>(solution.totals[0]) /
           static_cast<double>(*problem->maxFlops);
  }
  EXPECT_GT(free, isSlow ? 1000u : 100u);
  EXPECT_GE(use / free, 0.95);
}

} // namespace
