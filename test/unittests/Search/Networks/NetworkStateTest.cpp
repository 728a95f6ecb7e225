//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Configurations of a network of two convolutions: moves that are given can be
// made, every rollout ends, equal candidates have equal keys, and what a
// configuration says about a network is what becomes of it.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/InitAll.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Networks/FisherScorer.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace kas;
using namespace kas::search;
using namespace mlir;

namespace {

class NetworkStateTest : public testing::Test {
protected:
  NetworkStateTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parse(makeText(2));
  }

  /// Two convolutions of 8 channels for a number of samples, then means.
  static std::string makeText(int64_t samples);
  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }
  func::FuncOp getNetwork() {
    return module->lookupSymbol<func::FuncOp>("forward");
  }
  std::shared_ptr<const NetworkProblem> makeProblem(NetworkLimits limits = {}) {
    auto problem = NetworkProblem::get(getNetwork(), limits);
    EXPECT_TRUE(succeeded(problem));
    return std::make_shared<const NetworkProblem>(std::move(*problem));
  }
  /// `count` rollouts, and their solutions.
  std::vector<std::shared_ptr<const NetworkConfiguration>>
  rollOut(const State &root, unsigned count, uint64_t seed);
  /// The network as a configuration makes it.
  OwningOpRef<ModuleOp> transform(const NetworkProblem &problem,
                                  const NetworkConfiguration &configuration);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

std::string NetworkStateTest::makeText(int64_t samples) {
  std::string data = "tensor<" + std::to_string(samples) + "x8x8x8xf32>";
  std::string padded = "tensor<" + std::to_string(samples) + "x8x10x10xf32>";
  std::string scores = "tensor<" + std::to_string(samples) + "x8xf32>";
  std::string text = "func.func @forward(%x: " + data +
                     ", %w0: tensor<8x8x3x3xf32> {kas.name = \"one.weight\"}, "
                     "%w1: tensor<8x8x3x3xf32> {kas.name = \"two.weight\"}) "
                     "-> " +
                     scores + R"( {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : )" +
                     data + R"(
  %init = linalg.fill ins(%zero : f32) outs(%e : )" +
                     data + ") -> " + data;
  std::string value = "%x";
  for (int layer = 0; layer < 2; ++layer) {
    std::string n = std::to_string(layer);
    text += "\n  %p" + n + " = tensor.pad " + value +
            " low[0, 0, 1, 1] high[0, 0, 1, 1] {\n  ^bb0(%i: index, %j: index, "
            "%k: index, %l: index):\n    tensor.yield %zero : f32\n  } : " +
            data + " to " + padded + "\n  %c" + n +
            " = linalg.conv_2d_nchw_fchw ins(%p" + n + ", %w" + n + " : " +
            padded + ", tensor<8x8x3x3xf32>) outs(%init : " + data + ") -> " +
            data;
    value = "%c" + n;
  }
  return text + "\n  %t = tensor.empty() : " + scores +
         "\n  %f = linalg.fill ins(%zero : f32) outs(%t : " + scores + ") -> " +
         scores + "\n  %y = linalg.reduce { arith.addf } ins(%c1 : " + data +
         ") outs(%f : " + scores +
         ") dimensions = [2, 3]\n  return %y : " + scores + "\n}";
}

std::vector<std::shared_ptr<const NetworkConfiguration>>
NetworkStateTest::rollOut(const State &root, unsigned count, uint64_t seed) {
  std::vector<std::shared_ptr<const NetworkConfiguration>> found;
  Random random(seed);
  for (unsigned index = 0; index < count; ++index) {
    std::unique_ptr<State> state = root.clone();
    while (!state->isTerminal()) {
      auto move = state->drawMove(random);
      if (!move) {
        ADD_FAILURE() << "a dead end";
        return found;
      }
      state->apply(*move);
    }
    EXPECT_FALSE(state->drawMove(random));
    found.push_back(std::static_pointer_cast<const NetworkConfiguration>(
        state->getSolution()));
    EXPECT_EQ(found.back()->key(), state->key());
  }
  return found;
}

