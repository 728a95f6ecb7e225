//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether the terms of lowered code are those of an operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_COMPARISON_H
#define KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_COMPARISON_H

#include "Matching.h"
#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"

namespace kas::lowering {

/// Compares a value with the term of an operator. Both have the outputs as
/// their first dimensions.
class Comparison {
public:
  Comparison(OperatorOp op, mlir::ValueRange inputs, const Dims &operatorDims,
             const Term &required, const Dims &dims, Terms got)
      : op(op), inputs(inputs), operatorDims(operatorDims), required(required),
        dims(dims), got(std::move(got)), numOutputs(op.getOutputs().size()) {}

  LoweringResult run();

private:
  using Point = llvm::SmallVector<int64_t>;

  std::optional<LoweringResult> checkDefined();
  std::optional<LoweringResult> checkTerms();
  std::optional<LoweringResult> checkFactors();
  LoweringResult matchReductions();
  /// The order of the factors of all terms becomes that of the operator.
  bool orderFactors(llvm::ArrayRef<unsigned> order);

  /// Whether the samples agree.
  bool agreeAtSamples(const Matching &matching);
  /// A point of the common dimensions that does not agree.
  std::optional<Point> findDifference(const Matching &matching);

  /// Compares all terms of some outputs where no matching was found.
  LoweringResult compareOutputs(const llvm::Twine &reason);
  std::optional<LoweringResult> compareOutput(llvm::ArrayRef<int64_t> output);

  LoweringResult differ(const llvm::Twine &text) const;
  std::string describeOutput(llvm::ArrayRef<int64_t> point) const;
  bool hasEnoughPoints();

  OperatorOp op;
  mlir::ValueRange inputs;
  const Dims &operatorDims;
  const Term &required;
  const Dims &dims;
  Terms got;
  unsigned numOutputs;
  /// Points at which earlier matchings failed, and outputs of theirs.
  llvm::SmallVector<Point> samples, outputs;
};

} // namespace kas::lowering

#endif // KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_COMPARISON_H
