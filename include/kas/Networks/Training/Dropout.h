//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dropout of networks that come from exporters.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_TRAINING_DROPOUT_H
#define KAS_NETWORKS_TRAINING_DROPOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::networks {

/// Makes `kas.dropout` of the multiplications by arguments with the attribute
/// `kas.dropout`, a probability, and erases these. Errors are diagnostics.
mlir::LogicalResult markDropouts(mlir::func::FuncOp function);

} // namespace kas::networks

#endif // KAS_NETWORKS_TRAINING_DROPOUT_H
