//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fisher Potential against what PyTorch computes for a ResNet-18, and against
// figures worked out by hand.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Scores/Fisher.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/InitAll.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>
#include <regex>

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace mlir;

namespace {

class FisherTest : public testing::Test {
protected:
  FisherTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The small ResNet-18 of the tests, for `samples` samples, with its Fisher
  /// function.
  void parse(unsigned samples, const FisherOptions &options);
  /// The scores on the arguments of seed 7.
  std::vector<float> run(const NamedTensors &given);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  SmallVector<std::string> names;
};

} // namespace

static std::string getPath(StringRef file) {
  return (Twine(KAS_MODELS_DIRECTORY) + "/" + file).str();
}

static NamedTensors readExpected(NamedTensors &labels) {
  NamedTensors all =
      llvm::cantFail(readNpz(getPath("resnet18_small.fisher.npz")));
  labels["labels"] = all["labels"].clone();
  return all;
}

void FisherTest::parse(unsigned samples, const FisherOptions &options) {
  auto buffer = llvm::MemoryBuffer::getFile(getPath("resnet18_small.mlir"));
  ASSERT_TRUE(bool(buffer));
  std::string text = std::regex_replace(
      (*buffer)->getBuffer().str(), std::regex("tensor<1x(?=[0-9])"),
      "tensor<" + std::to_string(samples) + "x");
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  names.clear();
  auto made = makeFisherFunction(module->lookupSymbol<func::FuncOp>("forward"),
                                 "fisher", options, names);
  ASSERT_TRUE(succeeded(made));
}

std::vector<float> FisherTest::run(const NamedTensors &given) {
  auto function = compileForCPU(*module, "fisher", {}, {.optLevel = 0});
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return {};
  }
  auto arguments =
      llvm::cantFail(function->getSignature().makeArguments(given, 7));
  auto results = llvm::cantFail(function->getSignature().makeResults());
  llvm::cantFail((*function)(arguments, results));
  return std::vector<float>(results[1].getValues().begin(),
                            results[1].getValues().end());
}

TEST_F(FisherTest, EqualsPyTorch) {
  NamedTensors labels, expected = readExpected(labels);
  for (bool normalize : {false, true}) {
    parse(2, {.normalize = normalize});
    ArrayRef<float> wanted =
        expected[normalize ? "normalized" : "plain"].getValues();
    std::vector<float> scores = run(labels);
    ASSERT_EQ(scores.size(), wanted.size());
    for (auto [name, score, value] : llvm::zip_equal(names, scores, wanted))
      EXPECT_NEAR(score, value, 1e-4 * value) << name;
  }
  EXPECT_EQ(names.front(), "conv1");
  EXPECT_EQ(names.back(), "layer4.1.conv2");
}

/// SNIP, norms of gradients, the kernel of the samples and synaptic flow.
TEST_F(FisherTest, ProxiesEqualPyTorch) {
  parse(2, {});
  NamedTensors labels, fisher = readExpected(labels);
  NamedTensors expected =
      llvm::cantFail(readNpz(getPath("resnet18_small.proxies.npz")));
  auto network = module->lookupSymbol<func::FuncOp>("forward");
  ProxyNames proxyNames;
  ASSERT_TRUE(succeeded(makeProxyFunction(network, "proxies", {}, proxyNames)));
  ASSERT_TRUE(succeeded(makeSynflowFunction(network, "synflow")));
  EXPECT_EQ(ArrayRef(names), ArrayRef(proxyNames.layers));
  EXPECT_EQ(proxyNames.parameters.front(), "conv1.weight");
  EXPECT_EQ(proxyNames.parameters.back(), "fc.weight");
  std::vector<std::vector<float>> results;
  for (StringRef name : {"proxies", "synflow"}) {
    auto function = compileForCPU(*module, name, {}, {.optLevel = 0});
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    auto arguments =
        llvm::cantFail(function->getSignature().makeArguments(labels, 7));
    auto values = llvm::cantFail(function->getSignature().makeResults());
    llvm::cantFail((*function)(arguments, values));
    for (const Tensor &value : values)
      results.emplace_back(value.getValues().begin(), value.getValues().end());
  }
  auto compare = [](ArrayRef<float> actual, ArrayRef<float> wanted) {
    ASSERT_EQ(actual.size(), wanted.size());
    for (auto [index, value] : llvm::enumerate(wanted))
      EXPECT_NEAR(actual[index], value, 1e-4 * value) << index;
  };
  compare(results[1], fisher["plain"].getValues());
  compare(results[2], expected["snip"].getValues());
  compare(results[3], expected["norms"].getValues());
  // Counts: equal to the last unless a rectifier's input is nearly 0.
  compare(results[4], expected["kernel"].getValues());
  compare(results[5], expected["synflow"].getValues());
}

