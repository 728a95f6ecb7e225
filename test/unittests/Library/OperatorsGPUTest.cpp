//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named operators as kernels for GPUs, run on the CPU with blocks and
// threads as loops and on Vulkan devices, against their formulas.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "VulkanEnvironment.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Library/Operators.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include <random>

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::library;
using namespace kas::reference;
using namespace mlir;

[[maybe_unused]] static auto *const environment =
    testing::AddGlobalTestEnvironment(new test::VulkanEnvironment);

/// In f32, with sums of up to a few hundred terms in any order.
static constexpr double tolerance = 1e-5;

static std::vector<float>
evaluateKernels(OperatorOp op, const TestTensor &data,
                const std::vector<TestTensor> &weights,
                const GPUFrontOptions &front,
                GPUScheduleAttr schedule = nullptr) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  op.getContext()->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  if (schedule)
    module->walk([&](ApplyOp apply) {
      apply->setAttr(KasGPUDialect::scheduleName, schedule);
    });
  PassManager passes(op.getContext());
  buildGPUFrontHalf(passes, front);
  passes.addPass(createKasGPUToCPULoopsPass());
  CPUPipelineOptions serial;
  serial.threads = 1;
  buildCPUPipeline(passes, serial);
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << "the passes failed";
    return {};
  }
  auto compiled = CompiledModule::compile(*module);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return {};
  }
  auto function = (*compiled)->lookup(operatorFunctionName);
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return {};
  }
  std::vector<float> result(*getNumElements(getShapes(op).output),
                            std::numeric_limits<float>::quiet_NaN());
  std::vector<void *> pointers{const_cast<float *>(data.values.data())};
  for (const TestTensor &weight : weights)
    pointers.push_back(const_cast<float *>(weight.values.data()));
  pointers.push_back(result.data());
  llvm::cantFail(execution::call(*function, pointers.data()));
  return result;
}

using OperatorKernels = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorKernels, ForNVIDIA) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateKernels(op, data, weights, {.device = "sm_90"});
      },
      tolerance);
}

TEST_P(OperatorKernels, ForVulkan) {
  checkAgainstFormula(
      GetParam(),
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        return evaluateKernels(op, data, weights, {.device = "vulkan"});
      },
      tolerance);
}

namespace {
struct TensorCorePrecision {
  StringRef name;
  double tolerance;
};
} // namespace

static constexpr TensorCorePrecision precisions[] = {
    {"f16", 1e-2}, {"tf32", 1e-3}, {"bf16", 2e-2}};

// The lanes of warps one by one: fragments, copies and the ring of buffers.
TEST_P(OperatorKernels, OnTensorCores) {
  bool isSlow = getenv("KAS_SLOW_TESTS");
  formulas::Formula formula = GetParam();
  if (!isSlow)
    formula.bindings.resize(1);
  size_t position = 0;
  for (const formulas::Formula &other : formulas::getFormulas())
    if (StringRef(other.name) < formula.name)
      ++position;
  for (auto [i, precision] : llvm::enumerate(precisions)) {
    if (!isSlow && position % std::size(precisions) != i)
      continue;
    SCOPED_TRACE(precision.name.str());
    checkAgainstFormula(
        formula,
        [&,
         name = precision.name.str()](OperatorOp op, const TestTensor &data,
                                      const std::vector<TestTensor> &weights) {
          return evaluateKernels(op, data, weights,
                                 {.device = "sm_90",
                                  .strategy = GPUStrategyChoice::TensorCore,
                                  .precision = *symbolizeGPUPrecision(name)});
        },
        precision.tolerance);
  }
}

/// Makes all tensors of functions ones of `type`.
static void setElementType(ModuleOp module, Type type) {
  auto change = [&](Value value) {
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
      value.setType(tensor.clone(type));
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    llvm::for_each(function.getArguments(), change);
    function.walk(
        [&](Operation *op) { llvm::for_each(op->getResults(), change); });
    Operation *end = function.getBody().front().getTerminator();
    function.setFunctionType(FunctionType::get(
        module.getContext(), function.getBody().getArgumentTypes(),
        end->getOperandTypes()));
  }
}

