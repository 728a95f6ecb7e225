//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The suite `dag`: how fast kernels of the tensor level are found, how many
// attempts fail, and how much of a budget the solver uses.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "kas/Search/Core/CandidateSpace.h"
#include "kas/Search/Kernels/KernelState.h"
#include "mlir/Parser/Parser.h"
#include <ctime>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;
using llvm::Error;
using llvm::StringRef;

static constexpr llvm::StringLiteral resnet18 =
#include "spaces/canvas-resnet18.mlir.inc"
    ;

static double getCpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

namespace {
struct DagCase {
  llvm::StringLiteral name;
  /// Primitives, at least and at most.
  unsigned minSteps, maxSteps;
};

/// What came of some time of sampling.
struct Counts {
  double seconds = 0;
  /// Rollouts from the empty kernel; those that had to step back at least once.
  uint64_t rollouts = 0, steppedBack = 0;
  /// Kernels that were found before; whose budget has no solution; the rest.
  uint64_t duplicates = 0, infeasible = 0, legal = 0;
  /// Legal kernels with a free variable, and the FLOPs that these use.
  uint64_t free = 0, optimal = 0;
  double use = 0, leastUse = 1;
};
} // namespace

static void countKernel(const KernelGraph &graph, Counts &counts) {
  const BudgetSolution &solution = graph.solve();
  if (solution.totals.empty()) {
    ++counts.infeasible;
    return;
  }
  ++counts.legal;
  if (graph.variables.empty())
    return;
  ++counts.free;
  counts.optimal += solution.status == BudgetStatus::Optimal;
  double use = static_cast<double>(solution.totals[0]) /
               static_cast<double>(*graph.problem->maxFlops);
  counts.use += use;
  counts.leastUse = std::min(counts.leastUse, use);
}

static Counts sample(std::shared_ptr<const KernelProblem> problem,
                     double seconds) {
  CandidateSpace::Options options;
  options.treeExpansions = 0;
  CandidateSpace space(makeKernelState(std::move(problem)), options);
  space.prepare();
  Random random(0);
  Counts counts;
  double begin = getCpuSeconds();
  do {
    Path path;
    uint64_t deadEnds = space.getNumDeadEnds();
    ++counts.rollouts;
    auto draw = space.draw(path, random);
    counts.steppedBack += space.getNumDeadEnds() > deadEnds;
    if (draw != CandidateSpace::Draw::Found)
      continue;
    auto solution = space.take(path);
    if (!solution) {
      ++counts.duplicates;
      continue;
    }
    countKernel(static_cast<const KernelGraph &>(*solution), counts);
    counts.seconds = getCpuSeconds() - begin;
  } while (counts.seconds < seconds);
  return counts;
}

static void print(BenchReport &report, const Counts &counts, StringRef name) {
  auto line = [&](StringRef metric, double value, StringRef unit = "") {
    report.print({name.str(), metric.str(), value, unit.str()});
  };
  auto legal = static_cast<double>(counts.legal);
  auto rollouts = static_cast<double>(counts.rollouts);
  line("legal_kernels_per_second", legal / counts.seconds, "1/s");
  line("legal_kernels", legal);
  line("failed_share", 1 - legal / rollouts);
  line("stepped_back_share",
       static_cast<double>(counts.steppedBack) / rollouts);
  line("infeasible_share", static_cast<double>(counts.infeasible) / rollouts);
  line("duplicate_share", static_cast<double>(counts.duplicates) / rollouts);
  auto free = static_cast<double>(counts.free);
  line("free_variable_share", free / std::max(legal, 1.0));
  if (counts.free == 0)
    return;
  line("budget_use", counts.use / free);
  line("least_budget_use", counts.leastUse);
  line("optimal_share", static_cast<double>(counts.optimal) / free);
}

Error kas::runDagSuite(mlir::MLIRContext &context,
                       const BenchSettings &settings, BenchReport &report) {
  context.loadDialect<KasDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(resnet18, &context);
  if (!module)
    return llvm::createStringError("the kernel of the suite does not parse");
  KernelOp kernel = *module->getOps<KernelOp>().begin();
  static constexpr DagCase cases[] = {{"resnet18/3-12", 3, 12},
                                      {"resnet18/3-5", 3, 5},
                                      {"resnet18/12", 12, 12}};
  for (const DagCase &one : cases) {
    if (!isSelected(settings, one.name))
      continue;
    KernelLimits limits;
    limits.minSteps = one.minSteps;
    limits.maxSteps = one.maxSteps;
    auto problem = KernelProblem::get(kernel, limits, "G");
    if (failed(problem))
      return llvm::createStringError(
          "the kernel of the suite states no search");
    print(report,
          sample(std::make_shared<const KernelProblem>(std::move(*problem)),
                 settings.seconds),
          one.name);
  }
  return Error::success();
}
