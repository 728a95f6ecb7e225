//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains a compiled network on a data set, epoch by epoch.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_TRAINER_H
#define KAS_TRAINING_TRAINER_H

#include "kas/Training/Batches.h"
#include "kas/Training/Schedule.h"
#include "kas/Training/StopRule.h"
#include "kas/Training/TrainingProgram.h"

namespace kas::training {

struct TrainerOptions {
  /// Of the whole training, which the schedule is for.
  int64_t epochs = 1;
  /// See `parseSchedule`.
  std::string schedule = "cosine";
  double learningRate = 0.1;
  /// See `parseStopRule`; milestones count steps.
  std::string stop;
  /// Of the parameters to begin with, and of the order of the examples.
  uint64_t seed = 0;
  Augmentation augmentation;
  Border border = Border::Zero;
  /// None: computed from the examples for training.
  std::optional<Normalization> normalization;
};

struct Evaluation {
  /// Mean cross entropy, and the share of examples that were right.
  double loss = 0, accuracy = 0;
};

/// How an epoch went.
struct EpochReport {
  /// Whole epochs and steps so far.
  int64_t epoch = 0, step = 0;
  /// Over the batches of the epoch, with the parameters of each step.
  Evaluation training;
  /// After the epoch, if there are examples for validation.
  std::optional<Evaluation> validation;
  /// Of the clock, for steps and for the evaluation.
  double trainingSeconds = 0, evaluationSeconds = 0;
  /// Why the training has ended before its time.
  std::optional<std::string> stopped;
};

/// A training. The same program, data and options give the same state on the
/// same machine, interrupted or not.
class Trainer {
public:
  /// Errors: examples of another shape than the network's (images are centred
  /// and cut or padded to its height and width, everything else must agree),
  /// more classes than the network has, fewer examples than a batch, what
  /// `BatchLoader`, `parseSchedule` and `parseStopRule` refuse.
  static llvm::Expected<Trainer>
  create(std::shared_ptr<const TrainingProgram> program, const DataSplits &data,
         const TrainerOptions &options,
         const execution::NamedTensors &parameters = {});

  int64_t getEpoch() const { return epoch; }
  /// All epochs are over, or a rule has ended the training.
  bool isDone() const { return stopped || epoch >= options.epochs; }
  llvm::ArrayRef<execution::Tensor> getState() const { return state; }
  const TrainingProgram &getProgram() const { return *program; }
  /// Copies of the parameters and running statistics, without the state of the
  /// optimizer.
  execution::NamedTensors getParameters() const;
  /// The last accuracy on the examples for validation, in [0, 1].
  std::optional<double> getAccuracy() const { return accuracy; }

  /// One epoch: its batches in the order that belongs to it; examples that do
  /// not fill a batch are left out. Must not be called when done. Error: an
  /// assertion of the network failed.
  llvm::Expected<EpochReport> trainEpoch();

  /// Evaluates the network as it is on all examples of `data`.
  llvm::Expected<Evaluation> evaluate(const Dataset &data) const;

  /// Writes the state, from which `restore` continues bit by bit. The old file
  /// stays whole on a failure.
  llvm::Error save(llvm::StringRef path) const;
  /// Continues from a file that a trainer of the same network, options and
  /// examples has written; else an error, and nothing has changed.
  llvm::Error restore(llvm::StringRef path);

private:
  Trainer(std::shared_ptr<const TrainingProgram> program,
          TrainerOptions options, BatchLoader loader, Schedule schedule,
          StopRule rule);

  std::string getDescription() const;
  llvm::SmallVector<NamedBuffer> getBuffers(TrainingState &tensors) const;

  std::shared_ptr<const TrainingProgram> program;
  TrainerOptions options;
  BatchLoader loader;
  std::optional<BatchLoader> validation;
  std::string examples;
  Schedule schedule;
  StopRule rule;
  TrainingState state, spare;
  int64_t epoch = 0;
  bool stopped = false;
  std::optional<double> accuracy;
};

} // namespace kas::training

#endif // KAS_TRAINING_TRAINER_H
