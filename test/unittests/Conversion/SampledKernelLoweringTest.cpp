//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sampled kernels, at every layer of a small network, mean the same by the
// reference evaluator and by the strategy to the CPU.
//
//===----------------------------------------------------------------------===//

#include "KernelBatch.h"
#include "kas/Search/Core/RandomSearcher.h"
#include "kas/Search/Kernels/KernelState.h"
#include "mlir/Parser/Parser.h"

using namespace kas;
using namespace kas::search;
using namespace kas::test;

/// The layers of ResNet-18, of fewer channels and positions.
static constexpr llvm::StringLiteral layers = R"(
kas.kernel canvas @convolution<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, G = 2, H = 12, W = 12, k = 3> x 4, <C = 8, G = 2, H = 6, W = 6, k = 1> x 2,
              <C = 16, G = 2, H = 6, W = 6, k = 3> x 3, <C = 32, G = 2, H = 4, W = 4, k = 3> x 3]
    budget {flops = 5000000, params = 60000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
)";

using SampledKernelLoweringTest = LoweringTest;

TEST_F(SampledKernelLoweringTest, CPUEqualsReference) {
  auto module = parseSourceString<ModuleOp>(layers, &context);
  KernelLimits limits;
  limits.steps.set();
  auto problem =
      KernelProblem::get(*module->getOps<KernelOp>().begin(), limits, "G");
  ASSERT_TRUE(succeeded(problem));
  RandomSearcher::Options options;
  options.seed = getFirstSeed();
  RandomSearcher searcher(
      makeKernelState(std::make_shared<const KernelProblem>(*problem)),
      options);

  constexpr unsigned batchSize = 20;
  unsigned count = getNumOperators(40, 500), unstable = 0;
  uint64_t seed = 0;
  for (unsigned first = 0; first < count && !testing::Test::HasFailure();
       first += batchSize) {
    KernelBatch batch(&context);
    OpBuilder builder = OpBuilder::atBlockEnd(batch.getModule().getBody());
    for (const Candidate &candidate : searcher.ask(batchSize)) {
      const auto &graph = static_cast<const KernelGraph &>(*candidate.solution);
      ASSERT_FALSE(graph.solve().totals.empty());
      KernelOp kernel = buildKernel(builder, builder.getUnknownLoc(),
                                    "k" + std::to_string(candidate.id), graph,
                                    &graph.solve());
      for (const Binding &binding : getSizeRules(kernel).bindings)
        batch.add(kernel, seed++, binding, /*batch=*/1);
    }
    batch.check();
    unstable += batch.getNumUnstable();
  }
  RecordProperty("compared", std::to_string(seed - unstable));
  EXPECT_LT(unstable, seed / 5);
}
