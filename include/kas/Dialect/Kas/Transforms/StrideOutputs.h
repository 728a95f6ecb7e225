//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that compute some points of their outputs only, as layers with a
// stride do.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_STRIDEOUTPUTS_H
#define KAS_DIALECT_KAS_TRANSFORMS_STRIDEOUTPUTS_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// Changes `op` so that along the output dimensions `dims`, from 0 on, it
/// computes every s-th point, the first one first, where s is the value of the
/// new coefficient `symbol`. Each extent must be a multiple of s at a binding
/// (C6). Fails, with a diagnostic made by `emitError` and without a change,
/// when `dims` is empty, `op` has no such dimension or has the symbol already.
llvm::LogicalResult strideOutputs(OperatorOp op, llvm::ArrayRef<int64_t> dims,
                                  llvm::StringRef symbol,
                                  EmitErrorFn emitError);

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_STRIDEOUTPUTS_H