/// As `evaluateKernels`, with buffers of 16 bits.
static std::vector<float>
evaluateWith16Bits(OperatorOp op, const TestTensor &data,
                   const std::vector<TestTensor> &weights, bool isBF16,
                   StringRef device = "sm_90",
                   GPUStrategyChoice strategy = GPUStrategyChoice::TensorCore,
                   GPUScheduleAttr schedule = nullptr) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  MLIRContext *context = op.getContext();
  context->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  const llvm::fltSemantics &semantics =
      isBF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
  Type type = isBF16 ? Type(BFloat16Type::get(context))
                     : Type(Float16Type::get(context));
  setElementType(*module, type);
  if (schedule)
    module->walk([&](ApplyOp apply) {
      apply->setAttr(KasGPUDialect::scheduleName, schedule);
    });
  PassManager passes(context);
  buildGPUFrontHalf(
      passes, {.device = device.str(),
               .strategy = strategy,
               .precision = isBF16 ? GPUPrecision::BF16 : GPUPrecision::F16});
  EXPECT_TRUE(succeeded(passes.run(*module)));
  unsigned numProducts = 0;
  module->walk([&](WarpgroupMmaOp) { ++numProducts; });
  EXPECT_EQ(numProducts > 0, strategy == GPUStrategyChoice::Warpgroup);
  PassManager onCPU(context);
  onCPU.addPass(createKasGPUToCPULoopsPass());
  CPUPipelineOptions serial;
  serial.threads = 1;
  buildCPUPipeline(onCPU, serial);
  EXPECT_TRUE(succeeded(onCPU.run(*module)));
  auto compiled = llvm::cantFail(CompiledModule::compile(*module));
  auto function = compiled->lookup(operatorFunctionName);
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return {};
  }
  std::vector<std::vector<uint16_t>> buffers;
  auto add = [&](ArrayRef<float> values) {
    for (std::vector<uint16_t> &buffer = buffers.emplace_back();
         float value : values) {
      llvm::APFloat number(value);
      bool losesInfo;
      number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      buffer.push_back(number.bitcastToAPInt().getZExtValue());
    }
  };
  add(data.values);
  for (const TestTensor &weight : weights)
    add(weight.values);
  buffers.emplace_back(*getNumElements(getShapes(op).output), 0xffff);
  std::vector<void *> pointers;
  for (std::vector<uint16_t> &buffer : buffers)
    pointers.push_back(buffer.data());
  llvm::cantFail(execution::call(*function, pointers.data()));
  std::vector<float> result;
  for (uint16_t bits : buffers.back()) {
    llvm::APFloat number(semantics, llvm::APInt(16, bits));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    result.push_back(number.convertToFloat());
  }
  return result;
}

static formulas::Formula getFormula(StringRef name, formulas::Sizes sizes) {
  for (formulas::Formula &formula : formulas::getFormulas())
    if (formula.name == name) {
      formula.bindings = {sizes};
      return formula;
    }
  ADD_FAILURE() << name.str();
  return {};
}

// 16 bytes of a tensor go to workgroup memory past the registers, at edges too.
TEST(OperatorKernel, WithBuffersOf16Bits) {
  for (const formulas::Formula &formula :
       {getFormula("matmul", {.N = 72, .M = 40, .K = 80}),
        getFormula("linear", {.N = 24, .Cin = 40, .Cout = 48}),
        getFormula("conv1x1", {.N = 2, .Cin = 24, .Cout = 20, .H = 5, .W = 8}),
        getFormula("conv2d",
                   {.N = 1, .Cin = 32, .Cout = 20, .H = 7, .W = 9, .k = 3})})
    for (bool isBF16 : {false, true}) {
      SCOPED_TRACE(formula.name + (isBF16 ? " bf16" : " f16"));
      checkAgainstFormula(
          formula,
          [&](OperatorOp op, const TestTensor &data,
              const std::vector<TestTensor> &weights) {
            return evaluateWith16Bits(op, data, weights, isBF16);
          },
          isBF16 ? 2e-2 : 1e-2);
    }
}

// Products of warpgroups, with boxes that reach beyond tensors, several blocks
// of rows and columns, and rows, columns or steps as neighbours in memory.
TEST(OperatorKernel, OfWarpgroups) {
  for (const formulas::Formula &formula :
       {getFormula("matmul", {.N = 136, .M = 72, .K = 200}),
        getFormula("linear", {.N = 24, .Cin = 72, .Cout = 80}),
        getFormula("conv1x1",
                   {.N = 2, .Cin = 24, .Cout = 20, .H = 4, .W = 24})})
    for (bool isBF16 : {false, true}) {
      SCOPED_TRACE(formula.name + (isBF16 ? " bf16" : " f16"));
      checkAgainstFormula(
          formula,
          [&](OperatorOp op, const TestTensor &data,
              const std::vector<TestTensor> &weights) {
            return evaluateWith16Bits(op, data, weights, isBF16, "sm_90a",
                                      GPUStrategyChoice::Warpgroup);
          },
          isBF16 ? 2e-2 : 1e-2);
    }
}

