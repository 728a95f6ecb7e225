//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators that are lowered, compiled and run together, and compared
// with the reference.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_BATCH_H
#define KAS_TEST_UNITTESTS_PROPERTIES_BATCH_H

#include "Comparison.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <functional>

namespace kas::test {

/// Adds passes before the pipeline for the CPU.
using AddPassesFn = llvm::function_ref<void(mlir::OpPassManager &)>;

/// Functions that are compiled together: a module for each would cost more time
/// than running it.
constexpr unsigned batchSize = 50;

/// What is compiled how, and run how.
struct BatchOptions {
  CPUPipelineOptions pipeline;
  execution::JITOptions jit = {.optLevel = 1};
  Comparison comparison = {};
  /// Called with the manager of all passes before they run.
  std::function<void(mlir::PassManager &)> prepare = nullptr;
  /// Calls the function, which takes `packed` as last argument if that is not
  /// empty, and returns its output; empty: with plain buffers.
  std::function<std::vector<float>(execution::CompiledModule::Function,
                                   const Inputs &,
                                   const std::vector<float> &packed)>
      call = nullptr;
};

/// Makes operator number `seed`, called `name`.
using MakeOperatorFn = std::function<RandomOperator(
    mlir::OpBuilder &, llvm::StringRef name, uint64_t seed)>;

/// Random operators `first` to `first + count - 1` and a function for each.
class Batch {
public:
  Batch(mlir::MLIRContext *context, uint64_t first, unsigned count,
        const MakeOperatorFn &make);

  /// Lowers the functions by `strategy` and the CPU pipeline, runs them and
  /// compares with the reference.
  void check(AddPassesFn strategy, const BatchOptions &options);

  /// Calls `run` for each function with its number and its tensors, and
  /// compares what it returns with the reference.
  void
  compare(llvm::function_ref<std::vector<float>(unsigned, const Inputs &)> run,
          const Comparison &comparison);

  const ComparisonCounts &getCounts() const { return counts; }

  mlir::ModuleOp getModule() { return *module; }

  /// The module after `passes`, or null. Remarks are not shown.
  mlir::OwningOpRef<mlir::ModuleOp>
  run(llvm::function_ref<void(mlir::PassManager &)> passes);

private:
  uint64_t first;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<RandomOperator> operators;
  std::vector<std::string> texts;
  ComparisonCounts counts;
};

/// Calls `body` for batches of `count` operators in all, from `getFirstSeed`
/// on, until one fails, and checks how many were compared exactly.
void forEachBatchOf(const MakeOperatorFn &make, unsigned count,
                    llvm::function_ref<void(Batch &)> body);

/// The same for any random operators, in full batches.
void forEachBatch(unsigned count, const RandomOperatorOptions &options,
                  llvm::function_ref<void(Batch &)> body);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_BATCH_H
