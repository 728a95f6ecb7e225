//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled gradients of sums of products, bit by bit. An operator is linear in
// each tensor: what the reference evaluator computes for one that is one at one
// element and zero elsewhere are the coefficients of that element's gradient.
// With integers so small that nothing rounds, compiled gradients have the same
// bits.
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Library/Operators.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Reference/ExactProblem.h"
#include "kas/Support/Random.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {

/// What a gradient is taken of.
enum class Form { Operator, Stages, Linalg };

class ExactGradientTest : public testing::Test {
protected:
  ExactGradientTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Nothing where no integers are exact.
  void check(OperatorOp concrete, Form form, uint64_t seed);
  /// How many sums of products add to elements that are not those of loops.
  unsigned countScattered(OperatorOp concrete);
  OwningOpRef<ModuleOp> makeGradient(OperatorOp concrete, Form form);

  MLIRContext context;
  unsigned numCompared = 0;
};

} // namespace

OwningOpRef<ModuleOp> ExactGradientTest::makeGradient(OperatorOp concrete,
                                                      Form form) {
  OwningOpRef<ModuleOp> module = createOperatorModule(concrete);
  PassManager manager(&context);
  if (form == Form::Stages)
    manager.addPass(createKasRFactorPass());
  if (form == Form::Linalg)
    manager.addPass(createKasToLinalgPass());
  EXPECT_TRUE(succeeded(manager.run(*module)));
  auto function = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
  auto positions =
      llvm::to_vector(llvm::seq<unsigned>(function.getNumArguments()));
  auto made = makeGradientFunction(function, gradientFunctionName, positions);
  EXPECT_TRUE(succeeded(made)) << print(*module);
  return module;
}

unsigned ExactGradientTest::countScattered(OperatorOp concrete) {
  unsigned count = 0;
  makeGradient(concrete, Form::Linalg)->walk([&](linalg::GenericOp op) {
    count += !op.getIndexingMapsArray().back().isProjectedPermutation() &&
             !op.getBlock()->getOps<arith::MulFOp>().empty();
  });
  return count;
}

/// Integers from -most to most.
static TensorValues drawIntegers(size_t count, int64_t most,
                                 const RandomStream &random, uint64_t &index) {
  TensorValues values(count);
  for (float &value : values)
    value = float(int64_t(random.bits(index++) % (2 * most + 1)) - most);
  return values;
}

static int64_t getCount(ArrayRef<int64_t> shape) {
  return llvm::product_of(shape);
}

void ExactGradientTest::check(OperatorOp concrete, Form form, uint64_t seed) {
  ExactProblem problem = getExactProblem(concrete);
  double divisor = problem.getDivisor();
  int64_t outputs = getCount(problem.results.front().shape);
  // The terms of all results bound those of a gradient.
  double terms = problem.numTerms * outputs;
  unsigned degree = problem.getDegree();
  int64_t most = terms * std::pow(3.0, degree) <= 0x1p24 ? 3 : 1;
  if (problem.maximumSize > 1 || terms > 0x1p24 || outputs == 0 ||
      !llvm::isPowerOf2_64(uint64_t(divisor)))
    return;
  OwningOpRef<ModuleOp> module = makeGradient(concrete, form);
  CPUPipelineOptions pipeline;
  pipeline.threads = 1 + seed % 2;
  auto compiled = compileForCPU(*module, gradientFunctionName, pipeline);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());

  RandomStream random(seed, "exact gradients");
  uint64_t index = 0;
  std::vector<TensorValues> inputs;
  for (const ExactProblem::Input &input : problem.inputs)
    inputs.push_back(drawIntegers(getCount(input.shape), most, random, index));
  TensorValues outer = drawIntegers(outputs, most, random, index);

  const FunctionSignature &signature = compiled->getSignature();
  SmallVector<Tensor> arguments;
  for (auto [position, argument] : llvm::enumerate(signature.arguments)) {
    Tensor tensor(argument.shape);
    llvm::copy(position < inputs.size() ? inputs[position] : outer,
               tensor.getValues().begin());
    arguments.push_back(std::move(tensor));
  }
  auto results = llvm::cantFail(signature.makeResults());
  llvm::cantFail((*compiled)(arguments, results));

  for (auto [number, input] : llvm::enumerate(problem.inputs)) {
    ArrayRef<float> actual = results[1 + number].getValues();
    int64_t count = getCount(input.shape);
    // All elements of small tensors, some of large ones.
    int64_t step = std::max<int64_t>(1, count / 12);
    for (int64_t element = seed % step; element < count; element += step) {
      std::vector<TensorValues> unit = inputs;
      llvm::fill(unit[number], 0.0f);
      unit[number][element] = 1;
      std::vector<TensorValues> values(1, TensorValues(outputs));
      llvm::cantFail(problem.evaluate(unit, values));
      double expected = 0;
      for (auto [coefficient, factor] : llvm::zip_equal(values[0], outer))
        expected += double(coefficient) * factor;
      ASSERT_EQ(float(expected), actual[element])
          << "seed " << seed << ", form " << int(form) << ", tensor " << number
          << ", element " << element << "\n"
          << print(concrete);
    }
    ++numCompared;
  }
}

