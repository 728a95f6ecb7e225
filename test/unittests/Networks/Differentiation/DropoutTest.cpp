//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled dropout: what is left out, how much of it, and the gradient.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/Dropout.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Philox.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace mlir;

namespace {

constexpr int64_t rows = 37, columns = 211;

class DropoutTest : public testing::Test {
protected:
  DropoutTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The results of `@f` of ones, or of its gradient for ones.
  SmallVector<Tensor> run(double probability, float seed, float step,
                          unsigned stream, unsigned threads,
                          bool wantsGradient = false);

  MLIRContext context;
};

} // namespace

SmallVector<Tensor> DropoutTest::run(double probability, float seed, float step,
                                     unsigned stream, unsigned threads,
                                     bool wantsGradient) {
  // An operation before and one after it, so that there is something to fuse.
  auto module = parseSourceString<ModuleOp>(llvm::formatv(R"(
    func.func @f(%x: tensor<{0}x{1}xf32>, %s: tensor<2xf32>) -> tensor<{0}x{1}xf32> {{
      %e = tensor.empty() : tensor<{0}x{1}xf32>
      %a = linalg.add ins(%x, %x : tensor<{0}x{1}xf32>, tensor<{0}x{1}xf32>)
          outs(%e : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
      %y = kas.dropout %a probability {2:f17} seed %s stream {3}
          : tensor<{0}x{1}xf32>, tensor<2xf32>
      %z = linalg.add ins(%y, %y : tensor<{0}x{1}xf32>, tensor<{0}x{1}xf32>)
          outs(%e : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
      return %z : tensor<{0}x{1}xf32>
    })",
                                                          rows, columns,
                                                          probability, stream)
                                                .str(),
                                            &context);
  EXPECT_TRUE(module);
  std::string name = "f";
  if (wantsGradient) {
    name = "g";
    EXPECT_TRUE(succeeded(makeGradientFunction(
        module->lookupSymbol<func::FuncOp>("f"), name, {0})));
  }
  CPUPipelineOptions pipeline;
  pipeline.threads = threads;
  auto function = llvm::cantFail(compileForCPU(*module, name, pipeline));
  SmallVector<Tensor> arguments;
  for (const TensorSignature &signature : function.getSignature().arguments) {
    Tensor tensor(signature.shape);
    llvm::fill(tensor.getValues(), 1.0f);
    arguments.push_back(std::move(tensor));
  }
  arguments[1].getValues()[0] = seed;
  arguments[1].getValues()[1] = step;
  auto results = llvm::cantFail(function.getSignature().makeResults());
  llvm::cantFail(function(arguments, results));
  return results;
}

/// Whether element number `position` stays.
static bool stays(double probability, float seed, float step, unsigned stream,
                  int64_t position) {
  auto word = Philox4x32::draw(
      {uint32_t(position), uint32_t(uint64_t(position) >> 32), stream, 0},
      {llvm::bit_cast<uint32_t>(seed), llvm::bit_cast<uint32_t>(step)});
  return word[0] >= getDropoutBound(probability);
}

TEST_F(DropoutTest, LeavesOutWhatPhiloxSays) {
  for (auto [probability, seed, step, stream] :
       {std::tuple(0.25, 0.0f, 0.0f, 0u), std::tuple(0.1, 7.0f, 123456.0f, 3u),
        std::tuple(0.9, -1.5f, 1e-30f, 4294967295u)}) {
    SmallVector<Tensor> results = run(probability, seed, step, stream, 1);
    float kept = 4 * float(1 / (1 - probability));
    for (auto [position, value] : llvm::enumerate(results[0].getValues()))
      ASSERT_FLOAT_EQ(
          value, stays(probability, seed, step, stream, position) ? kept : 0)
          << position;
  }
}

TEST_F(DropoutTest, ThreadsLeaveOutTheSame) {
  auto one = run(0.3, 5, 6, 1, 1), three = run(0.3, 5, 6, 1, 3);
  EXPECT_EQ(one[0].getValues(), three[0].getValues());
}

TEST_F(DropoutTest, GradientLeavesOutTheSame) {
  auto results = run(0.3, 5, 6, 1, 2, /*wantsGradient=*/true);
  // The function is linear, without an offset, and given ones.
  EXPECT_EQ(results[0].getValues(), results[1].getValues());
}

/// Each number of a seed, and the stream, makes other elements stay; and with p
/// of each a share of about p * p.
TEST_F(DropoutTest, SeedsAndStreamsAreIndependent) {
  double probability = 0.4, count = rows * columns;
  auto first = run(probability, 1, 1, 0, 1);
  for (auto [seed, step, stream] :
       {std::tuple(2.0f, 1.0f, 0u), std::tuple(1.0f, 2.0f, 0u),
        std::tuple(1.0f, 1.0f, 1u)}) {
    auto second = run(probability, seed, step, stream, 1);
    double out = 0, both = 0;
    for (auto [a, b] :
         llvm::zip_equal(first[0].getValues(), second[0].getValues())) {
      out += b == 0;
      both += a == 0 && b == 0;
    }
    // Five standard deviations.
    auto expectShare = [&](double found, double share) {
      EXPECT_NEAR(found / count, share,
                  5 * std::sqrt(share * (1 - share) / count));
    };
    expectShare(out, probability);
    expectShare(both, probability * probability);
  }
}

TEST(DropoutBoundTest, Bounds) {
  EXPECT_EQ(getDropoutBound(0), 0u);
  EXPECT_EQ(getDropoutBound(0.5), 0x80000000u);
  EXPECT_EQ(getDropoutBound(std::nextafter(1.0, 0.0)), 0xffffffffu);
}
