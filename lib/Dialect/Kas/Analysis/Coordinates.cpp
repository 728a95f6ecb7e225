//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator as a loop nest: the affine index of each tensor dimension and the
// guards of points, simplified within the ranges of the loops.
//
// Interval arithmetic decides which floordiv, mod and guards cannot matter. It
// is sound, not complete: what it cannot decide stays. The Presburger library,
// which could, is for proofs (Lowering/), not for each operator of a search.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace kas;

bool Coordinates::hasMax() const {
  return llvm::any_of(axes, [](const Axis &axis) {
    return axis.kind == ReduceKind::Max && axis.extent > 1;
  });
}

double Coordinates::getMeanDivisor() const {
  double product = divisor;
  for (const Axis &axis : axes)
    if (axis.kind == ReduceKind::Mean)
      product *= static_cast<double>(axis.extent);
  return product;
}

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

/// Bottom up, without correlations: of d0 - d0 the interval is not [0, 0].
Interval kas::getInterval(AffineExpr expr, ArrayRef<Interval> ranges) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ranges[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Interval left = getInterval(binary.getLHS(), ranges);
  Interval right = getInterval(binary.getRHS(), ranges);
  if (expr.getKind() == AffineExprKind::Add)
    return {left.lower + right.lower, left.upper + right.upper};
  // Every other operation of a concrete operator has a constant on the right.
  assert(right.lower == right.upper && "the right side must be a constant");
  int64_t constant = right.lower;
  if (expr.getKind() == AffineExprKind::Mul) {
    auto [lower, upper] =
        std::minmax({left.lower * constant, left.upper * constant});
    return {lower, upper};
  }
  assert(constant > 0 && "the divisor must be positive");
  int64_t first = llvm::divideFloorSigned(left.lower, constant);
  int64_t last = llvm::divideFloorSigned(left.upper, constant);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return {first, last};
  assert(expr.getKind() == AffineExprKind::Mod && "no primitive makes ceildiv");
  // All values lie in one period, so the remainder moves with the dividend.
  if (first == last)
    return {left.lower - first * constant, left.upper - first * constant};
  return {0, constant - 1};
}

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

namespace {
/// A sum of terms, each a dimension, floordiv or mod times a coefficient.
/// The normal form: equal terms are one, so that differences cancel. Terms are
/// in order of insertion, which makes the text of results deterministic.
struct Sum {
  llvm::SmallMapVector<AffineExpr, int64_t, 4> terms;
  int64_t constant = 0;

  void add(AffineExpr term, int64_t coefficient) {
    int64_t &entry = terms[term];
    entry += coefficient;
    if (entry == 0)
      terms.erase(term);
  }
  void add(const Sum &other, int64_t factor) {
    for (auto [term, coefficient] : other.terms)
      add(term, coefficient * factor);
    constant += other.constant * factor;
  }
  AffineExpr toExpr(MLIRContext *context) const {
    AffineExpr result = getAffineConstantExpr(0, context);
    for (auto [term, coefficient] : terms)
      result = result + term * coefficient;
    return result + constant;
  }
};

/// Rebuilds an expression bottom up as a `Sum`.
class Simplifier {
public:
  Simplifier(MLIRContext *context, ArrayRef<Interval> ranges)
      : context(context), ranges(ranges) {}

