//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled random sequences, one after the other and parallel, against the
// reference evaluator.
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "RandomSequence.h"
#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Reference/SequenceEvaluator.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"
#include <map>

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {

class RandomSequencesTest : public testing::Test {
protected:
  RandomSequencesTest() {
    DialectRegistry registry;
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  MLIRContext context;
};

} // namespace

/// The largest magnitude that a result, or a partial sum of it, can have where
/// those of the data are at most `most` and those of weights 1; of normalized
/// results nothing is known.
static double getBound(SequenceOp op, BindingAttr binding, double most) {
  double data = most, result = 0, largest = most;
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    SymbolSet symbols = stage.getSymbolSet();
    Binding values = *getBinding(stage, getStageBinding(stage, binding),
                                 [&] { return op.emitError(); });
    double own = data;
    for (auto reduce : stage.getBody().getOps<ReduceOp>())
      own *= double(*kas::evaluate(reduce.getSize(), symbols, values));
    if (!op.isParallel(number))
      result = own;
    else if (op.getStep(number - 1) == SequenceStep::Add)
      result += own;
    else if (op.getStep(number - 1) == SequenceStep::Multiply)
      result *= own;
    else
      result = std::max(result, own);
    largest = std::max({largest, own, result});
    if (number < op.getBetween().size() && !op.isParallel(number + 1))
      data = result;
  }
  return largest;
}

/// Integers from -most to most.
static void drawIntegers(Tensor &tensor, int64_t most, kas::Random &random) {
  for (float &value : tensor.getValues())
    value = float(int64_t(random.below(2 * most + 1)) - most);
}

/// What the compiled sequence gives for `arguments`.
static Tensor
compute(SequenceOp op, BindingAttr binding,
        llvm::function_ref<void(CompiledFunction &, SmallVectorImpl<Tensor> &)>
            draw,
        SmallVectorImpl<Tensor> &arguments) {
  auto lowered =
      createSequenceModule(op, binding, [&] { return op.emitError(); });
  EXPECT_TRUE(succeeded(lowered));
  auto function =
      llvm::cantFail(compileForCPU(**lowered, sequenceFunctionName));
  draw(function, arguments);
  auto results = llvm::cantFail(function.getSignature().makeResults());
  llvm::cantFail(function(arguments, results));
  return std::move(results.front());
}

static SequenceResult evaluateReference(SequenceOp op, BindingAttr binding,
                                        ArrayRef<Tensor> arguments) {
  auto tensors = llvm::map_to_vector(arguments, [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  });
  auto expected = evaluateSequence(op, binding, tensors.front(),
                                   ArrayRef(tensors).drop_front(),
                                   [&] { return op.emitError(); });
  EXPECT_TRUE(succeeded(expected));
  return std::move(*expected);
}

TEST_F(RandomSequencesTest, HaveTheBitsOfTheReference) {
  unsigned count = getNumOperators(12, 1000), exact = 0;
  std::map<SequenceStep, unsigned> steps;
  std::map<AxisPart, unsigned> parts;
  for (uint64_t seed = getFirstSeed(); exact < count; ++seed) {
    ASSERT_LT(seed, getFirstSeed() + 3 * count) << "too few are exact";
    RandomSequence random = makeRandomSequence(&context, seed);
    int64_t most = 500;
    while (most > 0 && getBound(random.op, random.binding, most) > 0x1p24)
      most /= 2;
    if (most == 0)
      continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(*random.module));
    kas::Random values(seed);
    SmallVector<Tensor> arguments;
    Tensor result = compute(
        random.op, random.binding,
        [&](CompiledFunction &function, SmallVectorImpl<Tensor> &drawn) {
          for (const auto &argument : function.getSignature().arguments) {
            drawn.emplace_back(argument.shape);
            drawIntegers(drawn.back(), drawn.size() == 1 ? most : 1, values);
          }
        },
        arguments);
    SequenceResult expected =
        evaluateReference(random.op, random.binding, arguments);
    ASSERT_EQ(result.getShape(), ArrayRef(expected.shape));
    ASSERT_EQ(result.getValues(), ArrayRef(expected.values));
    ++exact;
    for (int32_t step : random.op.getBetween())
      ++steps[static_cast<SequenceStep>(step)];
    for (AxisPart part : random.parts)
      ++parts[part];
  }
  for (SequenceStep step :
       {SequenceStep::None, SequenceStep::Relu, SequenceStep::Add,
        SequenceStep::Multiply, SequenceStep::Join})
    EXPECT_GE(steps[step], count / 6) << stringifySequenceStep(step).str();
  for (unsigned part = 0; part < numAxisParts; ++part)
    EXPECT_GE(parts[static_cast<AxisPart>(part)], count / 6) << part;
}

TEST_F(RandomSequencesTest, NormalizeWhatParallelOperatorsGive) {
  unsigned count = getNumOperators(6, 60), normalized = 0;
  RandomSequenceOptions options;
  options.normalizes = true;
  options.maxGroups = 2;
  for (uint64_t seed = getFirstSeed(); normalized < count; ++seed) {
    RandomSequence random = makeRandomSequence(&context, seed, options);
    if (!llvm::any_of(random.op.getBetween(), [](int32_t step) {
          return normalizes(static_cast<SequenceStep>(step));
        }))
      continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(*random.module));
    kas::Random values(seed);
    SmallVector<Tensor> arguments;
    Tensor result = compute(
        random.op, random.binding,
        [&](CompiledFunction &function, SmallVectorImpl<Tensor> &drawn) {
          for (const auto &argument : function.getSignature().arguments) {
            bool isNorm = StringRef(argument.name).contains("norm");
            drawn.emplace_back(argument.shape);
            for (float &value : drawn.back().getValues())
              value = isNorm ? 0.5f + values.uniform() : values.uniform();
          }
        },
        arguments);
    SequenceResult expected =
        evaluateReference(random.op, random.binding, arguments);
    ASSERT_EQ(result.getShape(), ArrayRef(expected.shape));
    EXPECT_LE(getError(result.getValues(), expected.values), 1e-5);
    ++normalized;
  }
}
