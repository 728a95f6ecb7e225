//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost of operations of functions on tensors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_COMMON_OPERATIONCOST_H
#define KAS_CODEGEN_COMMON_OPERATIONCOST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// The points of `op`, of static shape, at which no operand that is padded with
/// a constant is read in its padding.
int64_t countExistingIterations(mlir::linalg::LinalgOp op);

/// Floating-point operations of `op`: of a `kas.apply` those of its cheapest
/// stages, of a linalg operation one for each operation of arith or math in its
/// body but for casts and choices, at each point that exists; 0 for what only
/// moves elements. None for shapes that are not static, and where operations
/// have regions of other kinds or call functions.
std::optional<int64_t> countFlops(mlir::Operation *op);

/// Whether `op` computes on floating-point numbers: what `countFlops` counts in
/// bodies.
bool isFloatArithmetic(mlir::Operation *op);

} // namespace kas::codegen

#endif // KAS_CODEGEN_COMMON_OPERATIONCOST_H
