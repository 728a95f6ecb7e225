//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a sequence of operators computes: each stage by the evaluator of
// operators, and what is between them element by element.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_REFERENCE_SEQUENCEEVALUATOR_H
#define KAS_REFERENCE_SEQUENCEEVALUATOR_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/Reference/Evaluator.h"
#include <vector>

namespace kas::reference {

/// Dense row-major f32 values.
struct SequenceResult {
  llvm::SmallVector<int64_t> shape;
  std::vector<float> values;
};

/// Evaluates `op` where `binding` gives values to the symbols of all stages.
/// `arguments` are the weights of each stage and, where the result is
/// normalized, scale, offset, mean and variance per channel: evaluation by
/// running statistics. What each stage and each step gives is rounded to f32.
///
/// Fails with a diagnostic of `emitError` where the binding is not legal or a
/// tensor does not fit.
mlir::FailureOr<SequenceResult>
evaluateSequence(SequenceOp op, BindingAttr binding, ReferenceTensor data,
                 llvm::ArrayRef<ReferenceTensor> arguments,
                 EmitErrorFn emitError);

} // namespace kas::reference

#endif // KAS_REFERENCE_SEQUENCEEVALUATOR_H
