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
#include "kas/Networks/Normalization/BatchNorm.h"
#include "kas/Networks/Normalization/RunningStatistics.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

static StringRef getName(func::FuncOp function, unsigned argument) {
  auto name = function.getArgAttrOfType<StringAttr>(
      argument, KasDialect::argumentNameAttrName);
  return name ? name.getValue() : "";
}

/// The type of the logits; null with a diagnostic.
static RankedTensorType checkNetwork(func::FuncOp function) {
  Operation *end = function.getBody().back().getTerminator();
  auto logits =
      function.getNumResults() == 1
          ? dyn_cast<RankedTensorType>(function.getResultTypes().front())
          : nullptr;
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(end) ||
      !logits || !logits.hasStaticShape() || logits.getRank() != 2) {
    function.emitError("to train, requires a function with one block and one "
                       "result, logits [samples, classes], got ")
        << function.getFunctionType();
    return nullptr;
  }
  llvm::DenseSet<StringRef> names;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        tensor.getElementType() != logits.getElementType()) {
      function.emitError("to train, requires tensors of ")
          << logits.getElementType() << " with static shapes, got " << type;
      return nullptr;
    }
    if (index > 0 && !names.insert(getName(function, index)).second) {
      function.emitError("to train, requires parameters with different names "
                         "(kas.name), got two called '")
          << getName(function, index) << "'";
      return nullptr;
    }
  }
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
    resultNames.push_back(getName(step, argument.getArgNumber()).str());
  }
  for (auto [argument, value] : llvm::zip_equal(state, newState)) {
    results.push_back(value);
    resultNames.push_back(
        getName(step, cast<BlockArgument>(argument).getArgNumber()).str());
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
  IRRewriter rewriter(step->getContext());
  for (const RunningStatistics &entry : statistics)
    lowerBatchNorm(rewriter, entry.normalization);
  return success();
}

FailureOr<func::FuncOp>
kas::networks::makeTrainingStep(func::FuncOp function, StringRef name,
                                const TrainingStepOptions &options) {
  RankedTensorType logits = checkNetwork(function);
  if (!logits)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp step = cloneAfter(builder, function, name);
  if (failed(StepBuilder(step, logits, options).run())) {
    step.erase();
    return failure();
  }
  return step;
}

FailureOr<func::FuncOp>
kas::networks::makeEvaluation(func::FuncOp function, StringRef name,
                              const TrainingStepOptions &options) {
  RankedTensorType logits = checkNetwork(function);
  if (!logits)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp evaluation = cloneAfter(builder, function, name);
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
