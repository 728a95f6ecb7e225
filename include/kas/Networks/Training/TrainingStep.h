//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training steps of networks, as functions on tensors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_TRAINING_TRAININGSTEP_H
#define KAS_NETWORKS_TRAINING_TRAININGSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace kas::networks {

enum class LossKind {
  /// Cross entropy of the softmax of the logits, with the labels as numbers of
  /// classes.
  CrossEntropy,
  /// The mean of squares of the differences from targets of the logits' shape.
  MeanSquaredError,
};

enum class OptimizerKind {
  /// Stochastic gradient descent with momentum (Sutskever et al., ICML 2013, as
  /// PyTorch's SGD).
  SGD,
  /// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
  AdamW,
};

struct TrainingStepOptions {
  /// The names of the arguments that are data; none: the first argument.
  std::vector<std::string> data;
  LossKind loss = LossKind::CrossEntropy;
  /// The share of the targets that all classes have in equal parts (Szegedy et
  /// al., CVPR 2016), from 0 to 1.
  double labelSmoothing = 0;
  OptimizerKind optimizer = OptimizerKind::SGD;
  /// Of SGD; 0: plain gradient descent without state.
  double momentum = 0.9;
  /// The step looks ahead by the momentum.
  bool nesterov = false;
  /// Of AdamW.
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// Of parameters of rank 2 or more: what a step takes away from them for each
  /// unit of the learning rate (AdamW), or adds to their gradients (SGD). The
  /// attribute `kas.weight_decay` of an argument gives another one.
  double weightDecay = 0;
  /// Weight decay of the other parameters as well, as PyTorch's optimizers have
  /// it for what they are given.
  bool decayAll = false;
  /// The weight of the batch in running statistics.
  double batchNormMomentum = 0.1;
  /// The norm that all gradients together are cut to; 0: any.
  double clipNorm = 0;
};

/// Adds a function `name` after `function`, which computes logits [samples,
/// classes] from data, parameters, running statistics and constants:
///
///     (data, labels, learning rate, [seed,] parameters, statistics and
///     constants,
///      state) -> (loss, correct, parameters, statistics and constants, state)
///
/// The new ones have the names (`kas.name`) of the old ones. `labels` has the
/// numbers of the classes as floats; another one is an error at run time.
/// `correct` is how many logits are the largest at their labels. State is zero
/// to begin with: for each parameter `NAME.momentum` (SGD), or `NAME.exp_avg`
/// and `NAME.exp_avg_sq` and, once, `step` (AdamW).
///
/// All tensors are of f32 or of f64. Data and constants may be of integers; the
/// step takes them as floats, and what is no whole number is an error at run
/// time. Arguments without a name are `arg0`, ...; no name may be one of those
/// that are added. Errors are diagnostics.
///
/// Arguments `NAME.running_mean` and `NAME.running_var` are the statistics of
/// normalizations (`replaceRunningStatistics`); training normalizes by the
/// batch. Arguments with the attribute `kas.constant` stay as they are. All
/// others are trained.
///
/// `kas.dropout` leaves out elements by `seed`, two numbers that are to differ
/// from step to step, such as the seed of the training and the number of the
/// step. A network without it has no argument `seed`.
mlir::FailureOr<mlir::func::FuncOp>
makeTrainingStep(mlir::func::FuncOp function, llvm::StringRef name,
                 const TrainingStepOptions &options);

/// Adds a function `name` after `function`: (data, labels, parameters,
/// statistics and constants) -> (loss, correct), with the loss of `options` and
/// without dropout.
mlir::FailureOr<mlir::func::FuncOp>
makeEvaluation(mlir::func::FuncOp function, llvm::StringRef name,
               const TrainingStepOptions &options);

/// What `addTrainingFunctions` calls what it adds.
inline constexpr llvm::StringLiteral trainStepName = "train_step";
inline constexpr llvm::StringLiteral evaluationName = "evaluate";

struct TrainingFunctions {
  mlir::func::FuncOp step, evaluation;
};

/// Adds both for the function of this name, `@train_step` without operands that
/// nothing reads. Errors are diagnostics, also that there is no such function,
/// or already one of these names; options out of range name their number.
mlir::FailureOr<TrainingFunctions>
addTrainingFunctions(mlir::ModuleOp module, llvm::StringRef function,
                     const TrainingStepOptions &options);

} // namespace kas::networks

#endif // KAS_NETWORKS_TRAINING_TRAININGSTEP_H
