//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the search predicts of an operator's code and what code generation
// makes: the same tiles, in the same layouts, for every stage.
//
//===----------------------------------------------------------------------===//

#include "../Search/Operators/Problems.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Schedule/Rearrangement.h"
#include "kas/Search/Operators/OperatorNests.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "kas/Support/Target.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <set>

using namespace kas;
using namespace kas::search;

namespace {

/// The remarks of `-kas-pack-operators` about each operator, in the order
/// of the operators.
struct MadePlans {
  bool isPacking = false;
  std::vector<std::string> plans;

  void add(const mlir::remark::detail::Remark &remark) {
    if (!isPacking)
      return;
    std::string text = remark.getRemarkName().str();
    for (const auto &arg : remark.getArgs())
      if (arg.key != "schedule" && arg.key != "operation" &&
          arg.key != "Reason" && arg.key != "weightsCombined")
        text += " " + arg.key + "=" + arg.val;
    // It comes after the tiles that it is for.
    if (remark.getRemarkName() == "Rearranged")
      plans.back() += "; " + text;
    else
      plans.push_back(text);
  }
};

struct Streamer : mlir::remark::detail::MLIRRemarkStreamerBase {
  explicit Streamer(MadePlans &made) : made(made) {}
  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    made.add(remark);
  }
  MadePlans &made;
};

/// Knows when operators are packed: linalg operations are, later.
struct Instrumentation : mlir::PassInstrumentation {
  explicit Instrumentation(MadePlans &made) : made(made) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override {
    made.isPacking = pass->getArgument() == "kas-pack-operators";
  }
  MadePlans &made;
};

std::string describe(const schedule::PanelPlan &plan, int64_t lanes) {
  return llvm::formatv("Packed columns={0} depth={1} registerRows={2} "
                       "registerVectors={3} lanes={4} rowGroups={5}",
                       plan.tileColumns, plan.panelDepth, plan.registerRows,
                       plan.registerVectors, lanes, plan.rowGroups);
}

std::string describe(const schedule::DirectPlan &plan, int64_t) {
  return llvm::formatv("Direct registerRows={0} registerColumns={1} "
                       "registerVectors={2} lanes={3} rowGroups={4} "
                       "columnGroups={5}",
                       plan.registerRows, plan.registerColumns,
                       plan.registerVectors, plan.lanes, plan.rowGroups,
                       plan.columnGroups);
}

std::string describe(const schedule::RowVectorPlan &plan, int64_t) {
  return llvm::formatv(
      "RowVectors registerColumns={0} registerVectors={1} lanes={2} "
      "balanced={3} stepParts={4} columnGroups={5} padded={6}",
      plan.getNumRegisterColumns(), plan.registerVectors, plan.lanes,
      plan.isBalanced ? "true" : "false", plan.stepParts, plan.columnGroups,
      plan.paddedShape.empty() ? "false" : "true");
}

/// In the words of the remarks.
std::string describe(const std::optional<schedule::LayoutPlan> &plan,
                     const schedule::TileTarget &target) {
  if (!plan)
    return "NotPacked";
  std::string text = std::visit(
      [&](const auto &tiles) { return describe(tiles, target.lanes); },
      plan->tiles.plan);
  if (plan->rearrangement)
    text += llvm::formatv("; Rearranged copiedWeights={0} transposedOutput={1}",
                          plan->rearrangement->copies.size(),
                          plan->rearrangement->outputLoops.empty() ? "false"
                                                                   : "true");
  return text;
}

class PlannersTest : public ProblemTest {
protected:
  PlannersTest() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    mlir::remark::RemarkCategories categories;
    categories.passed = categories.missed = "kas-panels";
    EXPECT_TRUE(succeeded(mlir::remark::enableOptimizationRemarks(
        context, std::make_unique<Streamer>(made),
        std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(),
        categories)));
  }

  /// What is made of the stages that run when weights were prepacked.
  std::vector<std::string> getMade(const std::string &text,
                                   const Binding &binding,
                                   const std::string &cpu) {
    auto source = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    OperatorOp op = *source->getOps<OperatorOp>().begin();
    mlir::OpBuilder builder(op);
    auto concrete = specialize(builder, op, binding, "concrete",
                               [&] { return op.emitError(); });
    EXPECT_TRUE(succeeded(concrete));
    schedule::StagePlanOptions stageOptions;
    stageOptions.cost = schedule::StageCost::Prepared;
    stageOptions.traffic = schedule::usualTraffic;
    schedule::StagePlan stages = planStages(*concrete, stageOptions);
    auto module = createOperatorModule(*concrete);
    made = {};
    mlir::PassManager manager(&context);
    manager.addInstrumentation(std::make_unique<Instrumentation>(made));
    CPUPipelineOptions options;
    options.threads = 1;
    options.prepackWeights = true;
    // A part of a batch is another operator.
    options.splitBatch = false;
    options.target.cpu = cpu;
    buildCPUBufferPipeline(manager, options);
    EXPECT_TRUE(succeeded(manager.run(*module)));
    EXPECT_EQ(made.plans.size(), stages.stages.size());
    std::vector<std::string> plans;
    for (auto [stage, plan] : llvm::zip(stages.stages, made.plans))
      if (!stage.isOfWeights)
        plans.push_back(plan);
    return plans;
  }

  MadePlans made;
};

