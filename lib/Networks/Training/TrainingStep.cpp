//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the function of one training step from a network: loss, gradients,
// updates of parameters and of the optimizer's state
// (docs/internals/training.md).
// The step is a clone of the network with arguments and results for everything
// that changes: no state is hidden, so that it can be read, tested and compiled
// like any function. Order of the arguments: data, labels, learning rate, seed,
// the network's others, state of the optimizer; of the results: loss, right
// answers, the new values of the others in order, state.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Training/TrainingStep.h"
#include "../FindFunction.h"
#include "../Scores/NetworkLayers.h"
#include "ExpandedPadding.h"
#include "Loss.h"
#include "Optimizer.h"
#include "StepArguments.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Networks/Training/RunningStatistics.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// Makes the step of a clone of the network.
class StepBuilder {
public:
  StepBuilder(func::FuncOp step, const TrainableNetwork &network,
              const TrainingStepOptions &options)
      : step(step), builder(step->getContext()), network(network),
        options(options), block(step.getBody().front()) {}

  LogicalResult run();

private:
  /// Positions of arguments after it move by one; block arguments stay valid.
  Value insertArgument(unsigned position, Type type, const Twine &name,
                       StringRef initializer = "");
  /// Sorts the arguments into `parameters` and `constants`.
  LogicalResult findParameters();
  /// Adds the argument `seed` if the network has dropout.
  LogicalResult seedDropouts(unsigned position);
  LogicalResult checkReached(ValueRange gradients);
  /// Biases and scales of normalizations have no decay unless an attribute says
  /// so.
  double getDecay(BlockArgument parameter);
  /// Adds the optimizer's state and fills `results`.
  void emitUpdates(Value learningRate, MutableArrayRef<Value> gradients);

  func::FuncOp step;
  OpBuilder builder;
  const TrainableNetwork &network;
  const TrainingStepOptions &options;
  Block &block;
  SmallVector<RunningStatistics> statistics;
  /// The arguments that are trained, and those that stay as they are.
  SmallVector<BlockArgument> parameters, constants;
  SmallVector<Value> results;
  /// The names of what is returned after loss and correct answers.
  SmallVector<std::string> resultNames;
};

} // namespace

Value StepBuilder::insertArgument(unsigned position, Type type,
                                  const Twine &name, StringRef initializer) {
  SmallVector<NamedAttribute> attributes{builder.getNamedAttr(
      KasDialect::argumentNameAttrName, builder.getStringAttr(name))};
  if (!initializer.empty())
    attributes.push_back(builder.getNamedAttr(
        KasDialect::initializerAttrName, builder.getStringAttr(initializer)));
  LogicalResult inserted = step.insertArgument(
      position, type, builder.getDictionaryAttr(attributes), step.getLoc());
  assert(succeeded(inserted) && "a func.func takes arguments");
  (void)inserted;
  return block.getArgument(position);
}

LogicalResult StepBuilder::findParameters() {
  DenseSet<Value> others;
  for (unsigned position : network.data)
    others.insert(block.getArgument(position));
  for (const RunningStatistics &entry : statistics) {
    others.insert_range(ArrayRef<Value>{entry.mean, entry.variance});
    if (entry.numBatches)
      others.insert(entry.numBatches);
  }
  for (BlockArgument argument : block.getArguments()) {
    if (others.contains(argument))
      continue;
    Attribute isConstant =
        step.getArgAttr(argument.getArgNumber(), constantAttrName);
    (isConstant ? constants : parameters).push_back(argument);
  }
  if (parameters.empty())
    return step.emitError("to train, requires parameters, arguments that are "
                          "no data, got none");
  return success();
}

/// Each dropout draws from a stream of its own, by its number in the network,
/// so that two of them do not drop the same elements.
LogicalResult StepBuilder::seedDropouts(unsigned position) {
  auto dropouts = llvm::to_vector(block.getOps<DropoutOp>());
  if (dropouts.empty())
    return success();
  Type type = RankedTensorType::get({2}, network.logits.getElementType());
  Value seed = insertArgument(position, type, "seed");
  for (auto [stream, dropout] : llvm::enumerate(dropouts)) {
    if (dropout.getSeed())
      return dropout.emitError("to train, requires dropout without a seed, "
                               "which the step gives it");
    dropout.getSeedMutable().assign(seed);
    dropout.setStream(stream);
  }
  return success();
}

