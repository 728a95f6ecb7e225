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
#include "WrappedCoordinates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

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
// Expressions as plain data
//===----------------------------------------------------------------------===//

IndexExpr kas::getIndexExpr(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return IndexExpr::getLoop(dim.getPosition());
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return IndexExpr::getConstant(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  IndexExpr left = getIndexExpr(binary.getLHS());
  if (expr.getKind() == AffineExprKind::Add) {
    left.add(getIndexExpr(binary.getRHS()), 1);
    return left;
  }
  // Every other operation of a concrete operator has a constant on the right.
  int64_t right = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  IndexExpr result;
  if (expr.getKind() == AffineExprKind::Mul) {
    result.add(left, right);
    return result;
  }
  assert(right > 0 && "the divisor must be positive");
  assert(expr.getKind() != AffineExprKind::CeilDiv &&
         "no primitive makes ceildiv");
  IndexTerm &term = result.terms.emplace_back();
  term.kind = expr.getKind() == AffineExprKind::Mod ? IndexTerm::Kind::Remainder
                                                    : IndexTerm::Kind::Quotient;
  term.divisor = right;
  term.dividend = std::make_shared<const IndexExpr>(std::move(left));
  return result;
}

AffineExpr kas::getAffineExpr(const IndexExpr &expr, MLIRContext *context) {
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (const IndexTerm &term : expr.terms) {
    AffineExpr value;
    if (term.kind == IndexTerm::Kind::Loop)
      value = getAffineDimExpr(term.loop, context);
    else if (term.kind == IndexTerm::Kind::Quotient)
      value = getAffineExpr(*term.dividend, context).floorDiv(term.divisor);
    else
      value = getAffineExpr(*term.dividend, context) % term.divisor;
    sum = sum + value * term.factor;
  }
  return sum + expr.constant;
}

Interval kas::getInterval(AffineExpr expr, ArrayRef<Interval> ranges) {
  return getIndexExpr(expr).getInterval(ranges);
}

AffineExpr kas::simplifyInRanges(AffineExpr expr, ArrayRef<Interval> ranges) {
  return getAffineExpr(getIndexExpr(expr).simplify(ranges), expr.getContext());
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
  CoordinatesBuilder(OperatorOp op, bool wraps)
      : op(op), wraps(wraps), context(op.getContext()) {}

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
      if (wraps) {
        tops[0] = simplifyInRanges(guard % extent, ranges);
      } else if (!isProven({guard, extent})) {
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
  /// Windows are not clipped.
  bool wraps;
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
  return CoordinatesBuilder(op, /*wraps=*/false).build();
}

Coordinates kas::getWrappedCoordinates(OperatorOp op) {
  assert(op.isConcrete() && "coordinates need a concrete operator");
  return CoordinatesBuilder(op, /*wraps=*/true).build();
}
