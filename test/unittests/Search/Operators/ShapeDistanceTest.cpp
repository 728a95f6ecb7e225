//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/ShapeDistance.h"
#include "Problems.h"

using namespace kas;
using namespace kas::search;

namespace {

/// Sizes by name, over C (channels), H (position) and the coefficients k, g.
class ShapeDistanceTest : public ProblemTest {
protected:
  static constexpr llvm::StringLiteral text = R"(
    kas.space @space<C, H | k, g> [C unordered, H] from [C unordered, H]
        bindings [<C = 32, H = 28, k = 3, g = 4>])";

  ShapeDistanceTest()
      : problem(parse(text)), sizes(*problem),
        distance(*problem, sizes, {get("C"), get("H")}) {}

  SizeId get(llvm::StringRef size) {
    return sizes.intern(llvm::cantFail(parseSize(size, problem->symbols)));
  }

  /// The least limit within which the distance is, or 99.
  int measure(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget) {
    for (int limit = 0; limit < 12; ++limit)
      if (distance.isWithin(items, budget, limit)) {
        EXPECT_TRUE(distance.isWithin(items, budget, limit + 1));
        return limit;
      }
    return 99;
  }

  static ShapeBudget makeBudget() {
    ShapeBudget budget;
    budget.split = budget.unfold = 3;
    return budget;
  }

  std::shared_ptr<const SearchProblem> problem;
  SizeTable sizes;
  ShapeDistance distance;
};

} // namespace

TEST_F(ShapeDistanceTest, OfTheInputIsNone) {
  EXPECT_EQ(measure({{get("C"), 0}, {get("H"), 0}}, makeBudget()), 0);
  EXPECT_EQ(measure({{get("H"), 0}, {get("C"), 0}}, makeBudget()), 0);
}

TEST_F(ShapeDistanceTest, ExcludesNothingWhenStopped) {
  std::array<ShapeItem, 3> items = {
      ShapeItem{get("C"), 0}, {get("H"), 0}, {get("k"), 0}};
  ShapeBudget budget = makeBudget();
  EXPECT_FALSE(distance.isWithin(items, budget, 0));
  budget.split = 0;
  uint64_t sum = 0;
  for (const ShapeItem &item : items)
    sum += ShapeDistance::hashItem(item);
  // A new question is not worked out, and its answer not remembered.
  distance.stop();
  EXPECT_TRUE(distance.isWithin(items, budget, 1));
  EXPECT_FALSE(distance.recall(ShapeDistance::getKey(sum, budget), 1));
}

TEST_F(ShapeDistanceTest, JoinsCostOneEach) {
  ShapeBudget budget = makeBudget();
  EXPECT_EQ(measure({{get("C/g"), 0}, {get("g"), 0}, {get("H"), 0}}, budget),
            1);
  budget.split = 0;
  EXPECT_EQ(measure({{get("C/g"), 0}, {get("g"), 0}, {get("H"), 0}}, budget),
            99);
  // An even size is no window.
  budget = makeBudget();
  EXPECT_EQ(measure({{get("C"), 0}, {get("H"), 0}, {get("g"), 0}}, budget), 99);
}

TEST_F(ShapeDistanceTest, WindowsNeedABase) {
  ShapeBudget budget = makeBudget();
  ShapeItem channel{get("C"), 0}, window{get("k"), 0},
      base{get("H"), ShapeItem::Unfoldable};
  EXPECT_EQ(measure({channel, base, window}, budget), 1);
  EXPECT_EQ(measure({channel, {get("H"), 0}, window}, budget), 99);
  // It must be `unfold_ratio` times as large: 28 >= 2 * 9, but not 2 * 27.
  EXPECT_EQ(measure({channel, base, {get("k**2"), 0}}, budget), 1);
  EXPECT_EQ(measure({channel, base, {get("k**3"), 0}}, budget), 99);
  // A base that a weight takes is none.
  budget.weights = 1;
  ShapeItem taken{get("C"), ShapeItem::Unfoldable | ShapeItem::Droppable};
  ShapeItem position{get("H"), 0};
  EXPECT_EQ(measure({channel, position, taken}, budget), 1);
  EXPECT_EQ(measure({channel, position, taken, window}, budget), 99);
  // Of a coordinate that is merged above the unfold the halves may be taken.
  budget.merge = 1;
  taken.flags |= ShapeItem::Mergeable;
  EXPECT_EQ(measure({channel, position, taken, window}, budget), 3);
  taken.flags &= ~ShapeItem::Unfoldable;
  position.flags |= ShapeItem::Unfoldable;
  EXPECT_EQ(measure({channel, position, taken, window}, budget), 2);
}

