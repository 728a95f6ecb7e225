//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Operators whose values are compared: many small ones, in each precision and
// by each strategy.

#include "../../test/lib/RandomContraction.h"
#include "../../test/lib/RandomOperator.h"
#include "../../test/unittests/Library/Formulas.h"
#include "SessionCases.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Support/Random.h"
#include <cmath>

using namespace kas;
using namespace kas::codegen;
using namespace kas::gpusession;
using namespace kas::reference;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {
/// How an operator is compiled, and how far its values may be off where they
/// cannot be compared exactly: relative to the largest one or to a multiple of
/// what is left of sums that cancel, which f32 alone has the digits for.
struct ValueVariant {
  StringRef precision;
  GPUStrategyChoice strategy;
  /// Bits of factors, and of tensors.
  unsigned factorBits, elementBits;
  double tolerance, floorFactor;
};
} // namespace

static constexpr ValueVariant variants[] = {
    {"f32", GPUStrategyChoice::Auto, 24, 24, 1e-4, 1},
    {"f32", GPUStrategyChoice::Staged, 24, 24, 1e-4, 1},
    {"tf32", GPUStrategyChoice::TensorCore, 11, 24, 1e-2, 20},
    {"f16", GPUStrategyChoice::TensorCore, 11, 11, 1e-2, 20},
    {"bf16", GPUStrategyChoice::TensorCore, 8, 8, 8e-2, 20},
    {"f16", GPUStrategyChoice::Warpgroup, 11, 11, 1e-2, 20},
    {"bf16", GPUStrategyChoice::Warpgroup, 8, 8, 8e-2, 20},
};

static StringRef getName(GPUStrategyChoice strategy) {
  switch (strategy) {
  case GPUStrategyChoice::Auto:
    return "auto";
  case GPUStrategyChoice::Direct:
    return "direct";
  case GPUStrategyChoice::Staged:
    return "staged";
  case GPUStrategyChoice::TensorCore:
    return "tensor_core";
  case GPUStrategyChoice::Warpgroup:
    return "warpgroup";
  }
  llvm_unreachable("all strategies have a name");
}

//===----------------------------------------------------------------------===//
// Inputs and results
//===----------------------------------------------------------------------===//

static Expected<TensorValues>
evaluate(OperatorOp op, const std::vector<TensorValues> &inputs) {
  OperatorShapes shapes = getShapes(op);
  llvm::SmallVector<ReferenceTensor> weights;
  for (auto [index, shape] : llvm::enumerate(shapes.weights))
    weights.push_back({shape, inputs[index + 1]});
  TensorValues output(*getNumElements(shapes.output));
  if (failed(evaluateOperator(op, {shapes.data, inputs[0]}, weights, output,
                              [&] { return op.emitError(); })))
    return llvm::createStringError("the reference rejects the operator");
  return output;
}

static double getLargest(llvm::ArrayRef<float> values) {
  double largest = 0;
  for (float value : values)
    largest = std::max(largest, std::fabs(double(value)));
  return largest;
}

static void addArguments(PackedCase &packed, const OperatorShapes &shapes,
                         const std::vector<TensorValues> &inputs) {
  packed.addArgument(shapes.data, inputs[0]);
  for (auto [index, shape] : llvm::enumerate(shapes.weights))
    packed.addArgument(shape, inputs[index + 1]);
}

/// Numbers in [-1, 1), and how far results may be off.
static Error addInexactValues(PackedCase &packed, OperatorOp op, uint64_t seed,
                              const ValueVariant &variant) {
  OperatorShapes shapes = getShapes(op);
  llvm::SmallVector<llvm::ArrayRef<int64_t>> all = {shapes.data};
  all.append(shapes.weights.begin(), shapes.weights.end());
  std::vector<TensorValues> inputs, magnitudes;
  for (auto [index, shape] : llvm::enumerate(all)) {
    RandomStream stream(seed, "input" + std::to_string(index));
    TensorValues &values = inputs.emplace_back(*getNumElements(shape));
    for (auto [position, value] : llvm::enumerate(values))
      value = 2 * stream.uniform(position) - 1;
    TensorValues &signless = magnitudes.emplace_back(values);
    for (float &value : signless)
      value = std::fabs(value);
  }
  auto expected = evaluate(op, inputs);
  if (!expected)
    return expected.takeError();
  auto uncancelled = evaluate(op, magnitudes);
  if (!uncancelled)
    return uncancelled.takeError();
  double floor = variant.floorFactor * getLargest(*uncancelled) / 100;
  addArguments(packed, shapes, inputs);
  packed.setExpected(shapes.output, *expected, variant.tolerance,
                     std::max(floor, getLargest(*expected)));
  return Error::success();
}