TEST_F(FisherTest, LogDeterminant) {
  EXPECT_DOUBLE_EQ(getLogDeterminant({2, 1, 1, 2}, 2), std::log(3));
  // Needs an exchange of rows.
  EXPECT_DOUBLE_EQ(getLogDeterminant({0, 2, 0, 3, 0, 0, 0, 0, 4}, 3),
                   std::log(24));
  EXPECT_EQ(getLogDeterminant({1, 1, 1, 1}, 2), -HUGE_VAL);
}

/// The second convolutions of the blocks, and the shortcuts: both are added.
TEST_F(FisherTest, ResidualOnly) {
  parse(2, {.residualOnly = true});
  EXPECT_EQ(names.size(), 11u);
  for (StringRef name : names)
    EXPECT_TRUE(name.ends_with(".conv2") || name.ends_with(".downsample.0"))
        << name.str();
}

/// Before a normalization over the batch, one sample has no potential but
/// for the constant that keeps the deviation from being 0.
TEST_F(FisherTest, OneSampleNormalizedIsZero) {
  parse(1, {.normalize = true});
  NamedTensors none;
  for (auto [name, score] : llvm::zip_equal(names, run(none)))
    EXPECT_NEAR(score, 0, 1e-6) << name;
}

/// Two samples, two channels, two by two points: 6.25 + 1.
TEST_F(FisherTest, WorkedExample) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto type = RankedTensorType::get({2, 2, 2, 2}, builder.getF32Type());
  auto function = func::FuncOp::create(
      builder, loc, "fisher",
      builder.getFunctionType({type, type},
                              RankedTensorType::get({}, builder.getF32Type())));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  Value score = emitFisher(builder, block->getArgument(0),
                           block->getArgument(1), /*batch=*/0, {2, 3});
  func::ReturnOp::create(builder, loc, score);
  auto compiled = compileForCPU(*module, "fisher", {}, {.optLevel = 0});
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  // Sample, channel, row, column.
  std::vector<float> activation{1, 2, 3, 4, 1,  1, 1, 1,
                                0, 1, 1, 0, -1, 0, 0, 1};
  std::vector<float> gradient{1, 0, 0, -1, .5, .5, .5, .5,
                              2, 2, 2, 2,  3,  1,  1,  3};
  float result = 0;
  llvm::cantFail((*compiled)(
      ArrayRef<float *>{activation.data(), gradient.data(), &result}));
  EXPECT_FLOAT_EQ(result, 7.25);
}

TEST_F(FisherTest, WantsSamplesAndClasses) {
  for (StringRef text :
       {"func.func @f(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {\n"
        "return %x : tensor<2x3x4xf32>\n}",
        "func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
        "return %x : tensor<2x3xf32>\n}"}) {
    module = parseSourceString<ModuleOp>(text, &context);
    ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
      EXPECT_NE(diagnostic.str().find("for Fisher Potential, requires"),
                std::string::npos);
      return success();
    });
    EXPECT_TRUE(failed(makeFisherFunction(
        module->lookupSymbol<func::FuncOp>("f"), "g", {}, names)));
    EXPECT_FALSE(module->lookupSymbol("g"));
  }
}