OwningOpRef<ModuleOp>
NetworkStateTest::transform(const NetworkProblem &problem,
                            const NetworkConfiguration &configuration) {
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(ModuleOp(*module)->clone());
  auto network = copy->lookupSymbol<func::FuncOp>("forward");
  EXPECT_TRUE(succeeded(applyConfiguration(network, problem, configuration)));
  EXPECT_TRUE(succeeded(verify(*copy)));
  return copy;
}

/// Two layers share a weight, and the number that distinguishes them is in the
/// name of a third.
TEST_F(NetworkStateTest, NamesOfLayersDiffer) {
  module = parse(R"(
    func.func @forward(%x: tensor<1x8x8x8xf32>,
        %w0: tensor<8x8x3x3xf32> {kas.name = "a.weight"},
        %w1: tensor<8x8x3x3xf32> {kas.name = "a#1.weight"})
        -> tensor<1x8x2x2xf32> {
      %e0 = tensor.empty() : tensor<1x8x6x6xf32>
      %e1 = tensor.empty() : tensor<1x8x4x4xf32>
      %e2 = tensor.empty() : tensor<1x8x2x2xf32>
      %zero = arith.constant 0.0 : f32
      %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x8x6x6xf32>)
        -> tensor<1x8x6x6xf32>
      %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x8x4x4xf32>)
        -> tensor<1x8x4x4xf32>
      %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x8x2x2xf32>)
        -> tensor<1x8x2x2xf32>
      %c0 = linalg.conv_2d_nchw_fchw
        ins(%x, %w0 : tensor<1x8x8x8xf32>, tensor<8x8x3x3xf32>)
        outs(%i0 : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
      %c1 = linalg.conv_2d_nchw_fchw
        ins(%c0, %w0 : tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>)
        outs(%i1 : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
      %c2 = linalg.conv_2d_nchw_fchw
        ins(%c1, %w1 : tensor<1x8x4x4xf32>, tensor<8x8x3x3xf32>)
        outs(%i2 : tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32>
      return %c2 : tensor<1x8x2x2xf32>
    })");
  ASSERT_TRUE(module);
  std::vector<std::string> names;
  auto problem = makeProblem();
  for (const auto &layer : problem->layers)
    names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a#1", "a#1#1"}));
}

/// Costs are those of the function, equal functions have equal keys and the
/// other way round.
TEST_F(NetworkStateTest, ConfigurationsAreWhatTheySay) {
  auto problem = makeProblem();
  std::map<uint64_t, std::string> known;
  std::map<std::string, uint64_t> keys;
  for (const auto &configuration : rollOut(*makeNetworkState(problem), 60, 1)) {
    OwningOpRef<ModuleOp> made = transform(*problem, *configuration);
    auto network = made->lookupSymbol<func::FuncOp>("forward");
    EXPECT_EQ(countMACs(network), configuration->macs);
    double params = 0;
    for (Type type : network.getArgumentTypes().drop_front())
      params += cast<ShapedType>(type).getNumElements();
    EXPECT_EQ(params, configuration->params);
    network->removeAttr(KasDialect::programsAttrName);
    std::string text;
    llvm::raw_string_ostream(text) << *made;
    EXPECT_EQ(known.try_emplace(configuration->key(), text).first->second,
              text);
    EXPECT_EQ(keys.try_emplace(text, configuration->key()).first->second,
              configuration->key());
  }
  EXPECT_GT(known.size(), 20u);
}

TEST_F(NetworkStateTest, MovesFollowTheContract) {
  auto problem = makeProblem();
  std::unique_ptr<State> state = makeNetworkState(problem);
  SmallVector<Move> moves;
  state->getMoves(moves);
  EXPECT_TRUE(llvm::is_sorted(moves));
  std::set<StringRef> kinds;
  for (Move move : moves) {
    kinds.insert(state->getKindName(move.kind));
    std::unique_ptr<State> next = state->clone();
    next->apply(move);
    EXPECT_NE(next->key(), state->key());
  }
  EXPECT_EQ(kinds, (std::set<StringRef>{"keep", "split", "bottleneck", "slabs",
                                        "group", "depthwise"}));
  // Another root, explored in another order, gives the same.
  std::unique_ptr<State> other = makeNetworkState(problem);
  rollOut(*other, 10, 7);
  SmallVector<Move> again;
  other->getMoves(again);
  EXPECT_EQ(moves, again);
  EXPECT_EQ(state->key(), other->key());
  auto one = rollOut(*state, 10, 3), two = rollOut(*other, 10, 3);
  for (auto [a, b] : llvm::zip_equal(one, two)) {
    EXPECT_EQ(a->key(), b->key());
    EXPECT_EQ(a->programs, b->programs);
  }
}

