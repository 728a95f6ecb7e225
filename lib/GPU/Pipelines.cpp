//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/GPU/GPU.h"
#include "kas/GPU/Passes.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace mlir;

/// Index arithmetic repeats itself, and much of it does not change in loops.
static void addKernelCleanup(OpPassManager &manager) {
  OpPassManager &kernels =
      manager.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createCSEPass());
}

void kas::buildGPUFrontHalf(OpPassManager &manager,
                            const GPUFrontOptions &options) {
  manager.addPass(createKasSpecializePass());
  manager.addPass(createKasRFactorPass());
  GPUScheduleOptions schedule;
  schedule.device = options.device;
  schedule.maxThreads = options.maxThreads;
  schedule.sharedBytes = options.sharedBytes;
  manager.addPass(createGPUSchedule(schedule));
  manager.addPass(createGPUOutline());
  manager.addPass(createKasEraseOperatorsPass());
  addKernelCleanup(manager);
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createBufferize());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createGPUPlanBuffers());
}

namespace {
/// The text form of GPUFrontOptions.
struct FrontTextOptions : PassPipelineOptions<FrontTextOptions> {
  Option<std::string> device{
      *this, "device",
      llvm::cl::desc("sm_80, sm_90, ..., or vulkan; by default that of the "
                     "module, or sm_90")};
  Option<int64_t> maxThreads{
      *this, "max-threads",
      llvm::cl::desc("Most threads of a block; 0: those of the device"),
      llvm::cl::init(0)};
  Option<int64_t> sharedBytes{
      *this, "shared-bytes",
      llvm::cl::desc("Most bytes of workgroup memory; 0: those of the device"),
      llvm::cl::init(0)};

  GPUFrontOptions get() const {
    return {
        .device = device, .maxThreads = maxThreads, .sharedBytes = sharedBytes};
  }
};
} // namespace

void kas::registerGPUPipelines() {
  registerKasGPUPasses();
  PassPipelineRegistration<FrontTextOptions>(
      "kas-gpu-front-half",
      "Lower operators on tensors to functions on buffers that launch kernels",
      [](OpPassManager &manager, const FrontTextOptions &options) {
        buildGPUFrontHalf(manager, options.get());
      });
}

void kas::registerGPUPipelineDialects(DialectRegistry &registry) {
  registerCPUPipelineDialects(registry);
  registry.insert<KasDialect, KasGPUDialect>();
}
