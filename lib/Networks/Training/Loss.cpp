//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the loss of a training step and its gradient: cross entropy with label
// smoothing, or the mean squared error.
// The gradient is written down and not derived: with softmax p and target t the
// gradient by the logits is (p - t) / N, which needs no logarithm and cannot
// overflow. Labels are numbers of classes as floats, checked at run time
// (docs/guide/gradients.md).
//
//===----------------------------------------------------------------------===//

#include "Loss.h"
#include "kas/Conversion/TensorEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

/// [samples] class numbers, or a tensor like the logits for the squared error.
RankedTensorType
kas::networks::getLabelsType(RankedTensorType logits,
                             const TrainingStepOptions &options) {
  if (options.loss == LossKind::MeanSquaredError)
    return logits;
  return RankedTensorType::get({logits.getDimSize(0)}, logits.getElementType());
}

namespace {

/// Cross entropy over logits [samples, classes].
/// loss = 1/N sum over samples and classes of -target * log softmax.
class CrossEntropy {
public:
  /// Where padding is allowed, rows with the label -1 are no samples: they add
  /// nothing, and the loss is still divided by the number of rows.
  CrossEntropy(OpBuilder &builder, Value logits, Value labels, double smoothing,
               bool allowsPadding)
      : builder(builder), loc(logits.getLoc()),
        type(cast<RankedTensorType>(logits.getType())),
        rows(
            RankedTensorType::get({type.getDimSize(0)}, type.getElementType())),
        logits(logits), labels(labels), smoothing(smoothing),
        allowsPadding(allowsPadding) {}

  Loss emit(bool wantsGradient);

private:
  int64_t getNumSamples() const { return type.getDimSize(0); }
  int64_t getNumClasses() const { return type.getDimSize(1); }
  /// From here on `labels` are those that were checked: nothing may read them
  /// before.
  void checkLabels();
  Value emitClassNumbers();
  Value emitTarget(OpBuilder &builder, Location loc, Value number, Value label);
  Value dropPadding(OpBuilder &builder, Location loc, Value value, Value label);
  Value emitCorrect(Value largest, Value numbers);

  OpBuilder &builder;
  Location loc;
  RankedTensorType type, rows;
  Value logits, labels;
  double smoothing;
  bool allowsPadding;
};

} // namespace

/// 0, 1, ..., in place of `linalg.index`, which fusion would have to move.
/// A constant tensor [classes].
Value CrossEntropy::emitClassNumbers() {
  SmallVector<Attribute> numbers;
  for (int64_t number = 0; number < getNumClasses(); ++number)
    numbers.push_back(builder.getFloatAttr(type.getElementType(), number));
  auto numbersType =
      RankedTensorType::get({getNumClasses()}, type.getElementType());
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(numbersType, numbers));
}

/// NaN fails each comparison.
void CrossEntropy::checkLabels() {
  labels =
      TensorEmitter(builder, loc, rows)
          .map({{labels, {}}}, [&](OpBuilder &builder, Location loc,
                                   ValueRange v) {
            Type element = v[0].getType();
            auto compare = [&](arith::CmpFPredicate predicate,
                               Value bound) -> Value {
              return arith::CmpFOp::create(builder, loc, predicate, v[0],
                                           bound);
            };
            Value isWhole = compare(arith::CmpFPredicate::OEQ,
                                    math::FloorOp::create(builder, loc, v[0]));
            Value isLow =
                compare(arith::CmpFPredicate::OLT,
                        makeConstant(builder, loc, element, getNumClasses()));
            // Only evaluation has batches that are not full: -1 marks what
            // fills them.
            Value isHigh = compare(
                arith::CmpFPredicate::OGE,
                makeConstant(builder, loc, element, allowsPadding ? -1 : 0));
            Value isClass = arith::AndIOp::create(
                builder, loc, isWhole,
                arith::AndIOp::create(builder, loc, isLow, isHigh));
            cf::AssertOp::create(builder, loc, isClass,
                                 "requires labels that are numbers of "
                                 "classes, less than " +
                                     std::to_string(getNumClasses()));
            return v[0];
          });
}

/// The share of class `number` in what the sample should be.
/// 1 - smoothing + smoothing / classes for the label, smoothing / classes for
/// others.
Value CrossEntropy::emitTarget(OpBuilder &builder, Location loc, Value number,
                               Value label) {
  Type element = number.getType();
  double low = smoothing / getNumClasses();
  Value isLabel = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ,
                                        number, label);
  return arith::SelectOp::create(
      builder, loc, isLabel,
      makeConstant(builder, loc, element, 1 - smoothing + low),
      makeConstant(builder, loc, element, low));
}

/// A sample is right if the first class with the largest logit is its label, as
/// with PyTorch's argmax. -1 is never equal to a class.
Value CrossEntropy::emitCorrect(Value largest, Value numbers) {
  // The largest of what is negative: minus the first class with the largest
  // logit.
  Value first =
      TensorEmitter(builder, loc, type)
          .maximum({{logits, {}}, {largest, {1}}, {numbers, {0}}}, {1},
                   [&](OpBuilder &builder, Location loc, ValueRange v) {
                     Value isLargest = arith::CmpFOp::create(
                         builder, loc, arith::CmpFPredicate::OEQ, v[0], v[1]);
                     // Less than minus any class.
                     Value other = makeConstant(builder, loc, v[0].getType(),
                                                -double(getNumClasses()));
                     Value number = arith::NegFOp::create(builder, loc, v[2]);
                     return arith::SelectOp::create(builder, loc, isLargest,
                                                    number, other);
                   });
  return TensorEmitter(builder, loc, rows)
      .sum({{first, {}}, {labels, {}}}, {0},
           [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
             Type element = v[0].getType();
             Value label = arith::NegFOp::create(builder, loc, v[1]);
             Value isRight = arith::CmpFOp::create(
                 builder, loc, arith::CmpFPredicate::OEQ, v[0], label);
             return arith::SelectOp::create(
                 builder, loc, isRight, makeConstant(builder, loc, element, 1),
                 makeConstant(builder, loc, element, 0));
           });
}

