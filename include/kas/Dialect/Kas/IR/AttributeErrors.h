//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The errors of attributes that the dialects of kas verify on operations of
// any dialect.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_ATTRIBUTEERRORS_H
#define KAS_DIALECT_KAS_IR_ATTRIBUTEERRORS_H

#include "mlir/IR/Operation.h"

namespace kas {

/// `attribute` of `op` is not `what`, such as "a string". Fails.
mlir::LogicalResult emitAttributeValueError(mlir::Operation *op,
                                            llvm::StringRef what,
                                            mlir::NamedAttribute attribute);

/// `attribute` is on `op`, which is not `where`, such as "a function".
/// Fails.
mlir::LogicalResult emitAttributePositionError(mlir::Operation *op,
                                               llvm::StringRef where,
                                               mlir::NamedAttribute attribute);

/// The dialect of `attribute` has none for argument or result (`kind`) number
/// `number` of `op`. Fails.
mlir::LogicalResult emitNoAttributeError(mlir::Operation *op,
                                         llvm::StringRef kind, unsigned number,
                                         mlir::NamedAttribute attribute);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_ATTRIBUTEERRORS_H
