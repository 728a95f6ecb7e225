//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of docs/internals/canonical-form.md on orders of moves, reductions,
// weights, windows that wrap around and ends, one test each, named after its
// number: what the rule takes away, and a near miss that stays.
//
//===----------------------------------------------------------------------===//

#include "RuleChecker.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// All moves
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, O1) {
  GraphStateOptions ordered = onlyRules;
  ordered.useOrdering = true;
  for (bool isOrdered : {true, false}) {
    RuleChecker a(space.problem, isOrdered ? ordered : onlyRules);
    RuleChecker b(space.problem, isOrdered ? ordered : onlyRules);
    a.shift(a.h);
    b.shift(b.w);
    EXPECT_EQ(a.listsShift(a.w) && b.listsShift(b.h), !isOrdered)
        << "two ways only without the rule";
    EXPECT_TRUE(a.listsShift(a.w) || b.listsShift(b.h)) << "one way always";
  }
  RuleChecker x(space.problem, ordered);
  ExprId shifted = x.shift(x.h);
  EXPECT_FALSE(x.listsMerge(x.w, "s")) << "merges come before shifts";
  EXPECT_TRUE(x.listsMerge(shifted, "s")) << "it needs the shift";
}

TEST_F(RulesTest, O2) {
  GraphStateOptions options = onlyRules;
  options.useTwins = true;
  RuleChecker x(space.problem, options), y(space.problem);
  for (RuleChecker *checker : {&x, &y}) {
    ExprId a = checker->reduce("s"), b = checker->reduce("s");
    bool isFirst = checker->contracts({a}, {checker->d});
    bool isSecond = checker->contracts({b}, {checker->d});
    EXPECT_TRUE(isFirst || isSecond);
    EXPECT_EQ(isFirst && isSecond, checker == &y);
    checker->contract({a}, {checker->d});
    EXPECT_TRUE(checker->contracts({a, checker->h}, {}) &&
                checker->contracts({b, checker->h}, {}))
        << "they have different weights";
  }
  // Outputs only where axes may be swapped.
  RuleChecker z(limit([](SpaceLimits &limits) { limits.swapAxes = true; }),
                options);
  EXPECT_NE(z.listsShift(z.h), z.listsShift(z.w));
  EXPECT_TRUE(x.listsShift(x.h) && x.listsShift(x.w));
}

TEST_F(RulesTest, O3) {
  RuleChecker depth(limit([](SpaceLimits &limits) { limits.depth = 1; }));
  EXPECT_TRUE(depth.listsShift(depth.h));
  depth.shift(depth.h);
  EXPECT_FALSE(depth.listsShift(depth.w)) << "a second step";

  RuleChecker chain(limit([](SpaceLimits &limits) { limits.chain = 1; }));
  ExprId shifted = chain.shift(chain.h);
  EXPECT_FALSE(chain.listsMerge(shifted, "s")) << "two steps in a row";
  EXPECT_TRUE(chain.listsMerge(chain.w, "s"));

  RuleChecker kind(limit([](SpaceLimits &limits) { limits.shift = 1; }));
  kind.shift(kind.h);
  EXPECT_FALSE(kind.listsShift(kind.w)) << "a second shift";
  EXPECT_TRUE(kind.listsMerge(kind.w, "s"));
}

TEST_F(RulesTest, O5) {
  auto swapping = limit([](SpaceLimits &limits) { limits.swapAxes = true; });
  auto write = [](std::shared_ptr<const SearchProblem> problem, bool ofWidth) {
    RuleChecker x(problem);
    ExprId c = x.reduce("C");
    x.contract({c}, {x.d});
    x.shift(ofWidth ? x.w : x.h);
    return x.finish();
  };
  EXPECT_EQ(write(swapping, true), write(swapping, false));
  EXPECT_NE(write(space.problem, true), write(space.problem, false));
  // Which axis a weight sees counts, relative to which one is shifted.
  auto share = [&](bool ofWidth) {
    RuleChecker x(swapping);
    ExprId c = x.reduce("C");
    x.contract({c, ofWidth ? x.w : x.h}, {x.d});
    x.shift(x.h);
    return x.finish();
  };
  EXPECT_NE(share(true), share(false));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, R1) {
  reduce("s");
  EXPECT_TRUE(listsReduce("C")) << "ascending";
  EXPECT_TRUE(listsReduce("s")) << "an equal one";
  reduce("C");
  EXPECT_FALSE(listsReduce("s"));
  EXPECT_TRUE(listsReduce("C"));
  shift(h);
  EXPECT_FALSE(listsReduce("C")) << "after another move";
}

