//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;

namespace {

constexpr llvm::StringLiteral scaleText = R"mlir(
  func.func @scale(%x: tensor<2x3xf32> {kas.name = "x"},
                   %s: tensor<f32> {kas.init = "constant(2)"})
      -> (tensor<2x3xf32>, tensor<3xf32>) {
    %0 = tensor.empty() : tensor<2x3xf32>
    %1 = linalg.generic {
        indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>,
                         affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : tensor<2x3xf32>, tensor<f32>)
        outs(%0 : tensor<2x3xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        linalg.yield %p : f32
    } -> tensor<2x3xf32>
    %2 = tensor.extract_slice %x[1, 0] [1, 3] [1, 1]
        : tensor<2x3xf32> to tensor<3xf32>
    return %1, %2 : tensor<2x3xf32>, tensor<3xf32>
  }
  func.func @index(%x: tensor<2xf32>) -> index {
    %0 = arith.constant 0 : index
    return %0 : index
  }
  func.func @dynamic(%x: tensor<?xf32>) { return }
  func.func private @outside(%x: tensor<2xf32>)
  func.func @badInit(%x: tensor<2xf32>) { return }
  func.func @twice(%x: tensor<2xf32> {kas.name = "x"},
                   %y: tensor<2xf32> {kas.name = "x"}) { return }
)mlir";

class JITTest : public testing::Test {
protected:
  JITTest() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }
  void SetUp() override {
    module = mlir::parseSourceString<mlir::ModuleOp>(scaleText, &context);
    ASSERT_TRUE(bool(module));
  }
  llvm::Expected<CompiledFunction> compile(llvm::StringRef name,
                                           ObjectCache *cache = nullptr,
                                           unsigned threads = 1) {
    CPUPipelineOptions pipeline;
    pipeline.threads = threads;
    pipeline.sharesShortLoops = true;
    JITOptions jit;
    jit.cache = cache;
    return compileForCPU(*module, name, pipeline, jit);
  }
  std::string error(llvm::StringRef name) {
    auto function = compile(name);
    return function ? "no error" : llvm::toString(function.takeError());
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(JITTest, RunsWithSeveralResults) {
  auto function = compile("scale");
  ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
  const FunctionSignature &signature = function->getSignature();
  ASSERT_EQ(signature.arguments.size(), 2u);
  EXPECT_EQ(signature.arguments[0].name, "x");
  EXPECT_EQ(signature.arguments[1].name, "arg1");
  auto arguments = llvm::cantFail(signature.makeArguments({}, 1));
  auto results = llvm::cantFail(signature.makeResults());
  llvm::cantFail((*function)(arguments, results));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(results[0].data()[i], 2 * arguments[0].data()[i]);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(results[1].data()[i], arguments[0].data()[3 + i]);
}

TEST_F(JITTest, DoesNotWriteArguments) {
  auto function = compile("scale");
  ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
  auto arguments =
      llvm::cantFail(function->getSignature().makeArguments({}, 1));
  Tensor before = arguments[0].clone();
  auto results = llvm::cantFail(function->getSignature().makeResults());
  llvm::cantFail((*function)(arguments, results));
  EXPECT_EQ(arguments[0].getValues(), before.getValues());
}

TEST_F(JITTest, ArgumentsDependOnSeedAndNameOnly) {
  auto signature = llvm::cantFail(FunctionSignature::get(*module, "scale"));
  auto first = llvm::cantFail(signature.makeArguments({}, 1));
  auto again = llvm::cantFail(signature.makeArguments({}, 1));
  auto other = llvm::cantFail(signature.makeArguments({}, 2));
  EXPECT_EQ(first[0].getValues(), again[0].getValues());
  EXPECT_NE(first[0].getValues(), other[0].getValues());
  EXPECT_EQ(first[1].data()[0], 2);

  NamedTensors given;
  given.insert({"x", Tensor({3, 2})});
  auto wrong = signature.makeArguments(given, 1);
  ASSERT_FALSE(bool(wrong));
  EXPECT_EQ(llvm::toString(wrong.takeError()),
            "argument 'x' must have shape 2x3, got 3x2");
}

TEST_F(JITTest, UnusableFunctionsAreErrors) {
  EXPECT_EQ(error("missing"), "no function 'missing' in the module");
  EXPECT_EQ(error("outside"), "function 'outside' has no body");
  EXPECT_EQ(error("index"), "'result0' must be a statically shaped tensor of "
                            "floats or integers, got 'index'");
  EXPECT_EQ(error("dynamic"), "'arg0' must be a statically shaped tensor of "
                              "floats or integers, got 'tensor<?xf32>'");
  auto signature = FunctionSignature::get(*module, "index");
  ASSERT_FALSE(bool(signature));
  EXPECT_EQ(llvm::toString(signature.takeError()),
            "'result0' must be a statically shaped tensor of f32, got 'index'");
  // The verifier reports it where a module is read.
  module->lookupSymbol<mlir::func::FuncOp>("badInit").setArgAttr(
      0, KasDialect::initializerAttrName,
      mlir::StringAttr::get(&context, "random"));
  EXPECT_EQ(error("badInit"),
            "argument 'arg0': expected zeros, ones, constant(V), normal(S), "
            "uniform(B), positive(V) or kaiming(F), got 'random'");
  EXPECT_EQ(error("twice"), "two arguments are named 'x'");
}

TEST_F(JITTest, MissingSymbolsAreErrors) {
  module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    llvm.func @nowhere_defined()
    llvm.func @f(%p: !llvm.ptr) {
      llvm.call @nowhere_defined() : () -> ()
      llvm.return
    })",
                                                   &context);
  ASSERT_TRUE(bool(module));
  auto compiled = CompiledModule::compile(*module);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  auto function = (*compiled)->lookup("f");
  ASSERT_FALSE(bool(function));
  EXPECT_NE(llvm::toString(function.takeError()).find("nowhere_defined"),
            std::string::npos);
  auto other = (*compiled)->lookup("g");
  ASSERT_FALSE(bool(other));
  llvm::consumeError(other.takeError());
}