/// A schedule for warpgroups that a processor has room for.
static GPUScheduleAttr getRandomSchedule(MLIRContext *context,
                                         std::mt19937 &generator, bool isBF16) {
  context->loadDialect<KasGPUDialect>();
  auto pick = [&](int64_t count) -> int64_t {
    return static_cast<int64_t>(generator() % count);
  };
  for (;;) {
    int64_t rows = 64 * (1 + pick(2)), columns = 64 * (1 + pick(4));
    int64_t down = 1 + pick(2), across = 1 + pick(2);
    if (rows * columns > 16384 || down * rows > 256 || across * columns > 256)
      continue;
    auto schedule = GPUScheduleAttr::get(
        context, GPUStrategy::Warpgroup, 128 * down * across,
        DenseI64ArrayAttr::get(context, {rows, columns}),
        DenseI64ArrayAttr::get(context, {down * rows, across * columns}),
        /*depth=*/64, /*padding=*/0, /*stages=*/2 + pick(4),
        isBF16 ? GPUPrecision::BF16 : GPUPrecision::F16);
    if (schedule.getSharedBytes() <= 227 << 10)
      return schedule;
  }
}

// Any sizes that the copy engine can step over, and any schedules.
TEST(OperatorKernel, OfWarpgroupsAtRandom) {
  unsigned count = getenv("KAS_SLOW_TESTS") ? 300 : 3;
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 generator(seed);
    auto size = [&](int64_t most) -> int64_t {
      return 8 * (1 + static_cast<int64_t>(generator() % (most / 8)));
    };
    formulas::Formula formula =
        seed % 3 == 0
            ? getFormula("matmul",
                         {.N = size(320), .M = size(200), .K = size(400)})
        : seed % 3 == 1
            ? getFormula("linear",
                         {.N = size(64), .Cin = size(300), .Cout = size(300)})
            : getFormula("conv1x1", {.N = 1 + size(24) / 8,
                                     .Cin = size(200),
                                     .Cout = size(100),
                                     .H = size(24) / 8,
                                     .W = size(40)});
    bool isBF16 = generator() % 2;
    SCOPED_TRACE(formula.name + " seed " + std::to_string(seed));
    checkAgainstFormula(
        formula,
        [&](OperatorOp op, const TestTensor &data,
            const std::vector<TestTensor> &weights) {
          return evaluateWith16Bits(
              op, data, weights, isBF16, "sm_90a", GPUStrategyChoice::Warpgroup,
              getRandomSchedule(op.getContext(), generator, isBF16));
        },
        isBF16 ? 2e-2 : 1e-2);
  }
}

// A ring of eight buffers takes more memory than a kernel can declare.
TEST(OperatorKernel, WithMemoryThatALaunchAsksFor) {
  auto formulas = formulas::getFormulas();
  auto matmul = llvm::find_if(formulas, [](const formulas::Formula &formula) {
    return formula.name == "matmul";
  });
  ASSERT_NE(matmul, formulas.end());
  matmul->bindings.resize(1);
  checkAgainstFormula(
      *matmul,
      [](OperatorOp op, const TestTensor &data,
         const std::vector<TestTensor> &weights) {
        MLIRContext *context = op.getContext();
        context->loadDialect<KasGPUDialect>();
        auto schedule = GPUScheduleAttr::get(
            context, GPUStrategy::TensorCore, 64,
            DenseI64ArrayAttr::get(context, {32, 64}),
            DenseI64ArrayAttr::get(context, {64, 64}), /*depth=*/32,
            /*padding=*/8, /*stages=*/8, GPUPrecision::F16);
        EXPECT_GT(schedule.getSharedBytes(), declaredBytes);
        return evaluateKernels(op, data, weights, {.device = "sm_90"},
                               schedule);
      },
      1e-2);
}

static OwningOpRef<ModuleOp> createModule(OperatorOp op) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  op.getContext()->appendDialectRegistry(registry);
  return createOperatorModule(op);
}

// On Mesa's lavapipe where there is no other device, with the validation layer.
static void checkOnVulkan(const formulas::Formula &formula, StringRef elements,
                          double largest) {
  checkAgainstFormula(
      formula,
      [&](OperatorOp op, const TestTensor &data,
          const std::vector<TestTensor> &weights) -> std::vector<float> {
        OwningOpRef<ModuleOp> module = createModule(op);
        SPIRVPipelineOptions options;
        options.front.elements = *symbolizeGPUElements(elements);
        auto program = compileForSPIRV(*module, options);
        if (!program) {
          ADD_FAILURE() << llvm::toString(program.takeError());
          return {};
        }
        EXPECT_EQ(test::validateSPIRV(*program), "");
        SmallVector<ArrayRef<float>> arguments{data.values};
        for (const TestTensor &weight : weights)
          arguments.push_back(weight.values);
        auto results = test::runOnVulkan(*program, 0, arguments);
        if (results)
          return results->front();
        ADD_FAILURE() << llvm::toString(results.takeError());
        return {};
      },
      largest);
}

