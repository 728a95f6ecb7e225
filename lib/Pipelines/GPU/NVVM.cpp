//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline for NVIDIA's GPUs: kernels to NVVM, then PTX, cubin or fatbin.
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/GPU/NVVM.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// A version of PTX that has all of the chip: 8.0 has sm_90a, 8.7 sm_100a and
/// sm_120 (PTX ISA, "Release notes"). A newer one would need a newer driver.
static StringRef getDefaultFeatures(StringRef chip) {
  int number = 0;
  // The number of `sm_90a`.
  chip.drop_front(std::min<size_t>(3, chip.size()))
      .take_while(llvm::isDigit)
      .getAsInteger(10, number);
  return number >= 100 ? "+ptx87" : "+ptx80";
}

void kas::buildNVVMPipeline(OpPassManager &manager,
                            const NVVMPipelineOptions &options) {
  GPUFrontOptions front = options.front;
  if (front.device.empty())
    front.device = options.chip;
  // Before kernels are formed, which have no assertions.
  manager.addNestedPass<func::FuncOp>(createKasGPUReturnAssertionsPass());
  buildGPUFrontHalf(manager, front);
  KasGPUWriteManifestPassOptions manifest;
  manifest.api = GPUInterface::CUDA;
  manifest.chip = options.chip;
  manifest.format = options.format;
  // Read off the launches while the kernels are still `gpu.func`.
  manager.addPass(createKasGPUWriteManifestPass(manifest));

  GpuNVVMAttachTargetOptions target;
  target.chip = options.chip;
  target.features = options.features.empty()
                        ? getDefaultFeatures(options.chip).str()
                        : options.features;
  target.optLevel = 3;
  manager.addPass(createGpuNVVMAttachTarget(target));
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  // The order: parameters are added, then attributes that the conversion must
  // keep.
  kernels.addPass(createKasGPUPassTensorMapsPass());
  kernels.addPass(createKasGPUPrepareNVVMPass());
  kernels.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions lowering;
  // Half the registers and a quarter of the time of 64 bits.
  lowering.indexBitwidth = 32;
  lowering.useBarePtrCallConv = true;
  kernels.addPass(createConvertGpuOpsToNVVMOps(lowering));
  // What is PTX in NVVM.
  kernels.addPass(createConvertNVVMToLLVMPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  KasGPUSerializeNVVMPassOptions binary;
  binary.format = options.format;
  binary.toolkit = options.toolkit;
  manager.addPass(createKasGPUSerializeNVVMPass(binary));
}
