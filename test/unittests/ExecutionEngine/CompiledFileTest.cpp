//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CompiledFile.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"
#include <random>

using namespace kas;
using namespace kas::execution;

namespace {

/// One weight that is prepacked, on any machine since its double depends on it
/// alone, and one that calls read.
constexpr llvm::StringLiteral layerText = R"mlir(
  func.func @layer(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>,
                   %b: tensor<4x64xf32>) -> tensor<4x64xf32> {
    %twice = arith.addf %w, %w : tensor<64x64xf32>
    %0 = linalg.matmul ins(%x, %twice : tensor<4x64xf32>, tensor<64x64xf32>)
        outs(%b : tensor<4x64xf32>) -> tensor<4x64xf32>
    return %0 : tensor<4x64xf32>
  }
)mlir";

class CompiledFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-file", directory));
    path = directory;
    llvm::sys::path::append(path, "layer.kas");
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    module = mlir::parseSourceString<mlir::ModuleOp>(layerText, &context);
    ASSERT_TRUE(bool(module));
  }
  void TearDown() override {
    (void)llvm::sys::fs::remove_directories(directory);
  }

  CompiledFunction compile(bool prepacks, bool keepsCode = true) {
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    pipeline.prepackWeights = prepacks;
    JITOptions jit;
    jit.keepCode = keepsCode;
    return llvm::cantFail(compileForCPU(*module, "layer", pipeline, jit));
  }
  static llvm::SmallVector<Tensor> makeArguments(const CompiledFunction &f) {
    return llvm::cantFail(f.getSignature().makeArguments({}, 1));
  }
  /// Pointers to the last ones, null before.
  static llvm::SmallVector<float *>
  getWeights(llvm::MutableArrayRef<Tensor> arguments, unsigned count) {
    llvm::SmallVector<float *> pointers(arguments.size() - count, nullptr);
    for (Tensor &tensor : arguments.take_back(count))
      pointers.push_back(tensor.data());
    return pointers;
  }
  static Tensor run(const CompiledFunction &function,
                    llvm::ArrayRef<Tensor> arguments) {
    auto results = llvm::cantFail(function.getSignature().makeResults());
    llvm::cantFail(function(arguments, results));
    return std::move(results[0]);
  }
  std::string save(CompiledFunction function, llvm::ArrayRef<float *> weights) {
    return llvm::toString(function.save(path, weights));
  }
  std::string getContent() {
    return llvm::cantFail(
               llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)))
        ->getBuffer()
        .str();
  }
  static std::string readError(llvm::StringRef content) {
    auto file =
        CompiledFile::read(llvm::MemoryBuffer::getMemBufferCopy(content));
    return file ? "" : llvm::toString(file.takeError());
  }

  llvm::SmallString<128> directory, path;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(CompiledFileTest, FunctionsOfFilesComputeTheSame) {
  for (bool prepacks : {false, true}) {
    CompiledFunction function = compile(prepacks);
    auto arguments = makeArguments(function);
    llvm::cantFail(function.prepack(arguments));
    Tensor expected = run(function, arguments);
    EXPECT_EQ(function.getNumPrepackedElements() > 0, prepacks);
    // With all weights, and where nothing is prepacked with the last one alone.
    for (unsigned count : {0u, 1u, 2u}) {
      if (prepacks && count == 1)
        continue;
      EXPECT_EQ(save(compile(prepacks), getWeights(arguments, count)), "");
      auto loaded = llvm::cantFail(CompiledFunction::load(path));
      EXPECT_EQ(loaded.getSignature().arguments.size(), 3 - count);
      auto others = llvm::ArrayRef(arguments).drop_back(count);
      // The weights are in the file: it does not matter what becomes of it.
      ASSERT_FALSE(llvm::sys::fs::remove(path));
      if (count == 0)
        llvm::cantFail(loaded.prepack(others));
      EXPECT_EQ(run(loaded, others).getValues(), expected.getValues())
          << count << " weights";
    }
  }
}

TEST_F(CompiledFileTest, PrepackedWeightsAreThereOnce) {
  CompiledFunction function = compile(/*prepacks=*/true);
  auto arguments = makeArguments(function);
  ASSERT_EQ(save(std::move(function), getWeights(arguments, 2)), "");
  auto file = llvm::cantFail(CompiledFile::read(llvm::StringRef(path)));
  // Objects, the bias, all that is prepacked; not the matrix as it was.
  ASSERT_GE(file.parts.size(), 3u);
  EXPECT_EQ(file.parts.end()[-2].size(), 4u * 64 * 4);
  for (llvm::StringRef part : file.parts)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % 64, 0u);
}

TEST_F(CompiledFileTest, WhatCannotBeSavedIsRefused) {
  auto arguments = makeArguments(compile(/*prepacks=*/false));
  EXPECT_EQ(save(compile(false, /*keepsCode=*/false), getWeights(arguments, 2)),
            "requires a function whose machine code was kept, got another one");
  EXPECT_EQ(save(compile(true), getWeights(arguments, 3)),
            "requires weights, got the data 'arg0'");
  EXPECT_EQ(save(compile(true), getWeights(arguments, 1)),
            "requires all weights, as they are prepacked, got none for 'arg1'");
  path = "/dev/null/layer.kas";
  EXPECT_NE(save(compile(true), getWeights(arguments, 2)).find("cannot write"),
            std::string::npos);
}

