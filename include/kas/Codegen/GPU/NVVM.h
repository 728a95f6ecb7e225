//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the operations of the dialect kas_gpu become NVVM.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_NVVM_H
#define KAS_CODEGEN_GPU_NVVM_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kas::codegen {

/// Lets `convert-gpu-to-nvvm` lower the operations of kas_gpu, and those of
/// nvgpu that tensor-core kernels use: with indices of any width and with bf16
/// factors, which the patterns of `convert-nvgpu-to-nvvm` do not know. Factors
/// of tf32 are rounded to nearest, not truncated.
void registerConvertKasGPUToNVVMInterface(mlir::DialectRegistry &registry);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_NVVM_H
