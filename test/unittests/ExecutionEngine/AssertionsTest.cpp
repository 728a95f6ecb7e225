//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <atomic>
#include <cstdlib>

using namespace kas;
using namespace kas::execution;

namespace {

/// Assertions between operations that need buffers; the lines count.
constexpr llvm::StringLiteral text =
    R"mlir(#id = affine_map<(i, j) -> (i, j)>
func.func private @check(%t: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %e = tensor.empty() : tensor<64x1024xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<64x1024xf32>) outs(%e : tensor<64x1024xf32>) {
    ^bb0(%a: f32, %o: f32):
      %most = arith.constant 100.0 : f32
      %least = arith.constant -100.0 : f32
      %less = arith.cmpf olt, %a, %most : f32
      cf.assert %less, "requires less than 100"
      %more = arith.cmpf ogt, %a, %least : f32
      cf.assert %more, "requires more than -100"
      %twice = arith.addf %a, %a : f32
      linalg.yield %twice : f32
  } -> tensor<64x1024xf32>
  return %r : tensor<64x1024xf32>
}
func.func @f(%x: tensor<1024x64xf32>, %w: tensor<64x16xf32>) -> (tensor<1024x64xf32>, tensor<1024x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1024xf32>
  %back = tensor.empty() : tensor<1024x64xf32>
  %small = tensor.empty() : tensor<1024x16xf32>
  %t = linalg.transpose ins(%x : tensor<1024x64xf32>) outs(%e : tensor<64x1024xf32>) permutation = [1, 0]
  %c = func.call @check(%t) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %d = func.call @check(%c) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %b = linalg.transpose ins(%d : tensor<64x1024xf32>) outs(%back : tensor<1024x64xf32>) permutation = [1, 0]
  %z = linalg.fill ins(%zero : f32) outs(%small : tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %p = linalg.matmul ins(%b, %w : tensor<1024x64xf32>, tensor<64x16xf32>) outs(%z : tensor<1024x16xf32>) -> tensor<1024x16xf32>
  return %b, %p : tensor<1024x64xf32>, tensor<1024x16xf32>
}
)mlir";

/// Buffers that compiled code has requested, and those that it has not freed.
std::atomic<int64_t> numAllocations, numBuffers;

void *allocate(size_t size) {
  ++numAllocations;
  ++numBuffers;
  return std::malloc(size);
}

void release(void *pointer) {
  numBuffers -= pointer != nullptr;
  std::free(pointer);
}

class AssertionsTest : public testing::TestWithParam<unsigned> {
protected:
  AssertionsTest() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context), "model.mlir");
    CPUPipelineOptions pipeline;
    pipeline.threads = GetParam();
    pipeline.sharesShortLoops = true;
    JITOptions jit;
    jit.symbols = {{"malloc", reinterpret_cast<void *>(&allocate)},
                   {"free", reinterpret_cast<void *>(&release)}};
    function.emplace(
        llvm::cantFail(compileForCPU(*module, "f", pipeline, jit)));
    arguments = llvm::cantFail(function->getSignature().makeArguments({}, 1));
    results = llvm::cantFail(function->getSignature().makeResults());
    numAllocations = numBuffers = 0;
  }

  std::string call() {
    std::string message = llvm::toString((*function)(arguments, results));
    EXPECT_GT(numAllocations, 0);
    EXPECT_EQ(numBuffers, 0);
    return message;
  }
  float &at(int64_t row, int64_t column) {
    return arguments[0].data()[row * 64 + column];
  }

  /// For another number of samples than the function has.
  std::string callBatch(int64_t samples) {
    llvm::SmallVector<float *> tensors;
    for (Tensor &tensor : arguments)
      tensors.push_back(tensor.data());
    for (Tensor &tensor : results)
      tensors.push_back(tensor.data());
    return llvm::toString((*function)(tensors, samples));
  }

  mlir::MLIRContext context;
  std::optional<CompiledFunction> function;
  llvm::SmallVector<Tensor> arguments, results;
};

} // namespace

TEST_P(AssertionsTest, NumberOfSamplesOfAFunctionForOneSize) {
  EXPECT_EQ(callBatch(8), "requires a function for batches of any size");
  EXPECT_EQ(numAllocations, 0);
}

TEST_P(AssertionsTest, HoldAndChangeNothing) {
  EXPECT_EQ(call(), "");
  EXPECT_EQ(results[0].data()[70], 4 * at(1, 6));
}

TEST_P(AssertionsTest, ReturnTheMessageAndFreeBuffers) {
  at(500, 40) = 100;
  Tensor before = arguments[0].clone();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(call(), "model.mlir:10:7: requires less than 100");
  EXPECT_EQ(arguments[0].getValues(), before.getValues());
  // Only the second call of the private function.
  at(500, 40) = -70;
  EXPECT_EQ(call(), "model.mlir:12:7: requires more than -100");
  // It goes on as if nothing had been.
  at(500, 40) = 1;
  EXPECT_EQ(call(), "");
  EXPECT_EQ(results[0].data()[500 * 64 + 40], 4);
}

TEST_P(AssertionsTest, TheFirstIterationSpeaks) {
  at(1000, 10) = -200;
  at(3, 11) = 200;
  at(2, 63) = 200;
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(call(), "model.mlir:12:7: requires more than -100");
  at(999, 10) = 200;
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(call(), "model.mlir:10:7: requires less than 100");
}

INSTANTIATE_TEST_SUITE_P(Threads, AssertionsTest, testing::Values(1, 2, 4));