  /// Operands of floordiv, mod and mul are simplified before the operation is,
  /// and a sum is joined each time that it grows.
  Sum simplify(AffineExpr expr) {
    Interval interval = getInterval(expr, ranges);
    Sum sum;
    // One value: loops of extent 1, and quotients that never reach 1.
    if (interval.lower == interval.upper) {
      sum.constant = interval.lower;
      return sum;
    }
    if (isa<AffineDimExpr>(expr)) {
      sum.add(expr, 1);
      return sum;
    }
    auto binary = cast<AffineBinaryOpExpr>(expr);
    sum = simplify(binary.getLHS());
    if (expr.getKind() == AffineExprKind::Add) {
      sum.add(simplify(binary.getRHS()), 1);
      joinQuotientsWithRemainders(sum);
      return sum;
    }
    int64_t constant = getInterval(binary.getRHS(), ranges).lower;
    if (expr.getKind() == AffineExprKind::Mul) {
      Sum product;
      product.add(sum, constant);
      return product;
    }
    return divide(sum, constant, expr.getKind() == AffineExprKind::Mod);
  }

private:
  /// `sum floordiv divisor`, or `sum mod divisor`. What is a multiple of the
  /// divisor leaves the division; what remains may lie within one period.
  /// Example: (8 * i + j) floordiv 4 with 0 <= j < 4 -> 2 * i.
  Sum divide(const Sum &sum, int64_t divisor, bool isMod) {
    Sum multiple, rest;
    for (auto [term, coefficient] : sum.terms)
      (coefficient % divisor == 0 ? multiple : rest).add(term, coefficient);
    multiple.constant =
        llvm::divideFloorSigned(sum.constant, divisor) * divisor;
    rest.constant = sum.constant - multiple.constant;

    AffineExpr restExpr = rest.toExpr(context);
    Interval interval = getInterval(restExpr, ranges);
    int64_t period = llvm::divideFloorSigned(interval.lower, divisor);
    bool onePeriod = period == llvm::divideFloorSigned(interval.upper, divisor);
    if (isMod) {
      if (!onePeriod)
        return moduloAgain(restExpr, divisor);
      // mod is the rest itself, moved into [0, divisor).
      rest.constant -= period * divisor;
      return rest;
    }
    Sum result;
    if (onePeriod)
      result.constant = period;
    else
      result = divideAgain(restExpr, divisor);
    for (auto [term, coefficient] : multiple.terms)
      result.add(term, coefficient / divisor);
    result.constant += multiple.constant / divisor;
    return result;
  }

  /// (e floordiv c) floordiv d = e floordiv (c * d).
  Sum divideAgain(AffineExpr expr, int64_t divisor) {
    if (expr.getKind() == AffineExprKind::FloorDiv) {
      auto inner = cast<AffineBinaryOpExpr>(expr);
      auto first = cast<AffineConstantExpr>(inner.getRHS());
      return divide(simplify(inner.getLHS()), first.getValue() * divisor,
                    /*isMod=*/false);
    }
    Sum result;
    result.add(expr.floorDiv(divisor), 1);
    return result;
  }

  /// (e mod (c * d)) mod d = e mod d.
  Sum moduloAgain(AffineExpr expr, int64_t divisor) {
    if (expr.getKind() == AffineExprKind::Mod) {
      auto inner = cast<AffineBinaryOpExpr>(expr);
      auto first = cast<AffineConstantExpr>(inner.getRHS());
      if (first.getValue() % divisor == 0)
        return divide(simplify(inner.getLHS()), divisor, /*isMod=*/true);
    }
    Sum result;
    result.add(expr % divisor, 1);
    return result;
  }

  /// a * c * (e floordiv c) + a * (e mod c) = a * e, where the remainder may
  /// have been simplified already.
  void joinQuotientsWithRemainders(Sum &sum) {
    for (auto [term, coefficient] : sum.terms) {
      if (term.getKind() != AffineExprKind::FloorDiv)
        continue;
      auto quotient = cast<AffineBinaryOpExpr>(term);
      int64_t divisor = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
      if (coefficient % divisor != 0)
        continue;
      int64_t factor = coefficient / divisor;
      Sum dividend = simplify(quotient.getLHS());
      Sum remainder = divide(dividend, divisor, /*isMod=*/true);
      // All terms of the remainder must be there with the same factor. The
      // constant of the sum takes the difference.
      bool found = llvm::all_of(remainder.terms, [&](const auto &entry) {
        return sum.terms.lookup(entry.first) == factor * entry.second;
      });
      if (!found)
        continue;
      sum.terms.erase(term);
      sum.add(remainder, -factor);
      sum.add(dividend, factor);
      // `terms` has changed: start again. Each time there is one quotient
      // fewer.
      return joinQuotientsWithRemainders(sum);
    }
  }

  MLIRContext *context;
  ArrayRef<Interval> ranges;
};
} // namespace

