//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of docs/internals/canonical-form.md on single moves, one test each,
// named after its number: what the rule takes away, and a near miss that stays.
//
//===----------------------------------------------------------------------===//

#include "RuleChecker.h"
#include <algorithm>

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, W1) {
  EXPECT_TRUE(isShareable(space, get(h)));
  ExprId r = reduce("s");
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(isShareable(space, get(low)));
  EXPECT_FALSE(isShareable(space, get(split(high, r))));
  EXPECT_FALSE(isShareable(space, get(shift(w))));
}

TEST_F(RulesTest, W3) {
  ExprId c = reduce("C");
  EXPECT_FALSE(isTakeable(space, get(c)));
  EXPECT_TRUE(isTakeable(space, get(d)));
  contract({c}, {d});
  EXPECT_TRUE(isTakeable(space, get(c)));
  EXPECT_FALSE(isTakeable(space, get(unfold(h, reduce("k")))));
}

TEST_F(RulesTest, W10) {
  // The quotient of a shifted split of a and b, merged by b's size.
  auto [q, m] = merge(shift(split(h, reduce("s"))), "s");
  EXPECT_TRUE(takesRenamed({q}, {m})) << "only b's points are renamed";
  EXPECT_FALSE(takesRenamed({q}, {})) << "the carry is seen";
  EXPECT_FALSE(takesRenamed({}, {q, m})) << "the data has it, too";
  auto [ofOutput, rest] = merge(shift(split(reduce("s"), w)), "H");
  EXPECT_FALSE(takesRenamed({ofOutput}, {rest})) << "w's points have names";
}

TEST_F(RulesTest, W10OfChannels) {
  auto [q, m] = merge(shift(split(h, d)), "D");
  EXPECT_TRUE(takesRenamed({q}, {m}));
}

TEST_F(RulesTest, W10WithSeveralWeights) {
  ExprId b = reduce("s");
  contract({b}, {d});
  auto [q, m] = merge(shift(split(h, b)), "s");
  EXPECT_TRUE(takesRenamed({q}, {m})) << "that weight is renamed as well";
  contract({q}, {w});
  EXPECT_FALSE(takesRenamed({q}, {m})) << "that weight sees the carry";
}

TEST_F(RulesTest, W11) {
  ExprId k = reduce("k"), r = reduce("s");
  contract({h, k, r}, {d});
  auto [q, m] = merge(shift(split(unfold(h, k), r)), "s");
  EXPECT_TRUE(takesDetermined({m}, {q})) << "that weight has h, k and r";
  EXPECT_TRUE(takesDetermined({q}, {}));
  EXPECT_FALSE(takesDetermined({w, m}, {q})) << "it does not have w";
  EXPECT_FALSE(takesDetermined({q, m}, {})) << "nothing else has the borders";
}

TEST_F(RulesTest, W12) {
  auto [q, m] = merge(shift(split(reduce("s"), w)), "H");
  EXPECT_TRUE(takesSummed({q}, {m})) << "a sum over the weight";
  EXPECT_TRUE(takesSummed({q}, {}));
  EXPECT_FALSE(takesSummed({m}, {q})) << "the data has it, too";
  auto [ofOutput, rest] = merge(shift(split(h, reduce("s"))), "s");
  EXPECT_FALSE(takesSummed({ofOutput}, {rest})) << "h is no reduction";
}

TEST_F(RulesTest, W12WithSeveralWeights) {
  ExprId r = reduce("s");
  contract({r}, {d});
  auto [q, m] = merge(shift(split(r, w)), "H");
  EXPECT_FALSE(takesSummed({q}, {m})) << "that weight sees the reduction";
}

/// Matrices of 36 x R and R x 24.
static bool makesFullMatrix(RuleChecker &checker, llvm::StringRef rank) {
  ExprId c = checker.reduce("C"), r = checker.reduce(rank);
  checker.contract({r}, {checker.d});
  return checker.takesFullRank({r}, {c});
}

TEST_F(RulesTest, W14) {
  auto any = limit([](SpaceLimits &limits) { limits.rankSaves = false; });
  for (llvm::StringRef rank : {"C", "D", "s*g*k"}) {
    RuleChecker checker(any);
    EXPECT_TRUE(makesFullMatrix(checker, rank)) << rank.str();
  }
  RuleChecker checker(any);
  EXPECT_FALSE(makesFullMatrix(checker, "g*k"));
}

