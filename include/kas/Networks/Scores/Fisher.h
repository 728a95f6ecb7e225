//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fisher Potential: how much a network at initialization would change if
// channels of its layers were switched off.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SCORES_FISHER_H
#define KAS_NETWORKS_SCORES_FISHER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::networks {

struct FisherOptions {
  /// Only the layers whose result goes into a sum with another activation: the
  /// ends of residual blocks, which is where BlockSwap takes it.
  bool residualOnly = false;
  /// Normalize the result of each convolution over batch and space with the
  /// statistics of the batch: batch normalization in training mode, without
  /// weights, for networks whose own is folded into the convolutions.
  bool normalize = false;
};

/// The Fisher Potential of a layer (Turner et al., "Neural Architecture Search
/// as Program Transformation Exploration", eq. 4 and 5): with A its result and
/// g the gradient of the loss with respect to it, the sum over channels c of
/// 1/(2N) sum_n (-sum_{h,w} A g)^2. `spatial` are the dimensions that are
/// summed over inside the square, `batch` is the one of samples. A tensor of
/// rank 0.
mlir::Value emitFisher(mlir::OpBuilder &builder, mlir::Value activation,
                       mlir::Value gradient, unsigned batch,
                       llvm::ArrayRef<unsigned> spatial);

/// Adds a function `name` after `function`, which must have one result of
/// shape samples x classes, that takes one argument more, of that shape: the
/// probability of each class, 1 for the label. It returns the result, then the
/// Fisher Potential of each convolution in program order (one dimension), under
/// the cross entropy, averaged over the samples. `names` gets the names of the
/// layers. Fails with a diagnostic.
mlir::FailureOr<mlir::func::FuncOp>
makeFisherFunction(mlir::func::FuncOp function, llvm::StringRef name,
                   const FisherOptions &options,
                   llvm::SmallVectorImpl<std::string> &names);

} // namespace kas::networks

#endif // KAS_NETWORKS_SCORES_FISHER_H
