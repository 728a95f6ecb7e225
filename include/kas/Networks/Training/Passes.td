//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes on training.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_TRAINING_PASSES_TD
#define KAS_NETWORKS_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasTrainingStepPass : Pass<"kas-training-step", "::mlir::ModuleOp"> {
  let summary = "Add functions that train and evaluate a network";
  let description = [{
    For a function from data (its first argument) and parameters to logits
    [samples, classes], adds two:

    * `@train_step` takes data, labels, the step size, the parameters and the
      state of the optimizer, and returns the loss, how many samples were right,
      and parameters and state after the step, with their names (`kas.name`).
    * `@evaluate` takes data, labels and parameters, and returns loss and how many
      were right.

    Labels are numbers of classes, as floats; another number is an error at run
    time, but -1 in an evaluation, a sample that does not count (the loss is
    divided by the size of the batch nevertheless). The first class with the largest logit counts.

    The function is the network in evaluation, as torch-mlir writes it.
    Normalizations by running statistics, arguments `NAME.running_mean` and
    `NAME.running_var`, become `kas.batch_norm`; the step returns the new
    statistics. All other arguments are trained; the attribute
    `kas.weight_decay` of an argument takes the place of `weight-decay`, which is
    for parameters of rank 2 or more.

    The state is zeros to begin with: `NAME.momentum` for each parameter, or
    `NAME.exp_avg`, `NAME.exp_avg_sq` and `step` (AdamW). Optimizers compute what
    PyTorch's of the same name do.

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>, %w: tensor<3x4xf32> {kas.name = "w"}) -> tensor<8x3xf32>
    // kas-opt -kas-training-step
    func.func @train_step(%x: tensor<8x4xf32>, %labels: tensor<8xf32> {kas.name = "labels"},
        %step_size: tensor<f32> {...}, %w: tensor<3x4xf32> {kas.name = "w"},
        %momentum: tensor<3x4xf32> {kas.init = "zeros", kas.name = "w.momentum"})
        -> (tensor<f32> {kas.name = "loss"}, tensor<f32> {kas.name = "correct"},
            tensor<3x4xf32> {kas.name = "w"}, tensor<3x4xf32> {kas.name = "w.momentum"})
    func.func @evaluate(%x: tensor<8x4xf32>, %labels: tensor<8xf32>, %w: tensor<3x4xf32>)
        -> (tensor<f32>, tensor<f32>)
    ```
  }];
  let dependentDialects = ["::kas::KasDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function that computes the network">,
    Option<"loss", "loss", "::kas::networks::LossKind",
           "::kas::networks::LossKind::CrossEntropy", "What is minimized",
           [{::llvm::cl::values(
               clEnumValN(::kas::networks::LossKind::CrossEntropy,
                          "cross-entropy", "cross entropy of the labels"),
               clEnumValN(::kas::networks::LossKind::MeanSquaredError, "mse",
                          "mean of squared differences from targets of the "
                          "logits' shape"))}]>,
    Option<"labelSmoothing", "label-smoothing", "double", "0",
           "The share of the target that all classes have in equal parts">,
    Option<"optimizer", "optimizer", "::kas::networks::OptimizerKind",
           "::kas::networks::OptimizerKind::SGD", "How parameters are changed",
           [{::llvm::cl::values(
               clEnumValN(::kas::networks::OptimizerKind::SGD, "sgd",
                          "gradient descent with momentum"),
               clEnumValN(::kas::networks::OptimizerKind::AdamW, "adamw",
                          "AdamW"))}]>,
    Option<"momentum", "momentum", "double", "0.9",
           "Of SGD; 0: none, and no state">,
    Option<"nesterov", "nesterov", "bool", "false",
           "SGD looks ahead by the momentum">,
    Option<"beta1", "beta1", "double", "0.9", "AdamW's, of the mean">,
    Option<"beta2", "beta2", "double", "0.999", "AdamW's, of the squares">,
    Option<"epsilon", "epsilon", "double", "1e-8",
           "What AdamW adds to divisors">,
    Option<"weightDecay", "weight-decay", "double", "0",
           "Of parameters of rank 2 or more">,
    Option<"batchNormMomentum", "batch-norm-momentum", "double", "0.1",
           "The weight of the batch in running statistics">,
    Option<"clipNorm", "clip-norm", "double", "0",
           "The norm that all gradients together are cut to; 0: any">,
  ];
}

#endif // KAS_NETWORKS_TRAINING_PASSES_TD
