//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of docs/internals/canonical-form.md on properties, one test each,
// named after its number: what the rule takes away, and a near miss that stays.
//
//===----------------------------------------------------------------------===//

#include "RuleChecker.h"

using namespace kas;
using namespace kas::search;

namespace {

/// A state that is made into an operator.
class PropertyChecker : public RuleChecker {
public:
  using RuleChecker::RuleChecker;

  /// A product over all input channels.
  void mix(llvm::ArrayRef<ExprId> windows = {}) {
    llvm::SmallVector<ExprId, 4> shared(windows);
    shared.push_back(reduce("C"));
    contract(shared, {d});
  }
  /// A product in groups of output channels.
  void mixInGroups(llvm::StringRef groups, llvm::StringRef channels) {
    ExprId reduction = reduce(channels);
    auto [quotient, group] = merge(d, groups);
    contract({reduction}, {quotient});
    split(group, reduction);
  }
  unsigned countEnds() { return countMoves(FinishMove); }
};

} // namespace

TEST_F(RulesTest, Q1) {
  auto seeing = limit([&](SpaceLimits &limits) {
    Size k = llvm::cantFail(parseSize("k", space.problem->symbols));
    limits.sees = {k, k};
  });
  PropertyChecker both(seeing), one(seeing), none(seeing), free(space.problem);
  for (PropertyChecker *checker : {&both, &one, &none, &free}) {
    ExprId a = checker->reduce("k"), b = checker->reduce("k");
    checker->mix({a, b});
    if (checker == &none) {
      checker->split(a, b);
      continue;
    }
    checker->unfold(checker->h, a);
    if (checker != &one)
      checker->unfold(checker->w, b);
  }
  EXPECT_EQ(both.countEnds(), 1u);
  EXPECT_EQ(free.countEnds(), 2u) << "the image may be transposed";
  EXPECT_FALSE(one.countEnds());
  EXPECT_FALSE(none.countEnds());
  // Without points enough the search does not go on.
  PropertyChecker few(seeing), enough(seeing);
  few.contract({few.reduce("k")}, {few.d});
  ExprId a = enough.reduce("k"), b = enough.reduce("k");
  enough.contract({a, b}, {enough.d});
  EXPECT_FALSE(few.listsShift(few.h)) << "5 points for 25 positions";
  EXPECT_TRUE(enough.listsShift(enough.h));
}

TEST_F(RulesTest, Q1OfWholeAxes) {
  auto whole =
      limit([](SpaceLimits &limits) { limits.sees = {std::nullopt, Size()}; });
  PropertyChecker all(whole), window(whole);
  all.contract({all.reduce("C"), all.reduce("H")}, {all.d, all.h});
  EXPECT_TRUE(all.countEnds());
  ExprId k = window.reduce("k");
  window.mix({k});
  window.unfold(window.h, k);
  EXPECT_FALSE(window.countEnds());
}

TEST_F(RulesTest, Q2) {
  auto reaching = [&](unsigned layers) {
    return limit([&](SpaceLimits &limits) { limits.reaches = layers; });
  };
  PropertyChecker dense(reaching(1)), groups(reaching(1)), few(reaching(2)),
      many(reaching(2));
  dense.mix();
  groups.mixInGroups("g", "C/g");
  few.mixInGroups("g", "C/g");
  many.mixInGroups("g*s**2", "C/(g*s**2)");
  EXPECT_TRUE(dense.countEnds());
  EXPECT_FALSE(groups.countEnds());
  EXPECT_TRUE(few.countEnds()) << "3 groups of 8 and 12 channels";
  EXPECT_FALSE(many.countEnds()) << "12 groups of 2 and 3 channels";
}

TEST_F(RulesTest, Q3) {
  auto moving = limit([](SpaceLimits &limits) {
    limits.equivariant = {Translations::ZeroPadded, Translations::ZeroPadded};
  });
  PropertyChecker plain(moving), weighted(moving), turned(moving),
      shifted(moving);
  plain.mix();
  weighted.mix({weighted.h});
  for (PropertyChecker *checker : {&turned, &shifted}) {
    checker->mix();
    auto [quotient, remainder] = checker->merge(checker->h, "s");
    if (checker == &turned)
      checker->split(remainder, quotient);
    else
      checker->split(checker->shift(quotient), remainder);
  }
  EXPECT_TRUE(plain.countEnds());
  EXPECT_FALSE(weighted.countEnds());
  EXPECT_FALSE(turned.countEnds());
  EXPECT_TRUE(shifted.countEnds()) << "a shift by two";
}

