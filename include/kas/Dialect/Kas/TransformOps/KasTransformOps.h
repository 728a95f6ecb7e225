//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neural transformations as operations of the transform dialect.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_H
#define KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/TransformOps/KasTransformOps.h.inc"

namespace kas {

void registerTransformDialectExtension(mlir::DialectRegistry &registry);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMOPS_KASTRANSFORMOPS_H
