//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a function needs positive values of an argument, such as a variance:
// follows its uses to roots, powers and assertions.
//
// A forward data-flow analysis that is only used to fill arguments with random
// values: without it the reciprocal root of a negative "variance" would make
// all results NaN, and a comparison would compare nothing. It may miss cases,
// and callers may set an initializer.
//
//===----------------------------------------------------------------------===//

#include "PositiveArguments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace kas;
using namespace kas::execution;
using namespace mlir;

/// The value of a constant, also of one that changes its type on the way.
static std::optional<double> getConstant(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::TruncFOp, arith::ExtFOp>(op))
      break;
    value = op->getOperand(0);
  }
  APFloat constant(0.0);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  bool losesInfo = false;
  constant.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
  return constant.convertToDouble();
}

/// Whether the program asserts that `value` > 0, >= 0 or != 0.
static bool isAssertedPositive(Value value, arith::CmpFOp comparison) {
  using Predicate = arith::CmpFPredicate;
  auto zero = getConstant(comparison.getRhs());
  return comparison.getLhs() == value && zero && *zero == 0 &&
         llvm::is_contained({Predicate::OGT, Predicate::OGE, Predicate::ONE,
                             Predicate::UGT, Predicate::UGE, Predicate::UNE},
                            comparison.getPredicate()) &&
         llvm::any_of(comparison->getUsers(), llvm::IsaPred<cf::AssertOp>);
}

/// Whether `user` cannot take a `value` that is not positive.
static bool needsPositive(Value value, Operation *user) {
  if (isa<math::SqrtOp, math::RsqrtOp, linalg::SqrtOp, linalg::RsqrtOp>(user))
    return user->getOperand(0) == value;
  // A power with a fraction as its exponent; integral ones take any base.
  if (auto power = dyn_cast<math::PowFOp>(user)) {
    auto exponent = getConstant(power.getRhs());
    return power.getLhs() == value && exponent &&
           std::trunc(*exponent) != *exponent;
  }
  auto comparison = dyn_cast<arith::CmpFOp>(user);
  return comparison && isAssertedPositive(value, comparison);
}

/// Adds the values that have the sign of `use`'s.
static void follow(OpOperand &use, SetVector<Value> &values) {
  Operation *user = use.getOwner();
  if (auto yield = dyn_cast<linalg::YieldOp>(user)) {
    // A value that the body yields is an element of the result.
    Operation *loops = yield->getParentOp();
    if (use.getOperandNumber() < loops->getNumResults())
      values.insert(loops->getResult(use.getOperandNumber()));
    return;
  }
  if (auto loops = dyn_cast<linalg::LinalgOp>(user)) {
    // Named ones have a body, too.
    if (loops.getNumReductionLoops() == 0 && loops->getNumRegions() == 1 &&
        !loops->getRegion(0).empty())
      values.insert(loops.getMatchingBlockArgument(&use));
    return;
  }
  if (auto call = dyn_cast<func::CallOp>(user)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    // Into functions of the module, whatever the call does with the result.
    if (callee && !callee.isExternal())
      values.insert(callee.getArgument(use.getOperandNumber()));
    return;
  }
  bool keepsSign =
      isa<arith::TruncFOp, arith::ExtFOp, tensor::CastOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp, tensor::ReshapeOp, tensor::ExtractOp>(
          user) ||
      (isa<tensor::ExtractSliceOp>(user) && use.getOperandNumber() == 0);
  // x + epsilon, as before the root of a variance.
  if (auto sum = dyn_cast<arith::AddFOp>(user)) {
    Value other = sum->getOperand(1 - use.getOperandNumber());
    auto constant = getConstant(other);
    keepsSign = constant && *constant >= 0;
  }
  if (keepsSign)
    values.insert(user->getResult(0));
}

bool kas::execution::mustBePositive(Value argument) {
  SetVector<Value> values;
  values.insert(argument);
  // A worklist: `values` grows while it is walked, each value once.
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    for (OpOperand &use : value.getUses()) {
      // One use that needs it is enough.
      if (needsPositive(value, use.getOwner()))
        return true;
      follow(use, values);
    }
  }
  return false;
}
