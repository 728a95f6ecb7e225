//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the update of a parameter: SGD with momentum (Sutskever et al., ICML
// 2013) and AdamW (Loshchilov and Hutter, ICLR 2019), as PyTorch has them.
// An update is one elementwise operation over a parameter, its gradient and its
// state, which fusion turns into one pass over memory
// (docs/internals/training.md). Orders of operations are PyTorch's, so that
// results agree within rounding.
//
//===----------------------------------------------------------------------===//

#include "Optimizer.h"
#include "kas/Conversion/TensorEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

/// Of two scalars in a body.
static Value add(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b);
}

/// Over the elements of `whole` and of tensors of rank 0.
/// Scalars are read at each element: tensors of rank 0 with an empty map.
static Value mapWithScalars(OpBuilder &builder, ValueRange whole,
                            ValueRange scalars, TensorEmitter::BodyFn body) {
  // All of `whole` have this shape.
  auto type = cast<RankedTensorType>(whole.front().getType());
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
  SmallVector<TensorWithoutDims> inputs;
  for (Value value : whole)
    inputs.push_back({value, {}});
  for (Value value : scalars)
    inputs.push_back({value, all});
  return TensorEmitter(builder, whole.front().getLoc(), type).map(inputs, body);
}

/// Each is a tensor of the shape of its parameter, called `PARAMETER.NAME`.
SmallVector<StringRef>
OptimizerEmitter::getStateNames(const TrainingStepOptions &options) {
  if (options.optimizer == OptimizerKind::AdamW)
    return {"exp_avg", "exp_avg_sq"};
  if (options.momentum != 0)
    return {"momentum"};
  return {};
}

/// Returns the number of this step, from 1 on, and computes AdamW's
/// corrections, once for all parameters: learning rate / (1 - beta1^t) and
/// sqrt(1 - beta2^t).
Value OptimizerEmitter::countStep(Value steps) {
  Value counted = mapWithScalars(
      builder, steps, {}, [](OpBuilder &builder, Location loc, ValueRange v) {
        return add(builder, loc, v[0],
                   makeConstant(builder, loc, v[0].getType(), 1));
      });
  // 1 - beta^t loses most of its digits in single precision.
  auto correct = [](OpBuilder &builder, Location loc, double beta,
                    Value count) -> Value {
    Type wide = builder.getF64Type();
    Value power = math::PowFOp::create(
        builder, loc, makeConstant(builder, loc, wide, beta),
        arith::ExtFOp::create(builder, loc, wide, count));
    return arith::SubFOp::create(builder, loc,
                                 makeConstant(builder, loc, wide, 1), power);
  };
  // In double precision, once for all parameters.
  correctedSize = mapWithScalars(
      builder, {learningRate, counted}, {},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value size =
            arith::ExtFOp::create(builder, loc, builder.getF64Type(), v[0]);
        Value quotient = arith::DivFOp::create(
            builder, loc, size, correct(builder, loc, options.beta1, v[1]));
        return arith::TruncFOp::create(builder, loc, v[0].getType(), quotient);
      });
  correctionRoot = mapWithScalars(
      builder, counted, {},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value root = math::SqrtOp::create(
            builder, loc, correct(builder, loc, options.beta2, v[0]));
        return arith::TruncFOp::create(builder, loc, v[0].getType(), root);
      });
  return counted;
}

/// All gradients by one factor: min(1, clip / (norm + 1e-6)), with the norm
/// over all of them.
void OptimizerEmitter::clip(MutableArrayRef<Value> gradients) {
  if (options.clipNorm == 0 || gradients.empty())
    return;
  Value squares;
  for (Value gradient : gradients) {
    auto type = cast<RankedTensorType>(gradient.getType());
    Value sum =
        TensorEmitter(builder, gradient.getLoc(), type)
            .sum(gradient, [](OpBuilder &builder, Location loc, ValueRange v) {
              return multiply(builder, loc, v[0], v[0]);
            });
    squares = squares ? mapWithScalars(
                            builder, {squares, sum}, {},
                            [](OpBuilder &builder, Location loc, ValueRange v) {
                              return add(builder, loc, v[0], v[1]);
                            })
                      : sum;
  }
  // As PyTorch's clip_grad_norm_, which adds a little to the norm.
  Value factor = mapWithScalars(
      builder, squares, {},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Type type = v[0].getType();
        Value norm = add(builder, loc, math::SqrtOp::create(builder, loc, v[0]),
                         makeConstant(builder, loc, type, 1e-6));
        Value quotient = arith::DivFOp::create(
            builder, loc, makeConstant(builder, loc, type, options.clipNorm),
            norm);
        // Never enlarged.
        return arith::MinimumFOp::create(builder, loc, quotient,
                                         makeConstant(builder, loc, type, 1));
      });
  for (Value &gradient : gradients)
    gradient =
        mapWithScalars(builder, gradient, factor,
                       [](OpBuilder &builder, Location loc, ValueRange v) {
                         return multiply(builder, loc, v[0], v[1]);
                       });
}