TEST_F(ShapeDistanceTest, ReductionsOfAChannelDiffer) {
  ShapeBudget budget = makeBudget();
  auto measureWith = [&](unsigned weightsOfA, unsigned weightsOfB) {
    ShapeItem a{get("C/g"), ShapeItem::IsReduce, uint8_t(weightsOfA)};
    ShapeItem b{get("g"), ShapeItem::IsReduce, uint8_t(weightsOfB)};
    return measure({a, b, {get("H"), 0}}, budget);
  };
  EXPECT_EQ(measureWith(1, 2), 1);
  EXPECT_EQ(measureWith(3, 2), 1);
  EXPECT_EQ(measureWith(0, 0), 99);
  EXPECT_EQ(measureWith(2, 2), 99);
  // Another weight may index one of them.
  budget.weights = 1;
  EXPECT_EQ(measureWith(2, 2), 1);
}

TEST_F(ShapeDistanceTest, FewReductionsArePooled) {
  ShapeBudget budget = makeBudget();
  ShapeItem half{get("g"), ShapeItem::Unweighted};
  ShapeItem rest{get("C/g**2"), 0}, position{get("H"), 0};
  EXPECT_EQ(measure({half, {get("C/g"), 0}, position}, budget), 1);
  // 4 * 4 points are more than 8.
  EXPECT_EQ(measure({half, half, rest, position}, budget), 99);
  budget.weights = 1;
  ShapeItem taken{get("g"), ShapeItem::Droppable};
  EXPECT_EQ(measure({half, half, rest, position, taken}, budget), 3);
}

TEST_F(ShapeDistanceTest, OneWeightTakesAny) {
  ShapeBudget budget = makeBudget();
  ShapeItem wanted[] = {{get("C"), 0},
                        {get("H"), 0},
                        {get("C"), ShapeItem::Droppable},
                        {get("g"), ShapeItem::Droppable}};
  EXPECT_EQ(measure(wanted, budget), 99);
  budget.weights = 1;
  EXPECT_EQ(measure(wanted, budget), 1);
  wanted[3].flags = ShapeItem::DroppableLater;
  EXPECT_EQ(measure(wanted, budget), 99);
  budget.weights = 2;
  EXPECT_EQ(measure(wanted, budget), 2);
}

TEST_F(ShapeDistanceTest, MergesCutCoordinates) {
  ShapeBudget budget = makeBudget();
  budget.weights = 1;
  // Half of the channels comes from a reduction, half from the output.
  ShapeItem items[] = {
      {get("C/g"), 0}, {get("C"), ShapeItem::Mergeable}, {get("H"), 0}};
  EXPECT_EQ(measure(items, budget), 99);
  budget.merge = 1;
  // Merge into g and C/g, split, and a weight that takes the other half.
  EXPECT_EQ(measure(items, budget), 3);
}