/// `value`, or 0 where the label is that of no sample.
Value CrossEntropy::dropPadding(OpBuilder &builder, Location loc, Value value,
                                Value label) {
  Value zero = makeConstant(builder, loc, value.getType(), 0);
  Value isSample = arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::OGE, label, zero);
  return arith::SelectOp::create(builder, loc, isSample, value, zero);
}

/// log softmax = logit - largest - log(sum of exp(logit - largest)): no
/// exponential overflows, and the largest one is 1.
Loss CrossEntropy::emit(bool wantsGradient) {
  checkLabels();
  TensorEmitter emitter(builder, loc, type);
  Value numbers = emitClassNumbers();
  Value largest =
      emitter.maximum({{logits, {}}}, {1},
                      [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  Value exponentials = emitter.map(
      {{logits, {}}, {largest, {1}}},
      [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        return math::ExpOp::create(
            builder, loc, arith::SubFOp::create(builder, loc, v[0], v[1]));
      });
  Value sums =
      emitter.sum({{exponentials, {}}}, {1},
                  [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  // Of each class and sample: its target times minus the logarithm of its
  // share.
  double mean = 1.0 / getNumSamples();
  Value perSample = emitter.sum(
      {{logits, {}},
       {largest, {1}},
       {sums, {1}},
       {numbers, {0}},
       {labels, {1}}},
      {1}, [&](OpBuilder &builder, Location loc, ValueRange v) {
        Value shifted = arith::SubFOp::create(builder, loc, v[0], v[1]);
        // log p = (logit - largest) - log(sum)
        Value logarithm = math::LogOp::create(builder, loc, v[2]);
        Value minus = arith::SubFOp::create(builder, loc, logarithm, shifted);
        Value target = emitTarget(builder, loc, v[3], v[4]);
        return multiply(builder, loc, minus, target);
      });
  Loss loss;
  // The mean over all rows, padding included; the caller knows how many are
  // samples.
  loss.value = TensorEmitter(builder, loc, rows)
                   .sum({{perSample, {}}, {labels, {}}}, {0},
                        [&](OpBuilder &builder, Location loc, ValueRange v) {
                          Value share = scale(builder, loc, v[0], mean);
                          return allowsPadding
                                     ? dropPadding(builder, loc, share, v[1])
                                     : share;
                        });
  loss.correct = emitCorrect(largest, numbers);
  if (wantsGradient)
    loss.gradient = emitter.map(
        {{exponentials, {}}, {sums, {1}}, {numbers, {0}}, {labels, {1}}},
        [&](OpBuilder &builder, Location loc, ValueRange v) {
          Value share = arith::DivFOp::create(builder, loc, v[0], v[1]);
          Value target = emitTarget(builder, loc, v[2], v[3]);
          Value error = arith::SubFOp::create(builder, loc, share, target);
          return scale(builder, loc, error, mean);
        });
  return loss;
}

/// Over all elements; nothing counts as right.
static Loss emitMeanSquaredError(OpBuilder &builder, Value logits,
                                 Value targets, bool wantsGradient) {
  Location loc = logits.getLoc();
  auto type = cast<RankedTensorType>(logits.getType());
  double mean = 1.0 / type.getNumElements();
  TensorEmitter emitter(builder, loc, type);
  Loss loss;
  SmallVector<TensorWithoutDims> inputs{{logits, {}}, {targets, {}}};
  loss.value = emitter.sum(
      inputs, llvm::to_vector(llvm::seq<unsigned>(type.getRank())),
      [&](OpBuilder &builder, Location loc, ValueRange v) {
        Value error = arith::SubFOp::create(builder, loc, v[0], v[1]);
        return scale(builder, loc, multiply(builder, loc, error, error), mean);
      });
  auto scalar = RankedTensorType::get({}, type.getElementType());
  loss.correct = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(scalar,
                             builder.getFloatAttr(type.getElementType(), 0)));
  if (wantsGradient)
    loss.gradient = emitter.map(
        inputs, [&](OpBuilder &builder, Location loc, ValueRange v) {
          Value error = arith::SubFOp::create(builder, loc, v[0], v[1]);
          return scale(builder, loc, error, 2 * mean);
        });
  return loss;
}

/// A training step drops batches that are not full, so only evaluation allows
/// padding.
Loss kas::networks::emitLoss(OpBuilder &builder, Value logits, Value labels,
                             const TrainingStepOptions &options,
                             bool wantsGradient) {
  if (options.loss == LossKind::MeanSquaredError)
    return emitMeanSquaredError(builder, logits, labels, wantsGradient);
  return CrossEntropy(builder, logits, labels, options.labelSmoothing,
                      /*allowsPadding=*/!wantsGradient)
      .emit(wantsGradient);
}