static Error addValues(PackedCase &packed, OperatorOp op, uint64_t seed,
                       const ValueVariant &variant) {
  ExactProblem problem = getExactProblem(op);
  auto check = ExactCheck::create(
      problem, {.format = {.sumBits = 24,
                           .factorBits = variant.factorBits,
                           .elementBits = variant.elementBits},
                .seed = seed,
                .draws = 1});
  if (!check) {
    llvm::consumeError(check.takeError());
    return addInexactValues(packed, op, seed, variant);
  }
  OperatorShapes shapes = getShapes(op);
  const ExactCheck::Draw &draw = check->getDraws().front();
  addArguments(packed, shapes, draw.inputs);
  // Quotients of means round; they are nearer to the right one than to others.
  if (check->isBitwise())
    packed.setExpected(shapes.output, draw.results[0], /*tolerance=*/0, 1);
  else
    packed.setExpected(shapes.output, draw.results[0],
                       0.499 / problem.results[0].divisor, /*scale=*/1);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

static Expected<PackedCase> packVariant(OperatorOp op, StringRef name,
                                        uint64_t seed,
                                        const ValueVariant &variant,
                                        const SessionOptions &options) {
  PackedCase packed(("values/" + name + "/" + variant.precision + "/" +
                     getName(variant.strategy))
                        .str(),
                    "values");
  mlir::OwningOpRef<mlir::ModuleOp> module = createOperatorModule(op);
  bool forWarpgroups = variant.strategy == GPUStrategyChoice::Warpgroup;
  for (const std::string &chip : options.chips) {
    if (hasWarpgroups(chip) != forWarpgroups)
      continue;
    GPUFrontOptions front;
    front.strategy = variant.strategy;
    front.precision = *symbolizeGPUPrecision(variant.precision);
    front.elements =
        symbolizeGPUElements(variant.precision).value_or(GPUElements::F32);
    auto program = compileForChip(*module, chip, front, options);
    if (!program)
      return program.takeError();
    if (*program)
      packed.addProgram(chip, "", **program);
  }
  if (packed.hasPrograms())
    if (Error error = addValues(packed, op, seed, variant))
      return error;
  return packed;
}

static Expected<std::vector<PackedCase>>
packOperator(OperatorOp op, const Binding &binding, StringRef name,
             uint64_t seed, bool isForWarpgroups,
             const SessionOptions &options) {
  mlir::OpBuilder builder(op);
  mlir::FailureOr<OperatorOp> concrete = specialize(
      builder, op, binding, "concrete", [&] { return op.emitError(); });
  if (mlir::failed(concrete))
    return llvm::createStringError("the binding of '" + name +
                                   "' is not legal");
  std::vector<PackedCase> cases;
  for (const ValueVariant &variant : variants) {
    // Few operators at random have the form that warpgroups need.
    if (isForWarpgroups != (variant.strategy == GPUStrategyChoice::Warpgroup))
      continue;
    auto packed = packVariant(*concrete, name, seed, variant, options);
    if (!packed)
      return packed.takeError();
    if (packed->hasPrograms())
      cases.push_back(std::move(*packed));
  }
  return cases;
}

/// The values of a formula's sizes for the symbols of `op`.
static Binding getSizes(OperatorOp op, const formulas::Sizes &sizes) {
  Binding binding;
  SymbolSet symbols = op.getSymbolSet();
  for (unsigned i = 0; i < symbols.size(); ++i)
    for (const auto &[name, member] : formulas::symbols)
      if (symbols.getName(i) == name)
        binding.push_back(sizes.*member);
  return binding;
}

using MakeRandomFn = test::RandomOperator (*)(mlir::OpBuilder &, uint64_t seed);

static SessionJob makeRandomJob(std::string name, uint64_t seed,
                                MakeRandomFn make, bool isForWarpgroups,
                                const SessionOptions &options) {
  return [=](mlir::MLIRContext &context) {
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    test::RandomOperator random = make(builder, seed);
    return packOperator(random.op, random.binding, name, seed, isForWarpgroups,
                        options);
  };
}

std::vector<SessionJob>
gpusession::getValueJobs(const SessionOptions &options) {
  std::vector<SessionJob> jobs;
  for (const formulas::Formula &formula : formulas::getFormulas())
    for (bool isForWarpgroups : {false, true})
      jobs.push_back([=](mlir::MLIRContext &context) {
        mlir::OwningOpRef<mlir::ModuleOp> module =
            library::parseNamedOperator(&context, formula.name);
        OperatorOp op = *module->getOps<OperatorOp>().begin();
        return packOperator(op, getSizes(op, formula.bindings.front()),
                            "kas." + formula.name, 0, isForWarpgroups, options);
      });
  for (unsigned seed = 0; seed < options.randomContractions; ++seed)
    jobs.push_back(makeRandomJob(
        "contraction" + std::to_string(seed), seed,
        [](mlir::OpBuilder &builder, uint64_t seed) {
          return test::makeRandomContraction(builder, "f", seed, 1 << 20);
        },
        true, options));
  for (unsigned seed = 0; seed < options.randomOperators; ++seed)
    jobs.push_back(makeRandomJob(
        "random" + std::to_string(seed), seed,
        [](mlir::OpBuilder &builder, uint64_t seed) {
          return test::makeRandomOperator(builder, "f", seed);
        },
        false, options));
  return jobs;
}
