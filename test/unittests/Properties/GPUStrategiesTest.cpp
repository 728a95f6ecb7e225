//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators through the strategies to GPUs: kernels, run on the CPU and
// on Vulkan devices, agree with the reference; binaries are valid.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "RandomContraction.h"
#include "VulkanEnvironment.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

[[maybe_unused]] static auto *const environment =
    testing::AddGlobalTestEnvironment(new VulkanEnvironment);

namespace {

void checkKernels(const GPUFrontOptions &front, unsigned count,
                  const RandomOperatorOptions &operators = {},
                  const Comparison &comparison = {}) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  forEachBatch(count, operators, [&](Batch &batch) {
    batch.check(
        [&](OpPassManager &manager) {
          buildGPUFrontHalf(manager, front);
          manager.addPass(createKasGPUToCPULoopsPass());
        },
        {.pipeline = serial, .comparison = comparison});
  });
}

GPUFrontOptions onTensorCores(StringRef precision) {
  return {.device = "sm_90",
          .strategy = GPUStrategyChoice::TensorCore,
          .precision = *symbolizeGPUPrecision(precision)};
}

} // namespace

TEST(GPUStrategies, KernelsForNVIDIAAgreeWithTheReference) {
  checkKernels({.device = "sm_90"}, getNumOperators(200, 1000));
}

TEST(GPUStrategies, KernelsForVulkanAgreeWithTheReference) {
  checkKernels({.device = "vulkan"}, getNumOperators(50, 1000));
}

// Kernels with workgroup memory, also where they are not the cheapest.
TEST(GPUStrategies, StagedKernelsAgreeWithTheReference) {
  checkKernels({.device = "vulkan", .strategy = GPUStrategyChoice::Staged},
               getNumOperators(100, 1000));
}

// Enough points for tiles in registers and in workgroup memory.
TEST(GPUStrategies, KernelsOfLargerOperatorsAgreeWithTheReference) {
  RandomOperatorOptions larger;
  larger.maxPoints = 300000;
  larger.maxExtent = 60;
  checkKernels({.device = "sm_90"}, getNumOperators(50, 500), larger);
}

// Lane by lane, with the fragments of matrix instructions.
TEST(GPUStrategies, TensorCoreKernelsAgreeWithTheReference) {
  checkKernels(onTensorCores("f16"), getNumOperators(50, 1000), {},
               compareRounded("f16"));
  checkKernels(onTensorCores("tf32"), getNumOperators(50, 1000), {},
               compareRounded("tf32"));
  checkKernels(onTensorCores("bf16"), getNumOperators(0, 1000), {},
               compareRounded("bf16"));
}

/// On Mesa's lavapipe where there is no other device, with the validation
/// layer.
static void checkOnVulkan(StringRef elements, const Comparison &comparison) {
  forEachBatch(getNumOperators(200, 1000), {}, [&](Batch &batch) {
    SPIRVPipelineOptions options;
    options.front.elements = *symbolizeGPUElements(elements);
    auto program = compileForSPIRV(batch.getModule(), options);
    ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
    EXPECT_EQ(validateSPIRV(*program), "");
    batch.compare(
        [&](unsigned i, const Inputs &inputs) {
          SmallVector<ArrayRef<float>> arguments{inputs.data};
          arguments.append(inputs.weights.begin(), inputs.weights.end());
          auto results = runOnVulkan(*program, i, arguments);
          if (results)
            return results->front();
          ADD_FAILURE() << llvm::toString(results.takeError());
          return std::vector<float>();
        },
        comparison);
  });
}

TEST(GPUStrategies, KernelsOnVulkanDevicesAgreeWithTheReference) {
  checkOnVulkan("f32", {});
}

TEST(GPUStrategies, KernelsOnVulkanDevicesAgreeWithTheReferenceInHalves) {
  checkOnVulkan("f16", compareRounded("f16", /*elements=*/true));
}

