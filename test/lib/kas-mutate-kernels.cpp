//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes mistakes in compiled random operators and counts which of the wrong
// kernels the exact check and a tolerance find.
//
//===----------------------------------------------------------------------===//

#include "../unittests/Properties/GuardedMemory.h"
#include "KernelMutator.h"
#include "RandomOperator.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Reference/ExactCheck.h"
#include "kas/Support/ChildProcess.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;
using llvm::createStringError;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Lowerings
//===----------------------------------------------------------------------===//

namespace {

/// A way to lower an operator, and what results may differ by.
struct Lowering {
  StringRef name;
  void (*addPasses)(OpPassManager &);
  ExactFormat format = {};
  double tolerance = 1e-4;
  bool registerTiles = true;
};

void addAffine(OpPassManager &manager) {
  manager.addPass(createKasSpecializePass());
  manager.addPass(createKasToAffinePass());
}

void addLinalg(OpPassManager &manager) {
  manager.addPass(createKasSpecializePass());
  manager.addPass(createKasToLinalgPass());
}

void addKernels(OpPassManager &manager, const GPUFrontOptions &front) {
  buildGPUFrontHalf(manager, front);
  manager.addPass(createKasGPUToCPULoopsPass());
}

const Lowering lowerings[] = {
    {"affine", addAffine},
    {"linalg", addLinalg, {}, 1e-4, /*registerTiles=*/false},
    {"panels", [](OpPassManager &) {}},
    {"vulkan",
     [](OpPassManager &manager) { addKernels(manager, {.device = "vulkan"}); }},
    {"staged",
     [](OpPassManager &manager) {
       addKernels(manager,
                  {.device = "sm_90", .strategy = GPUStrategyChoice::Staged});
     }},
    {"tensor_core",
     [](OpPassManager &manager) {
       addKernels(manager, {.device = "sm_90",
                            .strategy = GPUStrategyChoice::TensorCore,
                            .precision = GPUPrecision::F16});
     },
     {24, 11, 24},
     1e-2}};
constexpr unsigned numLowerings = std::size(lowerings);

/// Makes the mistake where all loops are there and vectors are not lowered: in
/// one of the functions, which come one after the other.
struct Mutate : PassInstrumentation {
  Mutate(MutationKind kind, uint64_t seed,
         std::optional<std::string> &description)
      : kind(kind), random(seed), description(description) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || description ||
        pass->getArgument() != "fold-memref-alias-ops")
      return;
    if (!numLeft)
      numLeft = llvm::range_size(
          function->getParentOfType<ModuleOp>().getOps<func::FuncOp>());
    if (random.below((*numLeft)--) == 0)
      isChosen = true;
    // Where there is no place for it, the next function takes it.
    if (isChosen)
      description = mutateKernel(function, kind, random);
  }

  MutationKind kind;
  Random random;
  std::optional<uint64_t> numLeft;
  bool isChosen = false;
  std::optional<std::string> &description;
};

//===----------------------------------------------------------------------===//
// One mutant
//===----------------------------------------------------------------------===//

/// What became of a mutant.
enum class Outcome : char {
  /// There is no place for the mistake, or what comes out is not valid.
  None,
  /// It touches memory outside of all tensors, or dies.
  Fault,
  /// It computes the same as before.
  Same,
  Wrong
};

struct MutantResult {
  Outcome outcome = Outcome::None;
  /// Which checks find it: with as many draws as the bound wants, with one
  /// draw, with a tolerance.
  bool exact = false, oneDraw = false, tolerance = false;
  std::string description;
};

struct MutantNumber {
  uint64_t seed;
  MutationKind getKind() const {
    return static_cast<MutationKind>(seed % numMutationKinds);
  }
  const Lowering &getLowering() const {
    return lowerings[seed / numMutationKinds % numLowerings];
  }
};

/// A compiled function between guard pages.
class GuardedFunction {
public:
  GuardedFunction(CompiledModule::Function function,
                  const ExactProblem &problem)
      : function(function), problem(problem) {}