TEST_F(ShapeDistanceTest, DimensionsThatMustSeeNeedWindows) {
  ShapeBudget budget = makeBudget();
  distance.requireWindows({1});
  ShapeItem channel{get("C"), 0}, window{get("k"), 0};
  ShapeItem fixed{get("H"), ShapeItem::Unseeing};
  ShapeItem position{get("H"), ShapeItem::Unseeing | ShapeItem::Unfoldable};
  EXPECT_EQ(measure({channel, {get("H"), 0}}, budget), 0);
  EXPECT_EQ(measure({channel, fixed}, budget), 99);
  EXPECT_EQ(measure({channel, position}, budget), 99) << "no window is there";
  EXPECT_EQ(measure({channel, position, window}, budget), 1);
  // Channels need none.
  EXPECT_EQ(measure({{get("C"), ShapeItem::Unseeing}, {get("H"), 0}}, budget),
            0);
  // A window without a reduction below does not see.
  ShapeItem ofOutput{get("k"), ShapeItem::Unseeing};
  EXPECT_EQ(measure({channel, position, ofOutput}, budget), 99);
  // Both factors need one.
  ShapeItem high{get("H/g"), ShapeItem::Unseeing | ShapeItem::Unfoldable};
  ShapeItem low{get("g"), ShapeItem::Unseeing | ShapeItem::Unfoldable};
  EXPECT_EQ(measure({channel, high, low, window}, budget), 99);
  EXPECT_EQ(measure({channel, high, low, window, window}, budget), 3);
  EXPECT_EQ(measure({channel, high, {get("g"), 0}, window}, budget), 2);
  // One below a merge is enough for both halves, a merge of what has a
  // reduction needs none.
  budget.merge = 1;
  budget.weights = 1;
  position.flags |= ShapeItem::Mergeable;
  fixed.flags |= ShapeItem::Mergeable;
  ShapeItem taken{get("g"), ShapeItem::Droppable};
  EXPECT_EQ(measure({channel, position, taken, window}, budget), 2);
  EXPECT_EQ(measure({channel, fixed, taken, window}, budget), 4)
      << "one half takes the window, g the place of the other";
  fixed.flags |= ShapeItem::SeeingMerged;
  EXPECT_EQ(measure({channel, fixed, taken}, budget), 3);
}

/// After a split (O1) no coordinate that was there is unfolded by another one,
/// but by a split of two.
TEST_F(ShapeDistanceTest, WindowsThatAreYetToBeMadeHaveTwoFactors) {
  ShapeBudget budget = makeBudget(), late = budget;
  late.needsMadeWindow = true;
  ShapeItem channel{get("C"), 0}, window{get("k"), 0},
      base{get("H"), ShapeItem::Unfoldable};
  EXPECT_EQ(measure({channel, base}, late), 0);
  EXPECT_EQ(measure({channel, base, window}, late), 99);
  EXPECT_EQ(measure({channel, base, window, window}, late), 2);
  // Together they are too large a window.
  ShapeItem large{get("k**2"), 0};
  EXPECT_EQ(measure({channel, base, large, large}, budget), 2);
  EXPECT_EQ(measure({channel, base, large, large}, late), 99);
  // Two are one window: of two factors that need one each, one has none.
  distance.requireWindows({1});
  ShapeItem high{get("H/g"), ShapeItem::Unseeing | ShapeItem::Unfoldable};
  ShapeItem low{get("g"), ShapeItem::Unseeing | ShapeItem::Unfoldable};
  EXPECT_EQ(measure({channel, high, low, window, window}, budget), 3);
  EXPECT_EQ(measure({channel, high, low, window, window}, late), 99);
}

TEST_F(ShapeDistanceTest, ARequiredWeightCounts) {
  ShapeBudget budget = makeBudget();
  budget.weights = 1;
  budget.needsWeight = true;
  EXPECT_EQ(measure({{get("C"), 0}, {get("H"), 0}}, budget), 99);
  EXPECT_EQ(
      measure({{get("C"), 0}, {get("H"), 0}, {get("g"), ShapeItem::Droppable}},
              budget),
      1);
  // What is pooled without a weight is small.
  budget.needsWeight = false;
  EXPECT_EQ(measure({{get("C"), ShapeItem::Unweighted},
                     {get("H"), 0},
                     {get("g"), ShapeItem::Droppable}},
                    budget),
            1);
  budget.weights = 0;
  EXPECT_EQ(measure({{get("C"), ShapeItem::Unweighted}, {get("H"), 0}}, budget),
            99);
  EXPECT_EQ(
      measure(
          {{get("g"), ShapeItem::Unweighted}, {get("C/g"), 0}, {get("H"), 0}},
          budget),
      1);
}