/// A small binding at which `op` is legal.
static std::optional<Binding> findBinding(OperatorOp op) {
  SymbolSet symbols = op.getSymbolSet();
  ScopedDiagnosticHandler ignore(op.getContext(),
                                 [](Diagnostic &) { return success(); });
  for (unsigned choice = 0; choice < 81; ++choice) {
    Binding binding;
    unsigned digits = choice;
    for (unsigned index = 0; index < symbols.size(); ++index) {
      if (symbols.getKind(index) == SymbolKind::Coefficient) {
        binding.push_back(std::array{2, 3, 1}[digits % 3]);
        digits /= 3;
      } else {
        binding.push_back(symbols.getName(index) == "N" ? 2 : 4);
      }
    }
    if (succeeded(verifyBinding(op, binding, [&] { return op.emitError(); })))
      return binding;
  }
  return std::nullopt;
}

TEST_F(ExactGradientTest, NamedOperators) {
  unsigned numOperators = 0, position = 0;
  unsigned step = std::getenv("KAS_SLOW_TESTS") ? 1 : 8;
  for (const library::NamedOperator &entry : library::getNamedOperators()) {
    if (position++ % step != 0)
      continue;
    auto module = library::parseNamedOperator(&context, entry.name);
    auto op = module->lookupSymbol<OperatorOp>(entry.name);
    std::optional<Binding> binding = findBinding(op);
    if (!binding)
      continue;
    ++numOperators;
    OperatorOp concrete = makeConcrete(op, *binding);
    for (Form form : {Form::Operator, Form::Linalg}) {
      check(concrete, form, numOperators);
      ASSERT_FALSE(HasFailure()) << entry.name.str();
    }
  }
  EXPECT_GE(numOperators, 35 / step);
  EXPECT_GE(numCompared, 2 * numOperators);
}

TEST_F(ExactGradientTest, RandomOperators) {
  unsigned count = getNumOperators(15, 200);
  RandomOperatorOptions options;
  options.maxPoints = 1500;
  for (uint64_t seed = getFirstSeed(); seed < getFirstSeed() + count; ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    RandomOperator random =
        makeRandomOperator(builder, "random", seed, options);
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    for (Form form : {Form::Operator, Form::Stages, Form::Linalg})
      check(concrete, form, seed);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  RecordProperty("compared", int(numCompared));
  EXPECT_GE(numCompared, 2 * count);
}

/// Stages whose weights have the places of windows, or the windows themselves:
/// their gradients are sums over windows, too.
static constexpr llvm::StringLiteral windowsText = R"mlir(
  kas.operator @places<G, H | k>(%o: G, %o_0: H) from [G, H] {
    %r = kas.reduce sum : k
    %d, %w = kas.share %r : k
    %r_1 = kas.reduce sum : k
    %d_2, %w_3 = kas.share %r_1 : k
    %r_4 = kas.reduce sum : k
    %d_5, %w_6 = kas.share %r_4 : k
    %d_7, %w_8 = kas.share %o : G
    %u = kas.unfold %d_7, %d : G, k
    %u_9 = kas.unfold %u, %d_2 : G, k
    %u_10 = kas.unfold %o_0, %d_5 : H, k
    kas.yield data(%u_9, %u_10) weight(%w, %w_3, %w_6, %w_8)
  }
  kas.operator @indices<G, H | k>(%o: G, %o_0: H) from [G, H] {
    %r = kas.reduce sum : k
    %d, %w = kas.share %r : k
    %r_1 = kas.reduce sum : k
    %d_2, %w_3 = kas.share %r_1 : k
    %d_4, %w_5 = kas.share %o : G
    %u = kas.unfold %d_4, %d : G, k
    %d_6, %w_7 = kas.share %u : G
    %u_8 = kas.unfold %o_0, %d_2 : H, k
    kas.yield data(%d_6, %u_8) weight(%w, %w_3, %w_5) weight(%w_7)
  }
  kas.operator @both<G, H | k>(%o: G, %o_0: H) from [G, H] {
    %r = kas.reduce sum : k
    %d, %w = kas.share %r : k
    %r_1 = kas.reduce sum : k
    %d_2, %w_3 = kas.share %r_1 : k
    %u = kas.unfold %o, %d : G, k
    %d_4, %w_5 = kas.share %u : G
    %u_6 = kas.unfold %o_0, %d_2 : H, k
    kas.yield data(%d_4, %u_6) weight(%w, %w_3, %w_5)
  }
)mlir";

TEST_F(ExactGradientTest, Windows) {
  auto module = parseSourceString<ModuleOp>(windowsText, &context);
  ASSERT_TRUE(module);
  uint64_t seed = getFirstSeed();
  for (auto op : llvm::to_vector(module->getOps<OperatorOp>()))
    for (Binding binding : {Binding{4, 6, 3}, Binding{3, 5, 2}}) {
      OperatorOp concrete = makeConcrete(op, binding);
      EXPECT_EQ(countScattered(concrete), 0u) << op.getSymName().str();
      for (Form form : {Form::Operator, Form::Stages, Form::Linalg}) {
        check(concrete, form, seed++);
        ASSERT_FALSE(HasFailure()) << op.getSymName().str();
      }
    }
  EXPECT_GE(numCompared, 18u);
}
