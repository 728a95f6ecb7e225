//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs as bytecode, by which they pass from one context to another.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_BYTECODE_H
#define KAS_SUPPORT_BYTECODE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas {

/// `op` as bytecode, without locations; in a module of its own if it is none.
std::string writeBytecode(mlir::Operation *op);

/// The module of `bytecode`; null with a diagnostic when it does not verify, or
/// when `context` does not know one of its dialects.
mlir::OwningOpRef<mlir::ModuleOp> readBytecode(llvm::StringRef bytecode,
                                               mlir::MLIRContext *context);

} // namespace kas

#endif // KAS_SUPPORT_BYTECODE_H
