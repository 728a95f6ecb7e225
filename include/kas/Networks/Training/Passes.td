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

def KasMarkDropoutPass : Pass<"kas-mark-dropout", "::mlir::ModuleOp"> {
  let summary = "Make kas.dropout of multiplications that stand for it";
  let description = [{
    Exporters leave dropout out (of networks in evaluation) or make random numbers
    of their own. So `kas.torch.to_mlir(..., dropout=True)` multiplies by an
    argument of rank 0 in its place, which has the probability as the attribute
    `kas.dropout`. This pass turns each such multiplication, an elementwise
    operation of two operands that is the argument's only use, into `kas.dropout`
    and takes the arguments away. Another use is an error.

    Example: `test/Networks/Training/mark-dropout.mlir`.
  }];
  let dependentDialects = ["::kas::KasDialect"];
}

def KasTrainingStepPass : Pass<"kas-training-step", "::mlir::ModuleOp"> {
  let summary = "Add functions that train and evaluate a network";
  let description = [{
    For a function from data (its first argument, or those that `data` names) and
    parameters to logits [samples, classes], adds two:

    * `@train_step` takes data, labels, the learning rate, the parameters and the
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
    statistics. The weight of the batch in these is the attribute `kas.momentum` of
    the running mean, else `batch-norm-momentum`; with an argument
    `NAME.num_batches_tracked` they are means over all batches.
    Arguments with the attribute `kas.constant` stay as they are, also running
    statistics, by which the step normalizes then. All
    other arguments are trained; the attribute `kas.weight_decay` of an argument
    takes the place of `weight-decay`, which is for parameters of rank 2 or more.

    Data and constants of integers, such as numbers of tokens, become arguments of
    floats; what is no whole number is an error at run time. Labels come after the
    data.

    Dropout (`kas.dropout`, see `-kas-mark-dropout`) draws its random numbers from
    an argument `seed` after the learning rate: two numbers that are to differ from
    step to step. Networks without dropout have no such argument; evaluation leaves
    dropout out.

    The state is zeros to begin with: `NAME.momentum` for each parameter, or
    `NAME.exp_avg`, `NAME.exp_avg_sq` and `step` (AdamW). Optimizers compute what
    PyTorch's of the same name do.

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>, %w: tensor<3x4xf32> {kas.name = "w"}) -> tensor<8x3xf32>
    // kas-opt -kas-training-step
    func.func @train_step(%x: tensor<8x4xf32>, %labels: tensor<8xf32> {kas.name = "labels"},
        %learning_rate: tensor<f32> {...}, %w: tensor<3x4xf32> {kas.name = "w"},
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
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function that computes the network">,
    ListOption<"data", "data", "std::string",
               "Names of the arguments that are data; none: the first one">,
    Option<"loss", "loss", "::kas::networks::LossKind",
           "::kas::networks::LossKind::CrossEntropy", "The loss to minimize",
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
           "The term that AdamW adds to divisors">,
    Option<"weightDecay", "weight-decay", "double", "0",
           "Of parameters of rank 2 or more">,
    Option<"decayAll", "decay-all", "bool", "false",
           "Weight decay of all parameters, as PyTorch's optimizers have it">,
    Option<"batchNormMomentum", "batch-norm-momentum", "double", "0.1",
           "The weight of the batch in running statistics of normalizations "
           "that do not say theirs">,
    Option<"clipNorm", "clip-norm", "double", "0",
           "The norm that all gradients together are cut to; 0: any">,
  ];
}

#endif // KAS_NETWORKS_TRAINING_PASSES_TD
