//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tiles of predicted times and those that code generation makes: how often
// both are of the same strategy.
//
//===----------------------------------------------------------------------===//

#include "../Operators/Problems.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Search/Operators/OperatorNests.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "kas/Solver/StageWork.h"
#include "kas/Support/Target.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include <cstdlib>

using namespace kas;
using namespace kas::search;
using solver::Work;

namespace {

/// Takes no remark: they come as diagnostics.
struct NoStreamer : mlir::remark::detail::MLIRRemarkStreamerBase {
  void streamOptimizationRemark(const mlir::remark::detail::Remark &) override {
  }
};

class PlannersTest : public ProblemTest {
protected:
  PlannersTest() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    mlir::remark::RemarkCategories categories;
    categories.passed = "kas-panels";
    EXPECT_TRUE(succeeded(mlir::remark::enableOptimizationRemarks(
        context, std::make_unique<NoStreamer>(),
        std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories,
        /*printAsEmitRemarks=*/true)));
  }

  /// The strategies of the stages that are made, in their order.
  std::vector<std::string> getMade(const std::string &text,
                                   const Binding &binding,
                                   const std::string &cpu) {
    auto source = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    OperatorOp op = *source->getOps<OperatorOp>().begin();
    mlir::OpBuilder builder(op);
    auto concrete = specialize(builder, op, binding, "concrete",
                               [&] { return op.emitError(); });
    EXPECT_TRUE(succeeded(concrete));
    auto module = createOperatorModule(*concrete);
    std::vector<std::string> made;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
      std::string message = d.str();
      for (const char *name : {"Packed", "Direct", "RowVectors"})
        if (llvm::StringRef(message).contains(std::string("] ") + name))
          made.push_back(name);
    });
    mlir::PassManager manager(&context);
    CPUPipelineOptions options;
    options.threads = 1;
    options.prepareWeights = true;
    options.target.cpu = cpu;
    buildCPUBufferPipeline(manager, options);
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return made;
  }
};

std::string getStrategy(const solver::StageWork &work) {
  if (work[Work::PanelProducts])
    return "Packed";
  if (work[Work::RowProducts])
    return "RowVectors";
  return work[Work::Direct] || work[Work::DirectBorders] ? "Direct" : "Loops";
}

} // namespace

TEST_F(PlannersTest, AgreeAsOftenAsMeasured) {
  auto problem = parse(R"(
kas.space @conv2d<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3>, <Cin = 128, Cout = 128, H = 28, N = 1, W = 28, g = 4, k = 3>, <Cin = 256, Cout = 256, H = 14, N = 1, W = 14, g = 4, k = 3>, <Cin = 512, Cout = 512, H = 7, N = 1, W = 7, g = 4, k = 3>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 3005743104, baseline_params = 9437184, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-02}
)");
  RandomSearcher::Options options;
  options.seed = 1;
  RandomSearcher searcher(makeGraphState(problem, {}), options);
  unsigned wanted = std::getenv("KAS_SLOW_TESTS") ? 250 : 20;
  std::vector<std::shared_ptr<const OperatorGraph>> graphs;
  for (unsigned tries = 0; graphs.size() < wanted && tries < 200; ++tries)
    for (const Candidate &candidate : searcher.ask(100))
      graphs.push_back(
          std::static_pointer_cast<const OperatorGraph>(candidate.solution));
  graphs.resize(std::min<size_t>(graphs.size(), wanted));
  OperatorNests nests(problem);
  OperatorPrinter printer(problem);
  // As measured: the planner of the search knows no rearranged operators, of
  // which code generation makes two stages. More is better, all is the aim.
  bool isSlow = graphs.size() > 100;
  const std::pair<const char *, unsigned> targets[] = {
      {"x86-64-v3", isSlow ? 54 : 70}, {"sapphirerapids", isSlow ? 49 : 62}};
  for (auto [cpu, percent] : targets) {
    auto target = getTarget({cpu, "x86_64-unknown-linux-gnu", ""});
    ASSERT_TRUE(bool(target));
    solver::TileTarget tiles(*target);
    unsigned same = 0, all = 0;
    for (const auto &graph : graphs) {
      std::string text = printer.print(*graph);
      nests.describe(*graph, [&](unsigned binding,
                                 llvm::ArrayRef<solver::StageNest> stages) {
        std::string predicted, made;
        for (const solver::StageNest &nest : stages)
          if (std::string s = getStrategy(solver::getStageWork(nest, tiles));
              s != "Loops")
            predicted += s + " ";
        for (const std::string &s :
             getMade(text, problem->bindings[binding], cpu))
          made += s + " ";
        ++all;
        same += predicted == made;
      });
    }
    EXPECT_EQ(all, graphs.size() * problem->bindings.size());
    EXPECT_GE(same * 100, all * percent)
        << cpu << ": " << same << " of " << all;
  }
}
