//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simplified coordinates of random operators are those that the primitives
// give, at every point.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "AffineValue.h"
#include "Properties.h"
#include "llvm/ADT/DenseMap.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
/// The values of all coordinates at one point, primitive by primitive.
struct PointValues {
  llvm::DenseMap<Value, int64_t> values;
  bool exists = true;

  PointValues(OperatorOp op, const Coordinates &coordinates,
              ArrayRef<int64_t> point) {
    for (auto [axis, value] : llvm::zip_equal(coordinates.axes, point))
      values[axis.coordinate] = value;
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (!isa<ReduceOp>(primitive))
        add(cast<PrimitiveOpInterface>(primitive));
  }

private:
  void add(PrimitiveOpInterface primitive) {
    SmallVector<AffineExpr> bottoms, tops;
    SmallVector<int64_t> operands;
    for (Value operand : primitive->getOperands()) {
      bottoms.push_back(
          getAffineDimExpr(operands.size(), primitive->getContext()));
      operands.push_back(values.lookup(operand));
    }
    AffineExpr guard;
    int64_t extent = 0;
    primitive.getTopExpressions(bottoms, tops, guard, extent);
    if (guard) {
      int64_t value = getAffineValue(guard, operands);
      exists &= value >= 0 && value < extent;
    }
    for (auto [result, top] : llvm::zip_equal(primitive->getResults(), tops))
      values[result] = getAffineValue(top, operands);
  }
};
} // namespace

static bool checkPoint(OperatorOp op, const Coordinates &coordinates,
                       ArrayRef<int64_t> point) {
  PointValues expected(op, coordinates, point);
  bool exists = llvm::all_of(coordinates.guards, [&](const Guard &guard) {
    int64_t value = getAffineValue(guard.expr, point);
    return value >= 0 && value < guard.extent;
  });
  EXPECT_EQ(exists, expected.exists);
  if (!exists)
    return !expected.exists;
  auto check = [&](ValueRange values, ArrayRef<AffineExpr> exprs) {
    for (auto [value, expr] : llvm::zip_equal(values, exprs))
      EXPECT_EQ(getAffineValue(expr, point), expected.values.lookup(value));
  };
  YieldOp yield = op.getYield();
  check(yield.getData(), coordinates.data);
  for (auto [values, exprs] :
       llvm::zip_equal(yield.getWeights(), coordinates.weights))
    check(values, exprs);
  return !testing::Test::HasFailure();
}

/// Runs `body` at every point until it returns false.
static void forEachPoint(const Coordinates &coordinates,
                         llvm::function_ref<bool(ArrayRef<int64_t>)> body) {
  SmallVector<int64_t> point(coordinates.axes.size(), 0);
  while (body(point)) {
    size_t axis = point.size();
    while (axis > 0 && ++point[axis - 1] == coordinates.axes[axis - 1].extent)
      point[--axis] = 0;
    if (axis == 0)
      return;
  }
}

TEST(Coordinates, AgreeWithThePrimitivesAtEveryPoint) {
  unsigned guards = 0, unfolds = 0;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        OperatorOp op = makeConcrete(random.op, random.binding);
        Coordinates coordinates = getCoordinates(op);
        guards += coordinates.guards.size();
        for (UnfoldOp unfold : op.getBody().getOps<UnfoldOp>())
          unfolds += unfold != nullptr;
        forEachPoint(coordinates, [&](ArrayRef<int64_t> point) {
          return checkPoint(op, coordinates, point);
        });
      },
      getNumOperators(300, 5000));
  EXPECT_GT(guards, 0u);
  EXPECT_LT(guards, unfolds) << "no clipping was proven away";
}

namespace {
class SimplifyTest : public testing::Test {
protected:
  AffineExpr d(unsigned position) {
    return getAffineDimExpr(position, &context);
  }
  MLIRContext context;
};
} // namespace

TEST_F(SimplifyTest, DivisionsThatCannotMatterGoAway) {
  SmallVector<Interval> ranges{{0, 3}, {0, 2}, {0, 0}};
  auto simplify = [&](AffineExpr expr) {
    return simplifyInRanges(expr, ranges);
  };
  EXPECT_EQ(simplify((d(0) * 3 + d(1)).floorDiv(3)), d(0));
  EXPECT_EQ(simplify((d(0) * 3 + d(1)) % 3), d(1));
  EXPECT_EQ(simplify((d(0) + 4) % 4), d(0));
  EXPECT_EQ(simplify((d(0) - 4) % 4), d(0));
  EXPECT_EQ(simplify((d(1) - 3).floorDiv(3)),
            getAffineConstantExpr(-1, &context));
  EXPECT_EQ(simplify(d(2) * 7 + d(1)), d(1));
  EXPECT_EQ(simplify(d(0).floorDiv(2) * 2 + d(0) % 2), d(0));
  EXPECT_EQ(simplify((d(0) % 4).floorDiv(2).floorDiv(2)),
            getAffineConstantExpr(0, &context));
  // What matters stays.
  EXPECT_EQ(simplify((d(0) + 1) % 4), (d(0) + 1) % 4);
  EXPECT_EQ(simplify(d(0).floorDiv(2)), d(0).floorDiv(2));
}

TEST_F(SimplifyTest, IntervalsAreThoseOfTheValues) {
  SmallVector<Interval> ranges{{0, 3}, {-2, 5}};
  auto expectInterval = [&](AffineExpr expr, int64_t lower, int64_t upper) {
    Interval interval = getInterval(expr, ranges);
    EXPECT_EQ(interval.lower, lower);
    EXPECT_EQ(interval.upper, upper);
  };
  expectInterval(d(0) * 2 + d(1) - 1, -3, 10);
  expectInterval(d(1) * -3, -15, 6);
  expectInterval(d(1).floorDiv(4), -1, 1);
  expectInterval(d(1) % 4, 0, 3);
  expectInterval((d(0) + 8) % 8, 0, 3);
}
