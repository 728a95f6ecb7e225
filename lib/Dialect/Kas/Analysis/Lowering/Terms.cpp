//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regions of points and the terms over them that lowered code is described by;
// emptiness is decided with MLIR's Presburger library.
//
// A region is a conjunction of affine constraints over integer dimensions with
// ranges; a value is a sum of terms, each in its region. Divisions become local
// variables of `FlatLinearConstraints`, whose `findIntegerSample` (the simplex
// algorithm of MLIR's Presburger library) is exact.
//
//===----------------------------------------------------------------------===//

#include "Terms.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::lowering;
using namespace mlir;
using llvm::DynamicAPInt;

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Bounds first: most constraints are decided without a system.
bool lowering::addConstraint(Conditions &region, Constraint constraint,
                             const Dims &dims) {
  Interval interval = getInterval(constraint.expr, dims.ranges);
  if (interval.upper < 0 || (constraint.isEquality && interval.lower > 0))
    return false;
  bool isImplied =
      interval.lower >= 0 && (!constraint.isEquality || interval.upper == 0);
  bool isKnown = llvm::any_of(region, [&](const Constraint &other) {
    return other.expr == constraint.expr &&
           other.isEquality == constraint.isEquality;
  });
  if (!isImplied && !isKnown)
    region.push_back(constraint);
  return true;
}

bool lowering::addBounds(Conditions &region, AffineExpr expr, int64_t extent,
                         const Dims &dims) {
  return addConstraint(region, {expr}, dims) &&
         addConstraint(region, {extent - 1 - expr}, dims);
}

/// Stops at the first that the ranges exclude: `region` is then not to be used.
bool lowering::addConditions(Conditions &region, const Conditions &other,
                             const Dims &dims) {
  return llvm::all_of(other, [&](const Constraint &constraint) {
    return addConstraint(region, constraint, dims);
  });
}

/// not (A and B) = not A, or A and not B: the parts are disjoint.
SmallVector<Conditions> lowering::getComplement(const Conditions &region,
                                                const Dims &dims) {
  SmallVector<Conditions> result;
  Conditions before;
  for (const Constraint &constraint : region) {
    SmallVector<AffineExpr> violations{-constraint.expr - 1};
    if (constraint.isEquality)
      violations.push_back(constraint.expr - 1);
    for (AffineExpr violation : violations) {
      Conditions outside = before;
      if (addConstraint(outside, {violation}, dims))
        result.push_back(std::move(outside));
    }
    before.push_back(constraint);
  }
  return result;
}

/// Floor division and mod, as affine expressions define them.
int64_t lowering::evaluateAt(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = evaluateAt(binary.getLHS(), point);
  int64_t right = evaluateAt(binary.getRHS(), point);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(left, right);
  // mod, which is never negative.
  default:
    return left - right * llvm::divideFloorSigned(left, right);
  }
}

bool lowering::contains(const Conditions &region, ArrayRef<int64_t> point) {
  return llvm::all_of(region, [&](const Constraint &constraint) {
    int64_t value = evaluateAt(constraint.expr, point);
    return constraint.isEquality ? value == 0 : value >= 0;
  });
}

/// Systems with more divisions than this, one in another, may take the simplex
/// algorithm minutes; over a few points they are decided one by one.
static constexpr unsigned maxDivisions = 4;
static constexpr int64_t maxListedPoints = int64_t(1) << 16;

namespace {
/// Conditions on those dimensions that they mention.
/// Small: dimensions that no constraint mentions are left out, since the
/// simplex algorithm pays for each.
class System {
public:
  System(const Conditions &conditions, const Dims &dims)
      : conditions(conditions), dims(dims), point(dims.ranges.size(), 0) {
    llvm::SmallBitVector used(dims.ranges.size());
    for (const Constraint &constraint : conditions)
      constraint.expr.walk([&](AffineExpr part) {
        if (auto dim = dyn_cast<AffineDimExpr>(part))
          used.set(dim.getPosition());
      });
    for (unsigned dim : used.set_bits()) {
      mentioned.push_back(dim);
      // Saturates: only "few" counts, and the product of ranges may not
      // overflow.
      numPoints *= dims.ranges[dim].upper - dims.ranges[dim].lower + 1;
      if (numPoints > maxListedPoints)
        numPoints = maxListedPoints + 1;
    }
    flatten();
  }

