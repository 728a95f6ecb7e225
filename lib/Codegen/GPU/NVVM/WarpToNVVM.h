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

#ifndef LIB_CODEGEN_GPU_NVVM_WARPTONVVM_H
#define LIB_CODEGEN_GPU_NVVM_WARPTONVVM_H

#include "mlir/IR/Dialect.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace kas::codegen {

/// The same for the operations of warpgroups.
void addWarpgroupPatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_NVVM_WARPTONVVM_H