TEST_P(OperatorKernels, OnVulkanDevices) {
  checkOnVulkan(GetParam(), "f32", tolerance);
}

TEST_P(OperatorKernels, OnVulkanDevicesInHalves) {
  checkOnVulkan(GetParam(), "f16", 1e-2);
}

static void checkAssembly(ModuleOp module, const NVVMPipelineOptions &options) {
  SCOPED_TRACE(options.chip + " " +
               stringifyEnum(options.front.precision).str());
  auto program = compileForNVVM(module, options);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  auto assembly = test::assemblePTX(*program, options.chip);
  ASSERT_TRUE(bool(assembly)) << llvm::toString(assembly.takeError());
  if (!*assembly)
    GTEST_SKIP() << "there is no ptxas";
  EXPECT_EQ((*assembly)->spilledBytes, 0) << (*assembly)->firstSpilling;
  EXPECT_EQ((*assembly)->stackBytes, 0);
  EXPECT_FALSE((*assembly)->isSerialized);
}

namespace {
/// A chip, and what factors are rounded to.
using AssemblyCase = std::pair<StringRef, StringRef>;
} // namespace

/// A function for each binding of each named operator, or for the first ones:
/// a process of ptxas for each would take longer than what it does.
static OwningOpRef<ModuleOp> createModuleOfAll(MLIRContext *context,
                                               bool firstBindings) {
  OwningOpRef<ModuleOp> all = ModuleOp::create(UnknownLoc::get(context));
  for (const formulas::Formula &formula : formulas::getFormulas()) {
    OwningOpRef<ModuleOp> named = parseNamedOperator(context, formula.name);
    auto op = named->lookupSymbol<OperatorOp>(formula.name);
    OpBuilder builder = OpBuilder::atBlockEnd(named->getBody());
    for (auto [i, sizes] : llvm::enumerate(formula.bindings)) {
      if (firstBindings && i > 0)
        break;
      std::string name = (formula.name + "_" + Twine(i)).str();
      FailureOr<OperatorOp> concrete =
          specialize(builder, op, getTestBinding(op, sizes), name + "_concrete",
                     [&] { return op.emitError(); });
      if (failed(concrete)) {
        ADD_FAILURE() << name << " cannot be made concrete";
        return nullptr;
      }
      OwningOpRef<ModuleOp> module = createModule(*concrete);
      SymbolTable symbols(*module);
      for (Operation &symbol : llvm::make_early_inc_range(*module->getBody())) {
        std::string suffix = isa<OperatorOp>(symbol) ? "_operator" : "";
        if (failed(symbols.rename(&symbol,
                                  StringAttr::get(context, name + suffix))))
          ADD_FAILURE() << name << " cannot be renamed";
        symbol.moveBefore(all->getBody(), all->getBody()->end());
      }
    }
  }
  return all;
}

using AssembledOperators = testing::TestWithParam<AssemblyCase>;

TEST_P(AssembledOperators, AssembledWithoutSpills) {
  auto [chip, precision] = GetParam();
  bool isRounded = precision != "f32";
  MLIRContext context;
  // Other sizes make other kernels, but not of another kind.
  OwningOpRef<ModuleOp> module =
      createModuleOfAll(&context, isRounded || chip != "sm_90");
  ASSERT_TRUE(module);
  NVVMPipelineOptions options;
  options.chip = chip.str();
  options.front.precision = *symbolizeGPUPrecision(precision);
  if (isRounded)
    options.front.strategy = GPUStrategyChoice::TensorCore;
  checkAssembly(*module, options);
  if (chip != "sm_90a" || (precision != "f16" && precision != "bf16"))
    return;
  options.front.strategy = GPUStrategyChoice::Warpgroup;
  options.front.elements = *symbolizeGPUElements(precision);
  checkAssembly(*module, options);
}

static std::vector<AssemblyCase> getAssemblyCases() {
  std::vector<AssemblyCase> cases;
  for (StringRef chip : {"sm_80", "sm_90", "sm_90a"})
    for (StringRef precision : {"f32", "f16", "tf32", "bf16"})
      if (precision == "f32" || chip == "sm_90" || getenv("KAS_SLOW_TESTS"))
        cases.emplace_back(chip, precision);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Chips, AssembledOperators, testing::ValuesIn(getAssemblyCases()),
    [](const testing::TestParamInfo<AssemblyCase> &info) {
      return (info.param.first + "_" + info.param.second).str();
    });

INSTANTIATE_TEST_SUITE_P(All, OperatorKernels,
                         testing::ValuesIn(formulas::getFormulas()), getName);
