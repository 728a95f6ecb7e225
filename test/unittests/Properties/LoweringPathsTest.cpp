//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "RandomContraction.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/CPU/Strategy/ScheduleSpace.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Random.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"
#include <atomic>
#include <map>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

void checkStrategy(AddPassesFn strategy, const CPUPipelineOptions &options,
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
  parallel.sharesShortLoops = true;
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
TEST(LoweringPaths, PrepackedWeightsAgreeWithTheReference) {
  RandomOperatorOptions larger;
  larger.maxPoints = 100000;
  larger.maxExtent = 60;
  CPUPipelineOptions prepared;
  prepared.prepackWeights = true;
  for (unsigned threads : {1, 2}) {
    prepared.threads = threads;
    prepared.sharesShortLoops = true;
    prepared.vectorBits = threads == 1 ? 128 : 256;
    checkStrategy([](OpPassManager &) {}, prepared, getNumOperators(50, 1000),
                  larger);
  }
}

namespace {

/// Counts products of words.
class CountDotProducts : public PassInstrumentation {
public:
  explicit CountDotProducts(std::atomic<unsigned> &count) : count(count) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "kas-lower-dot-products")
      op->walk([&](DotOp) { ++count; });
  }

private:
  std::atomic<unsigned> &count;
};

} // namespace

TEST(LoweringPaths, ProductsOfBFloatsAgreeWithTheReference) {
  auto target = getTarget();
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  RandomOperatorOptions larger;
  larger.maxPoints = 100000;
  larger.maxExtent = 60;
  BatchOptions options;
  options.pipeline.precision = codegen::ContractionPrecision::BF16;
  options.pipeline.roundAll = true;
  options.pipeline.prepackWeights = true;
  options.pipeline.sharesShortLoops = true;
  options.comparison = compareRounded("bf16");
  std::atomic<unsigned> count = 0;
  options.prepare = [&](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<CountDotProducts>(count));
  };
  for (unsigned threads : {1, 2}) {
    options.pipeline.threads = threads;
    options.pipeline.vectorBits = threads == 1 ? 0 : 256;
    auto check = [&](Batch &batch) {
      batch.check([](OpPassManager &) {}, options);
    };
    forEachBatch(getNumOperators(50, 1000), larger, check);
    forEachBatchOf(
        [](OpBuilder &builder, StringRef name, uint64_t seed) {
          return makeRandomContraction(builder, name, seed,
                                       /*maxProducts=*/1 << 18);
        },
        getNumOperators(50, 1000), check);
  }
  RecordProperty("products", static_cast<int>(count));
  if (target->bfloatDotBits > 0)
    EXPECT_GT(count, 100u);
}

namespace {

/// Gives each operator any schedule that suits it, not just the one that the
/// cost model likes best.
struct ChooseSchedules : PassWrapper<ChooseSchedules, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseSchedules)

  explicit ChooseSchedules(std::map<kas::CPUStrategy, unsigned> &counts)
      : counts(counts) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<KasCPUDialect>();
  }

  void runOnOperation() override {
    Random random(getFirstSeed());
    getOperation().walk([&](ApplyOp apply) {
      auto space = codegen::getScheduleSpace(apply, {});
      if (!space)
        return llvm::consumeError(space.takeError());
      // Each strategy as often as the others.
      std::map<kas::CPUStrategy, std::vector<CPUScheduleAttr>> points;
      for (const SchedulePoint &point : space->points) {
        auto schedule = cast<CPUScheduleAttr>(point.schedule);
        points[schedule.getStrategy()].push_back(schedule);
      }
      auto chosen = std::next(points.begin(), random.below(points.size()));
      apply->setAttr(KasCPUDialect::scheduleName,
                     chosen->second[random.below(chosen->second.size())]);
      ++counts[chosen->first];
    });
  }

  std::map<kas::CPUStrategy, unsigned> &counts;
};

} // namespace

TEST(LoweringPaths, AnyScheduleAgreesWithTheReference) {
  RandomOperatorOptions larger;
  larger.maxPoints = 100000;
  larger.maxExtent = 60;
  CPUPipelineOptions prepared;
  prepared.threads = 1;
  prepared.prepackWeights = true;
  std::map<kas::CPUStrategy, unsigned> counts;
  checkStrategy(
      [&](OpPassManager &manager) {
        manager.addPass(createKasSpecializePass());
        KasRFactorPassOptions stages;
        stages.cost = schedule::StageCost::Prepared;
        manager.addPass(createKasRFactorPass(stages));
        // Short vectors suit more operators.
        codegen::KasAttachCPUTargetPassOptions target;
        if (llvm::Triple(llvm::sys::getProcessTriple()).isX86())
          target.cpu = "x86-64";
        manager.addPass(codegen::createKasAttachCPUTargetPass(target));
        manager.addPass(std::make_unique<ChooseSchedules>(counts));
      },
      prepared, getNumOperators(400, 4000), larger);
  for (auto strategy : {kas::CPUStrategy::Panels, kas::CPUStrategy::Direct,
                        kas::CPUStrategy::RowVectors})
    EXPECT_GT(counts[strategy], 0u) << stringifyCPUStrategy(strategy).str();
}
