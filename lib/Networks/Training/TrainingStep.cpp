//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Training/TrainingStep.h"
#include "../Scores/NetworkLayers.h"
#include "Loss.h"
#include "Optimizer.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Networks/Training/RunningStatistics.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// The name of an argument, as functions that are compiled have it.
static std::string getName(func::FuncOp function, unsigned argument) {
  auto name = function.getArgAttrOfType<StringAttr>(
      argument, KasDialect::argumentNameAttrName);
  return name ? name.str() : ("arg" + Twine(argument)).str();
}

/// Each argument gets its name as an attribute, before others come between.
static void nameArguments(func::FuncOp function) {
  Builder builder(function->getContext());
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.setArgAttr(index, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(getName(function, index)));
}

/// Fails where two names of the step's arguments or results would be the same.
static LogicalResult checkNames(func::FuncOp function,
                                const TrainingStepOptions &options) {
  llvm::StringSet<llvm::BumpPtrAllocator> names;
  for (StringRef added : {"labels", "step_size", "step", "loss", "correct"})
    names.insert(added);
  SmallVector<StringRef> kinds = OptimizerEmitter::getStateNames(options);
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    std::string name = getName(function, index);
    SmallVector<std::string> added{name};
    if (index > 0)
      for (StringRef kind : kinds)
        added.push_back(name + "." + kind.str());
    for (const std::string &text : added)
      if (!names.insert(text).second)
        return function.emitError(
                   "to train, requires names of arguments (kas.name) that "
                   "differ from each other and from what a step adds, got '")
               << text << "' again";
  }
  return success();
}

/// The type of the logits; null with a diagnostic.
static RankedTensorType checkNetwork(func::FuncOp function,
                                     const TrainingStepOptions &options) {
  Operation *end = function.getBody().back().getTerminator();
  auto logits =
      function.getNumResults() == 1
          ? dyn_cast<RankedTensorType>(function.getResultTypes().front())
          : nullptr;
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(end) ||
      !logits || !logits.hasStaticShape() || logits.getRank() != 2 ||
      logits.getNumElements() == 0) {
    function.emitError("to train, requires a function with one block and one "
                       "result, logits [samples, classes], got ")
        << function.getFunctionType();
    return nullptr;
  }
  // Sums, and the counts of steps, need more digits than narrower floats have.
  Type element = logits.getElementType();
  if (!element.isF32() && !element.isF64()) {
    function.emitError("to train, requires tensors of f32 or f64, got ")
        << logits;
    return nullptr;
  }
  for (Type type : function.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        tensor.getElementType() != element) {
      function.emitError("to train, requires tensors of ")
          << element << " with static shapes, got " << type;
      return nullptr;
    }
  }
  if (failed(checkNames(function, options)))
    return nullptr;
  return logits;
}

namespace {

/// Makes the step of a clone of the network.
class StepBuilder {
public:
  StepBuilder(func::FuncOp step, RankedTensorType logits,
              const TrainingStepOptions &options)
      : step(step), builder(step->getContext()), logits(logits),
        options(options), block(step.getBody().front()) {}

  LogicalResult run();

private:
  Value insertArgument(unsigned position, Type type, const Twine &name,
                       StringRef initializer = "");
  LogicalResult findParameters();
  LogicalResult checkReached(ValueRange gradients);
  double getDecay(BlockArgument parameter);
  void emitUpdates(Value stepSize, MutableArrayRef<Value> gradients);

