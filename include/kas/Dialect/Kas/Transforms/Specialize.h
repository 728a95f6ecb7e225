//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Making operators concrete: every symbol replaced by its value.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_SPECIALIZE_H
#define KAS_DIALECT_KAS_TRANSFORMS_SPECIALIZE_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/Builders.h"

namespace kas {

/// Makes a copy of `op`, called `name`, in which every size is its value at
/// `binding` (in the order of `op.getSymbolSet()`), at the builder's insertion
/// point. Fails, with a diagnostic made by `emitError`, when the binding is not
/// legal (`verifyBinding`).
mlir::FailureOr<OperatorOp> specialize(mlir::OpBuilder &builder, OperatorOp op,
                                       const Binding &binding,
                                       llvm::StringRef name,
                                       EmitErrorFn emitError);

/// Lets every `kas.apply` below `root`, which has a symbol table, refer to a
/// concrete operator. Returns how many were made.
mlir::FailureOr<unsigned> specializeApplies(mlir::Operation *root);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_SPECIALIZE_H
