//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether lowered code computes an operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_VERIFYLOWERING_H
#define KAS_DIALECT_KAS_ANALYSIS_VERIFYLOWERING_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include <string>

namespace kas {

/// What is known about lowered code.
enum class LoweringVerdict {
  /// It computes the operator, but for how sums are rounded.
  Equal,
  /// Some term of some output differs.
  Different,
  /// It is not of a form that can be compared.
  Undecided
};

/// A verdict, and what was required and got where it is not `Equal`.
struct LoweringResult {
  LoweringVerdict verdict = LoweringVerdict::Equal;
  std::string message;
};

/// Compares the access relations of `result`, a tensor that affine loops,
/// linalg and tensor ops or other concrete operators compute of `inputs` (the
/// data, then the weights), with those of the concrete operator `op`: both are,
/// for each output, reductions of products of elements, and each term of one
/// must be a term of the other, as often. Decided by MLIR's Presburger library
/// for the sizes of the operator. Never `Equal` for code that reads other
/// elements, leaves one out or takes one twice.
///
/// Of reductions, the order within sums and within maxima is free, and so is
/// how loops are split; the code may leave out loops that nothing depends on
/// when it multiplies by their extents. Scales are compared to six digits,
/// conversions between floating-point types are not looked at.
LoweringResult compareLowering(OperatorOp op, mlir::ValueRange inputs,
                               mlir::Value result);

/// The category of the remarks of `verifyLowering`.
constexpr llvm::StringLiteral loweringRemarks = "kas-verify-lowering";

/// The same; reports at `loc` what is not `Equal`. With remarks enabled, the
/// remark `Proven` names an operator that is.
mlir::LogicalResult verifyLowering(OperatorOp op, mlir::ValueRange inputs,
                                   mlir::Value result, mlir::Location loc);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_VERIFYLOWERING_H
