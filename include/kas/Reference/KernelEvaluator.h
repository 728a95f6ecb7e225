//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The slow evaluator that defines what a kernel of the tensor level computes.
// It shares nothing with lowerings, so that they can be tested against it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_REFERENCE_KERNELEVALUATOR_H
#define KAS_REFERENCE_KERNELEVALUATOR_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Reference/Evaluator.h"

namespace kas::reference {

/// The shapes of the tensors of a kernel at one binding, for one sample.
struct KernelShapes {
  llvm::SmallVector<llvm::SmallVector<int64_t>> inputs;
  /// One per op with a weight, in program order.
  llvm::SmallVector<llvm::SmallVector<int64_t>> weights;
  llvm::SmallVector<int64_t> output;
};

/// The shapes of `kernel` (verified) at `binding`, which has a value for each
/// symbol, variables included, in the order of `getSymbolSet`. Reports sizes
/// that are no integers there, and an output of another size than the result.
llvm::FailureOr<KernelShapes> getShapes(KernelOp kernel, const Binding &binding,
                                        EmitErrorFn emitError);

/// How the numbers between the steps of a kernel are kept.
enum class StepPrecision {
  Double,
  /// Rounded to f32 after each step, as compiled code has them: what overflows
  /// there is infinite then.
  Single
};

/// Evaluates `kernel` on one sample and writes all of `output` (row-major, of
/// the shape of the result): every op in program order, as
/// docs/reference/tensor-level.md has it, in double precision, rounded to f32
/// once at the end, or, if `precision` says so, after each step. What a
/// `kas.dag.apply` reads and computes is f32.
///  - Infinities and NaN pass through as IEEE 754 has it. The maximum and the
///    minimum of NaN and anything is NaN, and +0 is above -0.
///  - An element outside of a window is zero, whatever a weight is then.
///
/// Fails with a diagnostic of `emitError` when `getShapes` does, when a tensor
/// does not fit, or when a step has more than 2^28 elements.
llvm::LogicalResult
evaluateKernel(KernelOp kernel, const Binding &binding,
               llvm::ArrayRef<ReferenceTensor> inputs,
               llvm::ArrayRef<ReferenceTensor> weights,
               llvm::MutableArrayRef<float> output, EmitErrorFn emitError,
               StepPrecision precision = StepPrecision::Double);

} // namespace kas::reference

#endif // KAS_REFERENCE_KERNELEVALUATOR_H
