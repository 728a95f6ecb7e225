//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is known of the GPUs that kernels are compiled for.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_STRATEGY_DEVICE_H
#define KAS_CODEGEN_GPU_STRATEGY_DEVICE_H

#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace kas::codegen {

/// The device called `name`: `sm_75` and later for NVIDIA's, `vulkan` for what
/// nearly every device with Vulkan 1.1 offers. Errors list the known names.
llvm::Expected<GPUDeviceAttr> getGPUDevice(mlir::MLIRContext *context,
                                           llvm::StringRef name);

/// The device that the module around `op` names, or null.
GPUDeviceAttr getGPUDevice(mlir::Operation *op);

/// The device `name`; empty: that of `module`, or sm_90. Null, with a
/// diagnostic, for an unknown name.
GPUDeviceAttr getGPUDevice(mlir::ModuleOp module, llvm::StringRef name);

/// What CUDA lets a kernel declare of workgroup memory; a launch may ask for
/// more. Source: CUDA C++ Programming Guide, "Shared Memory" of compute
/// capability 8.x.
constexpr int64_t declaredBytes = 48 << 10;

/// The same device with other limits: most threads of a block, and bytes of
/// workgroup memory; 0 leaves the one there is. Null, with a diagnostic from
/// `emitError`, if they are invalid.
GPUDeviceAttr
setLimits(GPUDeviceAttr device, int64_t maxThreads, int64_t sharedBytes,
          llvm::function_ref<mlir::InFlightDiagnostic()> emitError = nullptr);

/// Bytes of workgroup memory that a kernel of `strategy` may take on `device`.
int64_t getMaxSharedBytes(GPUDeviceAttr device, GPUStrategy strategy);

/// Whether `device` is a processor that runs kernels lane by lane of its
/// vectors, without memory that only workgroups have.
bool isHostDevice(GPUDeviceAttr device);

/// Whether warpgroup kernels can be compiled for `device`: sm_90a.
bool hasWarpgroupInstructions(GPUDeviceAttr device);

/// Whether tensor-core kernels can be compiled for `device`: NVIDIA's since
/// sm_80.
bool hasMatrixInstructions(GPUDeviceAttr device);

/// Whether warps can store fragments as matrices: NVIDIA's since sm_90.
bool hasMatrixStores(GPUDeviceAttr device);

/// Whether `device` is one of NVIDIA's.
bool isNVIDIADevice(GPUDeviceAttr device);

/// What to compile for where a device is of `architecture`, such as sm_80. With
/// the instructions that no other architecture has: sm_90a for sm_90, where
/// warpgroup kernels run.
llvm::StringRef getChipOfDevice(llvm::StringRef architecture);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_STRATEGY_DEVICE_H
