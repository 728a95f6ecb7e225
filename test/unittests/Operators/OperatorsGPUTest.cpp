//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named operators as kernels for GPUs, run on the CPU with blocks and
// threads as loops, against their formulas.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/GPU/GPU.h"
#include "kas/GPU/Passes.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/OperatorModule.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Pass/PassManager.h"

using namespace kas;
using namespace mlir;

/// In f32, with sums of up to a few hundred terms in any order.
static constexpr double tolerance = 1e-5;

static std::vector<float>
evaluateKernels(OperatorOp op, const TestTensor &data,
                const std::vector<TestTensor> &weights, StringRef device) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  op.getContext()->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  PassManager passes(op.getContext());
  buildGPUFrontHalf(passes, {.device = device.str()});
  passes.addPass(createGPUToCPULoops());
  CPUPipelineOptions serial;
  serial.threads = 1;
  buildCPUPipeline(passes, serial);
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << "the passes failed";
    return {};
  }
  auto compiled = CompiledModule::compile(*module);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return {};
  }
  auto function = (*compiled)->lookup(operatorFunctionName);
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return {};
  }
  std::vector<float> result(*getNumElements(getShapes(op).output),
                            std::numeric_limits<float>::quiet_NaN());
  std::vector<void *> pointers{const_cast<float *>(data.values.data())};
  for (const TestTensor &weight : weights)
    pointers.push_back(const_cast<float *>(weight.values.data()));
  pointers.push_back(result.data());
  (*function)(pointers.data());
  return result;
}

using OperatorKernels = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorKernels, ForNVIDIA) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateKernels(op, data, weights, "sm_90");
      },
      tolerance);
}

TEST_P(OperatorKernels, ForVulkan) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateKernels(op, data, weights, "vulkan");
      },
      tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, OperatorKernels,
                         testing::ValuesIn(formulas::getFormulas()), getName);
