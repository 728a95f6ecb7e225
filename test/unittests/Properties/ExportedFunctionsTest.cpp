//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What exported networks contain, compiled with all that the CPU pipeline does
// to it, equals the plain loops of the same functions. KAS_TEST_SEED is the
// first seed.
//
//===----------------------------------------------------------------------===//

#include "ExportedFunctions.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/Random.h"
#include "kas/Support/RunPasses.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::test;
using llvm::SmallVector;

/// Relative to the largest magnitude: orders of sums differ, and steps follow
/// one another.
static constexpr double tolerance = 1e-4;

/// Functions that are compiled as one module.
static constexpr unsigned batchSize = 20;

namespace {

struct Compiled {
  mlir::OwningOpRef<mlir::ModuleOp> lowered;
  std::unique_ptr<CompiledModule> code;
};

class ExportedFunctionsTest : public testing::Test {
protected:
  ExportedFunctionsTest() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }

  static Compiled compile(mlir::ModuleOp module,
                          const CPUPipelineOptions &options);
  static Tensor run(const Compiled &compiled,
                    const FunctionSignature &signature,
                    llvm::ArrayRef<Tensor> arguments);
  void check(uint64_t first, unsigned count);

  mlir::MLIRContext context;
  double largestError = 0;
};

} // namespace

Compiled ExportedFunctionsTest::compile(mlir::ModuleOp module,
                                        const CPUPipelineOptions &options) {
  Compiled result{module.clone(), nullptr};
  llvm::cantFail(runPasses(*result.lowered, "the functions cannot be compiled",
                           [&](mlir::OpPassManager &manager) {
                             buildCPUPipeline(manager, options);
                           }));
  result.code =
      llvm::cantFail(CompiledModule::compile(*result.lowered, {.optLevel = 1}));
  return result;
}

Tensor ExportedFunctionsTest::run(const Compiled &compiled,
                                  const FunctionSignature &signature,
                                  llvm::ArrayRef<Tensor> arguments) {
  Tensor result(signature.results.front().shape);
  llvm::fill(result.getValues(), std::numeric_limits<float>::quiet_NaN());
  Tensor packed({getNumPrepackedElements(*compiled.lowered, signature.name)});
  SmallVector<void *> pointers;
  for (const Tensor &argument : arguments)
    pointers.push_back(const_cast<float *>(argument.data()));
  if (packed.getNumElements()) {
    SmallVector<void *> weights(llvm::drop_begin(pointers));
    weights.push_back(packed.data());
    llvm::cantFail(
        call(llvm::cantFail(compiled.code->lookup(signature.name + "_prepack")),
             weights.data()));
  }
  pointers.push_back(result.data());
  pointers.push_back(packed.data());
  llvm::cantFail(call(llvm::cantFail(compiled.code->lookup(signature.name)),
                      pointers.data()));
  return result;
}

/// One module of `count` functions; the options are drawn, too.
void ExportedFunctionsTest::check(uint64_t first, unsigned count) {
  std::vector<std::string> texts;
  std::string all;
  for (unsigned i = 0; i < count; ++i) {
    texts.push_back(makeExportedFunction("f" + std::to_string(i), first + i));
    all += texts.back();
  }
  auto module = mlir::parseSourceString<mlir::ModuleOp>(all, &context);
  ASSERT_TRUE(module) << all;

  Random random(first);
  CPUPipelineOptions options, plain;
  options.threads = 1 + random.below(2);
  options.sharesShortLoops = true;
  options.prepackWeights = random.below(2);
  constexpr ConvolutionAlgorithm algorithms[] = {
      ConvolutionAlgorithm::Auto, ConvolutionAlgorithm::Auto,
      ConvolutionAlgorithm::Direct, ConvolutionAlgorithm::Im2col,
      ConvolutionAlgorithm::SpatialPack};
  options.algorithm = algorithms[random.below(std::size(algorithms))];
  plain.threads = 1;
  plain.registerTiles = plain.packOperators = false;
  Compiled tiled = compile(*module, options), loops = compile(*module, plain);
  for (unsigned i = 0; i < count; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i) + ", threads " +
                 std::to_string(options.threads) + ", prepared " +
                 std::to_string(options.prepackWeights) + ", algorithm " +
                 std::to_string(static_cast<int>(options.algorithm)) + "\n" +
                 texts[i]);
    auto signature = llvm::cantFail(
        FunctionSignature::get(*module, "f" + std::to_string(i)));
    auto arguments = llvm::cantFail(signature.makeArguments({}, first + i));
    Tensor expected = run(loops, signature, arguments);
    ASSERT_TRUE(llvm::all_of(expected.getValues(),
                             [](float value) { return std::isfinite(value); }));
    double error = maxRelativeError(run(tiled, signature, arguments), expected);
    EXPECT_LE(error, tolerance);
    largestError = std::max(largestError, error);
  }
}

TEST_F(ExportedFunctionsTest, EqualPlainLoops) {
  unsigned count = std::getenv("KAS_SLOW_TESTS") ? 2000 : 200;
  uint64_t first = 0;
  if (const char *text = std::getenv("KAS_TEST_SEED"))
    ASSERT_FALSE(llvm::StringRef(text).getAsInteger(10, first)) << text;
  std::printf("seeds from %llu on, %u functions\n",
              static_cast<unsigned long long>(first), count);
  for (unsigned i = 0; i < count && !HasFailure(); i += batchSize)
    check(first + i, batchSize);
  // The same sums in the same order would not be another way.
  EXPECT_GT(largestError, 0);
}