  /// A solution, 0 for dimensions that are not mentioned. Nothing: there is
  /// none.
  std::optional<SmallVector<int64_t>> solve() {
    // Local variables are the quotients of floordiv and mod.
    if (system.getNumLocalVars() > maxDivisions && numPoints <= maxListedPoints)
      return list();
    std::optional<SmallVector<DynamicAPInt, 8>> sample =
        system.findIntegerSample();
    if (!sample)
      return std::nullopt;
    for (auto [position, dim] : llvm::enumerate(mentioned))
      point[dim] = int64_t((*sample)[position]);
    return point;
  }

private:
  /// Makes the conditions and the ranges inequalities without divisions.
  void flatten() {
    MLIRContext *context = conditions.front().expr.getContext();
    SmallVector<AffineExpr> replacements(dims.ranges.size());
    for (auto [position, dim] : llvm::enumerate(mentioned))
      replacements[dim] = getAffineDimExpr(position, context);
    SmallVector<AffineExpr> exprs;
    for (const Constraint &constraint : conditions)
      exprs.push_back(constraint.expr.replaceDims(replacements));
    std::vector<SmallVector<int64_t, 8>> rows;
    [[maybe_unused]] LogicalResult flattened = getFlattenedAffineExprs(
        AffineMap::get(mentioned.size(), 0, exprs, context), &rows, &system);
    assert(succeeded(flattened) && "all divisors are constants");
    for (auto [constraint, row] : llvm::zip_equal(conditions, rows)) {
      if (constraint.isEquality)
        system.addEquality(row);
      else
        system.addInequality(row);
    }
    for (auto [position, dim] : llvm::enumerate(mentioned)) {
      const Interval &range = dims.ranges[dim];
      system.addBound(presburger::BoundType::LB, position, range.lower);
      system.addBound(presburger::BoundType::UB, position, range.upper);
    }
  }

  /// The first of all points that is a solution.
  std::optional<SmallVector<int64_t>> list() {
    for (unsigned dim : mentioned)
      point[dim] = dims.ranges[dim].lower;
    while (true) {
      if (contains(conditions, point))
        return point;
      size_t i = mentioned.size();
      while (i > 0 &&
             ++point[mentioned[i - 1]] > dims.ranges[mentioned[i - 1]].upper) {
        --i;
        point[mentioned[i]] = dims.ranges[mentioned[i]].lower;
      }
      if (i == 0)
        return std::nullopt;
    }
  }

  const Conditions &conditions;
  const Dims &dims;
  SmallVector<unsigned> mentioned;
  int64_t numPoints = 1;
  FlatLinearConstraints system;
  SmallVector<int64_t> point;
};
} // namespace

std::optional<SmallVector<int64_t>>
lowering::findPoint(const Conditions &conditions, const Dims &dims) {
  if (conditions.empty())
    return SmallVector<int64_t>(dims.ranges.size(), 0);
  return System(conditions, dims).solve();
}

/// Finds a point, takes the part that has it off the region, and goes on with
/// what is left: as many steps as parts that matter.
std::optional<SmallVector<int64_t>>
lowering::findUncovered(const Conditions &region, ArrayRef<Conditions> parts,
                        const Dims &dims) {
  std::optional<SmallVector<int64_t>> point = findPoint(region, dims);
  if (!point)
    return std::nullopt;
  // Only parts that have points of the region matter.
  const auto *part = llvm::find_if(
      parts, [&](const Conditions &part) { return contains(part, *point); });
  if (part == parts.end())
    return point;
  for (Conditions &outside : getComplement(*part, dims))
    if (addConditions(outside, region, dims))
      if (auto uncovered = findUncovered(outside, parts, dims))
        return uncovered;
  return std::nullopt;
}