namespace {
/// The operator of kernel `FUNCTION_NUMBER`, as text.
std::string describeKernel(ModuleOp module, StringRef kernel) {
  std::string text = kernel.str() + "\n";
  auto function = module.lookupSymbol<func::FuncOp>(kernel.rsplit('_').first);
  if (function)
    function.walk([&](ApplyOp apply) {
      if (OperatorOp op = apply.getOperator())
        text += print(op) + "\n" + print(apply) + "\n";
    });
  return text;
}

void checkAssembly(ModuleOp module, const NVVMPipelineOptions &options) {
  auto program = compileForNVVM(module, options);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  auto assembly = assemblePTX(*program, options.chip);
  ASSERT_TRUE(bool(assembly)) << llvm::toString(assembly.takeError());
  if (!*assembly)
    GTEST_SKIP() << "there is no ptxas";
  EXPECT_EQ((*assembly)->spilledBytes, 0)
      << describeKernel(module, (*assembly)->firstSpilling);
  EXPECT_EQ((*assembly)->stackBytes, 0);
  EXPECT_FALSE((*assembly)->isSerialized);
}
} // namespace

TEST(GPUStrategies, TensorCoreKernelsAreAssembledWithoutSpills) {
  for (StringRef chip : {"sm_80", "sm_90", "sm_90a"})
    for (StringRef precision : {"f16", "bf16", "tf32"}) {
      unsigned quick = chip == "sm_90" && precision != "bf16" ? 50 : 0;
      SCOPED_TRACE((chip + " " + precision).str());
      forEachBatch(getNumOperators(quick, 1000), {}, [&](Batch &batch) {
        NVVMPipelineOptions options;
        options.front = onTensorCores(precision);
        options.front.device.clear();
        options.chip = chip.str();
        checkAssembly(batch.getModule(), options);
      });
    }
}

// With products of warpgroups where operators have the form for them.
TEST(GPUStrategies, WarpgroupKernelsAreAssembledWithoutSpills) {
  for (StringRef precision : {"f16", "bf16"})
    forEachBatch(getNumOperators(precision == "f16" ? 20 : 0, 1000), {},
                 [&](Batch &batch) {
                   NVVMPipelineOptions options;
                   options.chip = "sm_90a";
                   options.front.strategy = GPUStrategyChoice::Warpgroup;
                   options.front.precision = *symbolizeGPUPrecision(precision);
                   options.front.elements = *symbolizeGPUElements(precision);
                   checkAssembly(batch.getModule(), options);
                 });
}

//===----------------------------------------------------------------------===//
// Contractions on warpgroups
//===----------------------------------------------------------------------===//

namespace {

MakeOperatorFn makeContractions(int64_t maxProducts) {
  return [=](OpBuilder &builder, StringRef name, uint64_t seed) {
    return makeRandomContraction(builder, name, seed, maxProducts);
  };
}

/// Default schedules on sm_90a, of warpgroups where they can be.
GPUFrontOptions onWarpgroups(StringRef precision) {
  return {.device = "sm_90a",
          .strategy = GPUStrategyChoice::Warpgroup,
          .precision = *symbolizeGPUPrecision(precision),
          .elements = *symbolizeGPUElements(precision)};
}

std::vector<uint16_t> round(ArrayRef<float> values,
                            const llvm::fltSemantics &type) {
  std::vector<uint16_t> bits;
  for (float value : values) {
    llvm::APFloat number(value);
    bool losesInfo;
    number.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    bits.push_back(
        static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue()));
  }
  return bits;
}

std::vector<float> widen(ArrayRef<uint16_t> bits,
                         const llvm::fltSemantics &type) {
  std::vector<float> values;
  for (uint16_t one : bits) {
    llvm::APFloat number(type, llvm::APInt(16, one));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    values.push_back(number.convertToFloat());
  }
  return values;
}

/// Calls a function on tensors of 16 bits.
std::vector<float> callRounded(CompiledModule::Function function,
                               const Inputs &inputs,
                               const llvm::fltSemantics &type) {
  std::vector<std::vector<uint16_t>> buffers = {round(inputs.data, type)};
  for (const std::vector<float> &weight : inputs.weights)
    buffers.push_back(round(weight, type));
  buffers.emplace_back(*getNumElements(inputs.shapes.output), 0xffff);
  std::vector<void *> pointers;
  for (std::vector<uint16_t> &buffer : buffers)
    pointers.push_back(buffer.data());
  llvm::cantFail(execution::call(function, pointers.data()));
  return widen(buffers.back(), type);
}

