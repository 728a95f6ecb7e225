//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelsTest.h"
#include "Properties.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::test;
using namespace mlir;

std::unique_ptr<RunnableModel> RunnableModel::compile(ModuleOp module,
                                                      unsigned optLevel) {
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  JITOptions jit;
  jit.optLevel = optLevel;
  auto function = compileForCPU(module, "forward", pipeline, jit);
  if (function)
    return std::unique_ptr<RunnableModel>(
        new RunnableModel(std::move(*function)));
  ADD_FAILURE() << llvm::toString(function.takeError());
  return nullptr;
}

void RunnableModel::run(uint64_t seed, const NamedTensors &given) {
  const FunctionSignature &signature = function.getSignature();
  auto made = signature.makeArguments(given, seed);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  arguments = std::move(*made);
  results = llvm::cantFail(signature.makeResults());
  llvm::cantFail(function(arguments, results));
}

Arguments RunnableModel::getArguments() const {
  Arguments named;
  for (auto [argument, tensor] :
       llvm::zip_equal(function.getSignature().arguments, arguments))
    named[argument.name] = tensor.getValues();
  return named;
}

std::string Tally::print() const {
  return llvm::formatv("{0} equal (largest difference {1:e1}), {2} not finite "
                       "and the same, {3} not finite as the order of sums "
                       "decides, {4} without digits to compare",
                       equal, largestError, notFinite, byOrder, illConditioned)
      .str();
}

std::string Tally::add(ArrayRef<float> actual,
                       llvm::function_ref<std::vector<float>(bool)> evaluate,
                       llvm::function_ref<std::vector<float>()> evaluateSingle,
                       bool isLarge) {
  std::vector<float> expected = evaluate(false);
  if (expected.empty())
    return "no expected result";
  if (!isFinite(actual) || !isFinite(expected)) {
    // Numbers beyond f32 between the steps count.
    ++(isSameKind(actual, evaluateSingle()) ? notFinite : byOrder);
    return "";
  }
  double condition = getError(evaluate(true), expected);
  double error = getError(actual, expected);
  if (!(condition < 1e-3) || (isLarge && error > 1e-4)) {
    ++illConditioned;
    return "";
  }
  if (!(error <= 1e-4 + 20 * condition))
    return "error " + std::to_string(error) + ", condition " +
           std::to_string(condition);
  ++equal;
  largestError = std::max(largestError, error);
  return "";
}

ModelsTest::ModelsTest() {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  kas::registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  static bool once = (kas::registerAllPasses(), true);
  (void)once;
}

OwningOpRef<ModuleOp> ModelsTest::parseModel(const std::string &file) {
  return parseSourceFile<ModuleOp>(
      std::string(KAS_MODELS_DIRECTORY) + "/" + file, &context);
}

void ModelsTest::runPasses(ModuleOp module, const std::string &pipeline) {
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, manager)));
  ASSERT_TRUE(succeeded(manager.run(module)));
}

void ModelsTest::findKernels(ModuleOp module, const std::string &family,
                             const std::string &flopsRatio,
                             const std::string &limits, unsigned count,
                             unsigned seed) {
  std::string number = std::to_string(count);
  runPasses(module,
            "kas-extract{kernel=true min-flops-ratio=0.001 flops-ratio=" +
                flopsRatio + "},kas-search{kernel=@" + family +
                " groups=G algorithm=random kernel-limits=" + limits +
                " evaluations=" + number + " top=" + number +
                " seed=" + std::to_string(seed) + "}");
}
