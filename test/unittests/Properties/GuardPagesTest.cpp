//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "GuardedMemory.h"
#include "kas/Conversion/Passes.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/InitAll.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {

/// Looks into the pipeline: counts what takes the vector strategy.
class Watch : public PassInstrumentation {
public:
  explicit Watch(unsigned &numPacked) : numPacked(numPacked) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "kas-pack-operators")
      numPacked += count(op);
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "kas-pack-operators")
      numPacked -= count(op);
  }

private:
  static unsigned count(Operation *op) {
    unsigned number = 0;
    op->walk([&](ApplyOp) { ++number; });
    return number;
  }

  unsigned &numPacked;
};

/// A guarded copy of `values`.
class GuardedBuffer {
public:
  GuardedBuffer(ArrayRef<float> values, Flush flush)
      : data(allocateGuarded(values.size() * sizeof(float), flush)) {
    std::memcpy(data, values.data(), values.size() * sizeof(float));
    makeReadOnly(data);
  }
  /// An output: NaNs to be overwritten.
  GuardedBuffer(size_t size, Flush flush)
      : data(allocateGuarded(size * sizeof(float), flush)) {}
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;
  ~GuardedBuffer() { freeGuarded(data); }

  void *data;
};

/// Calls `function` on guarded copies of `inputs`, the output `missing`
/// elements too small. Says what was touched that must not be.
std::optional<std::string> call(CompiledModule::Function function,
                                const Inputs &inputs,
                                const std::vector<float> &packed, Flush flush,
                                std::vector<float> &output,
                                size_t missing = 0) {
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  buffers.push_back(std::make_unique<GuardedBuffer>(inputs.data, flush));
  for (const std::vector<float> &weight : inputs.weights)
    buffers.push_back(std::make_unique<GuardedBuffer>(weight, flush));
  output.resize(*getNumElements(inputs.shapes.output) - missing);
  buffers.push_back(std::make_unique<GuardedBuffer>(output.size(), flush));
  void *result = buffers.back()->data;
  if (!packed.empty())
    buffers.push_back(std::make_unique<GuardedBuffer>(packed, flush));
  std::vector<void *> pointers;
  for (const auto &buffer : buffers)
    pointers.push_back(buffer->data);
  auto fault = runGuarded([&] { function(pointers.data()); });
  std::copy_n(static_cast<const float *>(result), output.size(),
              output.begin());
  return fault;
}

/// Sizes at which tiles have tails, borders and more than one vector.
RandomOperatorOptions getLargerOperators() {
  RandomOperatorOptions options;
  options.maxPoints = 100000;
  options.maxExtent = 60;
  return options;
}

/// Runs operators between guard pages until `wanted` of them took the vector
/// strategy.
void checkOperators(Flush flush, unsigned wanted) {
  unsigned numPacked = 0, numRun = 0;
  BatchOptions options;
  options.comparison.draws = 1;
  options.jit = JITOptions();
  options.jit.symbols = getGuardedAllocators(flush);
  options.prepare = [&](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<Watch>(numPacked));
    manager.addInstrumentation(std::make_unique<RemoveAlignment>());
  };
  options.call = [&](CompiledModule::Function function, const Inputs &inputs,
                     const std::vector<float> &packed) {
    ++numRun;
    size_t numBefore = getNumGuarded();
    std::vector<float> output;
    if (auto fault = call(function, inputs, packed, flush, output))
      ADD_FAILURE() << "touched " << *fault;
    EXPECT_EQ(getNumGuarded(), numBefore) << "memory was not freed";
    return output;
  };
  forEachBatch(20 * wanted, getLargerOperators(), [&](Batch &batch) {
    // Serial code and code for two threads take turns, and so do the target's
    // vectors and narrower ones: those of 256 bits have no registers of masks.
    constexpr unsigned bits[] = {256, 0, 128};
    unsigned turn = numRun / batchSize;
    options.pipeline.threads = turn % 5 == 1 ? 2 : 1;
    options.pipeline.sharesShortLoops = true;
    options.pipeline.vectorBits = bits[turn % 3];
    // And so do weights that are packed ahead.
    options.pipeline.prepackWeights = turn % 2 == 1;
    if (numPacked < wanted)
      batch.check([](OpPassManager &) {}, options);
  });
  testing::Test::RecordProperty("run", static_cast<int>(numRun));
  testing::Test::RecordProperty("packed", static_cast<int>(numPacked));
  if (!testing::Test::HasFailure())
    EXPECT_GE(numPacked, wanted);
}

} // namespace

TEST(GuardPages, OperatorsStayInsideAtTheEnd) {
  checkOperators(Flush::End, getNumOperators(20, 2000));
}

TEST(GuardPages, OperatorsStayInsideAtTheBegin) {
  checkOperators(Flush::Begin, getNumOperators(20, 2000));
}

/// What the first failure says when all outputs are an element too small.
TEST(GuardPages, SmallOutputsAreCaught) {
  unsigned numPacked = 0, numCaught = 0;
  BatchOptions options;
  options.comparison.draws = 1;
  options.pipeline.threads = 1;
  options.jit.symbols = getGuardedAllocators(Flush::End);
  options.prepare = [&](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<Watch>(numPacked));
    manager.addInstrumentation(std::make_unique<RemoveAlignment>());
  };
  options.call = [&](CompiledModule::Function function, const Inputs &inputs,
                     const std::vector<float> &packed) {
    std::vector<float> output;
    auto fault =
        call(function, inputs, packed, Flush::End, output, /*missing=*/1);
    EXPECT_TRUE(fault) << "the element past the end was not written";
    if (fault)
      numCaught += StringRef(*fault).contains("past the end of a buffer");
    call(function, inputs, packed, Flush::End, output);
    return output;
  };
  forEachBatch(batchSize, getLargerOperators(), [&](Batch &batch) {
    batch.check([](OpPassManager &) {}, options);
  });
  EXPECT_EQ(numCaught, batchSize);
  EXPECT_GT(numPacked, 0u);
}

