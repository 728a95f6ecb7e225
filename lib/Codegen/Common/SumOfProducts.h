//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_COMMON_SUMOFPRODUCTS_H
#define LIB_CODEGEN_COMMON_SUMOFPRODUCTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// Whether `op` reduces at least two inputs to one output, to which its body
/// adds the product of all inputs, in any order, and each once. Upstream's
/// `isContractionBody` knows products of two.
bool isSumOfProducts(mlir::linalg::LinalgOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_COMMON_SUMOFPRODUCTS_H
