//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the pipelines for GPUs that all targets share: schedules,
// kernels, buffers, and the textual options (docs/internals/gpu.md).
//
// Kernels are formed on tensors, where views and fusion are easy, and emitted
// with their final index arithmetic; bufferization sees launches only.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Pipelines/GPU/NVVM.h"
#include "kas/Pipelines/GPU/SPIRV.h"
#include "kas/Pipelines/Registration.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Index arithmetic repeats itself, and much of it does not change in loops.
static void addKernelCleanup(OpPassManager &manager) {
  OpPassManager &modules = manager.nest<gpu::GPUModuleOp>();
  // First: polynomials share constants and subexpressions with index
  // arithmetic.
  modules.addPass(createKasGPUExpandMathPass());
  OpPassManager &kernels = modules.nest<gpu::GPUFuncOp>();
  kernels.addPass(createCanonicalizerPass());
  // Before hoisting: equal operations are hoisted once. After it: those that
  // met outside of the loop.
  kernels.addPass(createCSEPass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createCSEPass());
}

/// Of a pass that asks which kernels or libraries compute a layer.
template <typename PassOptions>
static PassOptions getChoice(const GPUFrontOptions &options) {
  PassOptions result;
  result.device = options.device;
  result.strategy = options.strategy;
  result.precision = options.precision;
  result.libraries = options.libraries;
  return result;
}

void kas::buildGPUKernelFormation(OpPassManager &manager,
                                  const GPUFrontOptions &options) {
  // Each pass reports what no kernel computes; without a rank, upstream's
  // patterns would crash before that.
  KasCheckOperationsPassOptions check;
  check.onlyRanks = true;
  manager.addPass(createKasCheckOperationsPass(check));
  // Concrete operators, then their stages, each of which becomes a kernel.
  manager.addPass(createKasSpecializePass());
  KasRFactorPassOptions stages;
  stages.traffic = schedule::usualTraffic;
  stages.verifyLowering = options.verifyLowering;
  manager.addPass(createKasRFactorPass(stages));
  // Folds constants; what nothing reads needs no kernel.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createKasGPUFormKernelsPass());
  KasGPUSetElementsPassOptions elements;
  elements.elements = options.elements;
  // After fusion, so that what is fused is not rounded in between.
  manager.addNestedPass<func::FuncOp>(createKasGPUSetElementsPass(elements));
  auto layout = getChoice<KasGPUChannelsLastPassOptions>(options);
  layout.layout = options.layout;
  manager.addPass(createKasGPUChannelsLastPass(layout));
  // Before schedules are chosen, which depend on how weights are read.
  manager.addPass(createKasGPUTransposeWeightsPass(
      getChoice<KasGPUTransposeWeightsPassOptions>(options)));
}

void kas::buildGPUFrontHalf(OpPassManager &manager,
                            const GPUFrontOptions &options) {
  buildGPUKernelFormation(manager, options);
  auto schedule = getChoice<KasGPUSchedulePassOptions>(options);
  schedule.maxThreads = options.maxThreads;
  schedule.sharedBytes = options.sharedBytes;
  manager.addPass(createKasGPUSchedulePass(schedule));
  // Schedules say which factors are rounded.
  manager.addPass(createKasGPURoundWeightsPass());
  manager.addPass(createKasGPUSchedulePass(schedule));
  manager.addPass(createKasGPUOutlinePass());
  // Kernels compute what operators did.
  manager.addPass(createKasEraseOperatorsPass());
  addKernelCleanup(manager);
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalizerPass());
  // Launches have allocated their results; those that a function returns become
  // its arguments.
  manager.addPass(createKasBufferizePass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // After canonicalization, as buffers that are left are all needed.
  manager.addNestedPass<func::FuncOp>(createKasGPUPlanBuffersPass());
}

namespace {
/// The text form of GPUFrontOptions.
/// One set of options for three pipelines, each of which adds its own.
template <typename Options>
struct FrontTextOptions : PassPipelineOptions<Options> {
  using Base = PassPipelineOptions<Options>;
  typename Base::template Option<std::string> device{
      *this, "device",
      llvm::cl::desc(
          "The device that schedules are chosen for: sm_80, sm_90, ..., "
          "vulkan or vulkan-cpu; by default that of the module or "
          "the pipeline")};
  typename Base::template Option<int64_t> maxThreads{
      *this, "max-threads",
      llvm::cl::desc("Most threads of a block; 0: those of the device"),
      llvm::cl::init(0)};
  typename Base::template Option<int64_t> sharedBytes{
      *this, "shared-bytes",
      llvm::cl::desc("Most bytes of workgroup memory; 0: those of the device"),
      llvm::cl::init(0)};

