//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of lookups in tables, such as embeddings.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_DIFFERENTIATION_LOOKUPGRADIENT_H
#define LIB_NETWORKS_DIFFERENTIATION_LOOKUPGRADIENT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseSet.h"

namespace kas::networks {

/// Where `op` reads tables: each element of its result is one of the only table
/// of `tables` that the body reads, whose position depends on none of them.
/// Null: it does not read tables so.
mlir::Value getLookupTable(mlir::linalg::LinalgOp op,
                           const llvm::DenseSet<mlir::Value> &tables);

/// The gradient by the table, given that by the result: loops over the result
/// that add each element to where it came from, in a fixed order.
mlir::Value emitLookupGradient(mlir::OpBuilder &builder,
                               mlir::linalg::LinalgOp op, mlir::Value gradient);

} // namespace kas::networks

#endif // LIB_NETWORKS_DIFFERENTIATION_LOOKUPGRADIENT_H