/// Horner's rule.
AffineExpr lowering::linearize(ArrayRef<AffineExpr> indices,
                               ArrayRef<int64_t> shape, MLIRContext *context) {
  AffineExpr position = getAffineConstantExpr(0, context);
  for (auto [index, extent] : llvm::zip_equal(indices, shape))
    position = position * extent + index;
  return position;
}

/// The outermost index needs no mod: positions are in range.
SmallVector<AffineExpr> lowering::delinearize(AffineExpr position,
                                              ArrayRef<int64_t> shape) {
  SmallVector<AffineExpr> indices(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
    indices[i] = position.floorDiv(stride);
    if (i > 0)
      indices[i] = indices[i] % shape[i];
  }
  return indices;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool lowering::mentions(AffineExpr expr, ArrayRef<Loop> loops) {
  return llvm::any_of(
      loops, [&](const Loop &loop) { return expr.isFunctionOfDim(loop.dim); });
}

/// Restricts each region; those that become empty go away.
static void restrictAll(SmallVectorImpl<Conditions> &regions,
                        const Conditions &region, const Dims &dims) {
  llvm::erase_if(regions, [&](Conditions &restricted) {
    return !addConditions(restricted, region, dims);
  });
}

/// Terms outside of the region disappear.
Terms lowering::restrictTo(Terms value, const Conditions &region,
                           const Dims &dims) {
  llvm::erase_if(value.terms, [&](Term &term) {
    size_t before = term.where.size();
    if (!addConditions(term.where, region, dims))
      return true;
    // Zero outside of the region, minus infinity in it without points.
    if (!term.isZeroWhereEmpty && term.where.size() != before) {
      value.isMixed |= before > 0;
      term.isZeroWhereEmpty = true;
    }
    return false;
  });
  restrictAll(value.lowest, region, dims);
  restrictAll(value.undefined, region, dims);
  return value;
}

void lowering::addTerms(Terms &to, Terms from) {
  llvm::append_range(to.terms, from.terms);
  llvm::append_range(to.lowest, from.lowest);
  llvm::append_range(to.undefined, from.undefined);
  to.isMixed |= from.isMixed;
}

/// A few are cheaper to carry along than to test.
void lowering::dropEmpty(Terms &value, const Dims &dims) {
  constexpr size_t few = 4;
  auto drop = [&](SmallVectorImpl<Conditions> &regions) {
    if (regions.size() > few)
      llvm::erase_if(regions, [&](const Conditions &region) {
        return !findPoint(region, dims);
      });
  };
  drop(value.lowest);
  drop(value.undefined);
  if (value.terms.size() > few)
    llvm::erase_if(value.terms, [&](const Term &term) {
      return term.isZeroWhereEmpty && !findPoint(term.where, dims);
    });
}

/// Whether `value` is one positive number.
/// Such a factor commutes with sums and with maxima.
static std::optional<double> getPositiveConstant(const Terms &value) {
  if (value.accumulator || value.terms.size() != 1 || !value.lowest.empty() ||
      !value.undefined.empty())
    return std::nullopt;
  const Term &term = value.terms.front();
  if (!term.loops.empty() || !term.where.empty() || !term.factors.empty() ||
      term.scale <= 0)
    return std::nullopt;
  return term.scale;
}

static Terms scale(Terms value, double factor) {
  for (Term &term : value.terms)
    term.scale *= factor;
  return value;
}

static bool hasMax(const Term &term) {
  return llvm::any_of(term.loops, [](const Loop &loop) { return loop.isMax; });
}

/// (a + b) * (c + d) = ac + ad + bc + bd, each in the intersection of its
/// regions. Of padded data and an unpadded weight: the inner term times the
/// weight, since the padding is zero and so has no term.
FailureOr<Terms> lowering::multiply(const Terms &left, const Terms &right,
                                    const Dims &dims) {
  // Each padded factor has a term per region, and products multiply them.
  constexpr size_t maxTerms = 4096;
  if (left.accumulator || right.accumulator ||
      left.terms.size() * right.terms.size() > maxTerms)
    return failure();
  if (std::optional<double> factor = getPositiveConstant(left))
    return scale(right, *factor);
  if (std::optional<double> factor = getPositiveConstant(right))
    return scale(left, *factor);
  Terms product;
  for (const Term &first : left.terms) {
    for (const Term &second : right.terms) {
      // A loop of both is the square of a sum, not the sum of squares.
      bool isShared = llvm::any_of(first.loops, [&](const Loop &loop) {
        return llvm::any_of(second.loops, [&](const Loop &other) {
          return loop.dim == other.dim;
        });
      });
      // max(a) * b is max(a * b) for b >= 0 only.
      if (isShared || hasMax(first) || hasMax(second))
        return failure();
      // Both parts' loops, factors and regions.
      Term term = first;
      llvm::append_range(term.loops, second.loops);
      llvm::append_range(term.factors, second.factors);
      term.scale *= second.scale;
      if (addConditions(term.where, second.where, dims))
        product.terms.push_back(std::move(term));
    }
  }
  // Infinity times something is no longer the neutral element of a maximum.
  for (const Terms *value : {&left, &right}) {
    product.isMixed |= value->isMixed;
    llvm::append_range(product.undefined, value->undefined);
    llvm::append_range(product.undefined, value->lowest);
  }
  dropEmpty(product, dims);
  return product;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Term lowering::getOperatorTerm(OperatorOp op, ValueRange inputs,
                               ArrayRef<AffineExpr> outputs, Dims &dims) {
  MLIRContext *context = op.getContext();
  Term term;
  llvm::DenseMap<Value, AffineExpr> expressions;
  for (auto [output, expr] : llvm::zip_equal(op.getOutputs(), outputs))
    expressions[output] = expr;
  for (ReduceOp reduce : getReductions(op)) {
    int64_t extent = getConcreteSize(reduce.getResult());
    unsigned dim = dims.add(extent);
    expressions[reduce.getResult()] = getAffineDimExpr(dim, context);
    term.loops.push_back({dim, extent, reduce.getKind() == ReduceKind::Max});
    if (reduce.getKind() == ReduceKind::Mean)
      term.scale /= static_cast<double>(extent);
  }
  for (Operation &op : op.getBody().front().without_terminator()) {
    if (isa<ReduceOp>(op))
      continue;
    auto primitive = cast<PrimitiveOpInterface>(op);
    SmallVector<AffineExpr> bottoms, tops;
    for (Value operand : op.getOperands())
      bottoms.push_back(expressions.lookup(operand));
    AffineExpr guard;
    int64_t extent = 0;
    // The interface that defines each primitive, without simplification: the
    // proof shares no shortcut with the code that it checks.
    primitive.getTopExpressions(bottoms, tops, guard, extent);
    if (guard && !addBounds(term.where, guard, extent, dims))
      // No point exists.
      term.where.push_back({getAffineConstantExpr(-1, context)});
    for (auto [value, top] : llvm::zip_equal(op.getResults(), tops))
      expressions[value] = top;
  }
  auto addFactor = [&](Value tensor, OperandRange coordinates) {
    Factor &factor = term.factors.emplace_back();
    factor.tensor = tensor;
    for (Value coordinate : coordinates)
      factor.indices.push_back(expressions.lookup(coordinate));
  };
  addFactor(inputs.front(), op.getYield().getData());
  for (auto [tensor, weight] :
       llvm::zip_equal(inputs.drop_front(), op.getYield().getWeights()))
    addFactor(tensor, weight);
  return term;
}