/// Calls a function on tensors of 32 bits.
std::vector<float> callPlain(CompiledModule::Function function,
                             const Inputs &inputs) {
  std::vector<float> output(*getNumElements(inputs.shapes.output), NAN);
  std::vector<void *> pointers = {const_cast<float *>(inputs.data.data())};
  for (const std::vector<float> &weight : inputs.weights)
    pointers.push_back(const_cast<float *>(weight.data()));
  pointers.push_back(output.data());
  llvm::cantFail(execution::call(function, pointers.data()));
  return output;
}

unsigned countWarpgroupKernels(ModuleOp module) {
  unsigned count = 0;
  module->walk([&](gpu::GPUFuncOp kernel) {
    count +=
        kernel->walk([](WarpgroupMmaOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
  });
  return count;
}

} // namespace

// Any order of dimensions, batches, several blocks of steps and edges.
TEST(GPUStrategies, ContractionsOnWarpgroupsAgreeWithTheReference) {
  for (bool isBF16 : {false, true}) {
    const llvm::fltSemantics &type =
        isBF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
    unsigned count = getNumOperators(5, 300), numKernels = 0;
    CPUPipelineOptions serial;
    serial.threads = 1;
    auto addFrontHalf = [&](OpPassManager &manager) {
      buildGPUFrontHalf(manager, onWarpgroups(isBF16 ? "bf16" : "f16"));
    };
    forEachBatchOf(makeContractions(1 << 18), count, [&](Batch &batch) {
      OwningOpRef<ModuleOp> kernels = batch.run(addFrontHalf);
      ASSERT_TRUE(kernels);
      numKernels += countWarpgroupKernels(*kernels);
      batch.check(
          [&](OpPassManager &manager) {
            addFrontHalf(manager);
            manager.addPass(createKasGPUToCPULoopsPass());
          },
          {.pipeline = serial,
           .comparison =
               compareRounded(isBF16 ? "bf16" : "f16", /*elements=*/true),
           .call = [&](CompiledModule::Function function, const Inputs &inputs,
                       const std::vector<float> &) {
             return callRounded(function, inputs, type);
           }});
    });
    RecordProperty("kernels", numKernels);
    EXPECT_GE(numKernels, count * 9 / 10);
  }
}

namespace {

/// 1 or -1, as if at random.
float getSign(uint64_t number) {
  return (number * 0x9e3779b97f4a7c15u) >> 40 & 1 ? -1.0f : 1.0f;
}

/// The sign of element `flat` of a result: a product of one of its own, and of
/// one for each dimension.
float getSign(ArrayRef<int64_t> shape, uint64_t flat) {
  float sign = getSign(flat);
  uint64_t rest = flat;
  for (size_t dim = shape.size(); dim-- > 0;) {
    sign *= getSign(1000 * (dim + 1) + rest % shape[dim]);
    rest /= shape[dim];
  }
  return sign;
}

/// Multiplies the result of `function` by signs, which loses nothing: those of
/// all elements in the opposite order of dimensions, and those of dimensions.
void addEpilogue(func::FuncOp function) {
  Operation *end = function.getBody().front().getTerminator();
  Value result = end->getOperand(0);
  auto type = cast<RankedTensorType>(result.getType());
  int64_t rank = type.getRank(), elements = type.getNumElements();
  OpBuilder builder(end);
  Location loc = end->getLoc();
  SmallVector<Value> inputs{result};
  SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank)};
  auto addInput = [&](ArrayRef<int64_t> shape, ArrayRef<float> values,
                      AffineMap map) {
    auto constant = RankedTensorType::get(shape, builder.getF32Type());
    inputs.push_back(arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(constant, values)));
    maps.push_back(map);
  };
  // Element `flat` lies at `place` where the last dimension is the slowest.
  std::vector<float> reversed(elements);
  for (int64_t flat = 0; flat < elements; ++flat) {
    int64_t place = 0, stride = elements, rest = flat;
    for (int64_t size : llvm::reverse(type.getShape())) {
      stride /= size;
      place += rest % size * stride;
      rest /= size;
    }
    reversed[place] = getSign(flat);
  }
  auto dims = llvm::to_vector(llvm::reverse(type.getShape()));
  SmallVector<AffineExpr> order;
  for (int64_t dim = rank; dim-- > 0;)
    order.push_back(builder.getAffineDimExpr(dim));
  addInput(dims, reversed, AffineMap::get(rank, 0, order, loc.getContext()));
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    std::vector<float> signs;
    for (int64_t i = 0; i < size; ++i)
      signs.push_back(getSign(1000 * (dim + 1) + i));
    addInput(size, signs,
             AffineMap::get(rank, 0, builder.getAffineDimExpr(dim)));
  }
  maps.push_back(maps.front());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto signs = linalg::GenericOp::create(
      builder, loc, TypeRange(type), inputs, empty, maps, loops,
      [](OpBuilder &body, Location place, ValueRange values) {
        Value product = values.front();
        for (Value sign : values.drop_front().drop_back())
          product = arith::MulFOp::create(body, place, product, sign);
        linalg::YieldOp::create(body, place, product);
      });
  end->setOperand(0, signs.getResult(0));
}

