//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that a replaced layer needs: data, the old weights, the start of the
// accumulator.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SITES_REWRITING_H
#define LIB_NETWORKS_SITES_REWRITING_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/Site.h"

namespace kas::networks {

/// The value before `value` is split at dimension 1 into groups, or `value`.
mlir::Value lookThroughChannelSplit(mlir::Value value);

/// `value` with the same elements in `shape`, or null when that takes more than
/// collapsing or expanding dimensions.
mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// What the layer adds its products to (a bias, zeros, or anything) added to
/// `value`, which has the shape `site.resultShape`.
mlir::Value addAccumulatorStart(mlir::OpBuilder &builder, const Site &site,
                                mlir::Value value);

/// The weight of the layer in the order of dimensions that the only weight of
/// `op` has; null, and a `reason`, when it has other dimensions.
mlir::Value adaptWeight(mlir::OpBuilder &builder, const Site &site,
                        OperatorOp op, const Binding &binding,
                        std::string &reason);

/// Erases `op` and what it alone has read.
void eraseWithDeadOperands(mlir::Operation *op);

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_REWRITING_H