  func::FuncOp step;
  OpBuilder builder;
  RankedTensorType logits;
  const TrainingStepOptions &options;
  Block &block;
  SmallVector<RunningStatistics> statistics;
  /// The arguments that are trained.
  SmallVector<BlockArgument> parameters;
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
  DenseSet<Value> others{block.getArgument(0)};
  for (const RunningStatistics &entry : statistics)
    others.insert_range(ArrayRef<Value>{entry.mean, entry.variance});
  for (BlockArgument argument : block.getArguments())
    if (!others.contains(argument))
      parameters.push_back(argument);
  if (parameters.empty())
    return step.emitError("to train, requires parameters, arguments after the "
                          "first, got none");
  return success();
}

/// A gradient that is filled with zeros belongs to a parameter that the logits
/// do not depend on.
LogicalResult StepBuilder::checkReached(ValueRange gradients) {
  for (auto [parameter, gradient] : llvm::zip_equal(parameters, gradients))
    if (gradient.getDefiningOp<linalg::FillOp>())
      return step.emitError("to train, requires logits that depend on each "
                            "parameter, got a constant by '")
             << getName(step, parameter.getArgNumber()) << "'";
  return success();
}

double StepBuilder::getDecay(BlockArgument parameter) {
  auto given = step.getArgAttrOfType<FloatAttr>(parameter.getArgNumber(),
                                                weightDecayAttrName);
  if (given)
    return given.getValueAsDouble();
  bool isMatrix = cast<RankedTensorType>(parameter.getType()).getRank() >= 2;
  return isMatrix ? options.weightDecay : 0;
}

void StepBuilder::emitUpdates(Value stepSize,
                              MutableArrayRef<Value> gradients) {
  OptimizerEmitter optimizer(builder, options, stepSize);
  optimizer.clip(gradients);
  SmallVector<StringRef> kinds = OptimizerEmitter::getStateNames(options);
  SmallVector<Value> state;
  for (BlockArgument parameter : parameters)
    for (StringRef kind : kinds)
      state.push_back(insertArgument(
          step.getNumArguments(), parameter.getType(),
          getName(step, parameter.getArgNumber()) + "." + kind, "zeros"));
  Value steps, counted;
  if (OptimizerEmitter::countsSteps(options)) {
    steps = insertArgument(step.getNumArguments(), stepSize.getType(), "step",
                           "zeros");
    counted = optimizer.countStep(steps);
  }

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
    updated[entry.mean] =
        emitRunningMean(builder, entry, options.batchNormMomentum);
    updated[entry.variance] =
        emitRunningVariance(builder, entry, options.batchNormMomentum);
  }
  for (BlockArgument argument : block.getArguments()) {
    Value value = updated.lookup(argument);
    if (!value)
      continue;
    results.push_back(value);
    resultNames.push_back(getName(step, argument.getArgNumber()));
  }
  for (auto [argument, value] : llvm::zip_equal(state, newState)) {
    results.push_back(value);
    resultNames.push_back(
        getName(step, cast<BlockArgument>(argument).getArgNumber()));
  }
  if (counted) {
    results.push_back(counted);
    resultNames.push_back("step");
  }
}

static void setResultNames(func::FuncOp function, ArrayRef<std::string> names) {
  Builder builder(function->getContext());
  for (auto [index, name] : llvm::enumerate(names))
    function.setResultAttr(index, KasDialect::argumentNameAttrName,
                           builder.getStringAttr(name));
}

LogicalResult StepBuilder::run() {
  FailureOr<SmallVector<RunningStatistics>> found =
      replaceRunningStatistics(step);
  if (failed(found))
    return failure();
  statistics = *found;
  if (failed(findParameters()))
    return failure();

  Type scalar = RankedTensorType::get({}, logits.getElementType());
  Value labels = insertArgument(1, getLabelsType(logits, options), "labels");
  Value stepSize = insertArgument(2, scalar, "step_size", "constant(0.1)");
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value scores = end->getOperand(0);
  Loss loss =
      emitLoss(builder, scores, labels, options, /*wantsGradient=*/true);
  SmallVector<Value> wanted(parameters.begin(), parameters.end());
  auto gradients = emitGradients(builder, scores, loss.gradient, wanted);
  if (failed(gradients) || failed(checkReached(*gradients)))
    return failure();
  results = {loss.value, loss.correct};
  resultNames = {"loss", "correct"};
  emitUpdates(stepSize, *gradients);
  setResults(step, results);
  setResultNames(step, resultNames);
  return success();
}

FailureOr<func::FuncOp>
kas::networks::makeTrainingStep(func::FuncOp function, StringRef name,
                                const TrainingStepOptions &options) {
  RankedTensorType logits = checkNetwork(function, options);
  if (!logits)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp step = cloneAfter(builder, function, name);
  nameArguments(step);
  if (failed(StepBuilder(step, logits, options).run())) {
    step.erase();
    return failure();
  }
  return step;
}

FailureOr<func::FuncOp>
kas::networks::makeEvaluation(func::FuncOp function, StringRef name,
                              const TrainingStepOptions &options) {
  RankedTensorType logits = checkNetwork(function, options);
  if (!logits)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp evaluation = cloneAfter(builder, function, name);
  nameArguments(evaluation);
  DictionaryAttr attributes = builder.getDictionaryAttr(builder.getNamedAttr(
      KasDialect::argumentNameAttrName, builder.getStringAttr("labels")));
  LogicalResult inserted = evaluation.insertArgument(
      1, getLabelsType(logits, options), attributes, function.getLoc());
  assert(succeeded(inserted) && "a func.func takes arguments");
  (void)inserted;
  Block &block = evaluation.getBody().front();
  builder.setInsertionPoint(block.getTerminator());
  Loss loss = emitLoss(builder, block.getTerminator()->getOperand(0),
                       block.getArgument(1), options, /*wantsGradient=*/false);
  setResults(evaluation, {loss.value, loss.correct});
  setResultNames(evaluation, {"loss", "correct"});
  return evaluation;
}
