//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which reductions of lowered code are those of an operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_MATCHING_H
#define KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_MATCHING_H

#include "Terms.h"

namespace kas::lowering {

/// A one-to-one correspondence between the reductions of an operator, but for
/// those that nothing depends on, and loops. All are functions of common
/// dimensions: the outputs, then the parts that reductions are split into.
struct Matching {
  Dims dims;
  /// In place of the dimensions of the operator and of the code.
  llvm::SmallVector<mlir::AffineExpr> operatorDims, codeDims;
  /// What the code has to multiply by for the sums that it leaves out.
  double factor = 1;
};

/// Calls `visit` with matchings, the likeliest first, until it returns true;
/// with no matching where extents or kinds do not fit. They are guesses:
/// nothing here decides whether the terms agree. Returns whether `visit` did.
bool forEachMatching(OperatorOp op, const Dims &operatorDims,
                     llvm::ArrayRef<Loop> required, const Dims &codeDims,
                     llvm::ArrayRef<Loop> got,
                     llvm::function_ref<bool(const Matching &)> visit);

} // namespace kas::lowering

#endif // KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_MATCHING_H