/// `count` operators of `problem`, or all.
std::vector<std::shared_ptr<const OperatorGraph>>
sample(const std::shared_ptr<const SearchProblem> &problem, size_t count) {
  RandomSearcher::Options options;
  options.seed = 1;
  RandomSearcher searcher(makeGraphState(problem, {}), options);
  std::vector<std::shared_ptr<const OperatorGraph>> graphs;
  for (unsigned tries = 0; graphs.size() < count && tries < 200; ++tries)
    for (const Candidate &candidate : searcher.ask(count))
      graphs.push_back(
          std::static_pointer_cast<const OperatorGraph>(candidate.solution));
  graphs.resize(std::min(graphs.size(), count));
  return graphs;
}

// The spaces of ResNet-18, its strided layers, the linear layers of a vision
// transformer, of networks on small images and in batches.
constexpr llvm::StringLiteral spaces[] = {
    R"(kas.space @conv2d<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3>, <Cin = 128, Cout = 128, H = 28, N = 1, W = 28, g = 4, k = 3>, <Cin = 256, Cout = 256, H = 14, N = 1, W = 14, g = 4, k = 3>, <Cin = 512, Cout = 512, H = 7, N = 1, W = 7, g = 4, k = 3>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 3005743104, baseline_params = 9437184, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-02})",
    R"(kas.space @conv2d_strided<N, Cin, Cout, H, W | k, s, g>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 128, H = 56, N = 1, W = 56, g = 4, k = 3, s = 2>, <Cin = 128, Cout = 256, H = 28, N = 1, W = 28, g = 4, k = 3, s = 2>, <Cin = 256, Cout = 512, H = 14, N = 1, W = 14, g = 4, k = 3, s = 2>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 2, unfold = 2, weights = 2}
    budget {baseline_flops = 346816512, baseline_params = 1548288, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01})",
    R"(kas.space @batched_linear<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 196, Cin = 192, Cout = 192, g = 4>, <N = 1, L = 196, Cin = 192, Cout = 768, g = 4>, <N = 1, L = 196, Cin = 768, Cout = 192, g = 4>]
    limits {depth = 8, expand = 0, merge = 2, reduce = 2, shift = 1, split = 2, stride = 0, unfold = 0, weights = 2}
    budget {baseline_flops = 2080899072, baseline_params = 5308416, flops_ratio = 5.0e-01, min_flops_ratio = 1.0e-01})",
    R"(kas.space @batches<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 32, Cout = 32, H = 16, N = 8, W = 16, g = 4, k = 3>, <Cin = 64, Cout = 64, H = 8, N = 8, W = 8, g = 4, k = 3>, <Cin = 128, Cout = 128, H = 4, N = 8, W = 4, g = 4, k = 3>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 150994944, baseline_params = 202752, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01})"};

} // namespace

TEST_F(PlannersTest, PredictWhatIsMade) {
  const char *cpus[] = {"x86-64-v3", "sapphirerapids"};
  bool isSlow = std::getenv("KAS_SLOW_TESTS");
  size_t perSpace = isSlow ? 500 : 30, all = 0;
  std::set<std::string> kinds;
  for (auto [number, space] : llvm::enumerate(spaces)) {
    // Drawing operators of the others takes a while.
    if (!isSlow && (number == 1 || number == 2))
      continue;
    auto problem = parse(space);
    OperatorNests nests(problem);
    OperatorPrinter printer(problem);
    for (const auto &graph :
         sample(problem, isSlow && number == 0 ? 750 : perSpace)) {
      std::string text = printer.print(*graph);
      // Each operator at one binding, for one target.
      unsigned chosen = all % problem->bindings.size();
      const char *cpu = cpus[all / problem->bindings.size() % 2];
      ++all;
      auto target = getTarget({cpu, "x86_64-unknown-linux-gnu", ""});
      ASSERT_TRUE(bool(target));
      schedule::TileTarget tiles(*target);
      std::vector<std::string> predicted;
      nests.describe(*graph, [&](unsigned binding,
                                 llvm::ArrayRef<schedule::LoopNest> stages) {
        if (binding == chosen)
          for (const schedule::LoopNest &nest : stages)
            predicted.push_back(describe(planStage(nest, tiles), tiles));
      });
      EXPECT_EQ(predicted, getMade(text, problem->bindings[chosen], cpu))
          << cpu << " at binding " << chosen << "\n"
          << text;
      for (llvm::StringRef plan : predicted) {
        kinds.insert(plan.split(' ').first.str());
        if (plan.contains("Rearranged"))
          kinds.insert("Rearranged");
      }
    }
  }
  // The space of strided layers has fewer than 500.
  EXPECT_GE(all, isSlow ? 2000u : 60u);
  // Few operators suit no tiles at all.
  kinds.erase("NotPacked");
  EXPECT_EQ(kinds, (std::set<std::string>{"Direct", "Packed", "Rearranged",
                                          "RowVectors"}));
}