TEST_F(RulesTest, W14OfSharedParts) {
  auto any = limit([](SpaceLimits &limits) { limits.rankSaves = false; });
  RuleChecker checker(any);
  // For each h, a matrix of 36 x 3 and one of 3 x 24.
  ExprId c = checker.reduce("C"), r = checker.reduce("g");
  checker.contract({r, checker.h}, {checker.d});
  EXPECT_FALSE(checker.takesFullRank({r}, {c, checker.h}));
  // The second one has nothing but h and the reduction.
  EXPECT_TRUE(checker.takesFullRank({r}, {checker.h}));
}

TEST_F(RulesTest, W14OfThreeWeights) {
  auto any = limit([](SpaceLimits &limits) { limits.rankSaves = false; });
  for (bool isFull : {false, true}) {
    RuleChecker checker(any);
    // 3 x R, 5 x R and 24 x R: full from 15 on.
    ExprId c = checker.reduce("C"), g = checker.reduce("g"),
           k = checker.reduce("k");
    ExprId r = checker.reduce(isFull ? "g*k" : "C/s");
    checker.contract({g, r}, {});
    checker.contract({k, r}, {});
    EXPECT_EQ(checker.takesFullRank({r}, {c}), isFull);
  }
}

TEST_F(RulesTest, W16) {
  for (bool hasQuotient : {false, true}) {
    RuleChecker checker(parse(rulesSpace));
    ExprId c = checker.reduce("C"), g = checker.reduce("g");
    auto [q, m] = checker.merge(
        checker.shift(checker.split(checker.d, checker.reduce("s"))), "s");
    if (hasQuotient) {
      checker.contract({q}, {m});
      EXPECT_TRUE(checker.takesFullCarry({q}, {c})) << "one of d and C";
      EXPECT_FALSE(checker.takesFullCarry({}, {c, q})) << "the data has q";
      continue;
    }
    checker.contract({g}, {m});
    EXPECT_TRUE(checker.takesFullCarry({q}, {c, g}));
    EXPECT_FALSE(checker.takesFullCarry({q}, {c})) << "it does not have g";
  }
}

TEST_F(RulesTest, W16OfPositions) {
  ExprId c = reduce("C");
  auto [q, m] = merge(shift(split(h, w)), "H");
  contract({q}, {m});
  EXPECT_FALSE(takesFullCarry({q}, {c})) << "nothing is summed up";
}

/// A window of k points that one weight has, and one or two of g points that
/// both have, one on the other; the second weight may have the position.
static bool makesFullWindows(RuleChecker &checker, unsigned numShared,
                             bool hasPosition) {
  ExprId k = checker.reduce("k");
  llvm::SmallVector<ExprId> shared, first = {k}, second;
  for (unsigned i = 0; i < numShared; ++i)
    shared.push_back(checker.reduce("g"));
  llvm::append_range(first, shared);
  llvm::append_range(second, shared);
  if (hasPosition)
    second.push_back(checker.h);
  checker.contract(first, {});
  checker.contract(second, {checker.d});
  ExprId top = checker.unfold(checker.h, k);
  for (ExprId window : shared)
    top = checker.unfold(top, window);
  return checker.hasFullWindows();
}

TEST_F(RulesTest, W17) {
  // 9 products of a polynomial with 5 coefficients and one element each: all
  // polynomials with 9 coefficients.
  RuleChecker full(parse(rulesSpace));
  EXPECT_TRUE(makesFullWindows(full, 2, /*hasPosition=*/true));
  RuleChecker tooFew(parse(rulesSpace));
  EXPECT_FALSE(makesFullWindows(tooFew, 1, true)) << "3 of 7";
  // The elements are the same at the borders, where windows are cut.
  RuleChecker everywhere(parse(rulesSpace));
  EXPECT_FALSE(makesFullWindows(everywhere, 2, /*hasPosition=*/false));
}

TEST_F(RulesTest, W17OfOtherCoordinates) {
  // The first weight has w, and the second one the same elements for all w.
  ExprId k = reduce("k"), a = reduce("g"), b = reduce("g");
  contract({k, a, b, w}, {});
  contract({a, b, h}, {d});
  unfold(unfold(unfold(h, k), a), b);
  EXPECT_FALSE(hasFullWindows());
}

TEST_F(RulesTest, W17OfThreeWeights) {
  ExprId k = reduce("k"), a = reduce("g"), b = reduce("g");
  contract({k, a, b}, {});
  contract({a, b, h}, {});
  contract({a}, {d});
  unfold(unfold(unfold(h, k), a), b);
  EXPECT_FALSE(hasFullWindows());
}

