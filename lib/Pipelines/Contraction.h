//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products on buffers, as plain strides: what the lowering to packed
// panels needs to know about a linalg operation.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_PIPELINES_CONTRACTION_H
#define KAS_LIB_PIPELINES_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas {

/// A buffer and the address of its element at each point of the loops:
/// `base + sum of stride * index`, in elements from the start of the
/// allocation.
struct StridedAccess {
  mlir::Value buffer;
  int64_t base = 0;
  /// One per loop.
  llvm::SmallVector<int64_t> strides;
  /// One more than the largest address of the buffer.
  int64_t size = 0;
};

/// `output += product of inputs`, summed over the reduction loops.
struct Contraction {
  struct Loop {
    int64_t extent;
    bool isReduction;
  };
  llvm::SmallVector<Loop> loops;
  StridedAccess output;
  /// Those that step with the innermost dimension of the output, and the
  /// others.
  llvm::SmallVector<StridedAccess> vectorInputs, scalarInputs;

  /// Loops by what steps with them: batches by both kinds of inputs (or none),
  /// rows by scalar inputs only, columns by vector inputs only. The columns are
  /// sorted, the last one is contiguous in the output.
  llvm::SmallVector<unsigned> batches, rows, columns, reductions;

  int64_t getExtent(llvm::ArrayRef<unsigned> dims) const {
    int64_t extent = 1;
    for (unsigned dim : dims)
      extent *= loops[dim].extent;
    return extent;
  }

  /// What `op` computes, if it is such a sum of f32 on buffers of static shape
  /// and layout with sums of loops as indices; else why it is none.
  static mlir::FailureOr<Contraction>
  match(mlir::linalg::LinalgOp op,
        llvm::function_ref<void(const llvm::Twine &)> because);
};

} // namespace kas

#endif // KAS_LIB_PIPELINES_CONTRACTION_H
