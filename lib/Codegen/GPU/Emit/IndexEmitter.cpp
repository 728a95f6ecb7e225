//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits index arithmetic of kernels: terms in the order of the loops that they
// depend on, unsigned divisions, constants folded into addresses.
// An expression is simplified with the ranges of its values first. MLIR's own
// lowering of affine.apply emits signed divisions with corrections, which take
// several times as many instructions.
//
//===----------------------------------------------------------------------===//

#include "IndexEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

// Dimension i stands for the i-th value that was added.
AffineExpr IndexEmitter::add(Value value, Interval range) {
  values.push_back(value);
  ranges.push_back(range);
  return getAffineDimExpr(values.size() - 1, b.getContext());
}

/// How deep in the loops `expr` varies: 0 for a constant, i + 1 where value i
/// is the innermost one that it depends on.
unsigned IndexEmitter::getLevel(AffineExpr expr) const {
  unsigned level = 0;
  expr.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      level = std::max(level, dim.getPosition() + 1);
  });
  return level;
}

Value IndexEmitter::emit(AffineExpr expr) {
  return emitSimplified(simplify(expr));
}

/// The terms of a sum, each with its coefficient, and the constant.
static void collectTerms(AffineExpr expr, int64_t factor,
                         SmallVectorImpl<std::pair<AffineExpr, int64_t>> &terms,
                         int64_t &constant) {
  if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * value.getValue();
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Add) {
    collectTerms(binary.getLHS(), factor, terms, constant);
    collectTerms(binary.getRHS(), factor, terms, constant);
    return;
  }
  if (binary && expr.getKind() == AffineExprKind::Mul)
    if (auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return collectTerms(binary.getLHS(), factor * scale.getValue(), terms,
                          constant);
  terms.emplace_back(expr, factor);
}

/// Emits an expression that `simplify` has seen. Operations are created again
/// each time; CSE and hoisting out of loops are left to later passes.
Value IndexEmitter::emitSimplified(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return values[dim.getPosition()];
  if (expr.getKind() == AffineExprKind::FloorDiv ||
      expr.getKind() == AffineExprKind::Mod)
    return emitDivision(cast<AffineBinaryOpExpr>(expr));

  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  int64_t constant = 0;
  collectTerms(expr, 1, terms, constant);
  // Outer terms first: their partial sums are invariant in the inner loops, so
  // LICM can hoist them. The position makes the order deterministic.
  SmallVector<std::pair<unsigned, size_t>> order;
  for (auto [position, term] : llvm::enumerate(terms))
    order.emplace_back(getLevel(term.first), position);
  llvm::sort(order);
  Value sum;
  for (auto [level, position] : order) {
    auto [term, factor] = terms[position];
    Value value = emitSimplified(term);
    if (factor != 1)
      value = arith::MulIOp::create(b, value, createConstant(factor));
    sum = sum ? Value(arith::AddIOp::create(b, sum, value)) : value;
  }
  // Last, where it becomes part of the address of a load.
  if (!sum)
    return createConstant(constant);
  return constant == 0 ? sum : addConstant(sum, expr - constant, constant);
}

Value IndexEmitter::addConstant(Value sum, AffineExpr expr, int64_t constant) {
  // The promise holds for 32 bits, signed and unsigned: addresses become 32-bit
  // integers on both targets.
  Interval range = getRange(expr);
  auto flags = arith::IntegerOverflowFlags::none;
  if (hasPromise && constant > 0 && range.lower >= 0 &&
      range.upper <= INT32_MAX - constant)
    flags = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;
  return arith::AddIOp::create(b, sum, createConstant(constant), flags);
}

/// Emits floordiv or mod by a positive constant as unsigned operations.
/// Example: with x in [-3, 8], `x floordiv 4` becomes `(x + 4) /u 4 - 1`, and
/// `x mod 4` becomes `(x + 4) %u 4`.
Value IndexEmitter::emitDivision(AffineBinaryOpExpr expr) {
  Value left = emitSimplified(expr.getLHS());
  int64_t divisor = cast<AffineConstantExpr>(expr.getRHS()).getValue();
  Interval range = getRange(expr.getLHS());
  bool isMod = expr.getKind() == AffineExprKind::Mod;
  // What may be negative is moved up by whole periods, which is cheaper than
  // the division of signed numbers.
  int64_t periods =
      range.lower < 0 ? llvm::divideCeil(-range.lower, divisor) : 0;
  if (periods)
    left = arith::AddIOp::create(b, left, createConstant(periods * divisor));
  if (isMod)
    return arith::RemUIOp::create(b, left, createConstant(divisor));
  Value quotient = arith::DivUIOp::create(b, left, createConstant(divisor));
  if (periods)
    quotient = arith::SubIOp::create(b, quotient, createConstant(periods));
  return quotient;
}

Value IndexEmitter::emitGuard(const Guard &guard) {
  AffineExpr expr = simplify(guard.expr);
  Interval range = getRange(expr);
  if (range.lower >= 0 && range.upper < guard.extent)
    return Value();
  // One comparison for both bounds:
  // Below zero is very large without a sign.
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                               emitSimplified(expr),
                               createConstant(guard.extent));
}
