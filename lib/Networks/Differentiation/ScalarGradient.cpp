//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse accumulation over the scalar operations of one block: derivatives of
// arith and math.
// The same scheme as in Differentiate.cpp, one level below: values are scalars,
// and the code is emitted into the body of the gradient's operation.
// `maximumf(a, b)` at a = b gives the gradient to a, as docs/guide/gradients.md
// says.
//
//===----------------------------------------------------------------------===//

#include "ScalarGradient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// Reverse accumulation over the operations of one block.
/// The original block is read, code goes to the builder; `mapping` has the
/// copies of the forward values there.
class ScalarReverse {
public:
  ScalarReverse(OpBuilder &builder, Value argument, const IRMapping &mapping)
      : builder(builder), argument(argument), mapping(mapping) {}

  /// The gradient by the argument, or null after an error.
  Value run(Value result, Value gradient);

private:
  /// Kept in `dependence`: a chain of n steps would take 2^n visits without.
  bool dependsOnArgument(Value value);
  /// Adds `gradient` to that of `value`, a value of the original block.
  void add(Value value, Value gradient);
  LogicalResult propagate(Operation *op, Value gradient);
  LogicalResult propagateMath(Operation *op, Value gradient);
  /// Of x^n by x.
  Value emitPowerSlope(math::FPowIOp op);

  /// The copy of a value of the original block.
  Value get(Value value) const { return mapping.lookupOrDefault(value); }
  Value constant(Value like, double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(like.getType(), value));
  }
  template <typename Op, typename... Operands>
  Value make(Operands... operands) {
    return Op::create(builder, loc, operands...);
  }
  Value mul(Value a, Value b) { return make<arith::MulFOp>(a, b); }
  Value div(Value a, Value b) { return make<arith::DivFOp>(a, b); }
  Value neg(Value a) { return make<arith::NegFOp>(a); }
  /// `gradient` where the condition holds, else zero.
  Value choose(Value condition, Value gradient) {
    return make<arith::SelectOp>(condition, gradient, constant(gradient, 0));
  }
  /// The gradient of a maximum or minimum goes to one of two values.
  /// `first`: the predicate by which the first operand is taken.
  void divide(Operation *op, Value gradient, arith::CmpFPredicate first);

  OpBuilder &builder;
  Value argument;
  const IRMapping &mapping;
  Location loc = argument.getLoc();
  llvm::SmallDenseMap<Value, bool> dependence;
  llvm::SmallDenseMap<Value, Value> gradients;
};

} // namespace

bool ScalarReverse::dependsOnArgument(Value value) {
  if (value == argument)
    return true;
  Operation *op = value.getDefiningOp();
  // Values from outside of the body are constants of it.
  if (!op || op->getBlock() != argument.getParentBlock())
    return false;
  if (auto found = dependence.find(value); found != dependence.end())
    return found->second;
  bool result = llvm::any_of(op->getOperands(), [&](Value operand) {
    return dependsOnArgument(operand);
  });
  return dependence[value] = result;
}

/// Shares of values that do not depend on the argument are never emitted.
void ScalarReverse::add(Value value, Value gradient) {
  if (!dependsOnArgument(value))
    return;
  Value &sum = gradients[value];
  sum = sum ? make<arith::AddFOp>(sum, gradient) : gradient;
}

void ScalarReverse::divide(Operation *op, Value gradient,
                           arith::CmpFPredicate first) {
  Value a = get(op->getOperand(0)), b = get(op->getOperand(1));
  Value isFirst = arith::CmpFOp::create(builder, loc, first, a, b);
  add(op->getOperand(0), choose(isFirst, gradient));
  add(op->getOperand(1),
      make<arith::SelectOp>(isFirst, constant(gradient, 0), gradient));
}

/// Functions of one operand: the derivative from the operand x or, where that
/// is cheaper, from the result y.
LogicalResult ScalarReverse::propagateMath(Operation *op, Value gradient) {
  Value x = get(op->getOperand(0)), y = get(op->getResult(0));
  Value slope =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](math::ExpOp) { return y; })
          .Case([&](math::LogOp) { return div(constant(x, 1), x); })
          .Case([&](math::ExpM1Op) {
            return make<arith::AddFOp>(y, constant(x, 1));
          })
          .Case([&](math::Log1pOp) {
            return div(constant(x, 1), make<arith::AddFOp>(x, constant(x, 1)));
          })
          // Infinite at 0, as in PyTorch.
          .Case([&](math::SqrtOp) { return div(constant(x, 0.5), y); })
          .Case([&](math::RsqrtOp) {
            return mul(constant(x, -0.5), mul(y, mul(y, y)));
          })
          .Case([&](math::TanhOp) {
            return make<arith::SubFOp>(constant(x, 1), mul(y, y));
          })
          .Case([&](math::ErfOp) {
            Value square = neg(mul(x, x));
            return mul(constant(x, 2 / std::sqrt(std::numbers::pi)),
                       make<math::ExpOp>(square));
          })
          .Case([&](math::SinOp) { return make<math::CosOp>(x); })
          .Case([&](math::CosOp) { return neg(make<math::SinOp>(x)); })
          // At 0 it is 1 or -1 by the sign of the zero.
          .Case([&](math::AbsFOp) {
            return make<math::CopySignOp>(constant(x, 1), x);
          })
          .Default(Value());
  if (!slope)
    return op->emitError("has no derivative here");
  add(op->getOperand(0), mul(gradient, slope));
  return success();
}