  /// Nothing where it touches what it must not.
  std::optional<TensorValues> run(ArrayRef<TensorValues> inputs) const {
    int64_t size = 1;
    for (int64_t extent : problem.results.front().shape)
      size *= extent;
    TensorValues output(size);
    SmallVector<void *> pointers;
    for (const TensorValues &input : inputs) {
      pointers.push_back(allocateGuarded(input.size() * 4, Flush::End));
      std::memcpy(pointers.back(), input.data(), input.size() * 4);
    }
    pointers.push_back(allocateGuarded(size * 4, Flush::End));
    auto fault = runGuarded([&] { function(pointers.data()); });
    std::memcpy(output.data(), pointers.back(), size * 4);
    for (void *pointer : pointers)
      freeGuarded(pointer);
    return fault ? std::nullopt : std::optional(output);
  }

private:
  CompiledModule::Function function;
  const ExactProblem &problem;
};

} // namespace

/// How many draws differ up to the first that does: 0 for none; -1 for a fault.
static int findDifference(const GuardedFunction &function,
                          const ExactCheck &check) {
  for (auto [number, draw] : llvm::enumerate(check.getDraws())) {
    auto output = function.run(draw.inputs);
    if (!output)
      return -1;
    if (check.compare(number, {ArrayRef<float>(*output)}))
      return static_cast<int>(number) + 1;
  }
  return 0;
}

/// As kas-run: values of any size, relative to the largest result.
static Expected<bool> exceedsTolerance(const GuardedFunction &function,
                                       const ExactProblem &problem,
                                       double tolerance, uint64_t seed) {
  std::vector<TensorValues> inputs;
  for (const ExactProblem::Input &input : problem.inputs) {
    RandomStream stream(seed, input.name);
    int64_t size = 1;
    for (int64_t extent : input.shape)
      size *= extent;
    TensorValues &values = inputs.emplace_back(size);
    for (auto [index, value] : llvm::enumerate(values))
      value = stream.normal(index);
  }
  std::vector<TensorValues> expected(1);
  if (llvm::Error error = problem.evaluate(inputs, expected))
    return error;
  auto output = function.run(inputs);
  if (!output)
    return true;
  auto toTensor = [](ArrayRef<float> values) {
    Tensor tensor({static_cast<int64_t>(values.size())});
    llvm::copy(values, tensor.data());
    return tensor;
  };
  double error = maxRelativeError(toTensor(*output), toTensor(expected[0]));
  return !(error <= tolerance);
}

static std::unique_ptr<CompiledModule>
compileMutant(OperatorOp op, MutantNumber number, MutantResult &result) {
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  const Lowering &lowering = number.getLowering();
  PassManager manager(op.getContext());
  lowering.addPasses(manager);
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  pipeline.registerTiles = lowering.registerTiles;
  buildCPUPipeline(manager, pipeline);
  std::optional<std::string> description;
  manager.addInstrumentation(
      std::make_unique<Mutate>(number.getKind(), number.seed, description));
  if (failed(manager.run(*module)) || !description)
    return nullptr;
  result.description = *description;
  JITOptions jit;
  jit.optLevel = 1;
  jit.symbols = getGuardedAllocators(Flush::End);
  auto compiled = CompiledModule::compile(*module, jit);
  if (compiled)
    return std::move(*compiled);
  llvm::consumeError(compiled.takeError());
  return nullptr;
}

static Expected<MutantResult> testMutant(MutantNumber number) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  registerGPUPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<KasDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  RandomOperatorOptions options;
  if (number.seed / numMutationKinds / numLowerings % 2) {
    options.maxPoints = 30000;
    options.maxExtent = 40;
  }
  RandomOperator made = makeRandomOperator(builder, "f", number.seed, options);
  auto op = specialize(builder, made.op, made.binding, "concrete",
                       [&] { return made.op->emitError(); });
  if (failed(op))
    return createStringError("the operator has no concrete form");

  MutantResult result;
  std::unique_ptr<CompiledModule> compiled = compileMutant(*op, number, result);
  if (!compiled)
    return result;
  ExactProblem problem = getExactProblem(*op);
  GuardedFunction function(
      llvm::cantFail(compiled->lookup(operatorFunctionName)), problem);
  const Lowering &lowering = number.getLowering();
  auto check = ExactCheck::create(
      problem, {.format = lowering.format, .seed = number.seed});
  // Many more draws, to tell wrong kernels from such that are the same.
  auto truth = ExactCheck::create(
      problem, {.format = lowering.format, .seed = ~number.seed, .draws = 64});
  if (!check)
    return check.takeError();
  if (!truth)
    return truth.takeError();
  int found = findDifference(function, *check);
  int differs = found == 0 ? findDifference(function, *truth) : found;
  if (found < 0 || differs < 0) {
    result.outcome = Outcome::Fault;
    return result;
  }
  auto tolerance =
      exceedsTolerance(function, problem, lowering.tolerance, number.seed);
  if (!tolerance)
    return tolerance.takeError();
  result.outcome = differs ? Outcome::Wrong : Outcome::Same;
  result.exact = found > 0;
  result.oneDraw = found == 1;
  result.tolerance = *tolerance;
  return result;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// Forked, since a wrong kernel may destroy anything.
