//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/TilePlan.h"
#include "kas/Schedule/RowVectorPlan.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::schedule;

namespace {

/// Of all row tiles of a product of 128 rows and 50 272 columns.
int64_t getTime(int64_t rows, int64_t dataElements, const TileTarget &target) {
  RowTileShape shape{
      1, 1, /*width=*/50272, rows, 768, /*mayOverlap=*/true, dataElements};
  return chooseRowTile(shape, target, [](int64_t, int64_t) { return true; })
      .getTime();
}

TEST(TilePlanTest, DataThatNoCacheHolds) {
  TileTarget target{Target()};
  int64_t kept = 8 * target.l2Elements;
  EXPECT_EQ(getTime(128, 0, target), getTime(128, kept, target));
  int64_t more = getTime(128, kept + 1, target) - getTime(128, kept, target);
  EXPECT_GT(more, 0);
  // All of it is read for each tile of rows.
  EXPECT_EQ(getTime(256, kept + 1, target) - getTime(256, kept, target),
            2 * more);
}

TEST(TilePlanTest, BalancedTilesCoverALine) {
  for (int64_t width = 1; width <= 60; ++width)
    for (int64_t columns = 1; columns <= width; ++columns) {
      BalancedTiles tiles(width, columns);
      int64_t narrow = tiles.numAll - tiles.numWide;
      EXPECT_EQ(tiles.numWide * (tiles.narrow + 1) + narrow * tiles.narrow,
                width);
      EXPECT_GT(narrow, 0);
      EXPECT_LE(tiles.getWidest(), columns);
      EXPECT_EQ(tiles.numAll, llvm::divideCeil(width, columns));
    }
}

/// The tile for 64 rows of `width` columns and `depth` steps.
RowTile choose(int64_t width, int64_t depth, bool mayOverlap, int64_t stride,
               const TileTarget &target) {
  RowTileShape shape{1,          1, width,  /*rows=*/64, depth,
                     mayOverlap, 0, stride, depth};
  return chooseRowTile(shape, target, [](int64_t, int64_t) { return true; });
}

// Only where each sum is computed once can it wait for the next part.
TEST(TilePlanTest, PartsOfTheSteps) {
  Target avx2;
  avx2.vectorBits = 256;
  TileTarget target{avx2};
  for (int64_t width : {13, 49, 169, 196})
    for (bool mayOverlap : {false, true}) {
      RowTile few = choose(width, 64, mayOverlap, 1, target);
      EXPECT_EQ(few.parts, 1) << width;
      RowTile many = choose(width, 1024, mayOverlap, 1, target);
      EXPECT_GT(many.parts, 2) << width;
      EXPECT_TRUE(many.isBalanced || width % many.columns == 0) << width;
      // Lines that each step reads anew take more than weights do.
      EXPECT_LE(choose(width, 1024, mayOverlap, 0, target).parts, many.parts);
    }
}

TEST(TilePlanTest, WideVectorsNeedNoParts) {
  Target avx512;
  avx512.vectorBits = 512;
  avx512.vectorRegisters = 32;
  TileTarget target{avx512};
  for (int64_t width : {13, 49, 169, 196}) {
    RowTile tile = choose(width, 1024, /*mayOverlap=*/true, 1, target);
    EXPECT_EQ(tile.parts, 1);
    EXPECT_FALSE(tile.isBalanced);
  }
}

/// Of one vector along 8 rows that multiply 256 elements, `stride` apart, of
/// each of 16 columns. A shift moves the columns around by one.
int64_t getRowVectorTime(int64_t stride, bool isShifted,
                         const TileTarget &target) {
  TileNest nest;
  nest.loops = {{8, false}, {16, false}, {256, true}};
  nest.output.strides = {16, 1, 0};
  nest.output.size = 8 * 16;
  StridedTensor &weight = nest.scalarInputs.emplace_back();
  weight.strides = {256, 0, 1};
  weight.size = 8 * 256;
  IndexedTensor &data = nest.vectorInputs.emplace_back();
  data.size = int64_t(1) << 24;
  IndexExpr column = IndexExpr::getLoop(1);
  if (isShifted) {
    column.add(IndexExpr::getConstant(1), 1);
    column =
        column.divide(16, /*isRemainder=*/true, {{0, 7}, {0, 15}, {0, 255}});
  }
  data.address = column;
  data.address.add(IndexExpr::getLoop(2), stride);
  EXPECT_TRUE(nest.classify());
  std::optional<RowVectorPlan> plan = makeRowVectorPlan(
      nest, target, /*threads=*/1, /*given=*/nullptr,
      [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); },
      /*mayOverlap=*/true);
  return plan ? plan->time : 0;
}

