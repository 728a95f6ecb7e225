//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions of kas.apply that are compared with its operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_VERIFIEDCONVERSION_H
#define KAS_CONVERSION_VERIFIEDCONVERSION_H

#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
#include "mlir/IR/PatternMatch.h"

namespace kas {

/// Notes what replaces the next operation.
struct ReplacementListener : mlir::RewriterBase::Listener {
  mlir::Value replacement;

  void notifyOperationReplaced(mlir::Operation *,
                               mlir::ValueRange values) override {
    replacement = values.front();
  }
};

/// Verifies, after `apply` of a concrete operator was replaced by `convert`,
/// that what replaces it computes the operator. The diagnostic is at `apply`.
inline mlir::LogicalResult
convertAndVerify(mlir::IRRewriter &rewriter, ApplyOp apply,
                 llvm::function_ref<mlir::LogicalResult()> convert) {
  OperatorOp op = apply.getOperator();
  mlir::Location loc = apply.getLoc();
  llvm::SmallVector<mlir::Value> inputs(apply->getOperands());
  ReplacementListener listener;
  rewriter.setListener(&listener);
  mlir::LogicalResult converted = convert();
  rewriter.setListener(nullptr);
  if (mlir::failed(converted))
    return mlir::failure();
  return verifyLowering(op, inputs, listener.replacement, loc);
}

} // namespace kas

#endif // KAS_CONVERSION_VERIFIEDCONVERSION_H
