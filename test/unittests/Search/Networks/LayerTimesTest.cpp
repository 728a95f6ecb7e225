//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times of configurations as sums over layers, with an evaluator that counts
// the requests it gets.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/LayerTimes.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <set>
#include <thread>

using namespace kas;
using namespace kas::execution;
using namespace kas::search;
using namespace mlir;
using llvm::createStringError;
using llvm::Expected;

namespace {

/// Three convolutions by themselves, the first two of one shape.
constexpr llvm::StringLiteral network = R"(
func.func @forward(%x: tensor<1x8x6x6xf32>,
    %w0: tensor<8x8x3x3xf32> {kas.name = "one.weight"},
    %w1: tensor<8x8x3x3xf32> {kas.name = "two.weight"},
    %w2: tensor<4x8x3x3xf32> {kas.name = "three.weight"})
    -> (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x4x4x4xf32>) {
  %e = tensor.empty() : tensor<1x8x4x4xf32>
  %f = tensor.empty() : tensor<1x4x4x4xf32>
  %0 = linalg.conv_2d_nchw_fchw
      ins(%x, %w0 : tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>)
      outs(%e : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %1 = linalg.conv_2d_nchw_fchw
      ins(%x, %w1 : tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>)
      outs(%e : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = linalg.conv_2d_nchw_fchw
      ins(%x, %w2 : tensor<1x8x6x6xf32>, tensor<4x8x3x3xf32>)
      outs(%f : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %0, %1, %2
      : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x4x4x4xf32>
})";

constexpr llvm::StringLiteral paddedNetwork = R"(
func.func @forward(%x: tensor<1x16x8x8xf32>,
    %w: tensor<32x16x3x3xf32> {kas.name = "one.weight"}, %b: tensor<32xf32>)
    -> tensor<1x32x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
  %e = tensor.empty() : tensor<1x32x8x8xf32>
  %init = linalg.broadcast ins(%b : tensor<32xf32>)
      outs(%e : tensor<1x32x8x8xf32>) dimensions = [0, 2, 3]
  %0 = linalg.conv_2d_nchw_fchw
      ins(%p, %w : tensor<1x16x10x10xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
})";

/// 1 ms for each weight of the layer; a layer whose text contains
/// `failing` fails.
class Counter final : public Evaluator {
public:
  Counter(const EvaluatorSettings &settings, std::atomic<unsigned> &calls,
          std::string failing, std::string metric)
      : describe(settings.describe), calls(calls), failing(std::move(failing)),
        metric(std::move(metric)) {}

  StringRef getName() const override { return "counter"; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    ++calls;
    auto text = describe(solution);
    if (!text)
      return text.takeError();
    EXPECT_EQ(text->noun, "function");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!failing.empty() && StringRef(text->text).contains(failing))
      return createStringError("the worker died");
    MLIRContext own(registry, MLIRContext::Threading::DISABLED);
    own.loadAllAvailableDialects();
    auto module = parseSourceString<ModuleOp>(text->text, &own);
    auto layer = *module->getOps<func::FuncOp>().begin();
    double weights = 0;
    for (Type type : layer.getArgumentTypes().drop_front().drop_back())
      weights += cast<ShapedType>(type).getNumElements();
    // A value per channel comes last.
    EXPECT_EQ(cast<ShapedType>(layer.getArgumentTypes().back()).getRank(), 1);
    return Metrics{{metric, weights}};
  }

  DialectRegistry registry;

private:
  decltype(EvaluatorSettings::describe) describe;
  std::atomic<unsigned> &calls;
  std::string failing, metric;
};

class LayerTimesTest : public testing::Test {
protected:
  LayerTimesTest() {
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(network, &context);
    auto made =
        NetworkProblem::get(*module->getOps<func::FuncOp>().begin(), {});
    EXPECT_TRUE(succeeded(made));
    problem = std::make_shared<const NetworkProblem>(std::move(*made));
  }

  Expected<std::unique_ptr<LayerTimes>>
  makeTimes(std::string failing = "", std::string metric = "latency_ms") {
    return LayerTimes::create(problem, registry, {},
                              [=, this](const EvaluatorSettings &settings)
                                  -> Expected<std::unique_ptr<Evaluator>> {
                                auto counter = std::make_unique<Counter>(
                                    settings, calls, failing, metric);
                                registry.appendTo(counter->registry);
                                return counter;
                              });
  }
  /// A layer of 16 channels with padding and a value per channel to add to.
  std::shared_ptr<const NetworkProblem> makePaddedProblem();
  void compareWithLoops(ArrayRef<ProgramStep> program);
  NetworkConfiguration makeConfiguration() const {
    NetworkConfiguration configuration;
    configuration.programs.resize(problem->layers.size());
    return configuration;
  }

  DialectRegistry registry;
  MLIRContext context;
  OwningOpRef<ModuleOp> module, padded;
  std::shared_ptr<const NetworkProblem> problem;
  std::atomic<unsigned> calls = 0;
};

constexpr double dense = 8 * 8 * 9, small = 4 * 8 * 9;

} // namespace

std::shared_ptr<const NetworkProblem> LayerTimesTest::makePaddedProblem() {
  padded = parseSourceString<ModuleOp>(paddedNetwork, &context);
  auto made = NetworkProblem::get(*padded->getOps<func::FuncOp>().begin(), {});
  EXPECT_TRUE(succeeded(made));
  return std::make_shared<const NetworkProblem>(std::move(*made));
}

