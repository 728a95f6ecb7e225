//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The updates of parameters and of their own state by optimizers.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_TRAINING_OPTIMIZER_H
#define LIB_NETWORKS_TRAINING_OPTIMIZER_H

#include "kas/Networks/Training/TrainingStep.h"

namespace kas::networks {

class OptimizerEmitter {
public:
  /// `learningRate` is a tensor of rank 0.
  OptimizerEmitter(mlir::OpBuilder &builder, const TrainingStepOptions &options,
                   mlir::Value learningRate)
      : builder(builder), options(options), learningRate(learningRate) {}

  /// Endings of the names of the tensors that the optimizer keeps for each
  /// parameter.
  static llvm::SmallVector<llvm::StringRef>
  getStateNames(const TrainingStepOptions &options);
  /// Whether it counts steps besides.
  static bool countsSteps(const TrainingStepOptions &options) {
    return options.optimizer == OptimizerKind::AdamW;
  }

  /// Takes the number of steps before this one, a tensor of rank 0; returns
  /// the number after it.
  mlir::Value countStep(mlir::Value steps);
  /// Cuts all gradients to the norm of the options.
  void clip(llvm::MutableArrayRef<mlir::Value> gradients);
  /// The parameter after the step, then the state.
  llvm::SmallVector<mlir::Value> update(mlir::Value parameter,
                                        mlir::Value gradient, double decay,
                                        mlir::ValueRange state);

private:
  llvm::SmallVector<mlir::Value> updateBySGD(mlir::Value parameter,
                                             mlir::Value gradient, double decay,
                                             mlir::ValueRange state);
  llvm::SmallVector<mlir::Value> updateByAdamW(mlir::Value parameter,
                                               mlir::Value gradient,
                                               double decay,
                                               mlir::ValueRange state);

  mlir::OpBuilder &builder;
  const TrainingStepOptions &options;
  mlir::Value learningRate;
  /// AdamW's learning rate over the correction of the first moment, and the
  /// root of that of the second one.
  mlir::Value correctedSize, correctionRoot;
};

} // namespace kas::networks

#endif // LIB_NETWORKS_TRAINING_OPTIMIZER_H
