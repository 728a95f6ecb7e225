//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Modules from the files that programs are given.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_PARSEMODULE_H
#define KAS_SUPPORT_PARSEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace kas {

/// The module of the file `path`, text or bytecode; `-`: of the standard input.
/// Errors: a file that cannot be read, or that is neither text in UTF-8 nor
/// bytecode. What is wrong with the module is a diagnostic on the standard
/// error stream, and an error, too.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
parseModule(mlir::MLIRContext &context, llvm::StringRef path);

} // namespace kas

#endif // KAS_SUPPORT_PARSEMODULE_H
