//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions whose kernels are compiled by themselves: what the cache keeps of
// them, and that they compute what the function compiled as a whole does.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <thread>

using namespace kas;
using namespace kas::execution;

namespace {

constexpr llvm::StringLiteral layerText = R"mlir(
      %fILL0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
          -> tensor<64x64xf32>
      %fILL1 = linalg.matmul ins(%IN, %w : tensor<64x64xf32>, tensor<64x64xf32>)
          outs(%fILL0 : tensor<64x64xf32>) -> tensor<64x64xf32>
      %OUT = linalg.ACTIVATION ins(%fILL1 : tensor<64x64xf32>)
          outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
)mlir";

/// A function of one matmul and one activation after the other.
std::string getNetwork(llvm::ArrayRef<llvm::StringRef> activations) {
  std::string text = R"mlir(
    func.func @network(%t0: tensor<64x64xf32>, %w: tensor<64x64xf32>)
        -> tensor<64x64xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>)mlir";
  auto replaceAll = [](std::string &layer, llvm::StringRef from,
                       const std::string &to) {
    for (size_t at; (at = layer.find(from.str())) != std::string::npos;)
      layer.replace(at, from.size(), to);
  };
  for (auto [i, activation] : llvm::enumerate(activations)) {
    std::string layer = layerText.str();
    replaceAll(layer, "fILL", "f" + std::to_string(i) + "_");
    replaceAll(layer, "IN", "t" + std::to_string(i));
    replaceAll(layer, "OUT", "t" + std::to_string(i + 1));
    replaceAll(layer, "ACTIVATION", activation.str());
    text += layer;
  }
  return text + "return %t" + std::to_string(activations.size()) +
         " : tensor<64x64xf32>\n}\n";
}

struct Outcome {
  Tensor result;
  CompileTimes times;
};

/// Compiles and runs `text` in a context of its own; `minKernels` as in the
/// pipeline.
Outcome run(const std::string &text, ObjectCache *cache = nullptr,
            unsigned minKernels = 2, unsigned threads = 1) {
  mlir::DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  CPUPipelineOptions pipeline;
  pipeline.threads = threads;
  pipeline.sharesShortLoops = true;
  pipeline.minKernels = minKernels;
  JITOptions jit;
  jit.cache = cache;
  auto function =
      llvm::cantFail(compileForCPU(*module, "network", pipeline, jit));
  auto arguments = llvm::cantFail(function.getSignature().makeArguments({}, 1));
  auto results = llvm::cantFail(function.getSignature().makeResults());
  llvm::cantFail(function(arguments, results));
  return {results[0].clone(), function.getTimes()};
}

class KernelObjectsTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(
        llvm::sys::fs::createUniqueDirectory("kas-kernels", directory));
  }
  void TearDown() override {
    (void)llvm::sys::fs::remove_directories(directory);
  }

  std::vector<std::string> getFiles() {
    std::vector<std::string> files;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator file(directory, code), end;
         file != end && !code; file.increment(code))
      files.push_back(file->path());
    return files;
  }

  llvm::SmallString<128> directory;
};

TEST_F(KernelObjectsTest, ComputeWhatTheWholeFunctionDoes) {
  std::string text = getNetwork({"exp", "abs", "exp", "tanh"});
  for (unsigned threads : {1u, 2u}) {
    Outcome whole = run(text, nullptr, /*minKernels=*/0, threads);
    EXPECT_EQ(whole.times.numKernels, 0u);
    Outcome split = run(text, nullptr, /*minKernels=*/2, threads);
    EXPECT_GE(split.times.numKernels, 4u);
    EXPECT_EQ(whole.result.getValues(), split.result.getValues())
        << threads << " threads";
  }
}

// The first activation is computed in place, the others are not.
TEST_F(KernelObjectsTest, EqualKernelsAreCompiledOnce) {
  Outcome once = run(getNetwork({"exp", "abs", "tanh"}));
  Outcome often = run(getNetwork({"exp", "abs", "abs", "tanh", "tanh"}));
  EXPECT_EQ(once.times.numKernels, often.times.numKernels);
}

