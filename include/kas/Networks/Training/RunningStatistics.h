//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalization by running statistics: where networks have it, and what
// becomes of it in training.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_TRAINING_RUNNINGSTATISTICS_H
#define KAS_NETWORKS_TRAINING_RUNNINGSTATISTICS_H

#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace kas::networks {

/// A normalization by running statistics that has become one by those of the
/// batch.
struct RunningStatistics {
  BatchNormOp normalization;
  /// Arguments of the function: `NAME.running_mean`, `NAME.running_var`.
  mlir::BlockArgument mean, variance;
  /// `NAME.num_batches_tracked`, of rank 0, where statistics are means over all
  /// batches so far, of which there were so many; else null.
  mlir::BlockArgument numBatches;
  /// The weight of the batch, where the network says it (`kas.momentum`).
  std::optional<double> momentum;
};

/// Replaces normalizations of evaluation, as exporters write them, by
/// `kas.batch_norm`:
///
///     (x - NAME.running_mean) * 1 / sqrt(NAME.running_var + epsilon)
///         [* NAME.weight + NAME.bias]
///
/// of arguments with these names (`kas.name`), one elementwise operation per
/// step. Running statistics that are used in another way are an error. Those
/// with the attribute `kas.constant` are left as they are: they are frozen.
mlir::FailureOr<llvm::SmallVector<RunningStatistics>>
replaceRunningStatistics(mlir::func::FuncOp function);

/// What a normalization keeps after this batch.
struct UpdatedStatistics {
  /// (1 - momentum) times what it is, plus momentum times the mean, or the
  /// variance divided by the number of elements less one, of the batch (as
  /// PyTorch's BatchNorm).
  mlir::Value mean, variance;
  /// One more, where batches are counted; else null.
  mlir::Value numBatches;
};
/// `momentum` is that of normalizations that do not say theirs.
UpdatedStatistics updateStatistics(mlir::OpBuilder &builder,
                                   const RunningStatistics &statistics,
                                   double momentum);

} // namespace kas::networks

#endif // KAS_NETWORKS_TRAINING_RUNNINGSTATISTICS_H
