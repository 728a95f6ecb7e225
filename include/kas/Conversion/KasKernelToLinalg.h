//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowering of the tensor level: kernels at a binding become functions on
// tensors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_KASKERNELTOLINALG_H
#define KAS_CONVERSION_KASKERNELTOLINALG_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace kas {

struct KernelToLinalgOptions {
  /// Samples that the functions of the pass take at once.
  int64_t batch = 1;
  /// No tensor between steps, with padding, may have more elements.
  int64_t maxElements = int64_t(1) << 30;
};

/// Emits the steps of `kernel` (verified, in a module) at `binding`, which has
/// a value for each symbol, variables included, in the order of `getSymbolSet`.
/// `inputs` have the batch as a first dimension, `weights`, in program order,
/// have not. Elements are all of one floating-point type. Returns the output
/// with the batch first, in the shape of the result.
///
/// Fails with a diagnostic when a size is no integer at the binding (K3), when
/// a tensor has more elements than the options allow, or when an operator that
/// is applied has no batch dimension and the batch is not 1.
mlir::FailureOr<mlir::Value>
emitKernel(mlir::OpBuilder &builder, mlir::Location loc, KernelOp kernel,
           const Binding &binding, mlir::ValueRange inputs,
           mlir::ValueRange weights, const KernelToLinalgOptions &options = {});

/// A weight of a kernel at a binding.
struct KernelWeight {
  llvm::SmallVector<int64_t> shape;
  /// Random weights of this standard deviation and those of the same step make
  /// a sum of products that keeps the deviation of its input.
  double deviation;
};

/// The weights of `kernel` at `binding` in program order. Fails with a
/// diagnostic when a size is no integer there.
mlir::FailureOr<llvm::SmallVector<KernelWeight>>
getKernelWeights(KernelOp kernel, const Binding &binding);

/// A value for each symbol of `kernel`, variables included: that of `given`,
/// else that of the kernel's first binding. Fails with a diagnostic of
/// `emitError` when a symbol has neither, or `given` names another one.
mlir::FailureOr<Binding> completeBinding(KernelOp kernel, BindingAttr given,
                                         EmitErrorFn emitError);

/// Creates the function `name` at the builder's insertion point that computes
/// `kernel` at `binding`: from the inputs, then the weights in program order.
/// Arguments are named `input0`, ..., `weight0`, ... and initialized so that a
/// sum of products keeps the deviation of its input.
mlir::FailureOr<mlir::func::FuncOp>
createKernelFunction(mlir::OpBuilder &builder, KernelOp kernel,
                     const Binding &binding, llvm::StringRef name,
                     const KernelToLinalgOptions &options = {});

} // namespace kas

#endif // KAS_CONVERSION_KASKERNELTOLINALG_H
