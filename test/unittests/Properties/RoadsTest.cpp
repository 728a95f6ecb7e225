//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Runtime/JIT.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

/// The largest error that a road may make, relative to the largest magnitude of
/// the output.
constexpr double tolerance = 1e-4;

/// Functions that are compiled together: a module for each would cost more time
/// than running it.
constexpr unsigned batchSize = 50;

using Road = llvm::function_ref<void(OpPassManager &)>;

RankedTensorType getTensorType(MLIRContext *context, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, Float32Type::get(context));
}

/// `func @name(data, weights...) { return kas.apply @op<binding>(...) }`.
void addFunction(OpBuilder &builder, const RandomOperator &random,
                 const OperatorShapes &shapes, StringRef name) {
  MLIRContext *context = builder.getContext();
  OperatorOp op = random.op;
  Location loc = op.getLoc();
  SmallVector<Type> types = {getTensorType(context, shapes.data)};
  for (ArrayRef<int64_t> shape : shapes.weights)
    types.push_back(getTensorType(context, shape));
  Type resultType = getTensorType(context, shapes.output);
  auto function = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType(types, resultType));
  SymbolSet symbols = op.getSymbolSet();
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto [index, value] : llvm::enumerate(random.binding))
    entries.emplace_back(symbols.getName(index), value);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto apply = ApplyOp::create(
      builder, loc, resultType, FlatSymbolRefAttr::get(op.getSymNameAttr()),
      BindingAttr::getNormal(context, entries), body->getArgument(0),
      body->getArguments().drop_front());
  func::ReturnOp::create(builder, loc, apply.getResult());
}

/// Random operators `first` to `first + batchSize - 1` and a function for each.
class Batch {
public:
  Batch(MLIRContext *context, uint64_t first,
        const RandomOperatorOptions &options)
      : first(first), module(ModuleOp::create(UnknownLoc::get(context))) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    for (unsigned i = 0; i < batchSize; ++i) {
      RandomOperator random = makeRandomOperator(
          builder, "operator" + std::to_string(i), first + i, options);
      texts.push_back(describe(random));
      OperatorOp concrete = makeConcrete(random.op, random.binding);
      inputs.emplace_back(getShapes(concrete), first + i);
      expected.push_back(evaluate(concrete, inputs.back()));
      floors.push_back(getCancellationFloor(concrete, inputs.back()));
      concrete.erase();
      addFunction(builder, random, inputs.back().shapes, getName(i));
    }
  }

  /// Lowers the functions by `road` and the CPU pipeline, runs them and
  /// compares with the reference.
  void check(Road road, const CPUPipelineOptions &options) {
    ASSERT_TRUE(succeeded(verify(*module)));
    OwningOpRef<ModuleOp> lowered = run([&](OpPassManager &manager) {
      road(manager);
      buildCPUPipeline(manager, options);
    });
    ASSERT_TRUE(lowered);
    JITOptions jit;
    jit.optLevel = 1;
    auto compiled = CompiledModule::compile(*lowered, jit);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    for (unsigned i = 0; i < batchSize; ++i) {
      SCOPED_TRACE("seed " + std::to_string(first + i) + "\n" + texts[i]);
      auto function = (*compiled)->lookup(getName(i));
      ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
      EXPECT_LE(getError(call(*function, inputs[i]), expected[i], floors[i]),
                tolerance);
    }
  }

  /// The module after `passes`, or null. Remarks are not shown.
  OwningOpRef<ModuleOp> run(Road passes) {
    ScopedDiagnosticHandler handler(
        module->getContext(), [](Diagnostic &diagnostic) {
          return success(diagnostic.getSeverity() ==
                         DiagnosticSeverity::Remark);
        });
    OwningOpRef<ModuleOp> result = module->clone();
    PassManager manager(module->getContext(), ModuleOp::getOperationName());
    passes(manager);
    if (failed(manager.run(*result)))
      return nullptr;
    return result;
  }

private:
  static std::string getName(unsigned index) {
    return "run" + std::to_string(index);
  }

  static std::vector<float> call(CompiledModule::Function function,
                                 Inputs &inputs) {
    std::vector<float> output(*getNumElements(inputs.shapes.output),
                              std::numeric_limits<float>::quiet_NaN());
    std::vector<void *> pointers = {inputs.data.data()};
    for (std::vector<float> &weight : inputs.weights)
      pointers.push_back(weight.data());
    pointers.push_back(output.data());
    function(pointers.data());
    return output;
  }

  uint64_t first;
  OwningOpRef<ModuleOp> module;
  std::vector<std::string> texts;
  std::vector<Inputs> inputs;
  std::vector<std::vector<float>> expected;
  std::vector<double> floors;
};

void forEachBatch(unsigned count, const RandomOperatorOptions &options,
                  llvm::function_ref<void(Batch &)> body) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  for (uint64_t i = 0; i < count; i += batchSize) {
    MLIRContext context(registry);
    context.loadDialect<KasDialect, func::FuncDialect>();
    Batch batch(&context, getFirstSeed() + i, options);
    body(batch);
    if (testing::Test::HasFailure())
      return;
  }
}

void checkRoad(Road road, const CPUPipelineOptions &options,
               unsigned count = getNumOperators(200, 1000),
               const RandomOperatorOptions &operatorOptions = {}) {
  forEachBatch(count, operatorOptions,
               [&](Batch &batch) { batch.check(road, options); });
}

} // namespace

TEST(Roads, AffineAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkRoad(
      [](OpPassManager &manager) {
        manager.addPass(createKasSpecializePass());
        manager.addPass(createKasToAffinePass());
      },
      serial);
}

TEST(Roads, ParallelAffineAgreesWithTheReference) {
  CPUPipelineOptions parallel;
  parallel.threads = 2;
  checkRoad(
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
static void addLinalgRoad(OpPassManager &manager, bool namedOps) {
  manager.addPass(createKasSpecializePass());
  KasToLinalgPassOptions options;
  options.namedOps = namedOps;
  manager.addPass(createKasToLinalgPass(options));
  manager.addPass(createKasToAffinePass());
}

TEST(Roads, LinalgAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkRoad(
      [](OpPassManager &manager) { addLinalgRoad(manager, /*namedOps=*/true); },
      serial);
}

TEST(Roads, LinalgGenericAgreesWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkRoad(
      [](OpPassManager &manager) {
        addLinalgRoad(manager, /*namedOps=*/false);
      },
      serial, getNumOperators(50, 1000));
}

TEST(Roads, LinalgTakesMostOperators) {
  unsigned numLeft = 0;
  forEachBatch(200, {}, [&](Batch &batch) {
    OwningOpRef<ModuleOp> lowered = batch.run([](OpPassManager &manager) {
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

TEST(Roads, ThePipelineAgreesWithTheReference) {
  checkRoad([](OpPassManager &) {}, CPUPipelineOptions(),
            getNumOperators(100, 1000));
}

TEST(Roads, CanonicalizedOperatorsAgreeWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  checkRoad(
      [](OpPassManager &manager) {
        manager.addPass(createKasCanonicalizePass());
        manager.addPass(createKasSpecializePass());
        manager.addPass(createKasCanonicalizePass());
      },
      serial, getNumOperators(50, 1000));
}

// Enough points for threads, and loops that are longer than vectors.
TEST(Roads, ThePipelineAgreesOnLargerOperators) {
  RandomOperatorOptions larger;
  larger.maxPoints = 300000;
  larger.maxExtent = 60;
  checkRoad([](OpPassManager &) {}, CPUPipelineOptions(),
            getNumOperators(50, 500), larger);
}
