//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which library, if any, is expected to compute what a kernel does in less
// time.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_LIBRARYCHOICE_H
#define LIB_CODEGEN_GPU_STRATEGY_LIBRARYCHOICE_H

#include "KernelProblem.h"
#include "kas/Codegen/GPU/Strategy/Options.h"

namespace kas::codegen {

/// What the kernel of `op`, a concrete `kas.apply` or a `linalg.generic`, and
/// its epilogue compute, as the fastest library takes it; null where none has
/// it or is expected to be faster than a kernel of `cycles`, which become those
/// of the library. Only those of `libraries` are compared.
mlir::Attribute chooseLibrary(mlir::Operation *op, GPULibraries libraries,
                              GPUPrecision precision, GPUDeviceAttr device,
                              double &cycles);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LIBRARYCHOICE_H