/// v = momentum * v + g; p -= lr * v, or with Nesterov p -= lr * (g + momentum
/// * v), g with the decay. Returns the parameter and the state.
SmallVector<Value> OptimizerEmitter::updateBySGD(Value parameter,
                                                 Value gradient, double decay,
                                                 ValueRange state) {
  double momentum = options.momentum;
  // The gradient with the decay.
  // L2 regularization, part of the gradient as PyTorch's SGD has it.
  auto decayed = [decay](OpBuilder &builder, Location loc, Value gradient,
                         Value parameter) {
    if (decay == 0)
      return gradient;
    return add(builder, loc, gradient, scale(builder, loc, parameter, decay));
  };
  auto descend = [](OpBuilder &builder, Location loc, Value parameter,
                    Value direction, Value size) -> Value {
    return arith::SubFOp::create(builder, loc, parameter,
                                 multiply(builder, loc, size, direction));
  };
  // Without momentum there is no state.
  if (momentum == 0)
    return {mapWithScalars(builder, {parameter, gradient}, learningRate,
                           [&](OpBuilder &builder, Location loc, ValueRange v) {
                             return descend(builder, loc, v[0],
                                            decayed(builder, loc, v[1], v[0]),
                                            v[2]);
                           })};
  Value average = mapWithScalars(
      builder, {parameter, gradient, state[0]}, {},
      [&](OpBuilder &builder, Location loc, ValueRange v) {
        return add(builder, loc, scale(builder, loc, v[2], momentum),
                   decayed(builder, loc, v[1], v[0]));
      });
  if (!options.nesterov)
    return {mapWithScalars(builder, {parameter, average}, learningRate,
                           [&](OpBuilder &builder, Location loc, ValueRange v) {
                             return descend(builder, loc, v[0], v[1], v[2]);
                           }),
            average};
  // The decay is computed again instead of being stored between two operations.
  Value updated =
      mapWithScalars(builder, {parameter, gradient, average}, learningRate,
                     [&](OpBuilder &builder, Location loc, ValueRange v) {
                       Value ahead =
                           add(builder, loc, decayed(builder, loc, v[1], v[0]),
                               scale(builder, loc, v[2], momentum));
                       return descend(builder, loc, v[0], ahead, v[3]);
                     });
  return {updated, average};
}

/// m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g^2; p = p (1 - lr
/// decay) - lr / (1 - beta1^t) * m / (sqrt(s) / sqrt(1 - beta2^t) + epsilon).
SmallVector<Value> OptimizerEmitter::updateByAdamW(Value parameter,
                                                   Value gradient, double decay,
                                                   ValueRange state) {
  // Each is a pass of its own over the state; fusion joins them with the
  // update.
  auto average = [&](Value old, double beta, bool isSquare) {
    return mapWithScalars(
        builder, {old, gradient}, {},
        [&](OpBuilder &builder, Location loc, ValueRange v) {
          Value term = isSquare ? multiply(builder, loc, v[1], v[1]) : v[1];
          return add(builder, loc, scale(builder, loc, v[0], beta),
                     scale(builder, loc, term, 1 - beta));
        });
  };
  Value first = average(state[0], options.beta1, /*isSquare=*/false);
  Value second = average(state[1], options.beta2, /*isSquare=*/true);
  Value updated = mapWithScalars(
      builder, {parameter, first, second},
      {learningRate, correctedSize, correctionRoot},
      // v: parameter, m, s, lr, corrected lr, root of the correction.
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Type type = v[0].getType();
        Value root = arith::DivFOp::create(
            builder, loc, math::SqrtOp::create(builder, loc, v[2]), v[5]);
        Value divisor = add(builder, loc, root,
                            makeConstant(builder, loc, type, options.epsilon));
        Value direction = arith::DivFOp::create(builder, loc, v[1], divisor);
        // The decay is decoupled: it does not go through m and s.
        Value start = v[0];
        if (decay != 0)
          start = arith::SubFOp::create(
              builder, loc, start,
              multiply(builder, loc, scale(builder, loc, v[3], decay), start));
        return arith::SubFOp::create(builder, loc, start,
                                     multiply(builder, loc, v[4], direction));
      });
  return {updated, first, second};
}

SmallVector<Value> OptimizerEmitter::update(Value parameter, Value gradient,
                                            double decay, ValueRange state) {
  return options.optimizer == OptimizerKind::AdamW
             ? updateByAdamW(parameter, gradient, decay, state)
             : updateBySGD(parameter, gradient, decay, state);
}