TEST_F(RulesTest, W18) {
  // A matrix of C x D of rank 2, beside a weight that has C, D and h.
  ExprId c = reduce("C"), r = reduce("s");
  contract({r, c}, {});
  contract({h, d, c}, {});
  EXPECT_TRUE(takesAbsorbedRank({r}, {d})) << "that weight has C and D";
  EXPECT_FALSE(takesAbsorbedRank({r}, {d, w})) << "it does not have w";
  EXPECT_FALSE(takesAbsorbedRank({}, {r, d})) << "the data may have r";
}

TEST_F(RulesTest, W18InAnotherOrder) {
  // The weight that has all comes last.
  for (bool hasReduction : {false, true}) {
    RuleChecker checker(parse(rulesSpace));
    ExprId c = checker.reduce("C"), r = checker.reduce("s");
    checker.contract({r, checker.d}, {});
    if (hasReduction) {
      checker.contract({r, c}, {});
      checker.split(c, r);
      EXPECT_FALSE(checker.takesAbsorbedRank({}, {checker.d, checker.h}))
          << "the data has r";
      continue;
    }
    checker.contract({c}, {r});
    EXPECT_TRUE(checker.takesAbsorbedRank({}, {c, checker.d, checker.h}));
    EXPECT_FALSE(checker.takesAbsorbedRank({}, {c, checker.h}))
        << "it does not have D";
  }
}

TEST_F(RulesTest, W15) {
  // 15 * (36 + 24) is more than 36 * 24, 10 times are less.
  RuleChecker costly(limit([](SpaceLimits &) {}));
  EXPECT_TRUE(makesFullMatrix(costly, "g*k"));
  RuleChecker cheap(limit([](SpaceLimits &) {}));
  EXPECT_FALSE(makesFullMatrix(cheap, "s*k"));
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, M1) {
  EXPECT_TRUE(merges(h, "s"));
  EXPECT_TRUE(merges(w, "s"));
  contract({h}, {d});
  EXPECT_FALSE(merges(h, "s")) << "a weight has it";
  auto [high, low] = merge(w, "s");
  EXPECT_FALSE(merges(high, "s")) << "half of a merge by s**2";
  ExprId r = reduce("s");
  EXPECT_FALSE(merges(split(high, r), "s"));
}

TEST_F(RulesTest, M1OfRemainders) {
  auto [high, low] = merge(h, "H/s");
  EXPECT_TRUE(merges(low, "k"));
}

TEST_F(RulesTest, M3) {
  ExprId t = shift(h);
  EXPECT_TRUE(merges(t, "s"));
  EXPECT_FALSE(merges(t, "g")) << "over shift_block";
  EXPECT_TRUE(merges(w, "g"));
}

TEST_F(RulesTest, M4) {
  ExprId k = reduce("k");
  contract({k}, {d});
  ExprId u = unfold(h, k);
  EXPECT_FALSE(merges(u, "H/s")) << "larger than the window";
  EXPECT_TRUE(merges(w, "H/s"));
}

TEST_F(RulesTest, M5) {
  ExprId k = reduce("k");
  contract({k}, {d});
  ExprId u = unfold(h, k);
  EXPECT_FALSE(merges(u, "s")) << "the window divided by coefficients";
  EXPECT_TRUE(merges(w, "s"));
}

TEST_F(RulesTest, M7) {
  // The factors of a channel in ascending order: one of the two ways.
  EXPECT_NE(merges(d, "s"), merges(d, "D/s"));
  EXPECT_TRUE(merges(h, "s") && merges(h, "H/s"));
}

//===----------------------------------------------------------------------===//
// Unfolds
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, U1) {
  ExprId k = reduce("k"), c = reduce("C");
  contract({k, c}, {d});
  EXPECT_TRUE(unfolds(h, k));
  EXPECT_FALSE(unfolds(c, k)) << "no output below";
  EXPECT_FALSE(unfolds(shift(h), k));
  EXPECT_FALSE(unfolds(split(w, c), k));
}

TEST_F(RulesTest, U1OfCarries) {
  auto unfoldsSum = [&](bool isSeen) {
    RuleChecker x(space.problem);
    ExprId k = x.reduce("k"), r = x.reduce("H");
    x.contract({k}, {x.d});
    if (isSeen)
      x.contract({r}, {});
    ExprId low = x.merge(x.w, "s").second;
    ExprId sum = x.merge(x.shift(x.split(r, low)), "s").first;
    return x.unfolds(sum, k);
  };
  EXPECT_FALSE(unfoldsSum(false)) << "the carry renames the points of r";
  EXPECT_TRUE(unfoldsSum(true)) << "a weight sees the carry";
}

