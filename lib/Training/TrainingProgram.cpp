//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the functions of a training (step, evaluation) and holds their
// parameters and constants.
// `-kas-training-step` makes two functions of a network
// (docs/guide/gradients.md, "Training steps"):
//   @train_step: data, labels, learning rate, seed, state -> loss, right, state
//   @evaluate: data, labels, part of the state -> loss, right
// The state is parameters, running statistics and what the optimizer keeps, by
// name.
//
//===----------------------------------------------------------------------===//

#include "kas/Training/TrainingProgram.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Support/RunPasses.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::training;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// Arguments of the step before the state: data, labels, learning rate; without
/// the seed, which comes next.
static constexpr unsigned numStepInputs = 3;
static constexpr llvm::StringLiteral seedName = "seed";

/// The form in which operators are differentiated: of numbers, and as stages.
/// The stages with the least work of a training step, not of inference.
static Error prepareOperators(ModuleOp module) {
  if (module.getOps<OperatorOp>().empty())
    return Error::success();
  return runPasses(module, "operators cannot be prepared for training",
                   [](OpPassManager &manager) {
                     manager.addPass(createKasSpecializePass());
                     KasRFactorPassOptions stages;
                     stages.cost = schedule::StageCost::Training;
                     stages.traffic = schedule::usualTraffic;
                     manager.addPass(createKasRFactorPass(stages));
                   });
}

/// What a parameter is to begin with, where nothing else says it. Vectors scale
/// (normalizations) or are added.
/// The weight of a normalization, and a running variance, are ones; biases and
/// means are zeros.
static StringRef getInitializer(StringRef name, RankedTensorType type) {
  if (type.getRank() >= 2)
    return "kaiming";
  return name.ends_with(".weight") || name.ends_with(".running_var") ? "ones"
                                                                     : "zeros";
}

/// From the learning rate on: the seed, if there is one, is given at each step.
static void setInitializers(func::FuncOp step) {
  Builder builder(step->getContext());
  for (unsigned index = numStepInputs; index < step.getNumArguments();
       ++index) {
    if (step.getArgAttr(index, KasDialect::initializerAttrName) ||
        step.getArgAttr(index, constantAttrName))
      continue;
    auto name = step.getArgAttrOfType<StringAttr>(
        index, KasDialect::argumentNameAttrName);
    auto type = cast<RankedTensorType>(step.getArgumentTypes()[index]);
    step.setArgAttr(index, KasDialect::initializerAttrName,
                    builder.getStringAttr(getInitializer(name, type)));
  }
}

/// The names of constants without an initializer.
/// Such as positions of tokens: nobody but the user knows their values.
static SmallVector<std::string> getConstants(func::FuncOp step) {
  SmallVector<std::string> names;
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (step.getArgAttr(index, constantAttrName) &&
        !step.getArgAttr(index, KasDialect::initializerAttrName))
      names.push_back(step.getArgAttrOfType<StringAttr>(
                              index, KasDialect::argumentNameAttrName)
                          .str());
  return names;
}

/// Replaces the network by the two functions. Returns the number of classes.
/// Diagnostics become the text of the error; the network's own function is of
/// no use any more, and compiling it would take as long again.
static Expected<int64_t> makeFunctions(ModuleOp module, StringRef name,
                                       const TrainingStepOptions &options) {
  std::string reason;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          llvm::raw_string_ostream(reason) << diagnostic;
        return success();
      });
  auto functions = addTrainingFunctions(module, name, options);
  if (failed(functions))
    return createStringError(reason);
  // Labels are the second argument of `@evaluate` where there is one argument
  // of data.
  auto second = functions->evaluation.getNumArguments() < 2
                    ? nullptr
                    : functions->evaluation.getArgAttrOfType<StringAttr>(
                          1, KasDialect::argumentNameAttrName);
  if (!second || second.getValue() != "labels")
    return createStringError(
        "requires a network with one argument of data, got several");
  setInitializers(functions->step);
  auto network = module.lookupSymbol<func::FuncOp>(name);
  auto logits = cast<RankedTensorType>(network.getResultTypes().front());
  network.erase();
  // Logits are [N, classes].
  return logits.getDimSize(1);
}

/// For the descriptions of checkpoints. 17 digits tell all doubles apart.
static std::string describe(const TrainingStepOptions &options) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << (options.optimizer == OptimizerKind::SGD ? "sgd" : "adamw");
  for (double number :
       {options.labelSmoothing, options.momentum, double(options.nesterov),
        options.beta1, options.beta2, options.epsilon, options.weightDecay,
        options.batchNormMomentum, options.clipNorm})
    stream << " " << llvm::format("%.17g", number);
  return text;
}

TrainingProgram::TrainingProgram(CompiledFunction stepFunction,
                                 CompiledFunction evaluateFunction)
    : stepFunction(std::move(stepFunction)),
      evaluateFunction(std::move(evaluateFunction)) {
  auto &arguments = this->stepFunction.getSignature().arguments;
  hasSeed = arguments.size() > numStepInputs &&
            arguments[numStepInputs].name == seedName;
  // Which tensors of the state `@evaluate` reads, in its order: running
  // statistics, but no momentum.
  llvm::StringMap<unsigned> places;
  for (auto [index, tensor] : llvm::enumerate(getState()))
    places[tensor.name] = index;
  for (const TensorSignature &tensor :
       llvm::ArrayRef(this->evaluateFunction.getSignature().arguments)
           .drop_front(2))
    evaluated.push_back(places.at(tensor.name));
}

