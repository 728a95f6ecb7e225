//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/SourceSelection.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::tuning;

/// Table 6.2 of Gibson's thesis: classes with their kernels and the percentage
/// of the untuned time.
static llvm::SmallVector<NetworkProfile> getThesisNetworks() {
  return {
      {"M1",
       {{"A", 4, .17},
        {"B", 1, 0},
        {"C", 1, 0},
        {"D", 1, .06},
        {"E", 16, .67},
        {"G", 4, .10}}},
      {"M2",
       {{"B", 3, 0}, {"D", 1, .06}, {"E", 5, .14}, {"H", 2, .80}, {"I", 1, 0}}},
      {"M3",
       {{"B", 5, 0}, {"D", 1, .01}, {"E", 9, .59}, {"H", 2, .40}, {"I", 1, 0}}},
      {"M4",
       {{"A", 7, .15},
        {"C", 1, 0},
        {"D", 1, .24},
        {"J", 8, .32},
        {"K", 5, .15},
        {"L", 10, .14}}},
      {"M5",
       {{"A", 14, .09},
        {"C", 11, .04},
        {"D", 1, .12},
        {"K", 5, .09},
        {"M", 8, .39},
        {"N", 12, .27},
        {"O", 7, 0}}},
      {"M6",
       {{"A", 16, .11},
        {"C", 13, .03},
        {"D", 1, .10},
        {"K", 7, .14},
        {"M", 9, .39},
        {"N", 14, .23},
        {"O", 9, 0}}},
      {"M7", {{"B", 10, .01}, {"C", 1, 0}, {"D", 1, .04}, {"E", 49, .95}}},
      {"M8",
       {{"A", 7, .17},
        {"D", 1, .25},
        {"E", 9, .31},
        {"K", 5, .15},
        {"P", 12, .13}}},
      {"M9",
       {{"D", 1, 0},
        {"Q", 3, .98},
        {"R", 2, .02},
        {"S", 1, 0},
        {"T", 1, 0},
        {"U", 1, 0},
        {"V", 1, 0}}},
      {"M10", {{"D", 1, 0}, {"Q", 4, .97}, {"R", 2, .03}, {"S", 1, 0}}}};
}

/// All choices of Table 6.3. The thesis leaves the second and third of the
/// Transformers out: all others are equal there.
TEST(SourceSelection, ReproducesTheThesis) {
  llvm::SmallVector<NetworkProfile> networks = getThesisNetworks();
  std::vector<std::vector<std::string>> choices = {{"M7", "M8", "M3"},
                                                   {"M3", "M7", "M1"},
                                                   {"M7", "M1", "M8"},
                                                   {"M6", "M5", "M8"},
                                                   {"M6", "M4", "M8"},
                                                   {"M5", "M4", "M8"},
                                                   {"M1", "M3", "M8"},
                                                   {"M7", "M1", "M3"},
                                                   {"M10"},
                                                   {"M9"}};
  for (auto [target, expected] : llvm::zip_equal(networks, choices)) {
    llvm::SmallVector<RankedSource> ranked = rankSources(target, networks);
    ASSERT_EQ(ranked.size(), networks.size() - 1);
    for (auto [choice, source] : llvm::zip(expected, ranked)) {
      EXPECT_EQ(networks[source.index].name, choice) << "for " << target.name;
      EXPECT_GT(source.score, 0);
    }
    if (expected.size() == 1)
      for (const RankedSource &source : llvm::drop_begin(ranked))
        EXPECT_EQ(source.score, 0) << "for " << target.name;
    else
      // The third choice is one: the next is worse.
      EXPECT_GT(ranked[2].score, ranked[3].score) << "for " << target.name;
  }
}

/// One computed by hand: classes A, B, C, D and E of M1 are in M7 but A.
TEST(SourceSelection, ScoreIsEquation) {
  llvm::SmallVector<NetworkProfile> networks = getThesisNetworks();
  EXPECT_NEAR(getSourceScore(networks[0], networks[6]),
              .67 * .67 * 7 + .06 * .06, 1e-12);
  EXPECT_NEAR(getSourceScore(networks[4], networks[5]), 0.8031, 5e-5);
  EXPECT_EQ(getSourceScore(networks[0], {"empty", {}}), 0);
}

/// The second and third choice for M7 differ by the one percent of class B.
TEST(SourceSelection, SmallSharesDecide) {
  llvm::SmallVector<NetworkProfile> networks = getThesisNetworks();
  networks[6].classes[0].share = 0;
  llvm::SmallVector<RankedSource> ranked = rankSources(networks[6], networks);
  EXPECT_EQ(ranked[1].score, ranked[2].score);
  EXPECT_LT(ranked[1].index, ranked[2].index);
}

TEST(SourceSelection, LeavesTheTargetOut) {
  NetworkProfile one{"one", {{"A", 1, 1}}};
  EXPECT_TRUE(rankSources(one, {one}).empty());
}