TEST_F(RulesTest, U2) {
  ExprId k = reduce("k"), s = reduce("s"), c = reduce("C");
  contract({k, s, c}, {d});
  EXPECT_TRUE(unfolds(h, k));
  EXPECT_FALSE(unfolds(h, s)) << "even";
  EXPECT_FALSE(unfolds(h, c)) << "too large";
  EXPECT_FALSE(unfolds(merge(w, "g").second, k)) << "larger than the base";
}

TEST_F(RulesTest, U3) {
  ExprId k = reduce("k");
  EXPECT_FALSE(unfolds(h, k));
  contract({k}, {d});
  EXPECT_TRUE(unfolds(h, k));
}

TEST_F(RulesTest, U4) {
  ExprId k = reduce("k"), g = reduce("g"), other = reduce("g");
  contract({k, g, other}, {d});
  ExprId u = unfold(h, g);
  EXPECT_TRUE(unfolds(u, k)) << "the larger window is above";
  ExprId v = unfold(w, k);
  EXPECT_FALSE(unfolds(v, other));
}

//===----------------------------------------------------------------------===//
// Splits and unordered dimensions
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, S1) {
  ExprId a = reduce("s"), b = reduce("g");
  contract({a}, {d});
  ExprId t = split(h, a);
  EXPECT_FALSE(splits(t, b));
  EXPECT_TRUE(splits(b, t));
}

TEST_F(RulesTest, S4) {
  auto [high, low] = merge(h, "s");
  EXPECT_FALSE(splits(high, low));
  EXPECT_TRUE(splits(low, high));
  contract({low}, {d});
  EXPECT_TRUE(splits(high, low)) << "a weight has one of them";
}

TEST_F(RulesTest, S4OfReductions) {
  ExprId a = reduce("s"), b = reduce("g");
  EXPECT_FALSE(splits(a, b));
  contract({a}, {d});
  EXPECT_TRUE(splits(a, b));
}

TEST_F(RulesTest, S6) {
  auto [high, low] = merge(d, "D/s");
  auto [top, rest] = merge(h, "s");
  EXPECT_FALSE(splits(low, high)) << "a permuted channel";
  EXPECT_TRUE(splits(rest, top)) << "positions are not permuted";
}

TEST_F(RulesTest, S6OfFactors) {
  auto [first, rest] = merge(d, "D/s");
  auto [middle, last] = merge(rest, "D/(s*g)");
  EXPECT_FALSE(splits(first, last)) << "one factor of the channel";
  EXPECT_FALSE(splits(middle, first));
  contract({first}, {h});
  EXPECT_TRUE(splits(first, last)) << "a weight has one of them";
}

TEST_F(RulesTest, S7) {
  ExprId c = reduce("C/g"), s = reduce("s");
  EXPECT_TRUE(splits(h, s));
  EXPECT_FALSE(splits(h, split(w, c))) << "too many symbols";
}

TEST_F(RulesTest, D1) {
  ExprId a = reduce("C/g"), b = reduce("g");
  contract({a}, {d});
  EXPECT_TRUE(splits(a, b) || splits(b, a));
  EXPECT_FALSE(splits(a, b) && splits(b, a)) << "one of the two orders";
}

TEST_F(RulesTest, D2) {
  ExprId c = reduce("C/s");
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(splits(low, c) || splits(c, low));
  ExprId t = shift(low);
  EXPECT_FALSE(splits(t, c) || splits(c, t));
}

TEST_F(RulesTest, D3) {
  // In either order of the upper two, which D1 decides.
  auto splitsAll = [&](bool areDifferent) {
    bool isAny = false;
    for (bool isSwapped : {false, true}) {
      RuleChecker checker(space.problem);
      ExprId a = checker.reduce("C/(g*s)"), b = checker.reduce("g");
      ExprId x = checker.reduce("s");
      checker.contract({x}, {checker.d});
      if (areDifferent)
        checker.contract({a}, {checker.h});
      if (isSwapped)
        std::swap(a, x);
      isAny |= checker.splits(a, checker.split(x, b));
    }
    return isAny;
  };
  EXPECT_FALSE(splitsAll(false)) << "a and b have the same weights";
  EXPECT_TRUE(splitsAll(true));
}

TEST_F(RulesTest, D4) {
  // In any order, beside a reduction: D1 allows one, S4 not all.
  auto wide = limit([](SpaceLimits &limits) { limits.sizeSymbols = 6; });
  auto splitsAll = [&](llvm::StringRef beside, bool areEqual) {
    bool isAny = false;
    unsigned order[] = {0, 1, 2};
    do {
      RuleChecker x(wide);
      ExprId c = x.reduce(beside);
      auto [high, low] = x.merge(x.h, "s");
      if (!areEqual)
        x.contract({low}, {x.d});
      ExprId factors[] = {high, low, c};
      auto [a, b, last] = order;
      if (x.splits(factors[b], factors[last]))
        isAny |= x.splits(factors[a], x.split(factors[b], factors[last]));
    } while (std::next_permutation(std::begin(order), std::end(order)));
    return isAny;
  };
  for (llvm::StringRef beside : {"C", "C/g", "C*g", "C*s", "C/s", "C/(g*s)"}) {
    EXPECT_FALSE(splitsAll(beside, true)) << beside.str();
    EXPECT_TRUE(splitsAll(beside, false)) << "a weight has one of them";
  }
}

