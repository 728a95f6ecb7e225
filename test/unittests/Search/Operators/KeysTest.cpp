//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of docs/internals/canonical-form.md that are identities of keys,
// one test each, named after its number: two ways to write one operator have
// equal keys, near misses have not.
//
//===----------------------------------------------------------------------===//

#include "OperatorWriter.h"
#include "Problems.h"

using namespace kas;
using namespace kas::search;

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

constexpr llvm::StringLiteral strideText = R"(
kas.space @keys<N, C, D, H | s, g>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 24, D = 36, H = 30, s = 2, g = 3>]
    limits {depth = 16, chain = 100, reduce = 4, split = 6, merge = 4, shift = 4,
            expand = 4, weights = 3, stride = 2, weight_takes = 0,
            weight_shares = 0, rank_max = 100, pooling = 100, size_symbols = 3,
            reduce_ratio = 1000, shift_block = 100, stride_size = 100,
            occurrences.C = 3, occurrences.D = 3,
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

TEST_F(KeysTest, M8) {
  auto write = [](bool isFirst, bool isBack) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto shift = [&](ExprId of) {
        return isBack ? x.shiftBack(of) : x.shift(of);
      };
      ExprId split = x.split(isFirst ? shift(h) : h, x.reduce("s"));
      auto [q, m] = x.merge(x.shift(split), "s");
      if (!isFirst)
        shift(q);
      x.contract({c}, {d, m});
    };
  };
  EXPECT_EQ(getKey(write(true, false)), getKey(write(false, false)));
  EXPECT_EQ(getKey(write(true, true)), getKey(write(false, true)));
  EXPECT_NE(getKey(write(true, false)), getKey(write(false, true)));
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

TEST_F(KeysTest, S8) {
  // A larger input, so that something is next to the halves.
  constexpr llvm::StringLiteral text = R"(
kas.space @halves<N, D, H | s, g>
    [N, D unordered, H] from [N, H*g]
    bindings [<N = 1, D = 36, H = 30, s = 2, g = 3>]
    limits {depth = 16, chain = 100, reduce = 4, split = 6, merge = 4,
            weights = 3, weight_takes = 0, weight_shares = 0, pooling = 100,
            size_symbols = 3, reduce_ratio = 1000, occurrences.D = 3,
            occurrences.H = 3, occurrences.s = 4, occurrences.g = 4}
)";
  problem = parse(text);
  enum Nesting { Left, Right, Crossed };
  auto write = [&](Nesting nesting) {
    OperatorWriter x(problem);
    ExprId d = x.output(0), h = x.output(1), r = x.reduce("g");
    auto [q, m] = x.merge(h, "s");
    x.contract({q}, {d});
    if (nesting == Left)
      x.split(x.split(q, m), r);
    else if (nesting == Right)
      x.split(q, x.split(m, r));
    else
      x.split(m, x.split(q, r));
    return x.finish();
  };
  EXPECT_EQ(write(Left), write(Right)) << "both are split(h, r)";
  EXPECT_NE(write(Left), write(Crossed));
}

TEST_F(KeysTest, H3) {
  auto write = [](bool isFirst, bool isLow) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto [q, m] = x.merge(isFirst ? x.shift(h) : h, "s");
      ExprId split = isLow ? x.split(q, x.shift(m)) : x.split(x.shift(q), m);
      if (!isFirst)
        x.shift(split);
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, false)));
  EXPECT_NE(getKey(write(false, true)), getKey(write(true, true)))
      << "the inner half wraps around";
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

TEST_F(KeysTest, H7) {
  auto write = [](int below, int above) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto shift = [&](ExprId of, int amount) {
        return amount > 0 ? x.shift(of) : amount < 0 ? x.shiftBack(of) : of;
      };
      auto [q, m] = x.merge(shift(h, below), "s");
      shift(x.split(q, m), above);
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(1, -1)), getKey(write(0, 0)));
  EXPECT_EQ(getKey(write(1, 0)), getKey(write(0, 1)));
  EXPECT_NE(getKey(write(1, 1)), getKey(write(0, 1)));
}

