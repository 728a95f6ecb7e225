//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the primitives of an operator off, from the input to the output.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CONVERSION_KASTOLINALG_PEELING_H
#define KAS_LIB_CONVERSION_KASTOLINALG_PEELING_H

#include "Contraction.h"

namespace kas {

/// Writes the concrete operator `op` on `data` and `weights` as a contraction
/// of tensors made by `rewriter`. Each output may be several dimensions of it,
/// from the outermost to the innermost. Fails with the reason in
/// `rewriter.getReason()` when a copy would be too large.
///
/// With max (`isMax`), points that do not exist read minus infinity; otherwise
/// zero, which makes the whole product zero.
llvm::FailureOr<StageContraction> peel(TensorRewriter &rewriter, OperatorOp op,
                                       mlir::Value data,
                                       mlir::ValueRange weights, bool isMax);

} // namespace kas

#endif // KAS_LIB_CONVERSION_KASTOLINALG_PEELING_H
