//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of operators on tensors: `kas.apply` and elementwise operations.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_SEQUENCETOLINALG_H
#define KAS_CONVERSION_SEQUENCETOLINALG_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas {

/// A tensor that a sequence needs beside its data.
struct SequenceArgument {
  /// `0.weight`, or `0.weight.0`, ... of several weights of a stage; of the
  /// normalization after it, or after what parallel stages have given of which
  /// it is the last, `0.norm.weight`, `0.norm.bias`, `0.norm.running_mean`,
  /// `0.norm.running_var`.
  std::string name;
  mlir::RankedTensorType type;
  /// A `kas.init`.
  std::string initializer;
};

/// The types of the data and the result of a sequence, and its other tensors,
/// by stage in the order above.
struct SequenceSignature {
  mlir::RankedTensorType data, result;
  llvm::SmallVector<SequenceArgument> arguments;
};

/// The signature of `op` where `binding` gives values to the symbols of all
/// stages. Reports a binding that is not legal.
mlir::FailureOr<SequenceSignature> getSequenceSignature(SequenceOp op,
                                                        BindingAttr binding,
                                                        mlir::Type elementType,
                                                        EmitErrorFn emitError);

/// Applies `op` to `data`. Normalizations are those of evaluation, as exporters
/// write them, one elementwise operation per step: `-kas-training-step` makes
/// `kas.batch_norm` of them. `arguments` are those of the signature.
mlir::Value emitSequence(mlir::OpBuilder &builder, mlir::Location loc,
                         SequenceOp op, BindingAttr binding, mlir::Value data,
                         mlir::ValueRange arguments);

/// The name of the function that `createSequenceModule` makes.
constexpr llvm::StringLiteral sequenceFunctionName = "run";

/// A module with copies of the stages of `op` and a function that applies it to
/// f32 tensors, `data` and the arguments of the signature.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
createSequenceModule(SequenceOp op, BindingAttr binding, EmitErrorFn emitError);

} // namespace kas

#endif // KAS_CONVERSION_SEQUENCETOLINALG_H
