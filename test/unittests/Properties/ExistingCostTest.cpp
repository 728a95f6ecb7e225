//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What rates are made of: products that exist, counted without a loop over all
// points, against such a loop.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "AffineValue.h"
#include "Properties.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Analysis/IterationCount.h"
#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Library/Operators.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::schedule;
using namespace kas::test;
using namespace mlir;

/// Looks at every point.
static int64_t countOneByOne(ArrayRef<Axis> axes, ArrayRef<Guard> guards) {
  int64_t count = 0;
  SmallVector<int64_t> point(axes.size(), 0);
  while (true) {
    count += llvm::all_of(guards, [&](const Guard &guard) {
      int64_t value = getAffineValue(guard.expr, point);
      return value >= 0 && value < guard.extent;
    });
    size_t axis = point.size();
    while (axis > 0 && ++point[axis - 1] == axes[axis - 1].extent)
      point[--axis] = 0;
    if (axis == 0)
      return count;
  }
}

TEST(ExistingCost, CountsThePointsOfRandomOperators) {
  unsigned clipped = 0;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        OperatorOp op = makeConcrete(random.op, random.binding);
        Coordinates coordinates = getCoordinates(op);
        int64_t expected = countOneByOne(coordinates.axes, coordinates.guards);
        EXPECT_EQ(countIterations(coordinates.axes, coordinates.guards),
                  expected);
        clipped += expected != countIterations(coordinates.axes, {});
      },
      getNumOperators(300, 5000));
  EXPECT_GT(clipped, 10u);
}

TEST(ExistingCost, CountsTheProductsOfAllStages) {
  unsigned fewer = 0, staged = 0;
  forEachOperator(
      [&](const RandomOperator &random, uint64_t) {
        OperatorOp op = makeConcrete(random.op, random.binding);
        StagePlanOptions options;
        options.cost = StageCost::Prepared;
        StagePlan plan = planStages(op, options);
        OpBuilder builder(op);
        int64_t expected = 0;
        for (auto [stage, built] :
             llvm::zip_equal(plan.stages, buildStages(builder, op, plan))) {
          if (stage.isOfWeights || stage.macs == 0)
            continue;
          Coordinates coordinates = getCoordinates(built);
          expected += countOneByOne(coordinates.axes, coordinates.guards) *
                      std::max<int64_t>(built.getNumWeights(), 1);
        }
        EXPECT_EQ(countExistingMacs(op, plan), expected);
        EXPECT_LE(expected, static_cast<int64_t>(plan.macs));
        fewer += expected < static_cast<int64_t>(plan.macs);
        staged += plan.stages.size() > 1;
      },
      getNumOperators(300, 5000));
  EXPECT_GT(fewer, 10u);
  EXPECT_GT(staged, 10u);
}

namespace {
/// The counts of a named operator.
struct Counts {
  Counts(StringRef name, StringRef text) {
    MLIRContext context;
    OwningOpRef<ModuleOp> module = library::parseNamedOperator(&context, name);
    OperatorOp op = *module->getOps<OperatorOp>().begin();
    auto emitError = [&] { return op.emitError(); };
    FailureOr<Binding> binding =
        getBinding(op, llvm::cantFail(parseBinding(&context, text)), emitError);
    all = getCost(op, *binding, emitError)->macs;
    existing = *getExistingMacs(op, *binding, emitError);
  }
  int64_t all = 0, existing = 0;
};
} // namespace

TEST(ExistingCost, LeavesOutTheBordersOfConvolutions) {
  // Along 7 positions a window of 3 has 19 of 21 places, one of 5 has 29 of 35.
  Counts counts("kas.conv2d", "N=2,Cin=512,Cout=256,H=7,W=7,k=3");
  EXPECT_EQ(counts.all, 2 * 512 * 256 * 21 * 21);
  EXPECT_EQ(counts.existing, 2 * 512 * 256 * 19 * 19);
  Counts wide("kas.conv2d_depthwise", "N=1,C=8,H=7,W=9,k=5");
  EXPECT_EQ(wide.existing, 8 * 29 * 39);
}

TEST(ExistingCost, IsAllWhereNothingIsPadded) {
  Counts counts("kas.matmul", "M=7,N=5,K=3");
  EXPECT_EQ(counts.existing, 7 * 5 * 3);
  EXPECT_EQ(counts.all, counts.existing);
}

TEST(ExistingCost, IsFastAtTheSizesOfNetworks) {
  // 1.3e12 points: only the borders are looked at.
  Counts counts("kas.conv2d", "N=64,Cin=2048,Cout=2048,H=56,W=224,k=3");
  EXPECT_EQ(counts.existing, int64_t(64) * 2048 * 2048 * 166 * 670);
}