void LayerTimesTest::compareWithLoops(ArrayRef<ProgramStep> program) {
  SCOPED_TRACE(toString(program));
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(ModuleOp(*padded)->clone());
  auto function = *copy->getOps<func::FuncOp>().begin();
  IRRewriter rewriter(&context);
  std::string reason;
  ASSERT_TRUE(succeeded(applyProgram(
      rewriter, findConvolutions(function).front(), program, reason)))
      << reason;
  std::vector<Tensor> outputs;
  for (bool tiles : {true, false}) {
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    pipeline.registerTiles = tiles;
    pipeline.prepackWeights = tiles;
    auto compiled = llvm::cantFail(compileForCPU(*copy, "forward", pipeline));
    auto arguments =
        llvm::cantFail(compiled.getSignature().makeArguments({}, 1));
    auto results = llvm::cantFail(compiled.getSignature().makeResults());
    llvm::cantFail(compiled.prepack(arguments));
    llvm::cantFail(compiled(arguments, results));
    outputs.push_back(std::move(results.front()));
  }
  double error = 0, magnitude = 0;
  for (auto [a, b] :
       llvm::zip_equal(outputs[0].getValues(), outputs[1].getValues())) {
    error = std::max<double>(error, std::abs(a - b));
    magnitude = std::max<double>(magnitude, std::abs(b));
  }
  EXPECT_GT(magnitude, 0.1);
  EXPECT_LT(error, 1e-5 * magnitude);
}

/// Each program of a shape is timed once, and counts for each layer.
TEST_F(LayerTimesTest, SumsOverLayers) {
  auto times = llvm::cantFail(makeTimes());
  EXPECT_EQ(times->getOriginal(), 2 * dense + small);
  EXPECT_EQ(times->getNumTimed(), 2u);
  NetworkConfiguration configuration = makeConfiguration();
  configuration.programs[0] = {{StepKind::Group, 0, 0, 2}};
  EXPECT_EQ(llvm::cantFail(times->getTime(configuration)), 1.5 * dense + small);
  configuration.programs[1] = configuration.programs[0];
  EXPECT_EQ(llvm::cantFail(times->getTime(configuration)), dense + small);
  configuration.programs[2] = configuration.programs[0];
  EXPECT_EQ(llvm::cantFail(times->getTime(configuration)), dense + small / 2);
  EXPECT_EQ(calls, 4u);
}

/// Other steps to the same loops are the same program.
TEST_F(LayerTimesTest, TimesLoopsOnce) {
  auto times = llvm::cantFail(makeTimes());
  NetworkConfiguration one = makeConfiguration(), other = one;
  one.programs[0] = {{StepKind::Group, 0, 0, 8}};
  other.programs[0] = {{StepKind::Depthwise, 0, 0, 0}};
  EXPECT_EQ(llvm::cantFail(times->getTime(one)), 1.125 * dense + small);
  EXPECT_EQ(llvm::cantFail(times->getTime(other)), 1.125 * dense + small);
  EXPECT_EQ(times->getNumTimed(), 3u);
}

TEST_F(LayerTimesTest, ThreadsWaitForOneAnother) {
  auto times = llvm::cantFail(makeTimes());
  NetworkConfiguration configuration = makeConfiguration();
  configuration.programs[0] = {{StepKind::Depthwise, 0, 0, 0}};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      EXPECT_EQ(llvm::cantFail(times->getTime(configuration)),
                dense + dense / 8 + small);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(calls, 3u);
}

/// What register tiles make of programs is what plain loops make of them.
TEST_F(LayerTimesTest, TilesKeepValues) {
  std::unique_ptr<State> root = makeNetworkState(makePaddedProblem());
  Random random(5);
  std::set<uint64_t> keys;
  while (keys.size() < 30) {
    std::unique_ptr<State> state = root->clone();
    while (!state->isTerminal())
      state->apply(*state->drawMove(random));
    if (!keys.insert(state->key()).second)
      continue;
    auto solution = std::static_pointer_cast<const NetworkConfiguration>(
        state->getSolution());
    compareWithLoops(solution->programs.front());
  }
}

/// A program without a time fails again without another attempt, and no other
/// does.
TEST_F(LayerTimesTest, FailingLayer) {
  auto times = llvm::cantFail(makeTimes("tensor<2x4x4x3x3xf32>"));
  NetworkConfiguration configuration = makeConfiguration();
  configuration.programs[1] = {{StepKind::Group, 0, 0, 2}};
  for (unsigned attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(llvm::toString(times->getTime(configuration).takeError()),
              "layer 'two' by 'group 2': the worker died");
    EXPECT_EQ(calls, 3u);
  }
  configuration.programs[1] = {{StepKind::Group, 0, 0, 4}};
  EXPECT_EQ(llvm::cantFail(times->getTime(configuration)),
            1.25 * dense + small);
  configuration.programs[1] = {{StepKind::Group, 0, 0, 3}};
  EXPECT_TRUE(
      StringRef(llvm::toString(times->getTime(configuration).takeError()))
          .starts_with("layer 'two' by 'group 3': requires "));
}

TEST_F(LayerTimesTest, NetworkWithoutTimes) {
  EXPECT_EQ(llvm::toString(makeTimes("tensor<4x8x3x3xf32>").takeError()),
            "cannot time the layers of the network: layer 'three' by 'keep': "
            "the worker died");
  EXPECT_EQ(llvm::toString(makeTimes("", "seconds").takeError()),
            "cannot time the layers of the network: layer 'one' by 'keep': the "
            "runner reports no latency_ms");
}