TEST_F(RulesTest, R2) {
  // 24 * 30 * 30 elements: 21.6 points.
  auto small = limit([](SpaceLimits &limits) { limits.reduceRatio = 0.001; });
  RuleChecker x(small);
  EXPECT_FALSE(x.listsReduce("C"));
  EXPECT_TRUE(x.listsReduce("k"));
  x.reduce("k");
  EXPECT_FALSE(x.listsReduce("k")) << "25 together";
  // Another layer in which the same reduction is a larger part of the input.
  auto layers = vary([](SearchProblem &problem) {
    problem.limits.reduceRatio = 0.001;
    problem.bindings.push_back(problem.bindings.front());
    problem.bindings.back()[4] = 23;
    problem.multiplicities.push_back(1);
  });
  EXPECT_EQ(layers->symbols.getName(4), "k");
  RuleChecker y(layers);
  EXPECT_FALSE(y.listsReduce("k")) << "23 in one of the layers";
  EXPECT_TRUE(y.listsReduce("s"));
}

TEST_F(RulesTest, R3) {
  auto has = [](RuleChecker &x, llvm::StringRef size) {
    return llvm::is_contained(x.space.reduceSizes, x.size(size));
  };
  EXPECT_TRUE(has(*this, "C") && has(*this, "C**3") && has(*this, "s**2"));
  EXPECT_TRUE(has(*this, "C/s") && has(*this, "C/s**2"));
  EXPECT_FALSE(has(*this, "C/s**3")) << "a power of -3";
  EXPECT_FALSE(has(*this, "s**3")) << "a power of 3";
  EXPECT_FALSE(has(*this, "C**4")) << "more occurrences than three";
  EXPECT_FALSE(has(*this, "C*D*H*s")) << "four symbols";
  // As numbers all are integers.
  auto even = vary([](SearchProblem &problem) {
    problem.bindings.front()[6] = 2;
    problem.occurrences[1] = 5;
  });
  EXPECT_EQ(even->symbols.getName(6), "g");
  RuleChecker y(even);
  EXPECT_TRUE(has(y, "C*s/g"));
  EXPECT_FALSE(has(y, "s**2/g")) << "a coefficient divided";
  EXPECT_TRUE(has(y, "C**4"));
  EXPECT_FALSE(has(y, "C**5")) << "a power of 5";
  RuleChecker z(limit([](SpaceLimits &limits) { limits.sizePowers = 2; }));
  EXPECT_TRUE(has(z, "C*s"));
  EXPECT_FALSE(has(z, "C*s*g")) << "three exponents";
}

TEST_F(RulesTest, P1) {
  auto pools = [&](ExprId a) { return canPool(space, state, get(a), get(h)); };
  ExprId s = reduce("s"), k = reduce("k"), c = reduce("C");
  EXPECT_TRUE(pools(s));
  EXPECT_FALSE(pools(k)) << "more than four points";
  contract({k}, {d});
  EXPECT_TRUE(pools(k)) << "a weight has it";
  // At the end all are counted.
  split(split(h, s), k);
  EXPECT_FALSE(isFinishable(space, state)) << "nothing has the channel";
  contract({c}, {w});
  EXPECT_TRUE(isFinishable(space, state));
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, W2) {
  EXPECT_TRUE(contracts({h}, {}) && contracts({}, {d}));
  RuleChecker takes(
      limit([](SpaceLimits &limits) { limits.weightTakes = true; }));
  EXPECT_FALSE(takes.contracts({takes.h}, {}));
  EXPECT_TRUE(takes.contracts({}, {takes.d}));
  RuleChecker shares(
      limit([](SpaceLimits &limits) { limits.weightShares = true; }));
  EXPECT_FALSE(shares.contracts({}, {shares.d}));
  EXPECT_TRUE(shares.contracts({shares.h}, {}));
}