TEST_F(NetworkStateTest, AlgorithmsSearchIt) {
  NetworkLimits limits;
  limits.steps = 1;
  auto problem = makeProblem(limits);
  for (StringRef name : {"random", "mcts", "evolution"}) {
    auto searcher =
        llvm::cantFail(makeSearcher(name, makeNetworkState(problem)));
    std::set<uint64_t> keys;
    double best = 1e30;
    for (unsigned index = 0; index < 40; ++index) {
      std::vector<Candidate> asked = searcher->ask(1);
      ASSERT_EQ(asked.size(), 1u) << name.str();
      EXPECT_TRUE(keys.insert(asked[0].solution->key()).second);
      double flops =
          2 *
          static_cast<const NetworkConfiguration &>(*asked[0].solution).macs;
      best = std::min(best, flops);
      llvm::cantFail(searcher->tell(asked[0].id, Metrics{{"flops", flops}}));
    }
    EXPECT_LT(best, 2 * countMACs(getNetwork())) << name.str();
  }
}

TEST_F(NetworkStateTest, Limits) {
  NetworkLimits limits;
  for (StringRef text : {"steps=1", "groups=2", "slabs=0", "factor=0",
                         "kernel=1", "schedules=0", "normalize=1"})
    ASSERT_FALSE(bool(parseNetworkLimit(text, limits))) << text.str();
  auto problem = makeProblem(limits);
  std::unique_ptr<State> state = makeNetworkState(problem);
  SmallVector<Move> moves;
  state->getMoves(moves);
  // Keep; split after half of the channels; in two groups; depthwise.
  EXPECT_EQ(moves.size(), 4u);
  for (auto [text, message] :
       {std::pair("luck=1", "requires one of steps (at most 8), groups, slabs, "
                            "factor, schedules (0 or 1), kernel, normalize (0 "
                            "or 1), got 'luck=1'"),
        {"steps=9", "requires one of steps (at most 8), groups, slabs, factor, "
                    "schedules (0 or 1), kernel, normalize (0 or 1), got "
                    "'steps=9'"},
        {"steps=x", "requires name=integer with an integer from 0 to 2^20, got "
                    "'steps=x'"}})
    EXPECT_EQ(llvm::toString(parseNetworkLimit(text, limits)), message);
}

TEST_F(NetworkStateTest, Fisher) {
  for (bool normalize : {false, true}) {
    NetworkLimits limits;
    limits.normalize = normalize;
    auto problem = makeProblem(limits);
    auto scorer = llvm::cantFail(FisherScorer::create(getNetwork(), problem));
    EXPECT_GT(scorer->getOriginal(), 0);
    // What changes no value, changes no score.
    NetworkConfiguration same;
    same.programs.resize(2);
    EXPECT_NEAR(llvm::cantFail(scorer->score(same)) / scorer->getOriginal(), 1,
                1e-6);
    same.programs[0] = {{StepKind::Split, 0, 0, 4}};
    EXPECT_NEAR(llvm::cantFail(scorer->score(same)) / scorer->getOriginal(), 1,
                1e-6);
    EXPECT_EQ(scorer->getNumScored(), 2u);
    NetworkConfiguration other = same;
    other.programs[1] = {{StepKind::Group, 0, 0, 2}};
    double score = llvm::cantFail(scorer->score(other));
    EXPECT_GT(score, 0);
    EXPECT_NE(score, scorer->getOriginal());
    EXPECT_EQ(llvm::cantFail(scorer->score(other)), score);
    EXPECT_EQ(scorer->getNumScored(), 3u);
  }
}

TEST_F(NetworkStateTest, FisherWantsTheSameNetwork) {
  auto problem = makeProblem();
  OwningOpRef<ModuleOp> single = parse(makeText(1));
  auto scorer =
      FisherScorer::create(*single->getOps<func::FuncOp>().begin(), problem);
  EXPECT_EQ(llvm::toString(scorer.takeError()), // N3
            "requires a network for at least 2 samples for Fisher Potential, "
            "got 1; see the option 'scored-network'");
}
