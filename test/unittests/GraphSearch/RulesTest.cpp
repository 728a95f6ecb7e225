//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of docs/CanonicalForm.md, one test each, named after its number:
// what the rule takes away, and a near miss that stays.
//
//===----------------------------------------------------------------------===//

#include "OperatorWriter.h"
#include "Problems.h"

using namespace kas;

namespace {

constexpr llvm::StringLiteral text = R"(
kas.space @rules<N, C, D, H | k, s, g>
    [N, D unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 24, D = 36, H = 30, k = 5, s = 2, g = 3>]
    limits {depth = 16, chain = 100, reduce = 6, split = 6, merge = 4, shift = 4,
            unfold = 4, expand = 4, stride = 2, weights = 3, stride_size = 40,
            weight_takes = 0, weight_shares = 0, rank_max = 100, pooling = 4,
            size_symbols = 3, reduce_ratio = 1000, window = 9,
            occurrences.C = 3, occurrences.D = 3, occurrences.H = 3,
            occurrences.k = 4, occurrences.s = 4, occurrences.g = 4}
)";

/// The coordinates of the output: a channel and two positions.
class RulesTest : public ProblemTest, public OperatorWriter {
protected:
  RulesTest() : RulesTest(text) {}
  explicit RulesTest(llvm::StringRef text)
      : OperatorWriter(parse(text)), d(output(0)), h(output(1)), w(output(2)) {}

  bool merges(ExprId whole, llvm::StringRef block) {
    return canMerge(space, state, get(whole)) &&
           canMergeBy(space, state, get(whole), size(block));
  }
  bool unfolds(ExprId base, ExprId window) {
    return canUnfold(space, get(base), get(window));
  }
  bool splits(ExprId outer, ExprId inner) {
    return canSplit(space, state, get(outer), get(inner));
  }
  bool shifts(ExprId base, bool isBackward = false) {
    return canShift(space, get(base), isBackward);
  }
  bool strides(ExprId base) {
    return canStride(space, state, get(base), size("s"));
  }
  bool expands(ExprId coord) { return canExpand(space, state, get(coord)); }
  ExprId d, h, w;
};

} // namespace

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

TEST_F(RulesTest, M8) {
  ExprId r = reduce("s");
  ExprId t = shift(split(shift(h), r));
  EXPECT_FALSE(merges(t, "s"));
  ExprId q = reduce("s");
  EXPECT_TRUE(merges(shift(split(w, q)), "s")) << "the outer one is no shift";
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

TEST_F(RulesTest, S7) {
  ExprId c = reduce("C/g"), s = reduce("s");
  EXPECT_TRUE(splits(h, s));
  EXPECT_FALSE(splits(h, split(w, c))) << "too many symbols";
}

TEST_F(RulesTest, D1) {
  ExprId a = reduce("C/g"), b = reduce("g");
  contract({a}, {d});
  EXPECT_NE(splits(a, b), splits(b, a)) << "one of the two orders";
}

TEST_F(RulesTest, D2) {
  ExprId c = reduce("C/s");
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(splits(low, c) || splits(c, low));
  ExprId t = shift(low);
  EXPECT_FALSE(splits(t, c) || splits(c, t));
}

TEST_F(RulesTest, D3) {
  ExprId a = reduce("C/(g*s)"), b = reduce("g"), x = reduce("s");
  contract({x}, {d});
  ExprId t = splits(x, b) ? split(x, b) : split(b, x);
  EXPECT_FALSE(splits(a, t)) << "a and b have the same weights";
}

TEST_F(RulesTest, D4) {
  auto [high, low] = merge(h, "s");
  ExprId c = reduce("C/s"), e = reduce("C/s");
  EXPECT_TRUE(splits(low, c) || splits(c, low));
  ExprId t = splits(low, c) ? split(low, c) : split(c, low);
  EXPECT_FALSE(splits(high, t)) << "the other half is there";
  EXPECT_FALSE(splits(t, e));
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

TEST_F(RulesTest, H3) {
  auto [high, low] = merge(h, "s");
  EXPECT_FALSE(shifts(split(shift(high), low)));
  auto [top, rest] = merge(w, "s");
  EXPECT_TRUE(shifts(split(top, rest))) << "the outer one is no shift";
}

TEST_F(RulesTest, H4) {
  auto [high, low] = merge(h, "s");
  EXPECT_TRUE(shifts(low));
  EXPECT_FALSE(shifts(low, /*isBackward=*/true)) << "of two points";
  EXPECT_TRUE(shifts(high, /*isBackward=*/true));
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

TEST_F(RulesTest, E2OfNeighbors) {
  auto [high, low] = merge(h, "H/s");
  auto [middle, last] = merge(low, "k");
  expand(high);
  EXPECT_FALSE(expands(middle)) << "both are the quotient by k";
  EXPECT_TRUE(expands(last));
}

//===----------------------------------------------------------------------===//
// Two ways to write one operator: equal keys
//===----------------------------------------------------------------------===//

namespace {

/// One position, so that there is one way to match the input.
constexpr llvm::StringLiteral keyText = R"(
kas.space @keys<N, C, D, H | s, g>
    [N, D unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 24, D = 36, H = 30, s = 2, g = 3>]
    limits {depth = 16, chain = 100, reduce = 4, split = 6, merge = 4, shift = 4,
            expand = 4, weights = 3, weight_takes = 0, weight_shares = 0,
            rank_max = 100, pooling = 100, size_symbols = 3, reduce_ratio = 1000,
            shift_block = 100, occurrences.C = 3, occurrences.D = 3,
            occurrences.H = 3, occurrences.s = 4, occurrences.g = 4}
)";

class KeysTest : public ProblemTest {
protected:
  KeysTest() : problem(parse(keyText)) {}

  /// The key of what `write` makes, beside a sum over the channels.
  template <typename Write>
  uint64_t getKey(Write write) {
    OperatorWriter writer(problem);
    ExprId d = writer.output(0), h = writer.output(1);
    ExprId c = writer.reduce("C");
    write(writer, d, h, c);
    return writer.finish();
  }

  std::shared_ptr<const SearchProblem> problem;
};

using W = OperatorWriter;

} // namespace

TEST_F(KeysTest, W8) {
  auto below = getKey([](W &x, ExprId d, ExprId h, ExprId) {
    x.contract({h}, {d});
    auto [q, m] = x.merge(x.shift(h), "s");
    x.split(m, q);
  });
  auto above = getKey([](W &x, ExprId d, ExprId h, ExprId) {
    auto [q, m] = x.merge(x.shift(h), "s");
    x.contract({q, m}, {d});
    x.split(m, q);
  });
  auto half = getKey([](W &x, ExprId d, ExprId h, ExprId) {
    auto [q, m] = x.merge(x.shift(h), "s");
    x.contract({q}, {d});
    x.split(m, q);
  });
  EXPECT_EQ(below, above);
  EXPECT_NE(below, half);
}

TEST_F(KeysTest, W9) {
  auto writeBelow = [](bool isLow) {
    return [isLow](W &x, ExprId d, ExprId h, ExprId) {
      auto [q, m] = x.merge(h, "s");
      x.contract({isLow ? m : q}, {d});
      x.shift(x.split(q, m));
    };
  };
  auto writeAbove = [](bool isLow) {
    return [isLow](W &x, ExprId d, ExprId h, ExprId) {
      auto [q, m] = x.merge(x.shift(h), "s");
      x.contract({isLow ? m : q}, {d});
      x.split(q, m);
    };
  };
  EXPECT_EQ(getKey(writeBelow(true)), getKey(writeAbove(true)));
  EXPECT_NE(getKey(writeBelow(false)), getKey(writeAbove(false)))
      << "the quotient of a shift is another one";
}

TEST_F(KeysTest, M9) {
  auto write = [](unsigned ofFirst) {
    return [ofFirst](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("s");
      if (ofFirst == 0)
        x.contract({r}, {d});
      auto [q, m] = x.merge(x.shift(x.split(h, r)), "s");
      if (ofFirst == 1)
        x.contract({m}, {d});
      if (ofFirst == 2)
        x.contract({q}, {d});
      x.contract({c}, {m});
    };
  };
  EXPECT_EQ(getKey(write(0)), getKey(write(1)));
  EXPECT_NE(getKey(write(0)), getKey(write(2)));
}

TEST_F(KeysTest, M10) {
  auto write = [](bool isInnerFirst, bool isBack) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("s"), t = x.reduce("s");
      auto [q, m] = x.merge(x.shift(x.split(h, r)), "s");
      ExprId split = x.split(q, t);
      auto [p, n] = x.merge(isBack ? x.shiftBack(split) : x.shift(split), "s");
      x.contract({}, {d, isInnerFirst ? m : n});
      x.contract({c}, {isInnerFirst ? n : m});
    };
  };
  EXPECT_EQ(getKey(write(true, false)), getKey(write(false, false)));
  EXPECT_NE(getKey(write(true, true)), getKey(write(false, true)))
      << "the carries have different signs";
}