AffineExpr kas::simplifyInRanges(AffineExpr expr, ArrayRef<Interval> ranges) {
  MLIRContext *context = expr.getContext();
  return Simplifier(context, ranges).simplify(expr).toExpr(context);
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

namespace {
/// Follows the primitives from the output to the input. A clipped coordinate
/// becomes a dimension of its own, whose range is known where the point exists;
/// its expression is put in at the end.
/// Example, out[h] = sum over k of in[h + k - 1] * w[k], with h < 56, k < 3:
///   axes     h (56), k (3)
///   guard    0 <= d0 + d1 - 1 < 56
///   data     [d0 + d1 - 1], weight [d1]
/// While it is built, the clipped coordinate is dimension d2 with 0 <= d2 < 56.
class CoordinatesBuilder {
public:
  explicit CoordinatesBuilder(OperatorOp op)
      : op(op), context(op.getContext()) {}

  /// Primitives are in the order of their dependences, as MLIR has it.
  Coordinates build() {
    addAxes();
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (!isa<ReduceOp>(primitive))
        addPrimitive(cast<PrimitiveOpInterface>(primitive));
    YieldOp yield = op.getYield();
    for (Value coordinate : yield.getData())
      result.data.push_back(resolve(expressions.lookup(coordinate)));
    for (OperandRange weight : yield.getWeights()) {
      auto &expressionsOfWeight = result.weights.emplace_back();
      for (Value coordinate : weight)
        expressionsOfWeight.push_back(resolve(expressions.lookup(coordinate)));
    }
    for (Guard &guard : result.guards)
      guard.expr = resolve(guard.expr);
    // Once put in, an expression may be bounded better than its parts were.
    llvm::erase_if(result.guards,
                   [&](const Guard &guard) { return isProven(guard); });
    return std::move(result);
  }

private:
  void addAxes() {
    auto addAxis = [&](Value coordinate, std::optional<ReduceKind> kind) {
      int64_t extent = getConcreteSize(coordinate);
      result.axes.push_back({extent, kind, coordinate});
      // A loop of extent 1 is the constant 0.
      expressions[coordinate] = simplifyInRanges(addDimension(extent), ranges);
    };
    for (Value output : op.getOutputs())
      addAxis(output, std::nullopt);
    result.numOutputs = result.axes.size();
    for (ReduceOp reduce : getReductions(op))
      addAxis(reduce.getResult(), reduce.getKind());
    for (size_t axis = 0; axis < ranges.size(); ++axis)
      replacements.push_back(getAffineDimExpr(axis, context));
  }

  AffineExpr addDimension(int64_t extent) {
    ranges.push_back({0, extent - 1});
    return getAffineDimExpr(ranges.size() - 1, context);
  }

  void addPrimitive(PrimitiveOpInterface primitive) {
    SmallVector<AffineExpr> bottoms, tops;
    for (Value operand : primitive->getOperands())
      bottoms.push_back(expressions.lookup(operand));
    AffineExpr guard;
    int64_t extent = 0;
    primitive.getTopExpressions(bottoms, tops, guard, extent);
    for (AffineExpr &top : tops)
      top = simplifyInRanges(top, ranges);
    if (guard) {
      guard = simplifyInRanges(guard, ranges);
      if (!isProven({guard, extent})) {
        result.guards.push_back({guard, extent});
        // Where the point exists, the coordinate is within its size: a fresh
        // dimension says so to everything above it, which the expression could
        // not.
        tops[0] = addDimension(extent);
        // Index in `replacements` = number of the dimension.
        replacements.push_back(guard);
      }
    }
    for (auto [value, top] : llvm::zip_equal(primitive->getResults(), tops))
      expressions[value] = top;
  }

  /// Puts the expressions of the clipped coordinates in.
  AffineExpr resolve(AffineExpr expr) {
    // A replacement may mention an earlier clipped coordinate, never a later
    // one, so this ends.
    while (getNumDims(expr) > result.axes.size())
      expr = simplifyInRanges(expr.replaceDims(replacements), ranges);
    return expr;
  }

  static unsigned getNumDims(AffineExpr expr) {
    unsigned count = 0;
    expr.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        count = std::max(count, dim.getPosition() + 1);
    });
    return count;
  }

  /// Whether it holds at all points, by the bounds.
  bool isProven(const Guard &guard) const {
    Interval interval = getInterval(guard.expr, ranges);
    return interval.lower >= 0 && interval.upper < guard.extent;
  }

  OperatorOp op;
  MLIRContext *context;
  Coordinates result;
  /// Of the axes, then of the clipped coordinates; and what stands for each.
  SmallVector<Interval> ranges;
  SmallVector<AffineExpr> replacements;
  llvm::DenseMap<Value, AffineExpr> expressions;
};
} // namespace

Coordinates kas::getCoordinates(OperatorOp op) {
  assert(op.isConcrete() && "coordinates need a concrete operator");
  return CoordinatesBuilder(op).build();
}