/// A gradient that is filled with zeros belongs to a parameter that the logits
/// do not depend on.
/// It would never change, which is more likely a mistake in the network.
LogicalResult StepBuilder::checkReached(ValueRange gradients) {
  for (auto [parameter, gradient] : llvm::zip_equal(parameters, gradients))
    if (gradient.getDefiningOp<linalg::FillOp>())
      return step.emitError("to train, requires logits that depend on each "
                            "parameter, got a constant by '")
             << getArgumentName(step, parameter.getArgNumber()) << "'";
  return success();
}

double StepBuilder::getDecay(BlockArgument parameter) {
  auto given = step.getArgAttrOfType<FloatAttr>(parameter.getArgNumber(),
                                                weightDecayAttrName);
  if (given)
    return given.getValueAsDouble();
  bool isMatrix = cast<RankedTensorType>(parameter.getType()).getRank() >= 2;
  return isMatrix || options.decayAll ? options.weightDecay : 0;
}

/// Clipping comes first: it needs all gradients.
void StepBuilder::emitUpdates(Value learningRate,
                              MutableArrayRef<Value> gradients) {
  OptimizerEmitter optimizer(builder, options, learningRate);
  optimizer.clip(gradients);
  SmallVector<StringRef> kinds = OptimizerEmitter::getStateNames(options);
  // Parameter by parameter, all kinds of one next to each other.
  SmallVector<Value> state;
  for (BlockArgument parameter : parameters)
    for (StringRef kind : kinds)
      state.push_back(insertArgument(
          step.getNumArguments(), parameter.getType(),
          getArgumentName(step, parameter.getArgNumber()) + "." + kind,
          "zeros"));
  Value steps, counted;
  if (OptimizerEmitter::countsSteps(options)) {
    // AdamW counts its steps in the state, so that a checkpoint has the count.
    steps = insertArgument(step.getNumArguments(), learningRate.getType(),
                           "step", "zeros");
    counted = optimizer.countStep(steps);
  }

  // The new value of each argument of the network.
  DenseMap<Value, Value> updated;
  SmallVector<Value> newState;
  for (auto [index, parameter] : llvm::enumerate(parameters)) {
    auto values = optimizer.update(
        parameter, gradients[index], getDecay(parameter),
        ArrayRef(state).slice(index * kinds.size(), kinds.size()));
    updated[parameter] = values.front();
    llvm::append_range(newState, ArrayRef(values).drop_front());
  }
  for (const RunningStatistics &entry : statistics) {
    UpdatedStatistics values =
        updateStatistics(builder, entry, options.batchNormMomentum);
    updated[entry.mean] = values.mean;
    updated[entry.variance] = values.variance;
    if (entry.numBatches)
      updated[entry.numBatches] = values.numBatches;
  }
  // Constants are returned, too: results are the next step's arguments.
  for (BlockArgument constant : constants)
    updated[constant] = constant;
  // In the order of the arguments, whatever was computed first.
  for (BlockArgument argument : block.getArguments()) {
    Value value = updated.lookup(argument);
    if (!value)
      continue;
    results.push_back(value);
    resultNames.push_back(getArgumentName(step, argument.getArgNumber()));
  }
  for (auto [argument, value] : llvm::zip_equal(state, newState)) {
    results.push_back(value);
    resultNames.push_back(
        getArgumentName(step, cast<BlockArgument>(argument).getArgNumber()));
  }
  if (counted) {
    results.push_back(counted);
    resultNames.push_back("step");
  }
}

/// By these names callers find state in the results.
static void setResultNames(func::FuncOp function, ArrayRef<std::string> names) {
  Builder builder(function->getContext());
  for (auto [index, name] : llvm::enumerate(names))
    function.setResultAttr(index, KasDialect::argumentNameAttrName,
                           builder.getStringAttr(name));
}

