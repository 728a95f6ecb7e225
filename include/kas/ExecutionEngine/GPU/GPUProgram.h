//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators compiled for a GPU, in memory.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_GPU_GPUPROGRAM_H
#define KAS_EXECUTIONENGINE_GPU_GPUPROGRAM_H

#include "kas-rt/kas-rt.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Pipelines/GPU/NVVM.h"
#include "kas/Pipelines/GPU/SPIRV.h"

namespace kas::execution {

/// What a runtime needs: the kernels, and how they are launched.
struct GPUProgram {
  /// A `DeviceManifest` as JSON text.
  std::string manifest;
  /// PTX, machine code or SPIR-V, as the manifest's target says.
  std::string binary;
};

/// Compile all functions of `module`, which stays as it is. Diagnostics of
/// passes that fail are part of the error.
llvm::Expected<GPUProgram>
compileForNVVM(mlir::ModuleOp module, const NVVMPipelineOptions &options = {});
llvm::Expected<GPUProgram>
compileForSPIRV(mlir::ModuleOp module,
                const SPIRVPipelineOptions &options = {});

/// The same for a device at hand, with its instructions and limits;
/// `precision`, `elements` and `libraries` as in `GPUFrontOptions`, on Vulkan
/// only the second.
llvm::Expected<GPUProgram>
compileForDevice(mlir::ModuleOp module, const KasRtDeviceInfo &info,
                 GPUPrecision precision = GPUPrecision::F32,
                 codegen::GPUElements elements = codegen::GPUElements::F32,
                 codegen::GPULibraries libraries = codegen::GPULibraries::Auto);

/// What schedules are chosen for when that compiles.
llvm::Expected<GPUDeviceAttr> getGPUDevice(mlir::MLIRContext *context,
                                           const KasRtDeviceInfo &info);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_GPU_GPUPROGRAM_H
