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
/// What kernels of 16 bits are compiled for.
struct Kernels {
  StringRef device;
  GPUStrategyChoice strategy;
  bool isBF16;
};
} // namespace

// Results are stored as vectors: from fragments with and without `stmatrix`,
// exchanged by threads, of one thread; at all edges of small tensors. No two
// threads meet in workgroup memory without a barrier.
TEST(GPUStrategies, KernelsOf16BitsAgreeWithTheReference) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  for (const Kernels &kernels :
       {Kernels{"sm_90", GPUStrategyChoice::TensorCore, false},
        Kernels{"sm_80", GPUStrategyChoice::TensorCore, true},
        Kernels{"sm_90", GPUStrategyChoice::Direct, false},
        Kernels{"sm_90a", GPUStrategyChoice::Auto, true}})
    for (bool isContraction : {false, true}) {
      StringRef name = kernels.isBF16 ? "bf16" : "f16";
      SCOPED_TRACE((kernels.device + " " + name).str());
      const llvm::fltSemantics &type =
          kernels.isBF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
      auto check = [&](Batch &batch) {
        batch.check(
            [&](OpPassManager &manager) {
              buildGPUFrontHalf(manager,
                                {.device = kernels.device.str(),
                                 .strategy = kernels.strategy,
                                 .precision = *symbolizeGPUPrecision(name),
                                 .elements = *symbolizeGPUElements(name)});
              manager.addPass(
                  createKasGPUToCPULoopsPass({/*checkRaces=*/true}));
            },
            {.pipeline = serial,
             .comparison = compareRounded(name, /*elements=*/true),
             .call = [&](CompiledModule::Function function,
                         const Inputs &inputs, const std::vector<float> &) {
               return callRounded(function, inputs, type);
             }});
      };
      if (isContraction)
        forEachBatchOf(makeContractions(1 << 17), getNumOperators(3, 100),
                       check);
      else
        forEachBatch(getNumOperators(20, 500), {}, check);
    }
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
