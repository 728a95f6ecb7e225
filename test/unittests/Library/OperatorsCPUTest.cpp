//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named operators, compiled for the CPU, against their formulas.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;

/// In f32, with sums of up to a few hundred terms in any order.
static constexpr double tolerance = 1e-5;

static Tensor toTensor(const TestTensor &test) {
  Tensor tensor(test.shape);
  llvm::copy(test.values, tensor.data());
  return tensor;
}

/// Compiles `op`, with the passes that `addPasses` gives before the
/// pipeline, and runs it.
static std::vector<float>
evaluateOnCPU(OperatorOp op, const TestTensor &data,
              const std::vector<TestTensor> &weights,
              llvm::function_ref<void(PassManager &)> addPasses) {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  op.getContext()->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  PassManager passes(op.getContext());
  addPasses(passes);
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << "the passes before the pipeline failed";
    return {};
  }
  llvm::Expected<CompiledFunction> compiled =
      compileForCPU(*module, operatorFunctionName);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return {};
  }
  SmallVector<Tensor> arguments;
  arguments.push_back(toTensor(data));
  for (const TestTensor &weight : weights)
    arguments.push_back(toTensor(weight));
  SmallVector<Tensor> results =
      llvm::cantFail(compiled->getSignature().makeResults());
  llvm::cantFail((*compiled)(arguments, results));
  ArrayRef<float> values = results.front().getValues();
  return {values.begin(), values.end()};
}

using OperatorValuesOnCPU = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorValuesOnCPU, AsThePipelineLowersThem) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateOnCPU(op, data, weights, [](PassManager &) {});
      },
      tolerance);
}

TEST_P(OperatorValuesOnCPU, OnParallelAffineLoops) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateOnCPU(op, data, weights, [](PassManager &passes) {
          KasToAffinePassOptions options;
          options.parallel = true;
          options.minParallelWork = 1;
          passes.addPass(createKasToAffinePass(options));
        });
      },
      tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, OperatorValuesOnCPU,
                         testing::ValuesIn(formulas::getFormulas()), getName);