TEST_F(RulesTest, W13) {
  RuleChecker x(
      limit([](SpaceLimits &limits) { limits.weightsByPosition = false; }));
  ExprId k = x.reduce("k");
  EXPECT_TRUE(contracts({h}, {d}));
  EXPECT_FALSE(x.contracts({x.h}, {x.d})) << "shared";
  EXPECT_FALSE(x.contracts({x.d}, {x.h})) << "taken";
  EXPECT_TRUE(x.contracts({k}, {x.d}));
  ExprId window = x.unfold(x.h, k);
  EXPECT_FALSE(x.contracts({window}, {})) << "a position in a window";
  auto [high, low] = x.merge(x.w, "s");
  EXPECT_FALSE(x.contracts({low}, {x.d})) << "whether it is odd";
  auto [group, channel] = x.merge(x.d, "g");
  EXPECT_TRUE(x.contracts({group}, {channel})) << "halves of a channel";
  EXPECT_FALSE(x.contracts({group, high}, {channel}));
}

TEST_F(RulesTest, W4) {
  RuleChecker larger(space.problem), smaller(space.problem);
  larger.contract({larger.h, larger.w}, {larger.d});
  EXPECT_FALSE(larger.contracts({larger.h}, {})) << "the first one has it";
  ExprId c = smaller.reduce("C");
  smaller.contract({smaller.h}, {});
  EXPECT_FALSE(smaller.contracts({smaller.h, c}, {})) << "it has the first one";
  EXPECT_TRUE(smaller.contracts({smaller.w, c}, {}));
  // The first one has the channel besides.
  c = reduce("C");
  contract({h}, {d});
  EXPECT_TRUE(contracts({h, c}, {}));
}

TEST_F(RulesTest, W4ByAtoms) {
  contract({w}, {d});
  auto [high, low] = merge(shift(w), "s");
  EXPECT_FALSE(contracts({high, low}, {})) << "together they are what it has";
  EXPECT_FALSE(contracts({high}, {})) << "W11: a function of what it has";
  EXPECT_TRUE(contracts({high, h}, {}));
  EXPECT_TRUE(contracts({high, low, h}, {}));
}

TEST_F(RulesTest, W5) {
  auto once = vary([](SearchProblem &problem) { problem.occurrences[3] = 1; });
  EXPECT_EQ(once->symbols.getName(3), "H");
  RuleChecker occurs(once);
  EXPECT_FALSE(occurs.contracts({occurs.h, occurs.w}, {}));
  EXPECT_TRUE(occurs.contracts({occurs.h}, {}));
  occurs.contract({occurs.h}, {});
  EXPECT_FALSE(occurs.contracts({occurs.w}, {})) << "over all weights";
  EXPECT_TRUE(contracts({h, w}, {}));

  RuleChecker elements(
      limit([](SpaceLimits &limits) { limits.weightElements = 31; }));
  EXPECT_FALSE(elements.contracts({elements.h}, {})) << "30 elements";
  EXPECT_TRUE(elements.contracts({elements.d}, {})) << "36 elements";

  RuleChecker merged(
      limit([](SpaceLimits &limits) { limits.mergeElements = 35; }));
  EXPECT_FALSE(merged.contracts({}, {merged.d})) << "36 are taken";
  EXPECT_TRUE(merged.contracts({merged.d}, {})) << "they are shared";
  EXPECT_TRUE(merged.contracts({}, {merged.h}));
}

