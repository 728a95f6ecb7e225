//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategy from operators to devices with Vulkan.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_GPU_SPIRV_H
#define KAS_PIPELINES_GPU_SPIRV_H

#include "kas/Codegen/GPU/GPU.h"
#include "kas/Pipelines/GPU/GPU.h"

namespace kas {

struct SPIRVPipelineOptions {
  /// Its device is `vulkan` if it names none.
  GPUFrontOptions front = {};
  /// What the device has; elements of f16 imply the profile of f16.
  codegen::SPIRVProfile profile = codegen::SPIRVProfile::F32;
};

/// Functions on tensors to functions on buffers that launch kernels of a
/// `gpu.binary` in SPIR-V; the module has the manifest. Registered as
/// `-kas-spirv-pipeline`.
void buildSPIRVPipeline(mlir::OpPassManager &manager,
                        const SPIRVPipelineOptions &options = {});

} // namespace kas

#endif // KAS_PIPELINES_GPU_SPIRV_H