//===----------------------------------------------------------------------===//
// Shifts, strides, expands
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, H1) {
  EXPECT_TRUE(shifts(h));
  EXPECT_FALSE(shifts(d)) << "a channel";
  ExprId a = reduce("s"), b = reduce("g");
  EXPECT_FALSE(shifts(a)) << "a reduction";
  contract({a}, {d});
  EXPECT_FALSE(shifts(split(b, a))) << "no output below";
  EXPECT_FALSE(shifts(shift(h)));
}

TEST_F(RulesTest, H2) {
  ExprId a = reduce("s"), b = reduce("g");
  EXPECT_TRUE(shifts(split(h, a)));
  EXPECT_FALSE(shifts(split(w, b))) << "over shift_block";
}

TEST_F(RulesTest, H4) {
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(shifts(low));
  EXPECT_FALSE(shifts(low, /*isBackward=*/true)) << "of two points";
  EXPECT_TRUE(shifts(high, /*isBackward=*/true));
  // One point in one of the layers.
  RuleChecker x(vary([](SearchProblem &problem) {
    problem.bindings.push_back(problem.bindings.front());
    problem.bindings.back()[6] = 1;
    problem.multiplicities.push_back(1);
  }));
  EXPECT_EQ(space.problem->symbols.getName(6), "g");
  EXPECT_FALSE(x.shifts(x.merge(x.h, "g").second));
  EXPECT_TRUE(shifts(merge(w, "g").second));
}

TEST_F(RulesTest, T1) {
  ExprId k = reduce("k");
  EXPECT_TRUE(strides(k));
  contract({k}, {d});
  EXPECT_FALSE(strides(unfold(h, k)));
  ExprId g = reduce("g");
  EXPECT_FALSE(strides(stride(g, "s")));
}

TEST_F(RulesTest, T2) {
  EXPECT_FALSE(strides(h)) << "over stride_size";
  EXPECT_TRUE(strides(reduce("k")));
}

TEST_F(RulesTest, E1) {
  EXPECT_TRUE(expands(h));
  EXPECT_FALSE(expands(reduce("s")));
  contract({h}, {d});
  EXPECT_FALSE(expands(h));
}

TEST_F(RulesTest, E2) {
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(expands(high) && expands(low));
  expand(high);
  EXPECT_FALSE(expands(low)) << "the whole is dropped";
  EXPECT_TRUE(expands(w));
}

TEST_F(RulesTest, D4OfFactors) {
  auto wide = limit([](SpaceLimits &limits) { limits.sizeSymbols = 6; });
  auto splitsAll = [&](bool areEqual) {
    bool isAny = false;
    unsigned order[] = {0, 1, 2};
    do {
      RuleChecker x(wide);
      ExprId c = x.reduce("C");
      auto [first, rest] = x.merge(x.d, "D/s");
      ExprId last = x.merge(rest, "g").second;
      if (!areEqual)
        x.contract({last}, {x.h});
      ExprId factors[] = {first, last, c};
      auto [i, j, k] = order;
      if (x.splits(factors[j], factors[k]))
        isAny |= x.splits(factors[i], x.split(factors[j], factors[k]));
    } while (std::next_permutation(std::begin(order), std::end(order)));
    return isAny;
  };
  EXPECT_FALSE(splitsAll(true));
  EXPECT_TRUE(splitsAll(false)) << "a weight has one of them";
}

TEST_F(RulesTest, E2OfFactors) {
  auto [first, rest] = merge(d, "D/s");
  auto [middle, last] = merge(rest, "D/(s*g)");
  EXPECT_TRUE(expands(last));
  expand(first);
  EXPECT_FALSE(expands(last)) << "one factor of the channel";
  EXPECT_FALSE(expands(middle));
  EXPECT_TRUE(expands(h));
}

TEST_F(RulesTest, E2OfNeighbors) {
  auto [high, low] = merge(h, "H/s");
  auto [middle, last] = merge(low, "k");
  expand(high);
  EXPECT_FALSE(expands(middle)) << "both are the quotient by k";
  EXPECT_TRUE(expands(last));
}