// What a shift moves lies in the same cache lines as what is not shifted.
TEST(TilePlanTest, CacheLinesOfShiftedDataConflict) {
  TileTarget target{Target()};
  for (bool isShifted : {false, true}) {
    SCOPED_TRACE(isShifted ? "shifted" : "plain");
    EXPECT_EQ(getRowVectorTime(1 << 16, isShifted, target) -
                  getRowVectorTime((1 << 16) + 16, isShifted, target),
              getRowVectorTime(1 << 16, false, target) -
                  getRowVectorTime((1 << 16) + 16, false, target));
  }
  EXPECT_GT(getRowVectorTime(1 << 16, false, target),
            getRowVectorTime((1 << 16) + 16, false, target));
}

/// Sums, the columns that they need at once and, without products that take it
/// from memory, a row: else some are stored and loaded at each step.
TEST(TilePlanTest, PanelRegistersHoldWhatAStepNeeds) {
  auto expectFit = [](int64_t bits, int64_t registers, int64_t row) {
    Target description;
    description.vectorBits = bits;
    description.vectorRegisters = registers;
    TileTarget target{description};
    for (int64_t columns = 1; columns <= 200; ++columns) {
      std::optional<PanelRegisters> plan = choosePanelRegisters(
          columns, /*rows=*/64, target, target.registers - 4, /*maxRows=*/14,
          /*maxVectors=*/4, [](int64_t, int64_t) { return true; });
      ASSERT_TRUE(plan);
      // Those of the loop, and those that are left after it.
      int64_t left =
          llvm::divideCeil(columns, target.lanes) - plan->loopedVectors;
      for (int64_t vectors : {plan->loopedVectors ? plan->vectors : 0, left})
        EXPECT_LE(vectors ? plan->rows * vectors + vectors + row : 0, registers)
            << columns << " columns, " << bits << " bits";
    }
  };
  expectFit(128, 32, 1);
  expectFit(256, 16, 1);
  expectFit(512, 32, 0);
}

} // namespace

// Pairs of i16 are multiplied into a register, which is added to the sum: no
// tile takes all others.
TEST(TilePlanTest, ProductsOfShortsHaveARegister) {
  Target avx2;
  avx2.vectorBits = 256;
  TileTarget target{avx2};
  auto getMostRegisters = [](const TileTarget &target) {
    int64_t most = 0;
    auto isAllowed = [&](int64_t columns, int64_t vectors) {
      // Sums, weights and a datum.
      most = std::max(most, columns * vectors + vectors + 1);
      return true;
    };
    RowTileShape shape{/*outer=*/1, /*height=*/1, /*width=*/96, /*rows=*/64,
                       /*depth=*/8};
    chooseRowTile(shape, target, isAllowed);
    choosePanelRegisters(/*columns=*/96, /*rows=*/64, target,
                         /*limit=*/target.registers, /*maxRows=*/14,
                         /*maxVectors=*/4, isAllowed);
    return most;
  };
  EXPECT_EQ(getMostRegisters(target), target.registers);
  TileNest nest;
  nest.isOfInt16 = true;
  EXPECT_EQ(getMostRegisters(target.forProductsOf(nest)), target.registers - 1);
}
