//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random kernels of the tensor level mean the same by the reference evaluator
// and by the road to the CPU.
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "RandomKernel.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Reference/KernelEvaluator.h"
#include "kas/Runtime/JIT.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
struct Case {
  uint64_t seed;
  std::string text;
  KernelOp kernel;
  Binding binding;
  int64_t batch;
  FunctionSignature signature;
};

/// Kernels that are compiled together: starting LLVM for each of them takes
/// most of the time.
class Batch {
public:
  explicit Batch(MLIRContext *context)
      : module(ModuleOp::create(UnknownLoc::get(context))) {}

  void add(uint64_t seed) {
    Case &added = cases.emplace_back();
    added.seed = seed;
    added.kernel = addRandomKernel(*module, "k" + std::to_string(seed), seed);
    added.text = print(added.kernel);
    added.binding = getSizeRules(added.kernel).bindings.front();
    added.batch = 1 + int64_t(seed % 2);
  }

  void check() {
    ASSERT_TRUE(succeeded(verify(*module)));
    OwningOpRef<ModuleOp> lowered = module->clone();
    SmallVector<KernelOp> kernels(lowered->getOps<KernelOp>());
    for (auto [tested, kernel] : llvm::zip_equal(cases, kernels))
      ASSERT_NO_FATAL_FAILURE(addFunction(*lowered, tested, kernel));
    for (KernelOp kernel : kernels)
      kernel.erase();
    ASSERT_TRUE(succeeded(verify(*lowered)));
    PassManager manager(lowered->getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(false);
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    buildCPUPipeline(manager, pipeline);
    ASSERT_TRUE(succeeded(manager.run(*lowered)));
    JITOptions jit;
    jit.optLevel = 0;
    auto compiled = CompiledModule::compile(*lowered, jit);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    for (Case &tested : cases) {
      auto function = (*compiled)->lookup(tested.signature.name);
      ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
      run(tested, *function);
    }
  }

private:
  static void addFunction(ModuleOp module, Case &tested, KernelOp kernel) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    KernelToLinalgOptions options;
    options.batch = tested.batch;
    std::string name = "run" + std::to_string(tested.seed);
    ASSERT_TRUE(succeeded(
        createKernelFunction(builder, kernel, tested.binding, name, options)))
        << tested.text;
    auto signature = FunctionSignature::get(module, name);
    ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
    tested.signature = std::move(*signature);
  }

  static void run(Case &tested, CompiledModule::Function function) {
    auto arguments = tested.signature.makeArguments({}, tested.seed);
    ASSERT_TRUE(bool(arguments)) << llvm::toString(arguments.takeError());
    auto results = tested.signature.makeResults();
    ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
    std::vector<float> expected = evaluate(tested, *arguments);
    SmallVector<void *> pointers;
    for (Tensor &argument : *arguments)
      pointers.push_back(argument.data());
    pointers.push_back(results->front().data());
    function(pointers.data());
    ArrayRef<float> actual = results->front().getValues();
    EXPECT_LE(getError(actual, expected), 1e-4)
        << "seed " << tested.seed << "\n"
        << tested.text;
  }

  /// The reference takes one sample at a time.
  static std::vector<float> evaluate(Case &tested, ArrayRef<Tensor> arguments) {
    auto emitError = [&] { return tested.kernel.emitError(); };
    FailureOr<KernelShapes> shapes =
        getShapes(tested.kernel, tested.binding, emitError);
    std::vector<float> output;
    if (failed(shapes)) {
      ADD_FAILURE() << tested.text;
      return output;
    }
    size_t numInputs = shapes->inputs.size();
    SmallVector<ReferenceTensor> weights;
    for (auto [shape, weight] :
         llvm::zip_equal(shapes->weights, arguments.drop_front(numInputs)))
      weights.push_back({shape, weight.getValues()});
    for (int64_t sample = 0; sample < tested.batch; ++sample) {
      SmallVector<ReferenceTensor> inputs;
      for (auto [shape, input] :
           llvm::zip_equal(shapes->inputs, arguments.take_front(numInputs))) {
        size_t size = *getNumElements(shape);
        inputs.push_back({shape, input.getValues().slice(sample * size, size)});
      }
      std::vector<float> part(*getNumElements(shapes->output));
      EXPECT_TRUE(succeeded(evaluateKernel(tested.kernel, tested.binding,
                                           inputs, weights, part, emitError)));
      output.insert(output.end(), part.begin(), part.end());
    }
    return output;
  }

  OwningOpRef<ModuleOp> module;
  std::vector<Case> cases;
};

class RandomKernelLoweringTest : public testing::Test {
protected:
  RandomKernelLoweringTest() {
    DialectRegistry registry;
    registry.insert<KasDialect>();
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  MLIRContext context;
};
} // namespace

TEST_F(RandomKernelLoweringTest, CPUEqualsReference) {
  constexpr unsigned batchSize = 25;
  unsigned count = getNumOperators(100, 1000);
  for (unsigned first = 0; first < count && !HasFailure(); first += batchSize) {
    Batch batch(&context);
    for (unsigned i = 0; i < batchSize; ++i)
      batch.add(getFirstSeed() + first + i);
    batch.check();
  }
}

/// What the kernels are made of: a generator that leaves a step out proves
/// nothing about it.
TEST_F(RandomKernelLoweringTest, EveryStepOccurs) {
  llvm::MapVector<StringRef, unsigned> counts;
  unsigned numBranches = 0;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (unsigned seed = 0; seed < 200; ++seed) {
    KernelOp kernel =
        addRandomKernel(*module, "k" + std::to_string(seed), seed);
    for (Operation &op : kernel.getBody().front()) {
      std::string name = op.getName().getStringRef().str();
      for (StringRef attribute : {"kind", "inverse"})
        if (auto kind = op.getAttr(attribute))
          llvm::raw_string_ostream(name) << ' ' << kind;
      ++counts[StringAttr::get(&context, name).getValue()];
      numBranches +=
          op.getNumResults() == 1 && !op.getResult(0).hasOneUse() ? 1 : 0;
    }
    if (auto output = kernel.getOutput(); output.getCopies())
      ++counts["average"];
  }
  // Functions of 10 kinds, folds and pools of 3, blends of 5, reorders of 2, 17
  // other ops, and the average of the output.
  EXPECT_EQ(counts.size(), 41u);
  for (auto [name, count] : counts)
    EXPECT_GE(count, 5u) << name.str();
  EXPECT_GE(numBranches, 50u);
}
