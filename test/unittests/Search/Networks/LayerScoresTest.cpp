//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores of candidates for single layers: a layer in its own place scores what
// the whole network says, and a candidate what the definition says.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Scores/LayerScores.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <ctime>
#include <regex>

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace mlir;

/// Three convolutions, the last two in a residual block, and a mean.
static constexpr StringLiteral network = R"(
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#means = affine_map<(n, c, h, w) -> (n, c)>
func.func @forward(%x: tensor<4x3x6x6xf32> {kas.name = "input"}, %w0: tensor<8x3x3x3xf32> {kas.name = "stem.weight"},
    %w1: tensor<8x8x3x3xf32> {kas.name = "conv1.weight"}, %w2: tensor<8x8x3x3xf32> {kas.name = "conv2.weight"},
    %b: tensor<8xf32> {kas.name = "bias"}) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x6x6xf32>
  %init = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<4x8x6x6xf32>) dimensions = [0, 2, 3]
  %p0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x3x6x6xf32> to tensor<4x3x8x8xf32>
  %c0 = linalg.conv_2d_nchw_fchw ins(%p0, %w0 : tensor<4x3x8x8xf32>, tensor<8x3x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %r0 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c0 : tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8x6x6xf32>
  %p1 = tensor.pad %r0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x8x6x6xf32> to tensor<4x8x8x8xf32>
  %c1 = linalg.conv_2d_nchw_fchw ins(%p1, %w1 : tensor<4x8x8x8xf32>, tensor<8x8x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %r1 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c1 : tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8x6x6xf32>
  %p2 = tensor.pad %r1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x8x6x6xf32> to tensor<4x8x8x8xf32>
  %c2 = linalg.conv_2d_nchw_fchw ins(%p2, %w2 : tensor<4x8x8x8xf32>, tensor<8x8x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %s = linalg.add ins(%c2, %r0 : tensor<4x8x6x6xf32>, tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %t = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #means], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%s : tensor<4x8x6x6xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %a, %o : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
)";

namespace {

class LayerScoresTest : public testing::Test {
protected:
  LayerScoresTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(network, &context);
  }

  std::unique_ptr<LayerScorer> makeScorer(bool normalize) {
    auto scorer = LayerScorer::create(*module, "forward", {},
                                      {.seed = 7, .normalize = normalize});
    if (!scorer) {
      ADD_FAILURE() << llvm::toString(scorer.takeError());
      return nullptr;
    }
    return std::move(*scorer);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

/// The convolution of `module` in groups, with weights of its own.
static void group(ModuleOp module, int64_t groups) {
  linalg::LinalgOp op;
  module.walk([&](linalg::LinalgOp inner) { op = inner; });
  std::string reason;
  IRRewriter rewriter(module.getContext());
  auto iterators = inferChannelIterators(op, reason);
  ASSERT_TRUE(succeeded(iterators)) << reason;
  auto grouped = groupIterators(rewriter, op, iterators->first,
                                iterators->second, groups, reason);
  ASSERT_TRUE(succeeded(grouped)) << reason;
  ASSERT_TRUE(succeeded(renewWeights(rewriter, *grouped, reason))) << reason;
}

TEST_F(LayerScoresTest, LayersThemselves) {
  for (bool normalize : {false, true}) {
    auto scorer = makeScorer(normalize);
    ASSERT_TRUE(scorer);
    ASSERT_EQ(scorer->getNumLayers(), 3u);
    EXPECT_EQ(scorer->getName(1), "conv1");
    for (unsigned layer = 0; layer < scorer->getNumLayers(); ++layer) {
      const LayerScore &own = scorer->getOriginal(layer);
      double fisher = scorer->getFisher()[layer];
      EXPECT_NEAR(own.fisher, fisher, 1e-4 * fisher) << layer;
      EXPECT_GT(own.snip, 0);
      EXPECT_GT(own.gradNorm, 0);
      EXPECT_GT(own.synflow, 0);
      EXPECT_DOUBLE_EQ(getProxy("ensemble", own, own), 0);
    }
    EXPECT_EQ(scorer->getOriginal(1).params, 8 * 8 * 9);
    EXPECT_EQ(scorer->getOriginal(1).macs, 4 * 8 * 8 * 9 * 6 * 6);
    // The stem, and two layers of one shape.
    EXPECT_EQ(scorer->getNumCompiled(), 2u);
  }
}

TEST_F(LayerScoresTest, Groups) {
  auto scorer = makeScorer(false);
  ASSERT_TRUE(scorer);
  OwningOpRef<ModuleOp> candidate = scorer->getModule(1);
  group(*candidate, 2);
  auto score = scorer->score(1, *candidate);
  ASSERT_TRUE(bool(score)) << llvm::toString(score.takeError());
  const LayerScore &own = scorer->getOriginal(1);
  EXPECT_EQ(score->params, own.params / 2);
  EXPECT_EQ(score->macs, own.macs / 2);
  EXPECT_GT(score->fisher, 0);
  EXPECT_NE(score->fisher, own.fisher);
  EXPECT_LT(getProxy("flops", *score, own), getProxy("flops", own, own));
  // The same again is neither compiled again nor another number.
  unsigned count = scorer->getNumCompiled();
  auto again = scorer->score(1, *candidate);
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(again->fisher, score->fisher);
  EXPECT_EQ(scorer->getNumCompiled(), count);
  // At another layer of the same shape it has other weights.
  auto elsewhere = scorer->score(2, *candidate);
  ASSERT_TRUE(bool(elsewhere));
  EXPECT_EQ(scorer->getNumCompiled(), count);
  EXPECT_NE(elsewhere->snip, score->snip);
}

TEST_F(LayerScoresTest, SaysWhatIsWrong) {
  auto missing = LayerScorer::create(*module, "backward", {}, {});
  EXPECT_EQ(llvm::toString(missing.takeError()),
            "requires a function with a body, got 'backward'");
  auto plain = parseSourceString<ModuleOp>(
      "func.func @forward(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "return %x : tensor<2x3xf32>\n}",
      &context);
  auto empty = LayerScorer::create(*plain, "forward", {}, {});
  EXPECT_EQ(llvm::toString(empty.takeError()),
            "cannot score the layers of the network: for proxies, requires a "
            "convolution, got none");
  auto scorer = makeScorer(false);
  ASSERT_TRUE(scorer);
  auto nothing = scorer->score(0, *plain);
  EXPECT_EQ(llvm::toString(nothing.takeError()),
            "requires a candidate with a function 'layer' of data, weights and "
            "init");
}

/// A candidate for one layer costs at most a twentieth of an evaluation of the
/// network, both with compilation, in CPU time.
TEST_F(LayerScoresTest, CandidateCost) {
  if (!std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "slow";
  auto buffer = llvm::MemoryBuffer::getFile(KAS_RESNET18);
  ASSERT_TRUE(bool(buffer));
  module = parseSourceString<ModuleOp>(
      std::regex_replace((*buffer)->getBuffer().str(),
                         std::regex("tensor<1x(?=[0-9])"), "tensor<4x"),
      &context);
  auto getSeconds = [] { return double(std::clock()) / CLOCKS_PER_SEC; };
  double start = getSeconds();
  OwningOpRef<ModuleOp> copy = module->clone();
  SmallVector<std::string> names;
  ASSERT_TRUE(succeeded(makeFisherFunction(
      copy->lookupSymbol<func::FuncOp>("forward"), "fisher", {}, names)));
  auto compiled =
      compileForCPU(*copy, "fisher", {.threads = 1}, {.optLevel = 1});
  ASSERT_TRUE(bool(compiled));
  auto arguments =
      llvm::cantFail(compiled->getSignature().makeArguments({}, 7));
  auto results = llvm::cantFail(compiled->getSignature().makeResults());
  llvm::cantFail((*compiled)(arguments, results));
  double whole = getSeconds() - start;

  auto scorer = makeScorer(false);
  ASSERT_TRUE(scorer);
  start = getSeconds();
  unsigned count = 0;
  for (unsigned layer = 1; layer < scorer->getNumLayers(); ++layer)
    for (int64_t groups : {2, 4, 8}) {
      OwningOpRef<ModuleOp> candidate = scorer->getModule(layer);
      group(*candidate, groups);
      auto score = scorer->score(layer, *candidate);
      ASSERT_TRUE(bool(score)) << llvm::toString(score.takeError());
      ++count;
    }
  double each = (getSeconds() - start) / count;
  llvm::errs() << "network " << whole << " s, candidate " << each
               << " s, ratio " << whole / each << "\n";
  EXPECT_LE(each, whole / 20);
}