TEST_F(JITTest, PrepackedWeightsAreNotPackedAgain) {
  auto layer = mlir::parseSourceString<mlir::ModuleOp>(R"mlir(
    func.func @layer(%x: tensor<1x16x9x9xf32>, %w: tensor<32x16x3x3xf32>)
        -> tensor<1x32x7x7xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<1x32x7x7xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x7x7xf32>)
          -> tensor<1x32x7x7xf32>
      %y = linalg.conv_2d_nchw_fchw
          ins(%x, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
          outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
      return %y : tensor<1x32x7x7xf32>
    })mlir",
                                                       &context);
  ASSERT_TRUE(bool(layer));
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  // The same on every machine.
  pipeline.vectorBits = 512;
  auto plain = compileForCPU(*layer, "layer", pipeline);
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  EXPECT_EQ(plain->getNumPrepackedElements(), 0);
  pipeline.prepackWeights = true;
  auto prepacked = compileForCPU(*layer, "layer", pipeline);
  ASSERT_TRUE(bool(prepacked)) << llvm::toString(prepacked.takeError());
  EXPECT_EQ(prepacked->getNumPrepackedElements(), 32 * 16 * 3 * 3);

  auto arguments = llvm::cantFail(plain->getSignature().makeArguments({}, 1));
  auto expected = llvm::cantFail(plain->getSignature().makeResults());
  auto actual = llvm::cantFail(plain->getSignature().makeResults());
  llvm::cantFail((*plain)(arguments, expected));
  llvm::cantFail(prepacked->prepack(arguments));
  llvm::cantFail((*prepacked)(arguments, actual));
  EXPECT_LE(maxRelativeError(actual[0], expected[0]), 1e-6);

  // What is packed once is not packed by the calls.
  llvm::fill(arguments[1].getValues(), 0.0f);
  llvm::cantFail((*prepacked)(arguments, actual));
  EXPECT_LE(maxRelativeError(actual[0], expected[0]), 1e-6);
  llvm::cantFail(prepacked->prepack(arguments));
  llvm::cantFail((*prepacked)(arguments, actual));
  EXPECT_TRUE(llvm::all_of(actual[0].getValues(),
                           [](float value) { return value == 0; }));
}

