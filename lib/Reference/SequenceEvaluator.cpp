//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates sequences of operators. Shares nothing with their lowering
// (lib/Conversion/SequenceToLinalg), so that it can be tested against this.
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/SequenceEvaluator.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::reference;

namespace {

/// The arguments that are left.
class Arguments {
public:
  Arguments(ArrayRef<ReferenceTensor> tensors, EmitErrorFn emitError)
      : rest(tensors), emitError(emitError) {}

  FailureOr<ArrayRef<ReferenceTensor>> take(size_t count) {
    if (rest.size() < count)
      return emitError() << "requires " << count - rest.size()
                         << " more tensors for a sequence, got none";
    ArrayRef<ReferenceTensor> taken = rest.take_front(count);
    rest = rest.drop_front(count);
    return taken;
  }

  LogicalResult finish() {
    if (!rest.empty())
      return emitError() << "requires no more tensors for a sequence, got "
                         << rest.size();
    return success();
  }

private:
  ArrayRef<ReferenceTensor> rest;
  EmitErrorFn emitError;
};

} // namespace

static FailureOr<SequenceResult>
evaluateStage(OperatorOp stage, BindingAttr binding, ReferenceTensor data,
              Arguments &arguments, EmitErrorFn emitError) {
  FailureOr<Binding> values =
      getBinding(stage, getStageBinding(stage, binding), emitError);
  if (failed(values))
    return failure();
  // Beside the stage, where its symbols are known, and only for now.
  OpBuilder builder(stage);
  FailureOr<OperatorOp> concrete =
      specialize(builder, stage, *values, "stage", emitError);
  if (failed(concrete))
    return failure();
  SequenceResult result;
  result.shape = getShapes(*concrete).output;
  result.values.resize(getNumElements(result.shape).value_or(0));
  auto weights = arguments.take(stage.getNumWeights());
  LogicalResult evaluated = failed(weights)
                                ? failure()
                                : evaluateOperator(*concrete, data, *weights,
                                                   result.values, emitError);
  concrete->erase();
  if (failed(evaluated))
    return failure();
  return result;
}

/// Channel after channel of each sample: first those of `first`.
static SequenceResult join(const SequenceResult &first,
                           const SequenceResult &second) {
  SequenceResult result;
  result.shape = first.shape;
  result.shape[1] += second.shape[1];
  int64_t samples = first.shape[0];
  for (int64_t sample = 0; sample < samples; ++sample)
    for (const SequenceResult *part : {&first, &second}) {
      ArrayRef<float> values = part->values;
      size_t size = values.size() / samples;
      llvm::append_range(result.values, values.slice(sample * size, size));
    }
  return result;
}

static SequenceResult combine(SequenceStep step, SequenceResult first,
                              const SequenceResult &second) {
  if (step == SequenceStep::Join)
    return join(first, second);
  for (auto [value, other] : llvm::zip_equal(first.values, second.values))
    value = step == SequenceStep::Add ? value + other : value * other;
  return first;
}

/// `parameters` are scale, offset, mean and variance.
static LogicalResult normalize(SequenceResult &result,
                               ArrayRef<ReferenceTensor> parameters,
                               EmitErrorFn emitError) {
  int64_t channels = result.shape[1], inner = 1;
  for (int64_t extent : ArrayRef(result.shape).drop_front(2))
    inner *= extent;
  for (const ReferenceTensor &parameter : parameters)
    if (int64_t(parameter.values.size()) != channels)
      return emitError() << "requires " << channels
                         << " values to normalize by, got "
                         << parameter.values.size();
  for (auto [index, value] : llvm::enumerate(result.values)) {
    int64_t channel = int64_t(index) / inner % channels;
    auto get = [&](unsigned number) -> double {
      return parameters[number].values[channel];
    };
    value =
        float((value - get(2)) / std::sqrt(get(3) + sequenceEpsilon) * get(0) +
              get(1));
  }
  return success();
}

FailureOr<SequenceResult> kas::reference::evaluateSequence(
    SequenceOp op, BindingAttr binding, ReferenceTensor data,
    ArrayRef<ReferenceTensor> given, EmitErrorFn emitError) {
  Arguments arguments(given, emitError);
  SequenceResult last, result;
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    auto applied = evaluateStage(stage, binding, data, arguments, emitError);
    if (failed(applied))
      return failure();
    result = op.isParallel(number)
                 ? combine(op.getStep(number - 1), std::move(result), *applied)
                 : std::move(*applied);
    bool isLast = number == op.getBetween().size();
    if (isLast || op.isParallel(number + 1))
      continue;
    SequenceStep step = op.getStep(number);
    if (normalizes(step)) {
      auto parameters = arguments.take(4);
      if (failed(parameters) ||
          failed(normalize(result, *parameters, emitError)))
        return failure();
    }
    // NaN passes.
    if (rectifies(step))
      for (float &value : result.values)
        value = value <= 0 ? 0 : value;
    last = std::move(result);
    data = {last.shape, last.values};
  }
  if (failed(arguments.finish()))
    return failure();
  return result;
}
