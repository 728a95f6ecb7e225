//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a diagnostic about a whole module is.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_FILELOCATION_H
#define KAS_SUPPORT_FILELOCATION_H

#include "mlir/IR/BuiltinOps.h"

namespace kas {

/// The location of `module`; of one that a parser has added around a file,
/// which has the line 0, the location of its first operation.
mlir::Location getFileLocation(mlir::ModuleOp module);

} // namespace kas

#endif // KAS_SUPPORT_FILELOCATION_H
