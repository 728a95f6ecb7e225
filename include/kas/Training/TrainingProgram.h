//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A network compiled for training: a step and an evaluation, as functions on
// f32 tensors in memory.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_TRAININGPROGRAM_H
#define KAS_TRAINING_TRAININGPROGRAM_H

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Networks/Training/TrainingStep.h"
#include <vector>

namespace kas::training {

struct ProgramOptions {
  networks::TrainingStepOptions step;
  /// Threads of parallel loops.
  unsigned threads = 1;
  /// Convolutions of 3x3 with stride 1 and their gradients by the data by
  /// Winograd's algorithm where it suits them: faster, less exact, and as
  /// accurate after a whole training.
  bool winograd = true;
  /// Not owned; may be null.
  execution::ObjectCache *cache = nullptr;
};

/// Parameters, running statistics and the state of the optimizer, in the order
/// of the step's arguments.
using TrainingState = std::vector<execution::Tensor>;

/// What a step needs besides examples and state.
struct StepSettings {
  double learningRate = 0.1;
  /// Of what is random in the step (dropout): the seed of the training and the
  /// number of the step.
  uint64_t seed = 0;
  int64_t number = 0;
};

/// What a step or an evaluation of one batch returns.
struct BatchOutcome {
  /// The sum over the samples divided by the size of the batch, and how many of
  /// them were right.
  double loss = 0, correct = 0;
};

/// The functions of `-kas-training-step`, compiled for the CPU. Immutable:
/// threads may share one, each with a state of its own.
class TrainingProgram {
public:
  /// Compiles the training of `function`, a network as `makeTrainingStep` takes
  /// it, whose operators (`kas.apply`) may have symbols. `module` stays as it
  /// is. Errors: what cannot be trained or compiled; a loss other than cross
  /// entropy; f64; several arguments of data.
  static llvm::Expected<TrainingProgram> compile(mlir::ModuleOp module,
                                                 llvm::StringRef function,
                                                 const ProgramOptions &options);

  /// Of a batch, its first dimension the samples.
  llvm::ArrayRef<int64_t> getDataShape() const;
  int64_t getBatchSize() const { return getDataShape().front(); }
  int64_t getNumClasses() const { return numClasses; }
  /// Names and shapes of the state.
  llvm::ArrayRef<execution::TensorSignature> getState() const;
  /// The places in the state of what an evaluation needs: parameters and
  /// running statistics.
  llvm::ArrayRef<unsigned> getParameterPositions() const { return evaluated; }
  /// Milliseconds that compiling took.
  double getCompileMilliseconds() const { return compileMilliseconds; }
  /// A text that only networks have in common whose states have the same
  /// tensors, data and optimizer.
  std::string getDescription() const;

  /// The state to begin with: from `given` by name, else as `kas.init` of the
  /// argument says, else by `seed`: matrices and what has more dimensions by
  /// He's rule, scales and variances 1, everything else 0. Errors: another
  /// shape, a name that no tensor has, a constant (`kas.constant`) that neither
  /// is given nor has `kas.init`.
  llvm::Expected<TrainingState> makeState(const execution::NamedTensors &given,
                                          uint64_t seed) const;

  /// One step: `state` becomes the next one, `spare` (of the same shapes) what
  /// it was. Labels are numbers of classes as f32. Error: the assertion that
  /// failed; both states are not specified then.
  llvm::Expected<BatchOutcome> step(llvm::ArrayRef<float> data,
                                    llvm::ArrayRef<float> labels,
                                    const StepSettings &settings,
                                    TrainingState &state,
                                    TrainingState &spare) const;

  /// One batch with running statistics. The label -1 belongs to no sample.
  llvm::Expected<BatchOutcome> evaluate(llvm::ArrayRef<float> data,
                                        llvm::ArrayRef<float> labels,
                                        const TrainingState &state) const;

private:
  TrainingProgram(execution::CompiledFunction stepFunction,
                  execution::CompiledFunction evaluateFunction);

  execution::CompiledFunction stepFunction, evaluateFunction;
  std::string optimizer;
  /// Whether the step takes a seed.
  bool hasSeed = false;
  /// Constants whose values must be given.
  llvm::SmallVector<std::string> constants;
  int64_t numClasses = 0;
  double compileMilliseconds = 0;
  /// For each argument of the evaluation after data and labels, its place in
  /// the state.
  llvm::SmallVector<unsigned> evaluated;
};

} // namespace kas::training

#endif // KAS_TRAINING_TRAININGPROGRAM_H