/// What has a clipped window along an axis is not cyclic there.
TEST_F(RulesTest, Q3OfATorus) {
  auto onTorus = limit([](SpaceLimits &limits) {
    limits.equivariant = {Translations::Cyclic, Translations::ZeroPadded};
  });
  PropertyChecker shifted(onTorus), along(onTorus), across(onTorus);
  shifted.mix();
  shifted.shift(shifted.h);
  for (PropertyChecker *checker : {&along, &across}) {
    ExprId k = checker->reduce("k");
    checker->mix({k});
    checker->unfold(checker == &along ? checker->h : checker->w, k);
  }
  EXPECT_TRUE(shifted.countEnds());
  EXPECT_FALSE(along.countEnds());
  EXPECT_TRUE(across.countEnds());
}

/// A product through fewer channels, which only weights have.
static void mixByRank(PropertyChecker &checker) {
  ExprId rank = checker.reduce("g"), channel = checker.reduce("C");
  checker.contract({channel, rank}, {});
  checker.contract({}, {rank, checker.d});
}

/// One window after another.
static void mixTwice(PropertyChecker &checker) {
  ExprId a = checker.reduce("k"), b = checker.reduce("k");
  checker.mix({a, b});
  checker.unfold(checker.unfold(checker.h, a), b);
}

TEST_F(RulesTest, Q4) {
  auto single = limit([](SpaceLimits &limits) { limits.oneProduct = true; });
  PropertyChecker plain(single), rank(single), twice(single);
  plain.mix();
  mixByRank(rank);
  mixTwice(twice);
  EXPECT_TRUE(plain.countEnds());
  EXPECT_FALSE(rank.countEnds());
  EXPECT_FALSE(twice.countEnds());
}

TEST_F(RulesTest, Q5) {
  auto linear = limit([](SpaceLimits &limits) { limits.linearPath = true; });
  PropertyChecker plain(linear), rank(linear), twice(linear),
      free(space.problem);
  plain.mix();
  mixByRank(rank);
  mixByRank(free);
  mixTwice(twice);
  EXPECT_TRUE(plain.countEnds());
  EXPECT_TRUE(free.countEnds());
  EXPECT_FALSE(rank.countEnds());
  EXPECT_TRUE(twice.countEnds());
}

TEST_F(RulesTest, U5) {
  auto makeCausal = [&](bool looksBack) {
    return limit([&](SpaceLimits &limits) {
      limits.causal = true;
      limits.lookBack = looksBack;
    });
  };
  PropertyChecker back(makeCausal(true)), around(makeCausal(false));
  for (PropertyChecker *checker : {&back, &around})
    mixTwice(*checker);
  EXPECT_TRUE(back.countEnds());
  EXPECT_FALSE(around.countEnds());
}

TEST_F(RulesTest, Q6) {
  auto causal = limit(
      [](SpaceLimits &limits) { limits.causal = limits.lookBack = true; });
  PropertyChecker plain(causal), windowed(causal), shifted(causal),
      turned(causal), free(space.problem);
  for (PropertyChecker *checker : {&windowed, &shifted, &free}) {
    ExprId k = checker->reduce("k");
    checker->mix({k});
    ExprId window = checker->unfold(checker->h, k);
    if (checker == &shifted)
      checker->shift(window);
  }
  plain.mix();
  turned.mix();
  auto [quotient, remainder] = turned.merge(turned.h, "s");
  turned.split(remainder, quotient);
  EXPECT_EQ(plain.countEnds(), 1u);
  EXPECT_EQ(windowed.countEnds(), 1u);
  EXPECT_EQ(free.countEnds(), 2u) << "the image may be transposed";
  EXPECT_FALSE(shifted.countEnds()) << "the first position reads the second";
  EXPECT_FALSE(turned.countEnds());
}

TEST_F(RulesTest, Q7) {
  auto anywhere = limit([](SpaceLimits &limits) { limits.anyGrid = true; });
  // By channels, by a position, by the part of one whose size is a coefficient.
  PropertyChecker checker(anywhere), free(space.problem);
  for (PropertyChecker *one : {&checker, &free}) {
    auto [quotient, remainder] = one->merge(one->h, "s");
    ExprId channel = one->reduce("C");
    EXPECT_TRUE(one->contracts({channel}, {one->d}));
    EXPECT_TRUE(one->contracts({channel, remainder}, {one->d}));
    bool isFree = one == &free;
    EXPECT_EQ(one->contracts({channel, one->w}, {one->d}), isFree);
    EXPECT_EQ(one->contracts({channel, quotient}, {one->d}), isFree);
  }
  EXPECT_FALSE(checker.contracts({checker.w}, {checker.d}));
}