TEST_F(RulesTest, W6) {
  auto [high, low] = merge(h, "s");
  EXPECT_FALSE(contracts({}, {high, low}));
  EXPECT_TRUE(contracts({high}, {low}));
  contract({high}, {d});
  EXPECT_TRUE(contracts({}, {high, low})) << "another weight has one of them";
}

TEST_F(RulesTest, W6OfFactors) {
  auto [first, rest] = merge(d, "D/s");
  auto [middle, last] = merge(rest, "D/(s*g)");
  EXPECT_FALSE(contracts({h}, {first, last})) << "one factor of the channel";
  EXPECT_FALSE(contracts({h}, {first, middle}));
  EXPECT_TRUE(contracts({first}, {last}));
  contract({first}, {h});
  EXPECT_TRUE(contracts({}, {first, last})) << "another weight has one of them";
}

TEST_F(RulesTest, W7) {
  RuleChecker equal(space.problem);
  ExprId a = equal.reduce("s"), b = equal.reduce("g");
  equal.contract({a, b}, {equal.d});
  EXPECT_FALSE(equal.contracts({equal.w}, {a, b}));
  a = reduce("s"), b = reduce("g");
  contract({a}, {d});
  contract({b}, {h});
  EXPECT_TRUE(contracts({w}, {a, b})) << "different weights have them";
}

//===----------------------------------------------------------------------===//
// Merges, strides
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, M2) {
  EXPECT_TRUE(listsMerge(h, "s"));
  EXPECT_FALSE(listsMerge(h, "s**2")) << "30/4 is no integer";
  EXPECT_FALSE(listsMerge(h, "H")) << "a quotient of 1";
  // A block that is 1 as a number: in all layers, or in some.
  auto change = [](SearchProblem &problem) { problem.bindings.front()[6] = 1; };
  auto one = vary(change);
  RuleChecker x(one);
  EXPECT_FALSE(x.listsMerge(x.h, "g"));
  one = vary([&](SearchProblem &problem) {
    problem.bindings.push_back(problem.bindings.front());
    problem.multiplicities.push_back(1);
    change(problem);
  });
  RuleChecker y(one);
  EXPECT_TRUE(y.listsMerge(y.h, "g"));
}

TEST_F(RulesTest, M6) {
  auto expandsQuotient = [&](bool isCyclic, bool isUnfolded) {
    RuleChecker x(
        limit([&](SpaceLimits &limits) { limits.cyclic = isCyclic; }));
    ExprId k = x.reduce("k");
    x.contract({k}, {x.d});
    return x.expands(x.merge(isUnfolded ? x.unfold(x.h, k) : x.w, "s").first);
  };
  EXPECT_TRUE(expandsQuotient(true, false));
  EXPECT_TRUE(expandsQuotient(false, true));
  EXPECT_FALSE(expandsQuotient(true, true)) << "around the remainder alone";
}

TEST_F(RulesTest, U7) {
  auto unfolds = [&](bool isCyclic, llvm::StringRef base) {
    RuleChecker x(limit([&](SpaceLimits &limits) {
      limits.cyclic = isCyclic;
      limits.unfoldRatio = 1;
    }));
    ExprId k = x.reduce("k");
    x.contract({k}, {x.d});
    return x.unfolds(x.merge(x.h, base).second, k);
  };
  EXPECT_TRUE(unfolds(true, "g*k"));
  EXPECT_TRUE(unfolds(false, "k"));
  EXPECT_FALSE(unfolds(true, "k")) << "as many points as its base";
  auto unfoldsTwice = [&](bool isCyclic, llvm::StringRef base) {
    RuleChecker x(limit([&](SpaceLimits &limits) {
      limits.cyclic = isCyclic;
      limits.unfoldRatio = 1;
    }));
    ExprId g = x.reduce("g"), k = x.reduce("k");
    x.contract({g, k}, {x.d});
    return x.unfolds(x.unfold(x.merge(x.h, base).second, g), k);
  };
  EXPECT_TRUE(unfoldsTwice(true, "g*k"));
  EXPECT_TRUE(unfoldsTwice(false, "s*g"));
  EXPECT_FALSE(unfoldsTwice(true, "s*g")) << "seven of six points";
}

