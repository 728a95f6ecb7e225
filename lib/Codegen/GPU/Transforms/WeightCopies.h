//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights in the order in which kernels read them, as a function.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_TRANSFORMS_WEIGHTCOPIES_H
#define LIB_CODEGEN_GPU_TRANSFORMS_WEIGHTCOPIES_H

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {

/// What kernels are chosen for.
struct KernelTarget {
  GPUDeviceAttr device;
  std::optional<GPUStrategy> strategy;
  GPUPrecision precision;
  GPULibraries libraries;
};

/// See `-kas-gpu-transpose-weights`.
void transposeWeights(mlir::ModuleOp module, const KernelTarget &target);

/// A kernel that copies `value` to an order of dimensions, of which number i is
/// its dimension `permutation[i]`. No kernel reads through it.
mlir::Value createTransposedCopy(mlir::OpBuilder &builder, mlir::Location loc,
                                 mlir::Value value,
                                 llvm::ArrayRef<int64_t> permutation);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_TRANSFORMS_WEIGHTCOPIES_H
