//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits large functions on buffers into one function for each loop nest.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_OUTLINEKERNELS_H
#define KAS_CODEGEN_CPU_OUTLINEKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {

/// Moves the loop nests and linalg operations of each public function of
/// `module` that has at least `minKernels` of them to private functions; equal
/// ones become one function. 0: leaves all as it is. The functions that were
/// made, in the order of their first calls.
llvm::SmallVector<mlir::func::FuncOp> outlineKernels(mlir::ModuleOp module,
                                                     unsigned minKernels);

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_OUTLINEKERNELS_H
