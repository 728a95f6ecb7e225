//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Presburger library proves that each lowering of random operators computes
// them.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
#include "LoweredEvaluator.h"
#include "LoweredMutation.h"
#include "LoweringTest.h"
#include "Properties.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Conversion/KasToLinalg.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <chrono>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
using LowerFn = llvm::function_ref<LogicalResult(RewriterBase &, ApplyOp)>;

class VerifyLoweringTest : public LoweringTest {
protected:
  /// Lowers `op` by `lower` and compares; notes the time.
  LoweringResult check(OperatorOp op, LowerFn lower) {
    OwningOpRef<ModuleOp> module = createOperatorModule(op);
    auto function = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
    auto apply = *function.getOps<ApplyOp>().begin();
    auto copy = apply.getOperator();
    IRRewriter rewriter(&context);
    if (failed(lower(rewriter, apply)))
      return {LoweringVerdict::Undecided, "not lowered"};
    auto start = std::chrono::steady_clock::now();
    LoweringResult result = compareLowering(
        copy, function.getArguments(),
        function.getBody().front().getTerminator()->getOperand(0));
    std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - start;
    milliseconds.push_back(time.count());
    return result;
  }

  void forEachRandomOperator(llvm::function_ref<void(OperatorOp)> body) {
    unsigned count = getNumOperators(100, 1000);
    for (uint64_t i = 0; i < count && !HasFailure(); ++i) {
      uint64_t seed = getFirstSeed() + i;
      OwningOpRef<ModuleOp> module =
          ModuleOp::create(UnknownLoc::get(&context));
      OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
      RandomOperator random = makeRandomOperator(builder, "f", seed);
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + describe(random));
      body(makeConcrete(random.op, random.binding));
    }
  }

  void expectEqual(OperatorOp op, LowerFn lower) {
    LoweringResult result = check(op, lower);
    EXPECT_EQ(result.verdict, LoweringVerdict::Equal) << result.message;
  }

  /// Records and prints the median of all times.
  void reportTimes() {
    llvm::sort(milliseconds);
    ASSERT_FALSE(milliseconds.empty());
    double median = milliseconds[milliseconds.size() / 2];
    std::string text = std::to_string(median);
    RecordProperty("median_ms", text);
    llvm::outs() << milliseconds.size() << " lowerings, median " << text
                 << " ms, largest " << std::to_string(milliseconds.back())
                 << " ms\n";
  }

  std::vector<double> milliseconds;
};

LogicalResult lowerToAffine(RewriterBase &rewriter, ApplyOp apply) {
  return convertToAffine(rewriter, apply);
}

LogicalResult factor(RewriterBase &, ApplyOp apply) {
  auto module = apply->getParentOfType<ModuleOp>();
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.addPass(createKasRFactorPass());
  return manager.run(module);
}
} // namespace

TEST_F(VerifyLoweringTest, AffineLoopsOfRandomOperators) {
  unsigned clipped = 0, maxima = 0, clippedMaxima = 0;
  forEachRandomOperator([&](OperatorOp op) {
    expectEqual(op, lowerToAffine);
    Coordinates coordinates = getCoordinates(op);
    bool isClipped = !coordinates.guards.empty();
    clipped += isClipped;
    maxima += coordinates.hasMax();
    clippedMaxima += isClipped && coordinates.hasMax();
  });
  EXPECT_GT(clipped, 10u);
  EXPECT_GT(maxima, 10u);
  EXPECT_GT(clippedMaxima, 5u);
  reportTimes();
}

TEST_F(VerifyLoweringTest, ParallelLoopsOfRandomOperators) {
  AffineLoopOptions options;
  options.parallel = true;
  options.minParallelWork = 1;
  forEachRandomOperator([&](OperatorOp op) {
    expectEqual(op, [&](RewriterBase &rewriter, ApplyOp apply) {
      return convertToAffine(rewriter, apply, options);
    });
  });
  reportTimes();
}

TEST_F(VerifyLoweringTest, LinalgOfRandomOperators) {
  unsigned lowered = 0, left = 0;
  for (bool namedOps : {true, false}) {
    LinalgOptions options;
    options.namedOps = namedOps;
    forEachRandomOperator([&](OperatorOp op) {
      bool isLowered = true;
      std::string reason;
      LoweringResult result =
          check(op, [&](RewriterBase &rewriter, ApplyOp apply) {
            LogicalResult converted =
                convertToLinalg(rewriter, apply, options, reason);
            isLowered = succeeded(converted);
            return converted;
          });
      ++(isLowered ? lowered : left);
      if (isLowered)
        EXPECT_EQ(result.verdict, LoweringVerdict::Equal) << result.message;
    });
  }
  EXPECT_GT(lowered, 2 * left);
  reportTimes();
}

TEST_F(VerifyLoweringTest, StagesOfRandomOperators) {
  forEachRandomOperator([&](OperatorOp op) { expectEqual(op, factor); });
  reportTimes();
}

TEST_F(VerifyLoweringTest, OtherShapesAreDifferent) {
  auto module = parseSourceString<ModuleOp>(R"(
    kas.operator @half(%i: 3) from [6] {
      %x = kas.stride %i by 2 : 3
      kas.yield data(%x)
    }
    func.func @run(%x: tensor<6xf32>) {
      return
    }
  )",
                                            &context);
  ASSERT_TRUE(module);
  auto op = module->lookupSymbol<OperatorOp>("half");
  Value x = module->lookupSymbol<func::FuncOp>("run").getArgument(0);
  LoweringResult result = compareLowering(op, x, x);
  EXPECT_EQ(result.verdict, LoweringVerdict::Different);
  EXPECT_EQ(result.message, "requires tensors of its shapes, got others");
}