TEST_F(KeysTest, H5) {
  auto write = [](bool isInner, bool hasOuter, bool hasInner) {
    return [=](W &x, ExprId d, ExprId h, ExprId) {
      ExprId r = x.reduce("s");
      auto [q, m] = x.merge(h, "s");
      if (hasOuter && hasInner)
        x.contract({r, q}, {d});
      else if (hasOuter)
        x.contract({r}, {d});
      else
        x.expand(d);
      if (isInner)
        x.split(r, x.shift(q));
      else
        x.shift(x.split(r, q));
      x.expand(m);
    };
  };
  EXPECT_EQ(getKey(write(false, false, false)),
            getKey(write(true, false, false)));
  EXPECT_EQ(getKey(write(false, true, true)), getKey(write(true, true, true)));
  EXPECT_NE(getKey(write(false, true, false)), getKey(write(true, true, false)))
      << "a weight sees the carry";
}

TEST_F(KeysTest, H6) {
  auto write = [](bool isFirst, bool isLowDropped) {
    return [=](W &x, ExprId d, ExprId h, ExprId) {
      ExprId r = x.reduce("s");
      x.expand(d);
      auto [q, m] =
          x.merge(isFirst ? x.shift(h) : h, isLowDropped ? "s" : "H/s");
      x.expand(isLowDropped ? m : q);
      ExprId kept = isLowDropped ? q : m;
      x.split(r, isFirst ? kept : x.shift(kept));
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, false)));
  EXPECT_NE(getKey(write(false, true)), getKey(write(true, true)))
      << "the quotient of a shift is no shift";
}

TEST_F(KeysTest, O4) {
  auto write = [](bool isSwapped, bool isCrossed) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("s"), t = x.reduce("s");
      if (isSwapped)
        std::swap(r, t);
      x.contract({r}, {d});
      x.contract({t, c}, {});
      auto [q, m] = x.merge(h, "s");
      x.expand(m);
      if (isCrossed)
        std::swap(r, t);
      x.split(r, q);
      x.expand(t);
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, false)));
  EXPECT_NE(getKey(write(false, false)), getKey(write(false, true)))
      << "the data sees the other one";
}