TEST_F(JITTest, UnknownCPUsAreErrors) {
  CPUPipelineOptions pipeline;
  pipeline.target.cpu = "pentium-9000";
  auto function = compileForCPU(*module, "scale", pipeline);
  ASSERT_FALSE(bool(function));
  std::string message = llvm::toString(function.takeError());
  EXPECT_NE(message.find("expected the CPU 'host', or one of"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("got 'pentium-9000'"), std::string::npos) << message;
}

TEST_F(JITTest, ForeignTargetsAreErrors) {
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  // Not both can be this machine.
  int numErrors = 0;
  for (const char *cpu : {"x86-64", "neoverse-n1"}) {
    pipeline.target.cpu = cpu;
    auto function = compileForCPU(*module, "scale", pipeline);
    if (function)
      continue;
    ++numErrors;
    EXPECT_NE(llvm::toString(function.takeError())
                  .find("expected code for this machine"),
              std::string::npos);
  }
  EXPECT_GE(numErrors, 1);
}

TEST_F(JITTest, CacheInMemory) {
  ObjectCache cache;
  auto first = compile("scale", &cache);
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  EXPECT_FALSE(first->getTimes().cached);
  auto second = compile("scale", &cache);
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_TRUE(second->getTimes().cached);
  EXPECT_EQ(cache.getNumHits(), 1);
}

/// More functions than are compiled as one: they call each other across
/// objects, and each has the constants that it reads.
TEST_F(JITTest, LargeModulesAreCompiledInParts) {
  std::string text = "llvm.mlir.global private constant @table(dense<[1.0, "
                     "2.0]> : tensor<2xf32>) : !llvm.array<2 x f32>\n"
                     "llvm.mlir.global private @calls(0 : i32) : i32\n";
  llvm::raw_string_ostream stream(text);
  constexpr unsigned count = 40;
  for (unsigned i = 0; i < count; ++i)
    stream << "llvm.func @add" << i
           << "(%x: !llvm.ptr) attributes {no_inline, sym_visibility = "
              "\"private\"} {\n"
              "  %t = llvm.mlir.addressof @table : !llvm.ptr\n"
              "  %p = llvm.getelementptr %t["
           << i % 2
           << "] : (!llvm.ptr) -> !llvm.ptr, f32\n"
              "  %a = llvm.load %p : !llvm.ptr -> f32\n"
              "  %b = llvm.load %x : !llvm.ptr -> f32\n"
              "  %s = llvm.fadd %a, %b : f32\n"
              "  llvm.store %s, %x : f32, !llvm.ptr\n"
              "  %c = llvm.mlir.addressof @calls : !llvm.ptr\n"
              "  %n = llvm.load %c : !llvm.ptr -> i32\n"
              "  %one = llvm.mlir.constant(1 : i32) : i32\n"
              "  %m = llvm.add %n, %one : i32\n"
              "  llvm.store %m, %c : i32, !llvm.ptr\n"
              "  llvm.return\n}\n";
  // Not that of the C library, whatever its name says.
  stream << "llvm.func @floorf(%x: f32) -> f32 attributes {no_inline, "
            "sym_visibility = \"private\"} {\n"
            "  %h = llvm.mlir.constant(0.25 : f32) : f32\n"
            "  %y = llvm.fadd %x, %h : f32\n"
            "  llvm.return %y : f32\n}\n"
            "llvm.func @all(%x: !llvm.ptr, %y: !llvm.ptr) {\n";
  for (unsigned i = 0; i < count; ++i)
    stream << "  llvm.call @add" << i << "(%x) : (!llvm.ptr) -> ()\n";
  stream << "  %v = llvm.load %x : !llvm.ptr -> f32\n"
            "  %k = llvm.mlir.constant(1.5 : f32) : f32\n"
            "  %f = llvm.call @floorf(%k) : (f32) -> f32\n"
            "  %w = llvm.fadd %v, %f : f32\n"
            "  llvm.store %w, %x : f32, !llvm.ptr\n"
            "  %c = llvm.mlir.addressof @calls : !llvm.ptr\n"
            "  %n = llvm.load %c : !llvm.ptr -> i32\n"
            "  llvm.store %n, %y : i32, !llvm.ptr\n"
            "  llvm.return\n}\n";
  context.loadAllAvailableDialects();
  auto large = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(bool(large));
  auto code = compileCode(*large);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_GT(code->objects.size(), 1u) << "one object for all";
  auto compiled = CompiledModule::link(std::move(*code));
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  auto function = (*compiled)->lookup("all");
  ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
  float sum = 0.5;
  int32_t calls = 0;
  void *pointers[] = {&sum, &calls};
  ASSERT_FALSE(bool(call(*function, pointers)));
  EXPECT_EQ(sum, 0.5F + 1.5F * count + 1.75F);
  EXPECT_EQ(calls, int32_t(count));
}

TEST_F(JITTest, CacheOnDiskSurvivesCorruption) {
  llvm::SmallString<128> directory;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-cache", directory));
  auto isCached = [&] {
    ObjectCache cache(directory);
    auto function = compile("scale", &cache);
    EXPECT_TRUE(bool(function)) << llvm::toString(function.takeError());
    auto arguments =
        llvm::cantFail(function->getSignature().makeArguments({}, 1));
    auto results = llvm::cantFail(function->getSignature().makeResults());
    llvm::cantFail((*function)(arguments, results));
    EXPECT_EQ(results[0].data()[5], 2 * arguments[0].data()[5]);
    return function->getTimes().cached;
  };
  EXPECT_FALSE(isCached());
  EXPECT_TRUE(isCached());

  std::error_code code;
  std::string file = llvm::sys::fs::directory_iterator(directory, code)->path();
  ASSERT_FALSE(code);
  for (llvm::StringRef content : {"", "kasobj1\n", "no object at all"}) {
    llvm::raw_fd_ostream(file, code) << content;
    EXPECT_FALSE(isCached()) << content.str();
    EXPECT_TRUE(isCached()) << content.str();
  }
  (void)llvm::sys::fs::remove_directories(directory);
}

TEST_F(JITTest, CacheInAnImpossiblePlaceIsIgnored) {
  ObjectCache cache("/dev/null/cache");
  auto function = compile("scale", &cache);
  EXPECT_TRUE(bool(function)) << llvm::toString(function.takeError());
}

} // namespace