TEST_F(RulesTest, T3) {
  // A size that only a stride gives: the end, or a window.
  auto addEnd = [](RuleChecker &x, bool isStride) {
    ExprId part = x.reduce("H/s"), s = x.reduce("s"), c = x.reduce("C");
    x.contract({part, s, c}, {x.d, x.h});
    if (isStride) {
      x.stride(part, "s");
      x.unfold(x.w, s);
    } else {
      x.split(part, s);
    }
  };
  auto problem = limit([](SpaceLimits &limits) { limits.swapAxes = true; });
  RuleChecker strided(problem), plain(problem);
  addEnd(strided, true);
  addEnd(plain, false);
  EXPECT_FALSE(strided.countMoves(FinishMove));
  EXPECT_EQ(plain.countMoves(FinishMove), 1u);
  // In the window of an unfold it is gone.
  RuleChecker window(problem);
  ExprId g = window.reduce("g"), c = window.reduce("C");
  window.contract({g, c}, {window.d});
  window.unfold(window.h, window.stride(g, "s"));
  EXPECT_EQ(window.countMoves(FinishMove), 1u);
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

TEST_F(RulesTest, F1) {
  RuleChecker swapping(
      limit([](SpaceLimits &limits) { limits.swapAxes = true; }));
  for (RuleChecker *x : {static_cast<RuleChecker *>(this), &swapping}) {
    ExprId c = x->reduce("C"), s = x->reduce("s");
    x->contract({c, s}, {x->d});
    EXPECT_FALSE(x->countMoves(FinishMove)) << "a coordinate is left over";
    ExprId whole = x->split(x->h, s);
    EXPECT_FALSE(x->countMoves(FinishMove)) << "of another size";
    auto [high, low] = x->merge(whole, "s");
    x->expand(low);
    EXPECT_EQ(x->countMoves(FinishMove), x == this ? 2u : 1u)
        << "the equal dimensions in every way, or in one";
  }
}

TEST_F(RulesTest, F2) {
  auto pooling = [](SearchProblem &problem, unsigned weights) {
    problem.limits.pooling = 100;
    problem.limits.weights = weights;
  };
  RuleChecker none(vary([&](SearchProblem &problem) { pooling(problem, 0); }));
  RuleChecker some(vary([&](SearchProblem &problem) { pooling(problem, 1); }));
  for (RuleChecker *x : {&none, &some}) {
    x->reduce("C");
    x->expand(x->d);
  }
  EXPECT_TRUE(isFinishable(none.space, none.state));
  EXPECT_FALSE(isFinishable(some.space, some.state));
  some.contract({some.h}, {});
  EXPECT_TRUE(isFinishable(some.space, some.state));
}

TEST_F(RulesTest, F3) {
  // 2 FLOPs for each of 36 * 30 * 30 points and 24 terms; 36 * 24 parameters.
  double flops = 2.0 * 36 * 30 * 30 * 24, params = 36 * 24;
  using Bound = std::optional<double> SearchBudget::*;
  auto isWithin = [&](Bound bound, double value) {
    RuleChecker x(
        vary([&](SearchProblem &problem) { problem.budget.*bound = value; }));
    x.contract({x.reduce("C")}, {x.d});
    return isFinishable(x.space, x.state);
  };
  EXPECT_TRUE(isWithin(&SearchBudget::maxFlops, flops));
  EXPECT_FALSE(isWithin(&SearchBudget::maxFlops, flops - 1));
  EXPECT_TRUE(isWithin(&SearchBudget::minFlops, flops));
  EXPECT_FALSE(isWithin(&SearchBudget::minFlops, flops + 1));
  EXPECT_TRUE(isWithin(&SearchBudget::maxParams, params));
  EXPECT_FALSE(isWithin(&SearchBudget::maxParams, params - 1));
}
