//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random kernels of the tensor level mean the same by the reference evaluator
// and by the strategy to the CPU.
//
//===----------------------------------------------------------------------===//

#include "KernelBatch.h"
#include "RandomKernel.h"
#include "llvm/ADT/MapVector.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

using RandomKernelLoweringTest = LoweringTest;

TEST_F(RandomKernelLoweringTest, CPUEqualsReference) {
  constexpr unsigned batchSize = 25;
  unsigned count = getNumOperators(100, 1000);
  for (unsigned first = 0; first < count && !HasFailure(); first += batchSize) {
    KernelBatch batch(&context);
    for (unsigned i = 0; i < batchSize; ++i) {
      uint64_t seed = getFirstSeed() + first + i;
      KernelOp kernel =
          addRandomKernel(batch.getModule(), "k" + std::to_string(seed), seed);
      batch.add(kernel, seed, getSizeRules(kernel).bindings.front(),
                1 + int64_t(seed % 2));
    }
    batch.check();
  }
}

TEST_F(RandomKernelLoweringTest, ScansEqualReference) {
  RandomKernelOptions options;
  options.scanPercent = 40;
  options.maxSteps = 6;
  unsigned count = getNumOperators(50, 1000), numScans = 0;
  constexpr unsigned batchSize = 25;
  for (unsigned first = 0; first < count && !HasFailure(); first += batchSize) {
    KernelBatch batch(&context);
    for (unsigned i = 0; i < batchSize; ++i) {
      uint64_t seed = getFirstSeed() + first + i;
      KernelOp kernel = addRandomKernel(
          batch.getModule(), "k" + std::to_string(seed), seed, options);
      for (Operation &op : kernel.getBody().front())
        numScans += isa<DagScanOp, DagCumSumOp>(op) || op.hasAttr("causal");
      batch.add(kernel, seed, getSizeRules(kernel).bindings.front(),
                1 + int64_t(seed % 2));
    }
    batch.check();
  }
  EXPECT_GE(numScans, count);
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