unsigned countLaunches(ModuleOp module) {
  unsigned count = 0;
  module->walk([&](gpu::LaunchFuncOp) { ++count; });
  return count;
}

/// Gives all functions of a batch an epilogue, which no kernel of its own
/// computes.
void addEpilogues(Batch &batch, const GPUFrontOptions &front) {
  auto addFrontHalf = [&](OpPassManager &manager) {
    buildGPUFrontHalf(manager, front);
  };
  OwningOpRef<ModuleOp> before = batch.run(addFrontHalf);
  for (auto function : batch.getModule().getOps<func::FuncOp>())
    addEpilogue(function);
  OwningOpRef<ModuleOp> after = batch.run(addFrontHalf);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(countLaunches(*before), countLaunches(*after));
}

/// What kernels of 16 bits are compiled for.
struct Kernels {
  StringRef device;
  GPUStrategyChoice strategy;
  bool isBF16;

  StringRef getType() const { return isBF16 ? "bf16" : "f16"; }
  GPUFrontOptions getFront() const {
    return {.device = device.str(),
            .strategy = strategy,
            .precision = *symbolizeGPUPrecision(getType()),
            .elements = *symbolizeGPUElements(getType())};
  }
};

/// Compares what kernels store with the reference, from where signs are taken
/// back where they have epilogues.
void checkStores(Batch &batch, const Kernels &kernels, bool hasEpilogues) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  const llvm::fltSemantics &type =
      kernels.isBF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
  batch.check(
      [&](OpPassManager &manager) {
        buildGPUFrontHalf(manager, kernels.getFront());
        manager.addPass(createKasGPUToCPULoopsPass({/*checkRaces=*/true}));
      },
      {.pipeline = serial,
       .comparison = compareRounded(kernels.getType(), /*elements=*/true),
       .call = [&](CompiledModule::Function function, const Inputs &inputs,
                   const std::vector<float> &) {
         std::vector<float> values = callRounded(function, inputs, type);
         if (hasEpilogues)
           for (auto [flat, value] : llvm::enumerate(values))
             value *= getSign(inputs.shapes.output, flat);
         return values;
       }});
}

} // namespace

// Results are stored as vectors: from fragments with and without `stmatrix`,
// exchanged by threads, of one thread; at all edges of small tensors; as they
// are and with epilogues. No two threads meet in workgroup memory without a
// barrier.
TEST(GPUStrategies, KernelsOf16BitsAgreeWithTheReference) {
  for (const Kernels &kernels :
       {Kernels{"sm_90", GPUStrategyChoice::TensorCore, false},
        Kernels{"sm_80", GPUStrategyChoice::TensorCore, true},
        Kernels{"sm_90", GPUStrategyChoice::Direct, false},
        Kernels{"sm_90a", GPUStrategyChoice::Auto, true},
        Kernels{"sm_90a", GPUStrategyChoice::Warpgroup, false}})
    for (bool hasEpilogues : {false, true}) {
      SCOPED_TRACE((kernels.device + " " + kernels.getType()).str());
      auto check = [&](Batch &batch) {
        if (hasEpilogues)
          addEpilogues(batch, kernels.getFront());
        checkStores(batch, kernels, hasEpilogues);
      };
      forEachBatchOf(makeContractions(1 << 17), getNumOperators(3, 100), check);
      // Few operators suit warpgroups.
      if (kernels.strategy != GPUStrategyChoice::Warpgroup)
        forEachBatch(getNumOperators(hasEpilogues ? 5 : 20, 500), {}, check);
    }
}

