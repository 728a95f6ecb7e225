//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Losses and what the logits contribute to them.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_TRAINING_LOSS_H
#define LIB_NETWORKS_TRAINING_LOSS_H

#include "kas/Networks/Training/TrainingStep.h"

namespace kas::networks {

struct Loss {
  /// Tensors of rank 0: the mean over the samples, and the number of samples
  /// whose label has the largest logit, the first of them.
  mlir::Value value, correct;
  /// The gradient of the value by the logits.
  mlir::Value gradient;
};

/// The type of the labels for logits of type `logits`.
mlir::RankedTensorType getLabelsType(mlir::RankedTensorType logits,
                                     const TrainingStepOptions &options);

/// The gradient is null where it is not wanted.
Loss emitLoss(mlir::OpBuilder &builder, mlir::Value logits, mlir::Value labels,
              const TrainingStepOptions &options, bool wantsGradient);

} // namespace kas::networks

#endif // LIB_NETWORKS_TRAINING_LOSS_H
