//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules for kernels keep what random kernels compute.
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "RandomKernel.h"
#include "RuleCounter.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Reference/KernelEvaluator.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {
/// What a kernel computes from the values of `seed`. Weights shrink with their
/// size, so that sums do not grow.
std::vector<float> evaluate(KernelOp kernel, const Binding &binding,
                            uint64_t seed) {
  auto emitError = [&] { return kernel.emitError(); };
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  if (failed(shapes))
    return {};
  RandomStream stream(seed);
  uint64_t next = 0;
  std::vector<std::vector<float>> values;
  auto add = [&](ArrayRef<int64_t> shape, bool isWeight) {
    size_t size = *getNumElements(shape);
    double factor = isWeight ? std::pow(double(size), -0.25) : 1;
    for (float &value : values.emplace_back(size))
      value = float(factor * stream.normal(next++));
  };
  for (ArrayRef<int64_t> shape : shapes->inputs)
    add(shape, false);
  for (ArrayRef<int64_t> shape : shapes->weights)
    add(shape, true);
  SmallVector<ReferenceTensor> inputs, weights;
  for (auto [index, list] : llvm::enumerate(values)) {
    size_t numInputs = shapes->inputs.size();
    if (index < numInputs)
      inputs.push_back({shapes->inputs[index], list});
    else
      weights.push_back({shapes->weights[index - numInputs], list});
  }
  std::vector<float> output(*getNumElements(shapes->output));
  if (failed(
          evaluateKernel(kernel, binding, inputs, weights, output, emitError)))
    return {};
  return output;
}
} // namespace

TEST(KernelMeaning, EveryRuleOfCanonicalizationKeepsKernels) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  RewritePatternSet set(&context);
  populateKernelCanonicalizePatterns(set);
  FrozenRewritePatternSet patterns(std::move(set));
  RuleCounter counter;
  RandomKernelOptions options;
  options.redexPercent = 50;
  unsigned count = getNumOperators(1000, 10000);
  for (uint64_t seed = getFirstSeed(), e = seed + count;
       seed < e && !testing::Test::HasFailure(); ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    KernelOp kernel = addRandomKernel(*module, "k", seed, options);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(kernel));
    ASSERT_TRUE(succeeded(verify(*module)));
    Binding binding = getSizeRules(kernel).bindings.front();
    std::vector<float> expected = evaluate(kernel, binding, seed);
    ASSERT_FALSE(expected.empty());
    OwningOpRef<ModuleOp> copy = module->clone();
    ASSERT_TRUE(succeeded(applyPatternsGreedily(
        *copy, patterns,
        GreedyRewriteConfig().enableFolding(false).setListener(&counter))));
    canonicalizeKernel(kernel, patterns);
    ASSERT_TRUE(succeeded(verify(*module)));
    std::string text = print(kernel);
    EXPECT_LE(getError(evaluate(kernel, binding, seed), expected), 1e-6)
        << text;
    EXPECT_FALSE(canonicalizeKernel(kernel, patterns));
    EXPECT_EQ(print(kernel), text) << "canonicalization is not idempotent";
  }
  EXPECT_EQ(counter.counts.size(), 14u);
  for (const auto &[rule, applied] : counter.counts)
    EXPECT_GE(applied, count / 100) << rule;
}
