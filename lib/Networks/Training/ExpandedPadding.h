//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Padding right before what reads it.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_TRAINING_EXPANDEDPADDING_H
#define LIB_NETWORKS_TRAINING_EXPANDEDPADDING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::networks {

/// Cuts dimensions in two before others are padded, not after, wherever
/// `function` does so: convolutions in groups then read what is padded, which
/// their gradients and their code need not make.
void expandBeforePadding(mlir::func::FuncOp function);

} // namespace kas::networks

#endif // LIB_NETWORKS_TRAINING_EXPANDEDPADDING_H
