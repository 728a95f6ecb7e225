//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants that are resources (`dense_resource`) of kinds that MLIR's
// translation to LLVM IR does not take.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_RESOURCES_H
#define KAS_SUPPORT_RESOURCES_H

#include "mlir/IR/BuiltinAttributes.h"

namespace kas {

/// The elements of a resource without elements, by whose number the translation
/// would divide, or of i1, of which each is a byte, as an attribute that it
/// takes. Null for all others, and where the bytes are missing or too few.
mlir::DenseElementsAttr
readSpecialResource(mlir::DenseResourceElementsAttr resource);

} // namespace kas

#endif // KAS_SUPPORT_RESOURCES_H
