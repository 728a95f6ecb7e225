//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the operations of a warp in tensor-core kernels become NVVM.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_GPU_WARPTONVVM_H
#define KAS_LIB_GPU_WARPTONVVM_H

#include "mlir/IR/Dialect.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace kas {

/// Lets `convert-gpu-to-nvvm` lower the operations of NVGPU that tensor-core
/// kernels use, with indices of any width and with bf16 factors, which the
/// patterns of `convert-nvgpu-to-nvvm` do not. Factors of tf32 are rounded to
/// nearest, not truncated.
void addWarpToNVVMInterface(mlir::Dialect &dialect);

/// The same for the operations of warpgroups.
void addWarpgroupPatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns);

} // namespace kas

#endif // KAS_LIB_GPU_WARPTONVVM_H