// The same where results have 32 bits: pairs of a fragment, vectors of a tile.
TEST(GPUStrategies, EpiloguesOf32BitsAgreeWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  for (StringRef name : {"none", "tf32", "vulkan"}) {
    GPUFrontOptions front{.device = name == "vulkan" ? "vulkan" : "sm_90"};
    if (name == "tf32")
      front = onTensorCores(name);
    auto check = [&](Batch &batch) {
      addEpilogues(batch, front);
      batch.check(
          [&](OpPassManager &manager) {
            buildGPUFrontHalf(manager, front);
            manager.addPass(createKasGPUToCPULoopsPass({/*checkRaces=*/true}));
          },
          {.pipeline = serial,
           .comparison = name == "tf32" ? compareRounded(name) : Comparison(),
           .call = [&](CompiledModule::Function function, const Inputs &inputs,
                       const std::vector<float> &) {
             std::vector<float> values = callPlain(function, inputs);
             for (auto [flat, value] : llvm::enumerate(values))
               value *= getSign(inputs.shapes.output, flat);
             return values;
           }});
    };
    forEachBatchOf(makeContractions(1 << 17), getNumOperators(2, 100), check);
    forEachBatch(getNumOperators(5, 500), {}, check);
  }
}

// What epilogues read lies after the last wait of warpgroups, or ptxas would
// make their products wait for each other.
TEST(GPUStrategies, EpiloguesAreAssembledWithoutSpills) {
  for (const Kernels &kernels :
       {Kernels{"sm_90a", GPUStrategyChoice::Warpgroup, false},
        Kernels{"sm_80", GPUStrategyChoice::TensorCore, true}})
    forEachBatchOf(makeContractions(1 << 20), getNumOperators(5, 200),
                   [&](Batch &batch) {
                     NVVMPipelineOptions options;
                     options.chip = kernels.device.str();
                     options.front = kernels.getFront();
                     addEpilogues(batch, options.front);
                     checkAssembly(batch.getModule(), options);
                   });
}

TEST(GPUStrategies, ContractionsOnWarpgroupsAreAssembledWithoutSpills) {
  for (StringRef precision : {"f16", "bf16"}) {
    unsigned count = getNumOperators(precision == "f16" ? 10 : 0, 1000);
    unsigned numKernels = 0;
    forEachBatchOf(makeContractions(int64_t(1) << 40), count,
                   [&](Batch &batch) {
                     NVVMPipelineOptions options;
                     options.chip = "sm_90a";
                     options.front = onWarpgroups(precision);
                     OwningOpRef<ModuleOp> kernels =
                         batch.run([&](OpPassManager &manager) {
                           buildGPUFrontHalf(manager, options.front);
                         });
                     ASSERT_TRUE(kernels);
                     numKernels += countWarpgroupKernels(*kernels);
                     checkAssembly(batch.getModule(), options);
                   });
    RecordProperty(("kernels_" + precision).str(), numKernels);
    EXPECT_GE(numKernels, count * 9 / 10);
  }
}

TEST(GPUStrategies, KernelsForNVIDIAAreAssembledWithoutSpills) {
  for (StringRef chip : {"sm_80", "sm_90", "sm_90a"}) {
    unsigned quick = chip == "sm_90" ? 200 : 50;
    forEachBatch(getNumOperators(quick, 1000), {}, [&](Batch &batch) {
      NVVMPipelineOptions options;
      options.chip = chip.str();
      checkAssembly(batch.getModule(), options);
    });
  }
}