TEST_F(KernelObjectsTest, SmallFunctionsStayWhole) {
  Outcome whole = run(getNetwork({"exp"}), nullptr, /*minKernels=*/32);
  EXPECT_EQ(whole.times.numKernels, 0u);
}

TEST_F(KernelObjectsTest, OtherNetworksCompileWhatIsNew) {
  ObjectCache cache(directory);
  Outcome first = run(getNetwork({"exp", "abs", "abs"}), &cache);
  EXPECT_EQ(first.times.numCachedKernels, 0u);
  EXPECT_FALSE(first.times.cached);

  std::string other = getNetwork({"exp", "tanh", "abs"});
  Outcome second = run(other, &cache);
  EXPECT_EQ(second.times.numKernels, first.times.numKernels + 1);
  EXPECT_EQ(second.times.numCachedKernels, first.times.numKernels);
  EXPECT_FALSE(second.times.cached);

  ObjectCache fromDisk(directory);
  Outcome third = run(other, &fromDisk);
  EXPECT_EQ(third.times.numCachedKernels, third.times.numKernels);
  EXPECT_TRUE(third.times.cached);
  EXPECT_EQ(third.result.getValues(), second.result.getValues());
}

TEST_F(KernelObjectsTest, OptionsArePartOfTheKey) {
  ObjectCache cache;
  std::string text = getNetwork({"exp", "abs"});
  run(text, &cache);
  Outcome parallel = run(text, &cache, /*minKernels=*/2, /*threads=*/2);
  EXPECT_EQ(parallel.times.numCachedKernels, 0u);
}

TEST_F(KernelObjectsTest, DamagedEntriesAreRecompiled) {
  std::string text = getNetwork({"exp", "abs"});
  Outcome expected = run(text);
  auto compile = [&] {
    ObjectCache cache(directory);
    Outcome actual = run(text, &cache);
    EXPECT_EQ(actual.result.getValues(), expected.result.getValues());
    return actual.times;
  };
  auto damage = [](const std::string &file) {
    uint64_t size;
    ASSERT_FALSE(llvm::sys::fs::file_size(file, size));
    std::error_code code;
    llvm::raw_fd_ostream stream(file, code, llvm::sys::fs::CD_OpenExisting);
    ASSERT_FALSE(code);
    stream.seek(size / 2);
    stream << "damaged";
  };
  EXPECT_FALSE(compile().cached);
  std::vector<std::string> files = getFiles();
  unsigned numKernels = expected.times.numKernels;
  // One for each kernel, one for the whole function, which alone is looked for
  // as long as it is whole.
  ASSERT_EQ(files.size(), numKernels + 1u);
  std::string whole;
  for (const std::string &file : files) {
    damage(file);
    if (!compile().cached)
      whole = file;
    EXPECT_TRUE(compile().cached) << file;
  }
  ASSERT_FALSE(whole.empty());
  // Mends the kernels.
  damage(whole);
  EXPECT_FALSE(compile().cached);
  for (const std::string &file : files) {
    damage(file);
    damage(whole);
    CompileTimes times = compile();
    EXPECT_FALSE(times.cached);
    EXPECT_EQ(times.numCachedKernels, numKernels - (file != whole)) << file;
  }
}

TEST_F(KernelObjectsTest, SeveralAtOnceShareADirectory) {
  std::string text = getNetwork({"exp", "abs", "tanh"});
  Outcome expected = run(text);
  std::vector<Outcome> actual(4);
  {
    std::vector<std::jthread> workers;
    for (Outcome &result : actual)
      workers.emplace_back([&] {
        // As other processes: they share nothing but the directory.
        ObjectCache cache(directory);
        result = run(text, &cache);
      });
  }
  for (const Outcome &result : actual)
    EXPECT_EQ(result.result.getValues(), expected.result.getValues());
}

} // namespace
