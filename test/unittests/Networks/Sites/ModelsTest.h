//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the tests of kernels in models: passes, and `@forward` compiled
// and run on random data.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_NETWORKS_SITES_MODELSTEST_H
#define TEST_UNITTESTS_NETWORKS_SITES_MODELSTEST_H

#include "SiteReference.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

namespace kas::test {

/// `@forward` of a module, compiled.
class RunnableModel {
public:
  /// With the level of optimization of the code generator; null, and a failure
  /// of the test, when it cannot be compiled.
  static std::unique_ptr<RunnableModel> compile(mlir::ModuleOp module,
                                                unsigned optLevel);

  /// Runs on arguments that come from `seed`, but for those of `given`.
  void run(uint64_t seed, const execution::NamedTensors &given = {});

  /// Of the last run.
  Arguments getArguments() const;
  llvm::ArrayRef<float> getResult(unsigned index) const {
    return results[index].getValues();
  }
  unsigned getNumResults() const { return results.size(); }

private:
  explicit RunnableModel(execution::CompiledFunction function)
      : function(std::move(function)) {}

  execution::CompiledFunction function;
  llvm::SmallVector<execution::Tensor> arguments, results;
};

/// What comparisons have found.
struct Tally {
  unsigned equal = 0;
  /// Not finite, in the same elements in both.
  unsigned notFinite = 0;
  /// Not finite in other elements: a sum beyond f32 is plus or minus infinity
  /// as the order of its terms decides, and a maximum sees that.
  unsigned byOrder = 0;
  /// A change of the data in its last digits changes all digits of the result.
  unsigned illConditioned = 0;
  double largestError = 0;

  unsigned getTotal() const {
    return equal + notFinite + byOrder + illConditioned;
  }
  std::string print() const;

  /// `evaluate(true)` is the expected result for data that is changed a little;
  /// `evaluateSingle()` has every step rounded. Of data that `isLarge` only
  /// whole multiples of periods are left: no change shows that a sine of it has
  /// no digits. Returns what is wrong.
  std::string add(llvm::ArrayRef<float> actual,
                  llvm::function_ref<std::vector<float>(bool)> evaluate,
                  llvm::function_ref<std::vector<float>()> evaluateSingle,
                  bool isLarge = false);
};

class ModelsTest : public testing::Test {
protected:
  ModelsTest();

  /// Parses a file of the test models.
  mlir::OwningOpRef<mlir::ModuleOp> parseModel(const std::string &file);
  void runPasses(mlir::ModuleOp module, const std::string &pipeline);
  /// `-kas-extract`, then `count` random kernels `@FAMILY_0`, ... with at most
  /// `flopsRatio` of the FLOPs.
  void findKernels(mlir::ModuleOp module, const std::string &family,
                   const std::string &flopsRatio, const std::string &limits,
                   unsigned count, unsigned seed = 0);

  mlir::MLIRContext context;
};

} // namespace kas::test

#endif // TEST_UNITTESTS_NETWORKS_SITES_MODELSTEST_H
