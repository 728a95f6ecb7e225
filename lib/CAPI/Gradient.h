//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of an operator as a program for the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CAPI_GRADIENT_H
#define KAS_LIB_CAPI_GRADIENT_H

#include "kas-c/Kas.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas {

/// The gradient of the concrete operator `op` with respect to its tensor number
/// `tensor` as a function on tensors, as `createGradientModule` (Pipelines)
/// makes it: the gradients of its stages, which the pipeline computes in
/// register tiles, or, for operators with maxima, one loop nest. `strategy`
/// chooses one of the two; null when there is none of stages.
mlir::OwningOpRef<mlir::ModuleOp>
createFastGradientModule(OperatorOp op, unsigned tensor,
                         KasGradientStrategy strategy, bool parallel);

} // namespace kas

#endif // KAS_LIB_CAPI_GRADIENT_H