TEST_F(CompiledFileTest, DamagedFilesAreRefused) {
  CompiledFunction function = compile(/*prepacks=*/true);
  auto arguments = makeArguments(function);
  ASSERT_EQ(save(std::move(function), getWeights(arguments, 2)), "");
  std::string content = getContent();
  ASSERT_EQ(readError(content), "");
  EXPECT_EQ(readError("module {}"),
            "expected a file of compiled code, got something else");
  EXPECT_EQ(readError("kas compiled 2" + content.substr(14)),
            "expected a file of compiled code of format 1, got another one");
  // Truncated anywhere, or longer.
  for (size_t size = 0; size < content.size();
       size += size < 4096 ? 1 : content.size() / 97)
    EXPECT_NE(readError(llvm::StringRef(content).take_front(size)), "") << size;
  EXPECT_NE(readError(content + std::string(64, '\0')), "");
  // One bit, anywhere: an error, or padding.
  std::mt19937 generator(1);
  unsigned numErrors = 0;
  constexpr unsigned numFlips = 2000;
  for (unsigned flip = 0; flip < numFlips; ++flip) {
    // As often in the header as in the parts.
    size_t place = generator() % (flip % 2 ? content.size() : 1024);
    std::string damaged = content;
    damaged[place] = static_cast<char>(damaged[place] ^ 1 << generator() % 8);
    numErrors += !readError(damaged).empty();
  }
  EXPECT_GE(numErrors, numFlips * 9 / 10);
}

/// What no damage makes, as the check sum of the header is right: numbers that
/// do not fit.
TEST_F(CompiledFileTest, WrongHeadersAreRefused) {
  CompiledFunction function = compile(/*prepacks=*/true);
  auto arguments = makeArguments(function);
  ASSERT_EQ(save(std::move(function), getWeights(arguments, 2)), "");
  std::string content = getContent();
  uint64_t size = llvm::support::endian::read64le(content.data() + 32);
  std::string header = content.substr(40, size);
  auto load = [&](const std::string &changed) {
    std::string text = content;
    // Padded with spaces, which JSON allows.
    std::string padded = changed + std::string(size - changed.size(), ' ');
    auto sum = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(padded));
    llvm::support::endian::write64le(text.data() + 16, sum.low64);
    llvm::support::endian::write64le(text.data() + 24, sum.high64);
    text.replace(40, size, padded);
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << text;
    auto loaded = CompiledFunction::load(path);
    return loaded ? "" : llvm::toString(loaded.takeError());
  };
  EXPECT_EQ(load(header), "");
  std::string version = getVersion();
  std::string other = header;
  other.replace(other.find(version), version.size(),
                std::string(version.size(), '9'));
  EXPECT_NE(load(other).find("expected code compiled by kas " + version +
                             ", got that of kas 9"),
            std::string::npos);
  std::mt19937 generator(1);
  unsigned numErrors = 0;
  constexpr unsigned numChanges = 500;
  for (unsigned change = 0; change < numChanges; ++change) {
    std::string changed = header;
    size_t place = generator() % changed.size();
    if (change % 3 == 0)
      changed.erase(place, 1 + generator() % 4);
    else
      changed[place] = "0123456789[]{},\"-"[generator() % 17];
    numErrors += !load(changed).empty();
  }
  // Names may be any.
  EXPECT_GE(numErrors, numChanges / 2);
}

TEST_F(CompiledFileTest, OtherVersionsAndProcessorsAreRefused) {
  CodeTarget target = CodeTarget::get(*llvm::cantFail(
      createTargetMachine(llvm::cantFail(getTarget()), 2, /*jit=*/true)));
  auto write = [](const CodeTarget &target) {
    std::string content;
    llvm::raw_string_ostream stream(content);
    CompiledFile::write(stream, target, llvm::json::Object(), {"part"});
    return content;
  };
  EXPECT_EQ(readError(write(target)), "");
  CodeTarget other = target;
  other.features.push_back("avx9999");
  EXPECT_EQ(readError(write(other)), "expected code for this processor, got "
                                     "code for one with avx9999");
  other = target;
  other.triple = "s390x-unknown-linux-gnu";
  EXPECT_NE(readError(write(other)).find("expected code for this machine, '"),
            std::string::npos);
}

TEST_F(CompiledFileTest, CachesKeepWhatWasUsedLast) {
  std::string content(1000, 'x');
  {
    ObjectCache cache(CacheSettings{directory.str().str(), 100000});
    for (int entry = 0; entry < 300; ++entry) {
      cache.store(std::to_string(entry), content);
      // Times of files are no finer everywhere.
      ObjectCache again(CacheSettings{directory.str().str(), 100000});
      EXPECT_TRUE(again.load(std::to_string(entry)));
    }
  }
  uint64_t total = 0;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator file(directory, code), end;
       file != end && !code; file.increment(code))
    total += file->status()->getSize();
  // Looked through after each 64th of what may be kept.
  EXPECT_LE(total, 100000u + 100000 / 64 + 2000);
  EXPECT_GE(total, 50000u);
  ObjectCache cache(CacheSettings{directory.str().str(), 100000});
  EXPECT_TRUE(cache.load("299"));
  EXPECT_FALSE(cache.load("0"));
}

} // namespace
