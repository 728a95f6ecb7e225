//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of operators. Apart from Kas.h, so that those who need only
// operators do not compile them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_H
#define KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_H

#include "kas/Dialect/Kas/IR/Kas.h"

#include "kas/Dialect/Kas/IR/KasSequenceEnums.h.inc"

namespace kas {

/// Makes one tensor of what two operators give for the same data.
inline bool combines(SequenceStep step) { return step >= SequenceStep::Add; }

} // namespace kas

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasSequenceOps.h.inc"

namespace kas {

inline bool normalizes(SequenceStep step) {
  return step == SequenceStep::Normalize || step == SequenceStep::NormalizeRelu;
}
inline bool rectifies(SequenceStep step) {
  return step == SequenceStep::Relu || step == SequenceStep::NormalizeRelu;
}

/// What normalizations of sequences add to the variance.
inline constexpr double sequenceEpsilon = 1e-5;

/// `size` with `width` in the place of the symbol `name`; null when that does
/// not fit. `width` must not have that symbol.
SizeAttr substituteSymbol(SizeAttr size, mlir::StringAttr name, SizeAttr width);

/// a + b, or null where that is no monomial.
SizeAttr addSizes(SizeAttr a, SizeAttr b);

/// The binding of a stage of a sequence, where `binding` gives values to the
/// symbols of all stages.
BindingAttr getStageBinding(OperatorOp stage, BindingAttr binding);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_KASSEQUENCEOPS_H
