//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes that say what a GPU offers and how a kernel is cut for it, and
// the model that chooses.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GPU_SCHEDULE_H
#define KAS_GPU_SCHEDULE_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "llvm/Support/Error.h"

#include "kas/GPU/ScheduleDialect.h.inc"
#include "kas/GPU/ScheduleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/GPU/ScheduleAttrs.h.inc"

namespace kas {

/// The device called `name`: `sm_75` and later for NVIDIA's, `vulkan` for what
/// nearly every device with Vulkan 1.1 offers. Errors list the known names.
llvm::Expected<GPUDeviceAttr> getGPUDevice(mlir::MLIRContext *context,
                                           llvm::StringRef name);

/// The device that the module around `op` names, or null.
GPUDeviceAttr getGPUDevice(mlir::Operation *op);

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

/// Bytes of workgroup memory that a kernel of `road` may take on `device`.
int64_t getMaxSharedBytes(GPUDeviceAttr device, GPURoad road);

/// Whether `device` is a processor that runs kernels lane by lane of its
/// vectors, without memory that only workgroups have.
bool isHostDevice(GPUDeviceAttr device);

/// Whether warpgroup kernels can be compiled for `device`: sm_90a.
bool hasWarpgroupInstructions(GPUDeviceAttr device);

/// Whether tensor-core kernels can be compiled for `device`: NVIDIA's since
/// sm_80.
bool hasMatrixInstructions(GPUDeviceAttr device);

/// The cheapest schedule of an operator on `device` according to the cost
/// model; of `road` where the operator can be computed so. Factors of products
/// may be rounded to `precision`. Always suits.
GPUScheduleAttr chooseGPUSchedule(const Coordinates &coordinates,
                                  GPUDeviceAttr device,
                                  std::optional<GPURoad> road = std::nullopt,
                                  GPUPrecision precision = GPUPrecision::F32);

} // namespace kas

#endif // KAS_GPU_SCHEDULE_H
