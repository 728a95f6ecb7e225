//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of matrices that NVIDIA's library of them, cuBLASLt, may compute in
// place of a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_LIBRARYMATMUL_H
#define LIB_CODEGEN_GPU_STRATEGY_LIBRARYMATMUL_H

#include "KernelProblem.h"

namespace kas::codegen {

/// The product that `op`, a concrete `kas.apply` or a `linalg.generic`, and its
/// epilogue compute, with the positions of the arguments that its kernel will
/// have. Null where the library has no such product: sums with guards or of
/// several weights, tensors whose rows, columns, steps or batches do not lie at
/// one distance each, numbers of several types, other epilogues.
GPUMatmulAttr getLibraryMatmul(mlir::Operation *op, GPUPrecision precision);

/// Cycles that the library is expected to take for `product`, with factors and
/// results of so many bytes, in the unit of the cost model.
double getLibraryCycles(GPUMatmulAttr product, GPUDeviceAttr device,
                        int64_t factorBytes, int64_t resultBytes);

/// Whether the library is expected to be faster than a kernel of `cycles`.
bool isLibraryFaster(GPUMatmulAttr product, mlir::Operation *op,
                     GPUDeviceAttr device, double cycles);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LIBRARYMATMUL_H
