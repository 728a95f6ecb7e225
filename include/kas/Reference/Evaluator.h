//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The slow evaluator that defines what an operator computes. It reads the
// primitives itself, with integers, and shares nothing with the lowerings, so
// that they can be tested against it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_REFERENCE_EVALUATOR_H
#define KAS_REFERENCE_EVALUATOR_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas::reference {

/// Dense row-major f32 values that somebody else owns.
struct ReferenceTensor {
  llvm::ArrayRef<int64_t> shape;
  llvm::ArrayRef<float> values;
};

/// The shapes of the tensors of a concrete operator.
struct OperatorShapes {
  llvm::SmallVector<int64_t> output;
  llvm::SmallVector<int64_t> data;
  llvm::SmallVector<llvm::SmallVector<int64_t>> weights;
};

/// The shapes of `op`, which must be concrete.
OperatorShapes getShapes(OperatorOp op);

/// The number of elements of `shape`, or nothing when it is 2^63 or more.
std::optional<int64_t> getNumElements(llvm::ArrayRef<int64_t> shape);

/// Evaluates the concrete operator `op` on `data` and `weights` and writes all
/// of `output` (row-major, of the size of the output shape).
///
/// For each output point: reductions nest in program order, the first one
/// outermost; the innermost value is the data element times one element of each
/// weight, in double precision, rounded to f32 once at the end.
///  - A point at which any unfold leaves its range does not exist, whoever
///  reads
///    the unfold's result. `sum` and `mean` add nothing for it, `max` skips it.
///  - `mean` is the sum divided by the whole size of the reduction.
///  - A reduction without points has no value: it is no point of the one
///  outside,
///    and is zero at the output.
///  - Infinities and NaN pass through as IEEE 754 has it. `max` of NaN and
///    anything is NaN and +0 is above -0, as `arith.maximumf`. Nothing is read
///    at a point that does not exist, so a NaN there has no effect.
///
/// Fails with a diagnostic of `emitError` when `op` is not concrete, its sizes
/// are not legal or a tensor does not fit.
///
/// Source: the meaning of a pGraph in the Syno paper, sections 4 and 5;
/// padding, `mean` and `max` are decided in docs/reference/dialect.md.
llvm::LogicalResult evaluateOperator(OperatorOp op, ReferenceTensor data,
                                     llvm::ArrayRef<ReferenceTensor> weights,
                                     llvm::MutableArrayRef<float> output,
                                     EmitErrorFn emitError);

} // namespace kas::reference

#endif // KAS_REFERENCE_EVALUATOR_H
