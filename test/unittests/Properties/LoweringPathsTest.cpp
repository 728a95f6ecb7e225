//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

void checkStrategy(CPUStrategy strategy, const CPUPipelineOptions &options,
                   unsigned count = getNumOperators(200, 1000),
                   const RandomOperatorOptions &operatorOptions = {}) {
  forEachBatch(count, operatorOptions, [&](Batch &batch) {
    batch.check(strategy, {.pipeline = options});
  });
}

} // namespace

TEST(LoweringPaths, AffineAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkStrategy(
      [](OpPassManager &manager) {
        manager.addPass(createKasSpecializePass());
        manager.addPass(createKasToAffinePass());
      },
      serial);
}

TEST(LoweringPaths, ParallelAffineAgreesWithTheReference) {
  CPUPipelineOptions parallel;
  parallel.threads = 2;
  checkStrategy(
      [](OpPassManager &manager) {
        manager.addPass(createKasSpecializePass());
        KasToAffinePassOptions loops;
        loops.parallel = true;
        loops.minParallelWork = 1;
        manager.addPass(createKasToAffinePass(loops));
      },
      parallel, getNumOperators(50, 1000));
}

/// What `kas-to-linalg` leaves, `kas-to-affine` takes.
static void addLinalgPath(OpPassManager &manager, bool namedOps) {
  manager.addPass(createKasSpecializePass());
  KasToLinalgPassOptions options;
  options.namedOps = namedOps;
  manager.addPass(createKasToLinalgPass(options));
  manager.addPass(createKasToAffinePass());
}

TEST(LoweringPaths, LinalgAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkStrategy(
      [](OpPassManager &manager) { addLinalgPath(manager, /*namedOps=*/true); },
      serial);
}

TEST(LoweringPaths, LinalgGenericAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkStrategy(
      [](OpPassManager &manager) {
        addLinalgPath(manager, /*namedOps=*/false);
      },
      serial, getNumOperators(50, 1000));
}

TEST(LoweringPaths, LinalgTakesMostOperators) {
  unsigned numLeft = 0;
  forEachBatch(200, {}, [&](Batch &batch) {
    OwningOpRef<ModuleOp> lowered = batch.run([](PassManager &manager) {
      manager.addPass(createKasSpecializePass());
      manager.addPass(createKasToLinalgPass());
    });
    ASSERT_TRUE(lowered);
    lowered->walk([&](ApplyOp) { ++numLeft; });
  });
  // Those that mix maxima with other reductions, mainly.
  RecordProperty("left", numLeft);
  EXPECT_LT(numLeft, 80u);
}

TEST(LoweringPaths, ThePipelineAgreesWithTheReference) {
  checkStrategy([](OpPassManager &) {}, CPUPipelineOptions(),
                getNumOperators(100, 1000));
}

TEST(LoweringPaths, CanonicalizedOperatorsAgreeWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkStrategy(
      [](OpPassManager &manager) {
        manager.addPass(createKasCanonicalizePass());
        manager.addPass(createKasSpecializePass());
        manager.addPass(createKasCanonicalizePass());
      },
      serial, getNumOperators(50, 1000));
}

// Enough points for threads, and loops that are longer than vectors.
TEST(LoweringPaths, ThePipelineAgreesOnLargerOperators) {
  RandomOperatorOptions larger;
  larger.maxPoints = 300000;
  larger.maxExtent = 60;
  checkStrategy([](OpPassManager &) {}, CPUPipelineOptions(),
                getNumOperators(50, 500), larger);
}

// Short vectors fill with few rows: more operators get tiles along the rows.
TEST(LoweringPaths, PreparedWeightsAgreeWithTheReference) {
  RandomOperatorOptions larger;
  larger.maxPoints = 100000;
  larger.maxExtent = 60;
  CPUPipelineOptions prepared;
  prepared.prepareWeights = true;
  for (unsigned threads : {1, 2}) {
    prepared.threads = threads;
    prepared.vectorBits = threads == 1 ? 128 : 256;
    checkStrategy([](OpPassManager &) {}, prepared, getNumOperators(50, 1000),
                  larger);
  }
}