static MutantResult testForked(MutantNumber number) {
  auto answer = runForked([&]() -> Expected<std::string> {
    auto result = testMutant(number);
    if (!result)
      return result.takeError();
    std::string text;
    for (int part : {static_cast<int>(result->outcome), int(result->exact),
                     int(result->oneDraw), int(result->tolerance)})
      text += static_cast<char>('0' + part);
    return text + result->description;
  });
  MutantResult result;
  if (!answer) {
    result.outcome = Outcome::Fault;
    result.description = llvm::toString(answer.takeError());
    return result;
  }
  result.outcome = static_cast<Outcome>((*answer)[0] - '0');
  result.exact = (*answer)[1] == '1';
  result.oneDraw = (*answer)[2] == '1';
  result.tolerance = (*answer)[3] == '1';
  result.description = answer->substr(4);
  return result;
}

namespace {
struct Counts {
  unsigned wrong = 0, exact = 0, oneDraw = 0, tolerance = 0;

  void add(const MutantResult &result) {
    ++wrong;
    exact += result.exact;
    oneDraw += result.oneDraw;
    tolerance += result.tolerance;
  }

  void print(StringRef name) const {
    llvm::outs() << llvm::format("%-16s", name.str().c_str()) << wrong
                 << " wrong, exact finds " << exact << ", one draw " << oneDraw
                 << ", tolerance " << tolerance << "\n";
  }
};
} // namespace

int main(int argc, char **argv) {
  llvm::cl::opt<unsigned> count("count", llvm::cl::desc("Of wrong kernels"),
                                llvm::cl::init(100));
  llvm::cl::opt<uint64_t> seed("seed", llvm::cl::desc("The first seed"),
                               llvm::cl::init(0));
  llvm::cl::opt<bool> verbose("verbose", llvm::cl::desc("Print each mutant"));
  llvm::cl::ParseCommandLineOptions(argc, argv, "mutated kas kernels\n");
  Counts all, kinds[numMutationKinds], perLowering[numLowerings];
  unsigned numMutants = 0, numSame = 0, numFaults = 0, numNone = 0;
  // Most mutants are wrong; where hardly any is, none was made.
  uint64_t maxMutants = 1000 + 20 * uint64_t(count);
  for (; all.wrong < count; ++numMutants) {
    if (numMutants == maxMutants) {
      llvm::errs() << "error: expected " << count << " wrong kernels among "
                   << maxMutants << " mutants, got " << all.wrong << "\n";
      return 1;
    }
    MutantNumber number{seed + numMutants};
    MutantResult result = testForked(number);
    numSame += result.outcome == Outcome::Same;
    numFaults += result.outcome == Outcome::Fault;
    numNone += result.outcome == Outcome::None;
    if (result.outcome == Outcome::Wrong) {
      all.add(result);
      kinds[static_cast<unsigned>(number.getKind())].add(result);
      perLowering[&number.getLowering() - lowerings].add(result);
    }
    bool isMissed = result.outcome == Outcome::Wrong &&
                    (!result.exact || !result.tolerance);
    if (verbose || isMissed)
      llvm::outs() << "seed " << number.seed << ", "
                   << number.getLowering().name << ", "
                   << toString(number.getKind()) << ", " << result.description
                   << ": outcome " << static_cast<int>(result.outcome)
                   << ", exact " << result.exact << ", one draw "
                   << result.oneDraw << ", tolerance " << result.tolerance
                   << "\n";
  }
  for (unsigned i = 0; i < numMutationKinds; ++i)
    kinds[i].print(toString(static_cast<MutationKind>(i)));
  for (unsigned i = 0; i < numLowerings; ++i)
    perLowering[i].print(lowerings[i].name);
  llvm::outs() << numMutants << " mutants from seed " << seed << ": " << numSame
               << " the same, " << numFaults << " with faults, " << numNone
               << " without a place\n";
  all.print("all:");
  return all.exact == all.wrong ? 0 : 1;
}