TEST_F(KeysTest, H8) {
  auto write = [](bool isShifted, bool isSeen, bool isSum) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("H"), t = x.reduce("s");
      if (isSeen)
        x.contract({r}, {});
      auto [q, m] = x.merge(x.shift(x.split(isSum ? h : r, t)), "s");
      ExprId sum = isShifted ? x.shift(q) : q;
      x.unfold(x.unfold(isSum ? r : h, sum), m);
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(false, false, false)),
            getKey(write(true, false, false)));
  EXPECT_EQ(getKey(write(false, true, false)), getKey(write(true, true, false)))
      << "the elements of the weight are renamed, too";
  EXPECT_NE(getKey(write(false, false, true)), getKey(write(true, false, true)))
      << "a position has names";
}

TEST_F(KeysTest, H8OfRemainders) {
  auto write = [](bool isShifted, bool isSeen, bool isFactor) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("H"), t = x.reduce("s"), rest = d;
      if (isFactor) {
        x.expand(t);
        std::tie(t, rest) = x.merge(d, "D/s");
      }
      if (isSeen)
        x.contract({r}, {});
      ExprId q = r, m = t;
      if (isShifted)
        std::tie(q, m) = x.merge(x.shift(x.split(r, t)), "s");
      x.unfold(x.unfold(h, q), m);
      x.contract({c}, {rest});
    };
  };
  for (bool isFactor : {false, true}) {
    EXPECT_EQ(getKey(write(false, false, isFactor)),
              getKey(write(true, false, isFactor)));
    EXPECT_NE(getKey(write(false, true, isFactor)),
              getKey(write(true, true, isFactor)))
        << "a weight sees the carry";
  }
}

TEST_F(KeysTest, H5OfFactors) {
  auto write = [](bool isShifted, bool isSeen, bool isOfOne) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto [a, rest] = x.merge(d, "D/s");
      auto [b, last] = x.merge(rest, "D/s**2");
      ExprId t = x.reduce("s");
      if (isSeen)
        x.contract({a}, {});
      ExprId inner = isOfOne ? b : t;
      x.expand(isOfOne ? t : b);
      ExprId q = a, m = inner;
      if (isShifted)
        std::tie(q, m) = x.merge(x.shift(x.split(a, inner)), "s");
      x.unfold(x.unfold(h, q), m);
      x.contract({c}, {last});
    };
  };
  EXPECT_EQ(getKey(write(false, false, true)), getKey(write(true, false, true)))
      << "both are factors of one channel";
  EXPECT_NE(getKey(write(false, true, true)), getKey(write(true, true, true)))
      << "a weight sees the carry";
  EXPECT_NE(getKey(write(false, false, false)),
            getKey(write(true, false, false)))
      << "a sum cannot rename outputs";
}

TEST_F(KeysTest, M11) {
  auto write = [](bool isSwapped, llvm::StringRef block, llvm::StringRef last) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto [a, rest] = x.merge(d, block);
      auto [b, low] = x.merge(rest, last);
      if (isSwapped)
        std::swap(a, b);
      x.contract({a, c}, {low});
      x.contract({c}, {a, b});
    };
  };
  EXPECT_EQ(getKey(write(false, "D/s", "D/s**2")),
            getKey(write(true, "D/s", "D/s**2")));
  EXPECT_NE(getKey(write(false, "D/s", "D/(s*g)")),
            getKey(write(true, "D/s", "D/(s*g)")))
      << "their sizes differ";
}

TEST_F(KeysTest, M11OfSplits) {
  // What is side by side is seen in the way that the factors stand for.
  auto write = [](bool isSwapped, bool isCrossed) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      auto [a, rest] = x.merge(d, "D/s");
      auto [b, low] = x.merge(rest, "s");
      if (isSwapped)
        std::swap(a, low);
      x.contract({c, a}, {b});
      x.unfold(h, isCrossed ? x.split(low, a) : x.split(a, low));
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, false)));
  EXPECT_EQ(getKey(write(false, true)), getKey(write(true, true)));
  EXPECT_NE(getKey(write(false, false)), getKey(write(false, true)));
}