Expected<TrainingProgram>
TrainingProgram::compile(ModuleOp module, StringRef function,
                         const ProgramOptions &options) {
  if (options.step.loss != LossKind::CrossEntropy)
    return createStringError("requires cross entropy as the loss of labelled "
                             "examples, got the mean squared error");
  // The module is the caller's.
  OwningOpRef<ModuleOp> clone = module.clone();
  if (Error error = prepareOperators(*clone))
    return error;
  Expected<int64_t> numClasses = makeFunctions(*clone, function, options.step);
  if (!numClasses)
    return numClasses.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = options.threads;
  // docs/internals/training.md, "Fewer products".
  if (options.winograd)
    pipeline.algorithm = codegen::ConvolutionAlgorithm::Winograd;
  JITOptions jit;
  jit.cache = options.cache;
  // Two functions of one module: equal kernels are compiled once by the cache.
  auto step = compileForCPU(*clone, trainStepName, pipeline, jit);
  if (!step)
    return step.takeError();
  auto evaluation = compileForCPU(*clone, evaluationName, pipeline, jit);
  if (!evaluation)
    return evaluation.takeError();
  double milliseconds =
      step->getCompileMilliseconds() + evaluation->getCompileMilliseconds();
  TrainingProgram program(std::move(*step), std::move(*evaluation));
  program.optimizer = describe(options.step);
  program.compileMilliseconds = milliseconds;
  program.numClasses = *numClasses;
  program.constants =
      getConstants(clone->lookupSymbol<func::FuncOp>(trainStepName));
  return program;
}

ArrayRef<int64_t> TrainingProgram::getDataShape() const {
  return stepFunction.getSignature().arguments.front().shape;
}

ArrayRef<TensorSignature> TrainingProgram::getState() const {
  return ArrayRef(stepFunction.getSignature().arguments)
      .drop_front(numStepInputs + hasSeed);
}

/// Names and shapes: networks that share these may exchange checkpoints.
std::string TrainingProgram::getDescription() const {
  std::string text = optimizer + " data " + shapeToString(getDataShape());
  for (const TensorSignature &tensor : getState())
    text += " " + tensor.name + " " + shapeToString(tensor.shape);
  return text;
}

/// Given values by name, all others by their initializers and the seed. A name
/// that the network does not have is probably a mistake in writing.
Expected<TrainingState> TrainingProgram::makeState(const NamedTensors &given,
                                                   uint64_t seed) const {
  llvm::StringMap<unsigned> known;
  for (const TensorSignature &tensor : getState())
    known[tensor.name] = 0;
  for (const auto &[name, tensor] : given)
    if (!known.contains(name))
      return createStringError("requires arrays with the names of parameters "
                               "of the network, got '" +
                               name + "'");
  // Constants without an initializer have no default.
  for (const std::string &name : constants)
    if (!given.contains(name))
      return createStringError("requires the values of the constant '" + name +
                               "' of the network, got none");
  auto arguments = stepFunction.getSignature().makeArguments(given, seed);
  if (!arguments)
    return arguments.takeError();
  TrainingState state;
  for (Tensor &tensor :
       MutableArrayRef(*arguments).drop_front(numStepInputs + hasSeed))
    state.push_back(std::move(tensor));
  return state;
}

Expected<BatchOutcome> TrainingProgram::step(ArrayRef<float> data,
                                             ArrayRef<float> labels,
                                             const StepSettings &settings,
                                             TrainingState &state,
                                             TrainingState &spare) const {
  float size = static_cast<float>(settings.learningRate), loss = 0, correct = 0;
  // Numbers that f32 has exactly.
  // The step number makes dropout draw others at each step.
  constexpr uint64_t numSeeds = uint64_t(1) << 24;
  float seed[] = {static_cast<float>(settings.seed % numSeeds),
                  static_cast<float>(settings.number % numSeeds)};
  // Compiled code takes all pointers alike, and writes none of its arguments.
  SmallVector<float *> pointers{const_cast<float *>(data.data()),
                                const_cast<float *>(labels.data()), &size};
  if (hasSeed)
    pointers.push_back(seed);
  for (Tensor &tensor : state)
    pointers.push_back(tensor.data());
  // Results in the order of the signature: loss, right answers, then the new
  // state.
  pointers.append({&loss, &correct});
  for (Tensor &tensor : spare)
    pointers.push_back(tensor.data());
  if (Error error = stepFunction(pointers))
    return error;
  // Only after success: a failed step leaves the old state.
  std::swap(state, spare);
  return BatchOutcome{loss, correct};
}

Expected<BatchOutcome>
TrainingProgram::evaluate(ArrayRef<float> data, ArrayRef<float> labels,
                          const TrainingState &state) const {
  float loss = 0, correct = 0;
  SmallVector<float *> pointers{const_cast<float *>(data.data()),
                                const_cast<float *>(labels.data())};
  for (unsigned place : evaluated)
    pointers.push_back(const_cast<float *>(state[place].data()));
  pointers.append({&loss, &correct});
  if (Error error = evaluateFunction(pointers))
    return error;
  return BatchOutcome{loss, correct};
}
