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

#include "LibraryProblem.h"

namespace kas::codegen {

/// The product that a kernel of `problem` computes, with the positions of its
/// arguments. Null where the library has no such product: sums with guards,
/// tensors whose rows, columns, steps or batches do not lie at one distance
/// each, other epilogues.
GPUMatmulAttr getLibraryMatmul(const LibraryProblem &problem,
                               GPUPrecision precision);

/// Cycles that the library is expected to take for `product`, in the unit of
/// the cost model.
double getLibraryCycles(GPUMatmulAttr product, GPUDeviceAttr device,
                        LibraryBytes bytes);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LIBRARYMATMUL_H
