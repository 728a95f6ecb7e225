//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions that NVIDIA's library of them, cuDNN, may compute in place of a
// kernel.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_LIBRARYCONVOLUTION_H
#define LIB_CODEGEN_GPU_STRATEGY_LIBRARYCONVOLUTION_H

#include "LibraryProblem.h"

namespace kas::codegen {

/// The convolution that a kernel of `problem` computes, with the positions of
/// its arguments. Null where the library has none like it: tensors with gaps or
/// in other orders than channels first or last, windows with other guards than
/// the ends of images or with different pads at both ends, several types of
/// numbers, other epilogues, and without a bias any.
GPUConvolutionAttr getLibraryConvolution(const LibraryProblem &problem,
                                         GPUPrecision precision);

/// Cycles that the library is expected to take for `convolution`, in the unit
/// of the cost model.
double getLibraryCycles(GPUConvolutionAttr convolution, GPUDeviceAttr device,
                        LibraryBytes bytes);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LIBRARYCONVOLUTION_H
