//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which functions compute the samples of a batch one by one, and the same
// functions for batches of another size.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_COMMON_PERSAMPLE_H
#define KAS_CODEGEN_COMMON_PERSAMPLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::codegen {

/// Where the samples of a tensor are: the dimension `dim` has `outer` times all
/// samples, and `inner` elements next to each other belong to one. So the
/// element `i` belongs to the sample `i / inner % batch`.
struct SamplePosition {
  int64_t dim, outer, inner;

  bool operator==(const SamplePosition &other) const {
    return dim == other.dim && hasSizesOf(other);
  }
  bool operator!=(const SamplePosition &other) const {
    return !(*this == other);
  }
  bool hasSizesOf(const SamplePosition &other) const {
    return outer == other.outer && inner == other.inner;
  }
};

/// The samples in a function that computes them one by one.
struct SamplePositions {
  /// How many there are.
  int64_t batch = 0;
  /// Of the tensors that depend on data. All others are the same for each
  /// sample.
  llvm::DenseMap<mlir::Value, SamplePosition> places;
  /// The loop over samples of each linalg operation that depends on data.
  llvm::DenseMap<mlir::Operation *, unsigned> loops;
};

/// Finds the samples of `function`, where each sample of the results is
/// computed from the same sample of the data alone, and all samples in the same
/// way. So a batch may be computed in parts of any size. Samples are the first
/// dimension, of at least two of them, of the first `numData` arguments and of
/// all results; the other arguments are weights. Else an error gives the
/// operation that mixes samples, or is not known, as those on tensors of
/// dynamic shape. Decides by indexing maps, not by values.
mlir::FailureOr<SamplePositions> findSamples(mlir::func::FuncOp function,
                                             unsigned numData);

/// Lets `function` compute `size` samples instead of those that were found.
/// `samples` is that of `findSamples` and holds no longer.
void setNumSamples(mlir::func::FuncOp function, const SamplePositions &samples,
                   int64_t size);

} // namespace kas::codegen

#endif // KAS_CODEGEN_COMMON_PERSAMPLE_H
