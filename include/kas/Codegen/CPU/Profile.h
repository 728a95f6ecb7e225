//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Timing the operations of a function where it runs: operations are labelled
// before they are lowered, and what they became calls a clock.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_PROFILE_H
#define KAS_CODEGEN_CPU_PROFILE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::codegen {

/// An operation of a function on tensors, as the model has it.
struct ModelOperation {
  /// `conv_2d_nchw_fchw`, `kas.apply @conv2d`; of a `linalg.generic` what its
  /// body computes: `addf, maximumf`.
  std::string kind;
  /// The first argument that it reads besides the data, by its `kas.name`
  /// without the last part: the layer; empty if there is none.
  std::string layer;
  mlir::Location location;
  /// See `countFlops`.
  std::optional<int64_t> flops;
};

/// Gives each operation in the body of `function` but for constants and empty
/// tensors its number, in the order of the result, as a label of its location,
/// and of those of all operations in its regions. Passes carry it along.
llvm::SmallVector<ModelOperation> labelOperations(mlir::func::FuncOp function);

/// The labels in `location`, ascending.
llvm::SmallVector<unsigned> getLabels(mlir::Location location);

/// What runs between two calls of the clock: a loop nest, a linalg operation, a
/// copy or a call, and what allocates and fills buffers before it.
struct ProfileStep {
  /// The name of the operation.
  std::string kind;
  /// The labels of all that was lowered to it, ascending.
  llvm::SmallVector<unsigned> operations;
  /// Of the buffers that it uses, each once.
  int64_t bytes = 0;
};

/// The function that is called with -1 at the begin of a profiled function and
/// with the number of each step after it: `void
/// kas_profile_timestamp(int64_t)`.
inline constexpr llvm::StringLiteral profileTimestampName =
    "kas_profile_timestamp";

/// Lets `function`, on buffers, call `profileTimestampName` after each of its
/// steps, which are the result. Functions of several blocks have no steps.
llvm::SmallVector<ProfileStep>
insertProfileTimestamps(mlir::func::FuncOp function);

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_PROFILE_H
