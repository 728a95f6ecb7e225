//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a module to kernels and a manifest, for a named or an open device.
//
// The program is data: a binary that a driver loads and the JSON text of how to
// launch its kernels. Nothing of MLIR is needed to run it.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Support/RunPasses.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace mlir;

/// Runs the passes that `addPasses` adds on a copy of `module`.
static llvm::Expected<GPUProgram>
compile(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses) {
  // Passes change the module: the caller's stays as it is.
  OwningOpRef<ModuleOp> clone = module.clone();
  if (llvm::Error error = runPasses(
          *clone, "the module cannot be compiled for the GPU", addPasses))
    return error;
  // Every pipeline for GPUs sets it.
  auto manifest =
      (*clone)->getAttrOfType<StringAttr>(KasGPUDialect::manifestName);
  GPUProgram program{manifest.str(), ""};
  // A module without launches has no kernels.
  if (auto binary = clone->lookupSymbol<gpu::BinaryOp>(kernelModuleName))
    program.binary = cast<gpu::ObjectAttr>(binary.getObjects()[0])
                         .getObject()
                         .getValue()
                         .str();
  return program;
}

llvm::Expected<GPUProgram>
kas::execution::compileForNVVM(ModuleOp module,
                               const NVVMPipelineOptions &options) {
  return compile(module, [&](OpPassManager &manager) {
    buildNVVMPipeline(manager, options);
  });
}

llvm::Expected<GPUProgram>
kas::execution::compileForSPIRV(ModuleOp module,
                                const SPIRVPipelineOptions &options) {
  return compile(module, [&](OpPassManager &manager) {
    buildSPIRVPipeline(manager, options);
  });
}

/// The device that schedules are chosen for: a processor gains nothing from
/// workgroup memory, so it has schedules of its own.
static StringRef getVulkanDevice(const KasRtDeviceInfo &info) {
  return info.isHost ? "vulkan-cpu" : "vulkan";
}

llvm::Expected<GPUDeviceAttr>
kas::execution::getGPUDevice(MLIRContext *context,
                             const KasRtDeviceInfo &info) {
  if (info.backend == KAS_RT_CUDA)
    return codegen::getGPUDevice(context, getChipOfDevice(info.architecture));
  auto device = codegen::getGPUDevice(context, getVulkanDevice(info));
  if (!device)
    return device.takeError();
  // Vulkan guarantees little; this device may have more.
  return setLimits(*device, info.maxThreadsPerBlock, info.maxSharedBytes);
}

llvm::Expected<GPUProgram> kas::execution::compileForDevice(
    ModuleOp module, const KasRtDeviceInfo &info, GPUPrecision precision,
    codegen::GPUElements elements, codegen::GPULibraries libraries) {
  // Said before compiling: the driver would refuse the module.
  if (elements == codegen::GPUElements::F16 && !info.hasFloat16)
    return llvm::createStringError(
        "expected a device with 16-bit floats for elements of f16, got '" +
        StringRef(info.name) + "'");
  if (info.backend == KAS_RT_CUDA) {
    NVVMPipelineOptions options;
    // sm_90a where the device is sm_90: code for this device alone may use all
    // of its instructions.
    options.chip = getChipOfDevice(info.architecture).str();
    options.front.precision = precision;
    options.front.elements = elements;
    // Whether they are there turns out when the program is loaded.
    options.front.libraries = libraries;
    return compileForNVVM(module, options);
  }
  // `precision` is for tensor cores, which Vulkan kernels do not use.
  SPIRVPipelineOptions options;
  options.front.device = getVulkanDevice(info).str();
  options.front.elements = elements;
  // The limits of the device at hand, not those that all devices have.
  options.front.maxThreads = info.maxThreadsPerBlock;
  options.front.sharedBytes = info.maxSharedBytes;
  return compileForSPIRV(module, options);
}