TEST_F(KeysTest, M12) {
  auto write = [](bool isSplitFirst, bool isDropped) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("s"), q = h, m = h;
      if (isSplitFirst) {
        std::tie(q, m) = x.merge(x.shift(x.split(h, r)), "H");
      } else {
        std::tie(q, m) = x.merge(h, "H/s");
        x.shift(x.split(m, r));
      }
      if (isDropped)
        x.expand(q);
      else
        x.contract({}, {q});
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(false, true)), getKey(write(true, true)));
  EXPECT_NE(getKey(write(false, false)), getKey(write(true, false)))
      << "a weight sees the carry";
}

TEST_F(KeysTest, M12OfSums) {
  auto write = [](bool isSplitFirst, bool isSeen) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId r = x.reduce("s");
      if (isSeen)
        x.contract({r}, {});
      ExprId q = h, m = h;
      if (isSplitFirst) {
        std::tie(q, m) = x.merge(x.shift(x.split(r, h)), "s");
      } else {
        std::tie(q, m) = x.merge(x.shift(h), "s");
        q = x.split(r, q);
      }
      x.unfold(q, m);
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, false)));
  EXPECT_NE(getKey(write(false, true)), getKey(write(true, true)))
      << "a weight sees the carry";
}

/// Which coordinates the weight has.
enum class Seen { Base, Quotient, Both, Remainder, None };

TEST_F(KeysTest, T4) {
  problem = parse(strideText);
  auto write = [](Seen seen) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      if (seen == Seen::Base)
        x.contract({h, c}, {d});
      auto [q, m] = x.merge(x.shift(x.stride(h, "s")), "s");
      if (seen == Seen::Quotient)
        x.contract({q, c}, {d});
      if (seen == Seen::Both)
        x.contract({q, m, c}, {d});
      if (seen == Seen::Remainder)
        x.contract({m, c}, {d});
      if (seen == Seen::None)
        x.contract({c}, {d});
      x.split(m, q);
    };
  };
  EXPECT_EQ(getKey(write(Seen::Base)), getKey(write(Seen::Quotient)));
  EXPECT_EQ(getKey(write(Seen::Base)), getKey(write(Seen::Both)));
  EXPECT_EQ(getKey(write(Seen::None)), getKey(write(Seen::Remainder)));
  EXPECT_NE(getKey(write(Seen::Base)), getKey(write(Seen::None)));
}

/// The quotient of a shift by -1 is one before.
TEST_F(KeysTest, T4OfShiftsBack) {
  problem = parse(strideText);
  auto write = [](bool isBack, bool isShifted) {
    return [=](W &x, ExprId d, ExprId h, ExprId c) {
      ExprId t = x.stride(h, "s");
      auto [q, m] = x.merge(isBack ? x.shiftBack(t) : x.shift(t), "s");
      if (isShifted)
        q = x.shift(q);
      x.expand(m);
      ExprId r = x.reduce("s");
      x.split(r, q);
      x.contract({c}, {d});
    };
  };
  EXPECT_EQ(getKey(write(false, false)), getKey(write(true, true)));
  EXPECT_NE(getKey(write(false, false)), getKey(write(true, false)));
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

TEST_F(KeysTest, U6) {
  // Two windows with weights of their own, of which either is above.
  enum Windows { Around, Back, Cyclic };
  auto getStackKey = [&](Windows windows, bool isFirstAbove, bool isOneBase) {
    auto varied = std::make_shared<SearchProblem>(*problem);
    varied->limits.lookBack = windows == Back;
    varied->limits.cyclic = windows == Cyclic;
    OperatorWriter x(varied);
    ExprId d = x.output(0), h = x.output(1);
    ExprId c = x.reduce("C"), a = x.reduce("g"), b = x.reduce("g");
    x.contract({a}, {});
    x.contract({b, c}, {d});
    if (isFirstAbove)
      std::swap(a, b);
    if (isOneBase)
      x.unfold(x.unfold(h, a), b);
    else
      x.unfold(x.shift(x.unfold(h, a)), b);
    return x.finish();
  };
  EXPECT_NE(getStackKey(Around, false, true), getStackKey(Around, true, true));
  for (Windows windows : {Back, Cyclic}) {
    EXPECT_EQ(getStackKey(windows, false, true),
              getStackKey(windows, true, true));
    EXPECT_NE(getStackKey(windows, false, false),
              getStackKey(windows, true, false));
  }
}