/// Functions that touch an element outside of an argument of five floats, or of
/// memory that they allocate.
static constexpr llvm::StringLiteral faultyText = R"mlir(
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @free(!llvm.ptr)
  llvm.func @reads_past(%x: !llvm.ptr, %y: !llvm.ptr) {
    %p = llvm.getelementptr %x[5] : (!llvm.ptr) -> !llvm.ptr, f32
    %v = llvm.load volatile %p : !llvm.ptr -> f32
    llvm.return
  }
  llvm.func @reads_a_vector_past(%x: !llvm.ptr, %y: !llvm.ptr) {
    %v = llvm.load volatile %x {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
    llvm.return
  }
  llvm.func @writes_past(%x: !llvm.ptr, %y: !llvm.ptr) {
    %v = llvm.load %x : !llvm.ptr -> f32
    %p = llvm.getelementptr %y[5] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store %v, %p : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @reads_before(%x: !llvm.ptr, %y: !llvm.ptr) {
    %p = llvm.getelementptr %x[-1] : (!llvm.ptr) -> !llvm.ptr, f32
    %v = llvm.load volatile %p : !llvm.ptr -> f32
    llvm.return
  }
  llvm.func @writes_before(%x: !llvm.ptr, %y: !llvm.ptr) {
    %v = llvm.load %x : !llvm.ptr -> f32
    %p = llvm.getelementptr %y[-1] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store %v, %p : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @writes_an_argument(%x: !llvm.ptr, %y: !llvm.ptr) {
    %v = llvm.load %y : !llvm.ptr -> f32
    llvm.store %v, %x : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @writes_past_its_own(%x: !llvm.ptr, %y: !llvm.ptr) {
    %size = llvm.mlir.constant(20 : i64) : i64
    %v = llvm.load %x : !llvm.ptr -> f32
    %own = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    %p = llvm.getelementptr %own[5] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store volatile %v, %p : f32, !llvm.ptr
    llvm.call @free(%own) : (!llvm.ptr) -> ()
    llvm.return
  }
  llvm.func @reads_before_its_own(%x: !llvm.ptr, %y: !llvm.ptr) {
    %size = llvm.mlir.constant(20 : i64) : i64
    %own = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    %p = llvm.getelementptr %own[-1] : (!llvm.ptr) -> !llvm.ptr, f32
    %v = llvm.load volatile %p : !llvm.ptr -> f32
    llvm.call @free(%own) : (!llvm.ptr) -> ()
    llvm.return
  }
  llvm.func @stays_inside(%x: !llvm.ptr, %y: !llvm.ptr) {
    %size = llvm.mlir.constant(20 : i64) : i64
    %own = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    %p = llvm.getelementptr %x[4] : (!llvm.ptr) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    %q = llvm.getelementptr %own[4] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store volatile %v, %q : f32, !llvm.ptr
    %r = llvm.getelementptr %y[4] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store %v, %r : f32, !llvm.ptr
    llvm.call @free(%own) : (!llvm.ptr) -> ()
    llvm.return
  }
)mlir";

TEST(GuardPages, FaultyCodeIsCaught) {
  struct Case {
    StringRef function;
    Flush flush;
    std::optional<std::string> fault;
  };
  const Case cases[] = {
      {"reads_past", Flush::End,
       "0 bytes past the end of a buffer of 20 bytes"},
      {"reads_a_vector_past", Flush::End,
       "0 bytes past the end of a buffer of 20 bytes"},
      {"writes_past", Flush::End,
       "0 bytes past the end of a buffer of 20 bytes"},
      {"reads_before", Flush::Begin, "4 bytes before a buffer of 20 bytes"},
      {"writes_before", Flush::Begin, "4 bytes before a buffer of 20 bytes"},
      {"writes_an_argument", Flush::Begin,
       "a write at byte 0 of a buffer of 20 bytes that is only read"},
      {"writes_past_its_own", Flush::End,
       "0 bytes past the end of a buffer of 20 bytes"},
      {"reads_before_its_own", Flush::Begin,
       "4 bytes before a buffer of 20 bytes"},
      {"stays_inside", Flush::Begin, std::nullopt},
      {"stays_inside", Flush::End, std::nullopt},
  };
  DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(faultyText, &context);
  ASSERT_TRUE(bool(module));
  for (const Case &test : cases) {
    SCOPED_TRACE(test.function.str());
    JITOptions jit;
    jit.symbols = getGuardedAllocators(test.flush);
    auto compiled = CompiledModule::compile(*module, jit);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    auto function = (*compiled)->lookup(test.function);
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    GuardedBuffer x(std::vector<float>(5, 1.0f), test.flush);
    GuardedBuffer y(5, test.flush);
    void *pointers[] = {x.data, y.data};
    EXPECT_EQ(runGuarded([&] { (*function)(pointers); }), test.fault);
  }
}
