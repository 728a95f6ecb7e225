//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by passes that add functions to modules.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_FINDFUNCTION_H
#define LIB_NETWORKS_FINDFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::networks {

/// The function `name` of `module`, to which one called `added` is to come;
/// null with a diagnostic.
mlir::func::FuncOp findFunction(mlir::ModuleOp module, llvm::StringRef name,
                                llvm::StringRef added);

/// A body's derivative hardly needs all that the body has read.
mlir::LogicalResult eraseUnusedOperands(mlir::func::FuncOp function);

} // namespace kas::networks

#endif // LIB_NETWORKS_FINDFUNCTION_H