  typename Base::template Option<GPUElements> elements{
      *this, "elements", llvm::cl::desc("Storage type of tensors of f32"),
      llvm::cl::init(GPUFrontOptions().elements), getElementsValues()};
  typename Base::template Option<GPUStrategyChoice> strategy{
      *this, "strategy",
      llvm::cl::desc("The strategy of operators that can be computed so"),
      llvm::cl::init(GPUFrontOptions().strategy), getStrategyValues()};
  typename Base::template Option<GPUPrecision> precision{
      *this, "precision",
      llvm::cl::desc("The type that factors of products may be rounded to"),
      llvm::cl::init(GPUFrontOptions().precision), getPrecisionValues()};
  typename Base::template Option<GPULibraries> libraries{
      *this, "libraries",
      llvm::cl::desc("What may compute kernels of NVIDIA's GPUs"),
      llvm::cl::init(GPUFrontOptions().libraries), getLibrariesValues()};
  typename Base::template Option<GPULayout> layout{
      *this, "layout",
      llvm::cl::desc("The order of images in functions on NVIDIA's GPUs"),
      llvm::cl::init(GPUFrontOptions().layout), getLayoutValues()};
  typename Base::template Option<bool> verifyLowering{
      *this, "verify-lowering",
      llvm::cl::desc("Prove that the stages of operators compute them"),
      llvm::cl::init(GPUFrontOptions().verifyLowering)};

  /// Reads the former names of options, too.
  LogicalResult parseFromString(StringRef options) {
    std::string current = renameFormerOptions(options);
    LogicalResult parsed = Base::parseFromString(current);
    if (failed(parsed) && current != options)
      llvm::errs() << formerOptionNote << "\n";
    return parsed;
  }

  /// The options as a struct, for the functions that build pipelines.
  GPUFrontOptions getFront() const {
    return {.device = device,
            .maxThreads = maxThreads,
            .sharedBytes = sharedBytes,
            .strategy = strategy,
            .precision = precision,
            .elements = elements,
            .libraries = libraries,
            .layout = layout,
            .verifyLowering = verifyLowering};
  }
};

/// The shared options alone.
struct FrontHalfTextOptions : FrontTextOptions<FrontHalfTextOptions> {};

/// The text form of NVVMPipelineOptions.
struct NVVMTextOptions : FrontTextOptions<NVVMTextOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("sm_80, sm_90, sm_90a, ..."),
                           llvm::cl::init(NVVMPipelineOptions().chip)};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("Such as +ptx80; by default a version of PTX that has all "
                     "of the chip")};
  Option<GPUFormat> format{
      *this, "format", llvm::cl::desc("The format of binaries"),
      llvm::cl::init(NVVMPipelineOptions().format), getNVVMFormatValues()};
  Option<std::string> toolkit{
      *this, "toolkit",
      llvm::cl::desc("The folder of the CUDA toolkit, for formats other than "
                     "ptx; by default it is looked for")};
};

/// The text form of SPIRVPipelineOptions.
struct SPIRVTextOptions : FrontTextOptions<SPIRVTextOptions> {
  Option<SPIRVProfile> profile{
      *this, "profile", llvm::cl::desc("The features that devices have"),
      llvm::cl::init(SPIRVPipelineOptions().profile), getProfileValues()};
};
} // namespace

void kas::registerGPUPipelineDialects(DialectRegistry &registry) {
  registerCPUPipelineDialects(registry);
  registry.insert<KasGPUDialect>();
  // The translations of NVVM, for tools that write LLVM IR.
  registerAllGPUToLLVMIRTranslations(registry);
}

void kas::registerGPUPipelines() {
  registerKasCodegenGPUPasses();
  registerModulePipeline<FrontHalfTextOptions>(
      "kas-gpu-front-half",
      "Lower operators on tensors to functions on buffers that launch kernels",
      [](OpPassManager &manager, const FrontHalfTextOptions &options) {
        buildGPUFrontHalf(manager, options.getFront());
      });
  registerModulePipeline<NVVMTextOptions>(
      "kas-nvvm-pipeline",
      "Lower operators on tensors to kernels for NVIDIA's GPUs",
      [](OpPassManager &manager, const NVVMTextOptions &text) {
        NVVMPipelineOptions options;
        options.front = text.getFront();
        options.chip = text.chip;
        options.features = text.features;
        options.format = text.format;
        options.toolkit = text.toolkit;
        buildNVVMPipeline(manager, options);
      });
  registerModulePipeline<SPIRVTextOptions>(
      "kas-spirv-pipeline",
      "Lower operators on tensors to kernels for devices with Vulkan",
      [](OpPassManager &manager, const SPIRVTextOptions &text) {
        SPIRVPipelineOptions options;
        options.front = text.getFront();
        options.profile = text.profile;
        buildSPIRVPipeline(manager, options);
      });
}
