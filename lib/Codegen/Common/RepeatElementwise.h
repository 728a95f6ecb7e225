//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations that are computed again for each of their readers,
// because that reads and writes less memory.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CODEGEN_COMMON_REPEATELEMENTWISE_H
#define KAS_LIB_CODEGEN_COMMON_REPEATELEMENTWISE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// Whether all that `op` does with its results is to add to them, in any order
/// of the terms, so that it has vectors along its reductions.
bool isSumInAnyOrder(mlir::linalg::GenericOp op);

/// Gives readers of elementwise operations copies of these, where that moves
/// less memory: the readers then compute the elements themselves. Returns
/// whether it has changed anything.
bool repeatElementwise(mlir::func::FuncOp function);

} // namespace kas::codegen

#endif // KAS_LIB_CODEGEN_COMMON_REPEATELEMENTWISE_H