/// Normalizations are replaced first: afterwards their statistics are no
/// parameters.
LogicalResult StepBuilder::run() {
  // Before gradients are emitted, which look for padding next to convolutions.
  expandBeforePadding(step);
  FailureOr<SmallVector<RunningStatistics>> found =
      replaceRunningStatistics(step);
  if (failed(found))
    return failure();
  statistics = *found;
  if (failed(findParameters()))
    return failure();

  Type scalar = RankedTensorType::get({}, network.logits.getElementType());
  unsigned position = network.getNumLeading();
  // After the data, so that calls of both functions begin alike.
  Value labels = insertArgument(
      position, getLabelsType(network.logits, options), "labels");
  Value learningRate =
      insertArgument(position + 1, scalar, "learning_rate", "constant(0.1)");
  // The seed comes after the learning rate.
  if (failed(seedDropouts(position + 2)))
    return failure();
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  // The logits of the network.
  Value scores = end->getOperand(0);
  Loss loss =
      emitLoss(builder, scores, labels, options, /*wantsGradient=*/true);
  // Gradients by all parameters in one reverse accumulation.
  SmallVector<Value> wanted(parameters.begin(), parameters.end());
  auto gradients = emitGradients(builder, scores, loss.gradient, wanted);
  if (failed(gradients) || failed(checkReached(*gradients)))
    return failure();
  results = {loss.value, loss.correct};
  resultNames = {"loss", "correct"};
  emitUpdates(learningRate, *gradients);
  setResults(step, results);
  setResultNames(step, resultNames);
  return success();
}

/// The network stays as it is; on failure nothing is left of the step.
FailureOr<func::FuncOp>
kas::networks::makeTrainingStep(func::FuncOp function, StringRef name,
                                const TrainingStepOptions &options) {
  FailureOr<TrainableNetwork> network = checkNetwork(function, options);
  if (failed(network))
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp step = cloneAfter(builder, function, name);
  nameArguments(step);
  takeIntegersAsFloats(step, network->logits.getElementType());
  if (failed(StepBuilder(step, *network, options).run())) {
    step.erase();
    return failure();
  }
  return step;
}

/// The network with its running statistics and without dropout; loss and right
/// answers.
FailureOr<func::FuncOp>
kas::networks::makeEvaluation(func::FuncOp function, StringRef name,
                              const TrainingStepOptions &options) {
  FailureOr<TrainableNetwork> network = checkNetwork(function, options);
  if (failed(network))
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp evaluation = cloneAfter(builder, function, name);
  nameArguments(evaluation);
  takeIntegersAsFloats(evaluation, network->logits.getElementType());
  DictionaryAttr attributes = builder.getDictionaryAttr(builder.getNamedAttr(
      KasDialect::argumentNameAttrName, builder.getStringAttr("labels")));
  unsigned position = network->getNumLeading();
  LogicalResult inserted = evaluation.insertArgument(
      position, getLabelsType(network->logits, options), attributes,
      function.getLoc());
  assert(succeeded(inserted) && "a func.func takes arguments");
  (void)inserted;
  Block &block = evaluation.getBody().front();
  // Evaluation drops nothing.
  for (DropoutOp dropout :
       llvm::make_early_inc_range(block.getOps<DropoutOp>())) {
    dropout.replaceAllUsesWith(dropout.getData());
    dropout.erase();
  }
  builder.setInsertionPoint(block.getTerminator());
  Loss loss = emitLoss(builder, block.getTerminator()->getOperand(0),
                       block.getArgument(position), options,
                       /*wantsGradient=*/false);
  setResults(evaluation, {loss.value, loss.correct});
  setResultNames(evaluation, {"loss", "correct"});
  return evaluation;
}

/// Evaluation first, because it needs the least: its errors are the clearest.
/// For example, of a network with a normalization and SGD with momentum:
///    @train_step(x, labels, learning_rate, w, n.running_mean, n.running_var,
///                w.momentum)
///        -> loss, correct, w, n.running_mean, n.running_var, w.momentum
///    @evaluate(x, labels, w, n.running_mean, n.running_var) -> loss, correct
FailureOr<TrainingFunctions>
kas::networks::addTrainingFunctions(ModuleOp module, StringRef function,
                                    const TrainingStepOptions &options) {
  func::FuncOp network = findFunction(module, function, trainStepName);
  if (!network || !findFunction(module, function, evaluationName))
    return failure();
  FailureOr<func::FuncOp> evaluation =
      makeEvaluation(network, evaluationName, options);
  if (failed(evaluation))
    return failure();
  FailureOr<func::FuncOp> step =
      makeTrainingStep(network, trainStepName, options);
  if (failed(step) || failed(eraseUnusedOperands(*step)))
    return failure();
  return TrainingFunctions{*step, *evaluation};
}