// A value that is used twice is read twice.
TEST_F(VerifyLoweringTest, RepeatedUsesAreBounded) {
  std::string text = R"(
    kas.operator @copy(%i: 6) from [6] {
      kas.yield data(%i)
    }
    func.func @run(%x0: tensor<6xf32>) -> tensor<6xf32> {
      %e = tensor.empty() : tensor<6xf32>
  )";
  for (unsigned i = 0; i < 20; ++i) {
    std::string x = "%x" + std::to_string(i);
    text += "%x" + std::to_string(i + 1) + " = linalg.add ins(" + x + ", " + x +
            " : tensor<6xf32>, tensor<6xf32>) outs(%e : tensor<6xf32>) "
            "-> tensor<6xf32>\n";
  }
  text += "return %x20 : tensor<6xf32>\n}";
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  auto op = module->lookupSymbol<OperatorOp>("copy");
  auto function = module->lookupSymbol<func::FuncOp>("run");
  LoweringResult result = compareLowering(
      op, function.getArguments(),
      function.getBody().front().getTerminator()->getOperand(0));
  EXPECT_EQ(result.verdict, LoweringVerdict::Undecided);
  EXPECT_EQ(result.message, "it has more than 10000 steps");
}

//===----------------------------------------------------------------------===//
// Wrong lowerings
//===----------------------------------------------------------------------===//

namespace {
/// A lowered function with a mistake, and what is known about it.
struct Mutant {
  std::string mutation;
  /// By the reference evaluator, on random tensors.
  bool isWrong = false;
  LoweringResult result;
};

class WrongLoweringTest : public VerifyLoweringTest {
protected:
  /// Lowers random operators and puts one mistake into each.
  void checkMutants(unsigned numWrong, LowerFn lower) {
    unsigned wrong = 0, harmless = 0, different = 0, accepted = 0;
    for (uint64_t seed = getFirstSeed();
         wrong < numWrong && seed < getFirstSeed() + 40 * numWrong; ++seed) {
      std::optional<Mutant> mutant = makeMutant(seed, lower);
      if (!mutant || HasFailure())
        continue;
      ++(mutant->isWrong ? wrong : harmless);
      bool isAccepted = mutant->result.verdict == LoweringVerdict::Equal;
      different += mutant->result.verdict == LoweringVerdict::Different;
      accepted += isAccepted;
      EXPECT_FALSE(mutant->isWrong && isAccepted)
          << "accepted with another " << mutant->mutation << ", seed " << seed;
    }
    EXPECT_EQ(wrong, numWrong);
    EXPECT_GT(accepted, 0u) << "mistakes that do no harm are drawn, too";
    llvm::outs() << wrong << " wrong and " << harmless
                 << " harmless changes: " << accepted << " accepted, "
                 << different << " shown to be different\n";
  }

private:
  std::optional<Mutant> makeMutant(uint64_t seed, LowerFn lower) {
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(scratch->getBody());
    RandomOperator random = makeRandomOperator(builder, "f", seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + describe(random));
    OperatorOp op = makeConcrete(random.op, random.binding);
    OwningOpRef<ModuleOp> module = createOperatorModule(op);
    auto function = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
    auto apply = *function.getOps<ApplyOp>().begin();
    OperatorOp callee = apply.getOperator();
    IRRewriter rewriter(&context);
    if (failed(lower(rewriter, apply)))
      return std::nullopt;
    Inputs inputs(reference::getShapes(op), seed);
    if (isWrong(function, op, inputs)) {
      ADD_FAILURE() << "wrong before any change";
      return std::nullopt;
    }
    Mutant mutant;
    Random numbers(seed);
    mutant.mutation = mutateLowered(*module, numbers);
    ScopedDiagnosticHandler ignore(&context,
                                   [](Diagnostic &) { return success(); });
    if (mutant.mutation.empty() || failed(verify(*module)))
      return std::nullopt;
    mutant.isWrong = isWrong(function, op, inputs);
    mutant.result = compareLowering(
        callee, function.getArguments(),
        function.getBody().front().getTerminator()->getOperand(0));
    // Other terms give other sums, but not always another maximum.
    if (mutant.result.verdict == LoweringVerdict::Different &&
        !getCoordinates(op).hasMax())
      EXPECT_TRUE(mutant.isWrong)
          << mutant.mutation << ": " << mutant.result.message << "\n"
          << print(*module);
    return mutant;
  }

  /// Whether an element differs from the reference, is not written or was read
  /// out of bounds.
  static bool isWrong(func::FuncOp function, OperatorOp op,
                      const Inputs &inputs) {
    std::vector<std::vector<float>> tensors{inputs.data};
    llvm::append_range(tensors, inputs.weights);
    std::optional<std::vector<double>> actual =
        evaluateLowered(function, tensors);
    if (!actual)
      return true;
    std::vector<float> expected = evaluate(op, inputs);
    std::vector<float> rounded(actual->begin(), actual->end());
    return getError(rounded, expected, getCancellationFloor(op, inputs)) > 1e-4;
  }
};
} // namespace

TEST_F(WrongLoweringTest, NoWrongAffineLoops) {
  checkMutants(getNumOperators(200, 1000), lowerToAffine);
}

TEST_F(WrongLoweringTest, NoWrongLinalg) {
  LinalgOptions options;
  options.namedOps = false;
  checkMutants(getNumOperators(200, 1000),
               [&](RewriterBase &rewriter, ApplyOp apply) {
                 std::string reason;
                 return convertToLinalg(rewriter, apply, options, reason);
               });
}

TEST_F(WrongLoweringTest, NoWrongStages) {
  checkMutants(getNumOperators(20, 200), factor);
}
