//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that are compiled together for the CPU and compared with the
// reference: starting LLVM for each of them takes most of the time.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_CONVERSION_KERNELBATCH_H
#define KAS_TEST_UNITTESTS_CONVERSION_KERNELBATCH_H

#include "LoweringTest.h"
#include "Properties.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Reference/KernelEvaluator.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

namespace kas::test {
using namespace mlir;

struct KernelCase {
  uint64_t seed;
  std::string text;
  KernelOp kernel;
  Binding binding;
  int64_t batch;
  execution::FunctionSignature signature;
};

/// Kernels that are compiled together: starting LLVM for each of them takes
/// most of the time.
class KernelBatch {
public:
  explicit KernelBatch(MLIRContext *context)
      : module(ModuleOp::create(UnknownLoc::get(context))) {}

  mlir::ModuleOp getModule() { return *module; }

  /// `kernel` is in the module; seeds are different.
  void add(KernelOp kernel, uint64_t seed, Binding binding, int64_t batch) {
    KernelCase &added = cases.emplace_back();
    added.seed = seed;
    added.kernel = kernel;
    added.text = print(kernel);
    added.binding = std::move(binding);
    added.batch = batch;
  }

  /// Kernels that f32 cannot hold, or whose output changes by more than its
  /// own size when its inputs change in their last bits; these are not
  /// compared.
  unsigned getNumUnstable() const { return numUnstable; }

  void check() {
    ASSERT_TRUE(succeeded(verify(*module)));
    OwningOpRef<ModuleOp> lowered = module->clone();
    for (KernelCase &tested : cases)
      ASSERT_NO_FATAL_FAILURE(addFunction(
          *lowered, tested,
          lowered->lookupSymbol<KernelOp>(tested.kernel.getSymName())));
    for (KernelOp kernel : llvm::to_vector(lowered->getOps<KernelOp>()))
      kernel.erase();
    std::unique_ptr<execution::CompiledModule> compiled;
    ASSERT_NO_FATAL_FAILURE(compile(*lowered, compiled));
    for (KernelCase &tested : cases) {
      auto function = compiled->lookup(tested.signature.name);
      ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
      run(tested, *function);
    }
  }

private:
  static void addFunction(ModuleOp module, KernelCase &tested,
                          KernelOp kernel) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    KernelToLinalgOptions options;
    options.batch = tested.batch;
    std::string name = "run" + std::to_string(tested.seed);
    ASSERT_TRUE(succeeded(
        createKernelFunction(builder, kernel, tested.binding, name, options)))
        << tested.text;
    auto signature = execution::FunctionSignature::get(module, name);
    ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
    tested.signature = std::move(*signature);
  }

  void run(KernelCase &tested, execution::CompiledModule::Function function) {
    auto arguments = tested.signature.makeArguments({}, tested.seed);
    ASSERT_TRUE(bool(arguments)) << llvm::toString(arguments.takeError());
    auto results = tested.signature.makeResults();
    ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
    std::vector<float> expected = evaluate(tested, *arguments);
    double change = getChange(tested, expected);
    SmallVector<void *> pointers;
    for (execution::Tensor &argument : *arguments)
      pointers.push_back(argument.data());
    pointers.push_back(results->front().data());
    llvm::cantFail(execution::call(function, pointers.data()));
    ArrayRef<float> actual = results->front().getValues();
    // Chains of squares and exponentials enlarge what f32 rounds off.
    if (!(change < 1e-2)) {
      ++numUnstable;
      return;
    }
    EXPECT_LE(getError(actual, expected), 1e-4 + 10 * change)
        << "seed " << tested.seed << "\n"
        << tested.text;
  }

  /// How far the output moves, relative to its largest magnitude, when each
  /// argument changes by some units in the last place.
  double getChange(KernelCase &tested, ArrayRef<float> expected) {
    auto moved = tested.signature.makeArguments({}, tested.seed);
    EXPECT_TRUE(bool(moved)) << llvm::toString(moved.takeError());
    for (execution::Tensor &argument : *moved)
      llvm::copy(perturb(argument.getValues()), argument.data());
    double change = getError(evaluate(tested, *moved), expected);
    bool isFinite = llvm::all_of(
        expected, [](float value) { return std::abs(value) < 1e30f; });
    return isFinite ? change : std::numeric_limits<double>::infinity();
  }

  /// The reference takes one sample at a time.
  static std::vector<float> evaluate(KernelCase &tested,
                                     ArrayRef<execution::Tensor> arguments) {
    auto emitError = [&] { return tested.kernel.emitError(); };
    FailureOr<reference::KernelShapes> shapes =
        reference::getShapes(tested.kernel, tested.binding, emitError);
    std::vector<float> output;
    if (failed(shapes)) {
      ADD_FAILURE() << tested.text;
      return output;
    }
    size_t numInputs = shapes->inputs.size();
    SmallVector<reference::ReferenceTensor> weights;
    for (auto [shape, weight] :
         llvm::zip_equal(shapes->weights, arguments.drop_front(numInputs)))
      weights.push_back({shape, weight.getValues()});
    for (int64_t sample = 0; sample < tested.batch; ++sample) {
      SmallVector<reference::ReferenceTensor> inputs;
      for (auto [shape, input] :
           llvm::zip_equal(shapes->inputs, arguments.take_front(numInputs))) {
        size_t size = *reference::getNumElements(shape);
        inputs.push_back({shape, input.getValues().slice(sample * size, size)});
      }
      std::vector<float> part(*reference::getNumElements(shapes->output));
      EXPECT_TRUE(succeeded(evaluateKernel(tested.kernel, tested.binding,
                                           inputs, weights, part, emitError)));
      output.insert(output.end(), part.begin(), part.end());
    }
    return output;
  }

  OwningOpRef<ModuleOp> module;
  std::vector<KernelCase> cases;
  unsigned numUnstable = 0;
};

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_CONVERSION_KERNELBATCH_H
