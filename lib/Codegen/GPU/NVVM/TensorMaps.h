//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The descriptors of tensors that a kernel needs for its copies.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_NVVM_TENSORMAPS_H
#define LIB_CODEGEN_GPU_NVVM_TENSORMAPS_H

#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace kas::codegen {

/// For each argument of `kernel` and map of it: the copies that need it, in the
/// order of the parameters that the kernel gets for them.
using TensorMaps = llvm::MapVector<std::pair<unsigned, TensorMapAttr>,
                                   llvm::SmallVector<TensorCopyOp>>;

/// Fails, with an error, where a copy is not from an argument.
mlir::FailureOr<TensorMaps> getTensorMaps(mlir::gpu::GPUFuncOp kernel);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_NVVM_TENSORMAPS_H