/// n * x^(n-1); 0 for n = 0, unless x is 0 as well.
Value ScalarReverse::emitPowerSlope(math::FPowIOp op) {
  Value x = get(op.getLhs()), exponent = get(op.getRhs());
  Value one = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(exponent.getType(), 1));
  Value factor = arith::SIToFPOp::create(builder, loc, x.getType(), exponent);
  return mul(factor,
             make<math::FPowIOp>(x, make<arith::SubIOp>(exponent, one)));
}

/// A share is built only for operands that depend on the argument where
/// building it takes operations.
LogicalResult ScalarReverse::propagate(Operation *op, Value gradient) {
  auto operand = [&](unsigned index) { return op->getOperand(index); };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::AddFOp) {
        add(operand(0), gradient);
        add(operand(1), gradient);
        return success();
      })
      .Case([&](arith::SubFOp) {
        add(operand(0), gradient);
        if (dependsOnArgument(operand(1)))
          add(operand(1), neg(gradient));
        return success();
      })
      .Case([&](arith::MulFOp) {
        for (unsigned index : {0, 1})
          if (dependsOnArgument(operand(index)))
            add(operand(index), mul(gradient, get(operand(1 - index))));
        return success();
      })
      // With q = a/b and gradient g: g/b for a, -g/b * q for b.
      .Case([&](arith::DivFOp) {
        Value quotient = div(gradient, get(operand(1)));
        add(operand(0), quotient);
        if (dependsOnArgument(operand(1)))
          add(operand(1), neg(mul(quotient, get(op->getResult(0)))));
        return success();
      })
      .Case([&](arith::NegFOp) {
        add(operand(0), neg(gradient));
        return success();
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) {
        divide(op, gradient, arith::CmpFPredicate::OGE);
        return success();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](Operation *) {
        divide(op, gradient, arith::CmpFPredicate::OLE);
        return success();
      })
      // The condition is an integer and has no gradient.
      .Case([&](arith::SelectOp) {
        Value zero = constant(gradient, 0), condition = get(operand(0));
        add(operand(1), make<arith::SelectOp>(condition, gradient, zero));
        add(operand(2), make<arith::SelectOp>(condition, zero, gradient));
        return success();
      })
      // The gradient has the precision of the operand.
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) {
        Type type = operand(0).getType();
        add(operand(0),
            isa<arith::ExtFOp>(op)
                ? Value(arith::TruncFOp::create(builder, loc, type, gradient))
                : Value(arith::ExtFOp::create(builder, loc, type, gradient)));
        return success();
      })
      .Case([&](math::FPowIOp power) {
        add(operand(0), mul(gradient, emitPowerSlope(power)));
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (op->getNumOperands() == 1 && op->getNumResults() == 1)
          return propagateMath(op, gradient);
        return op->emitError("has no derivative here");
      });
}

Value ScalarReverse::run(Value result, Value gradient) {
  if (!dependsOnArgument(result))
    return constant(gradient, 0);
  add(result, gradient);
  if (result == argument)
    return gradient;
  // A comparison has no derivative; a select by it does.
  // From the result to the first operation: all shares of a value come from
  // operations after it.
  for (Operation *op = result.getDefiningOp(); op; op = op->getPrevNode()) {
    if (op->getNumResults() != 1)
      continue;
    Value sum = gradients.lookup(op->getResult(0));
    if (sum && failed(propagate(op, sum)))
      return nullptr;
  }
  Value found = gradients.lookup(argument);
  return found ? found : constant(gradient, 0);
}

Value kas::networks::emitScalarGradient(OpBuilder &builder, Value result,
                                        Value gradient, Value argument,
                                        const IRMapping &mapping) {
  return ScalarReverse(builder, argument, mapping).run(result, gradient);
}
