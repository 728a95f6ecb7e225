//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline for Vulkan: kernels to SPIR-V.
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/GPU/SPIRV.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/SPIRV.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void kas::buildSPIRVPipeline(OpPassManager &manager,
                             const SPIRVPipelineOptions &options) {
  GPUFrontOptions front = options.front;
  // What every device with Vulkan 1.1 offers.
  if (front.device.empty())
    front.device = "vulkan";
  // Tensors of f16 need 16-bit storage, whatever profile was given.
  SPIRVProfile profile =
      front.elements == GPUElements::F16 ? SPIRVProfile::F16 : options.profile;
  // Before kernels are formed, which have no assertions.
  manager.addNestedPass<func::FuncOp>(createKasGPUReturnAssertionsPass());
  buildGPUFrontHalf(manager, front);
  KasGPUWriteManifestPassOptions manifest;
  manifest.api = GPUInterface::Vulkan;
  manifest.format = GPUFormat::SPIRV;
  // Who runs the program compares them with what the device has.
  for (spirv::Capability capability : getCapabilities(profile))
    manifest.capabilities.push_back(
        spirv::stringifyCapability(capability).str());
  manager.addPass(createKasGPUWriteManifestPass(manifest));
  KasGPUToSPIRVPassOptions lowering;
  lowering.profile = profile;
  manager.addPass(createKasGPUToSPIRVPass(lowering));
  // The `spirv.module` that the conversion puts after each `gpu.module`.
  OpPassManager &modules = manager.nest<spirv::ModuleOp>();
  // Descriptor sets and bindings are assigned here, then the version and the
  // capabilities are reduced to what the module uses.
  modules.addPass(spirv::createSPIRVLowerABIAttributesPass());
  modules.addPass(createCanonicalizerPass());
  modules.addPass(createCSEPass());
  modules.addPass(spirv::createSPIRVUpdateVCEPass());
  manager.addPass(createKasGPUSerializeSPIRVPass());
}
