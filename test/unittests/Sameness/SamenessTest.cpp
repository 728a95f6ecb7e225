//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamenessFixture.h"
#include "kas/Support/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace kas;
using namespace kas::test;

namespace {

constexpr llvm::StringLiteral dense = R"(
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%c_d) weight(%o, %c_w))";

class ChannelsTest : public SamenessTest {
protected:
  ChannelsTest() {
    signature = "<C, D | g, t>(%o: D unordered) from [C unordered]";
    bindings = {{6, 4, 2, 3}, {4, 6, 2, 5}};
  }
};

class LineTest : public SamenessTest {
protected:
  LineTest() {
    signature = "<H | k, s>(%h: H) from [H]";
    bindings = {{8, 3, 2}, {12, 5, 3}};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// The same
//===----------------------------------------------------------------------===//

TEST_F(ChannelsTest, OrderOfWeightsAndDimensions) {
  EXPECT_TRUE(areSame(R"(
    %c = kas.reduce sum : C
    %t = kas.reduce sum : t
    %c_d, %c_w = kas.share %c : C
    %t_1, %t_2 = kas.share %t : t
    kas.yield data(%c_d) weight(%t_1, %c_w) weight(%o, %t_2))",
                      R"(
    %t = kas.reduce sum : t
    %c = kas.reduce sum : C
    %c_d, %c_w = kas.share %c : C
    %t_1, %t_2 = kas.share %t : t
    kas.yield data(%c_d) weight(%t_1, %o) weight(%c_w, %t_2))"));
}

/// Two loops of one size are one another's twins.
TEST_F(SamenessTest, EqualReductions) {
  signature = "<D | k>(%o: D) from [k*k]";
  bindings = {{4, 3}, {3, 2}};
  EXPECT_TRUE(areSame(R"(
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %i_d, %i_w = kas.share %i : k
    %c = kas.split %i_d, %j : k, k
    kas.yield data(%c) weight(%o, %i_w))",
                      R"(
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %j_d, %j_w = kas.share %j : k
    %c = kas.split %j_d, %i : k, k
    kas.yield data(%c) weight(%o, %j_w))"));
  // Whichever is outside makes a difference as soon as one has the weight.
  EXPECT_FALSE(areSame(R"(
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %i_d, %i_w = kas.share %i : k
    %c = kas.split %i_d, %j : k, k
    kas.yield data(%c) weight(%o, %i_w))",
                       R"(
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %i_d, %i_w = kas.share %i : k
    %c = kas.split %j, %i_d : k, k
    kas.yield data(%c) weight(%o, %i_w))"));
}

TEST_F(ChannelsTest, AWeightThatFollowsFromAnother) {
  EXPECT_TRUE(areSame(dense, R"(
    %c = kas.reduce sum : C
    %c_1, %c_w = kas.share %c : C
    %c_d, %c_v = kas.share %c_1 : C
    kas.yield data(%c_d) weight(%o, %c_w) weight(%c_v))"));
  // The same when it follows from a part of the other's coordinate.
  EXPECT_TRUE(areSame(dense, R"(
    %G = kas.reduce sum : g
    %i = kas.reduce sum : C/g
    %G_1, %G_v = kas.share %G : g
    %c = kas.split %G_1, %i : g, C/g
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%o, %c_w) weight(%G_v))"));
}

/// Two weights in the place of `dense`, joined by a reduction that only they
/// have.
static std::string makeRank(llvm::StringRef rank) {
  return (R"(
    %c = kas.reduce sum : C
    %r = kas.reduce sum : )" +
          rank + R"(
    %c_d, %c_w = kas.share %c : C
    %r_d, %r_w = kas.share %r : )" +
          rank + R"(
    kas.yield data(%c_d) weight(%o, %r_d) weight(%c_w, %r_w))")
      .str();
}

TEST_F(ChannelsTest, FullRanks) {
  // 6 to 4 channels, then 4 to 6: a rank of 4 is full.
  for (llvm::StringRef rank : {"C", "D", "C*g", "4"})
    EXPECT_TRUE(areSame(dense, makeRank(rank))) << rank.str();
  for (llvm::StringRef rank : {"g", "3", "C/g"})
    EXPECT_FALSE(areSame(dense, makeRank(rank))) << rank.str();
  EXPECT_FALSE(areSame(makeRank("3"), makeRank("2")));
}

/// Per group a matrix of 6/2 x 4/2 elements, then 4/2 x 6/2.
TEST_F(ChannelsTest, FullRanksOfSharedParts) {
  const char *grouped = R"(
    %r = kas.reduce sum : C/g
    %q, %m = kas.merge %o by D/g : D
    %q_d, %q_w = kas.share %q : g
    %r_d, %r_w = kas.share %r : C/g
    %c = kas.split %q_d, %r_d : g, C/g
    kas.yield data(%c) weight(%q_w, %m, %r_w))";
  auto makeRanked = [](llvm::StringRef rank) {
    return (R"(
    %r = kas.reduce sum : C/g
    %t = kas.reduce sum : )" +
            rank + R"(
    %q, %m = kas.merge %o by D/g : D
    %q_d, %q_w = kas.share %q : g
    %q_e, %q_v = kas.share %q_d : g
    %r_d, %r_w = kas.share %r : C/g
    %t_d, %t_w = kas.share %t : )" +
            rank + R"(
    %c = kas.split %q_e, %r_d : g, C/g
    kas.yield data(%c) weight(%q_w, %m, %t_d) weight(%q_v, %r_w, %t_w))")
        .str();
  };
  EXPECT_TRUE(areSame(grouped, makeRanked("g")));
  EXPECT_TRUE(areSame(grouped, makeRanked("t")));
  EXPECT_FALSE(areSame(grouped, dense));
}

/// C x 2, 2 x D x 4, 4 x D: the first two are one, then these and the third.
TEST_F(ChannelsTest, ChainsOfRanks) {
  auto makeChain = [](llvm::StringRef first, llvm::StringRef second) {
    return (R"(
    %c = kas.reduce sum : C
    %r = kas.reduce sum : )" +
            first + R"(
    %t = kas.reduce sum : )" +
            second + R"(
    %c_d, %c_w = kas.share %c : C
    %r_d, %r_w = kas.share %r : )" +
            first + R"(
    %t_d, %t_w = kas.share %t : )" +
            second + R"(
    kas.yield data(%c_d) weight(%o, %r_d) weight(%r_w, %t_d) weight(%c_w, %t_w))")
        .str();
  };
  EXPECT_TRUE(areSame(dense, makeChain("C", "D")));
  EXPECT_TRUE(areSame(makeRank("3"), makeChain("3", "5")));
  EXPECT_TRUE(areSame(makeRank("3"), makeChain("5", "3")));
  EXPECT_FALSE(areSame(dense, makeChain("3", "C")));
}

/// A loop that only the weight sees sums elements of it: they are one.
TEST_F(ChannelsTest, ElementsInTheSamePlaces) {
  EXPECT_TRUE(areSame(dense, R"(
    %c = kas.reduce sum : C
    %t = kas.reduce sum : t
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%o, %c_w, %t))"));
}

/// Off the diagonal, elements occur nowhere.
TEST_F(ChannelsTest, ElementsThatOccurNowhere) {
  EXPECT_TRUE(areSame(dense, R"(
    %c = kas.reduce sum : C
    %c_1, %c_w = kas.share %c : C
    %c_d, %c_v = kas.share %c_1 : C
    kas.yield data(%c_d) weight(%o, %c_w, %c_v))"));
}

TEST_F(ChannelsTest, CommonFactor) {
  // Each product occurs t times.
  EXPECT_TRUE(areSame(dense, R"(
    %r = kas.reduce sum : C*t
    %c, %t = kas.merge %r by t : C*t
    kas.expand %t : t
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%o, %c_w))"));
  EXPECT_TRUE(areSame(dense, R"(
    %c = kas.reduce mean : C
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%o, %c_w))"));
}

/// Without a weight the factor stays.
TEST_F(LineTest, FactorWithoutWeight) {
  llvm::StringLiteral total = R"(
    %x = kas.reduce sum : H
    kas.expand %h : H
    kas.yield data(%x))";
  llvm::StringLiteral multiple = R"(
    %r = kas.reduce {0} : H*k
    %x, %t = kas.merge %r by k : H*k
    kas.expand %t : k
    kas.expand %h : H
    kas.yield data(%x))";
  auto make = [&](llvm::StringRef kind) {
    return llvm::formatv(multiple.data(), kind).str();
  };
  EXPECT_FALSE(areSame(total, make("sum")));
  EXPECT_FALSE(areSame(total, make("mean")));
  EXPECT_TRUE(areSame(make("mean"), R"(
    %x = kas.reduce mean : H
    kas.expand %h : H
    kas.yield data(%x))"));
  // A weight with one element is none, and takes the factor with it.
  EXPECT_TRUE(areSame(total, R"(
    %x = kas.reduce mean : H
    %t = kas.reduce sum : k
    kas.expand %h : H
    kas.yield data(%x) weight(%t))"));
}

TEST_F(LineTest, ViewsThatUndoEachOther) {
  EXPECT_TRUE(areSame("kas.yield data(%h)", R"(
    %q, %r = kas.merge %h by s : H
    %x = kas.split %q, %r : H/s, s
    kas.yield data(%x))"));
  EXPECT_FALSE(areSame("kas.yield data(%h)", R"(
    %q, %r = kas.merge %h by s : H
    %x = kas.split %r, %q : s, H/s
    kas.yield data(%x))"));
  EXPECT_TRUE(areSame("%x = kas.shift %h by 1 : H\n kas.yield data(%x)", R"(
    %y = kas.shift %h by 2 : H
    %x = kas.shift %y by -1 : H
    kas.yield data(%x))"));
}

/// Permutations of a set are void, also that of the factors of a split.
TEST_F(ChannelsTest, PermutationsOfUnorderedAxes) {
  llvm::StringLiteral grouped = R"(
    %G = kas.reduce sum : g
    %i = kas.reduce sum : C/g
    %G_d, %G_w = kas.share %G : g
    %c = kas.split %G_d, %i : g, C/g
    kas.yield data(%c) weight(%o, %G_w))";
  EXPECT_TRUE(areSame(grouped, R"(
    %G = kas.reduce sum : g
    %i = kas.reduce sum : C/g
    %G_d, %G_w = kas.share %G : g
    %c = kas.split %i, %G_d : C/g, g
    kas.yield data(%c) weight(%o, %G_w))"));
  EXPECT_TRUE(areSame(grouped, R"(
    %G = kas.reduce sum : g
    %i = kas.reduce sum : C/g
    %G_d, %G_w = kas.share %G : g
    %c = kas.split %i, %G_d : C/g, g
    %x = kas.shift %c by -1 : C
    kas.yield data(%x) weight(%o, %G_w))"));
  EXPECT_FALSE(areSame(grouped, dense));
}

//===----------------------------------------------------------------------===//
// Different
//===----------------------------------------------------------------------===//

TEST_F(LineTest, ShiftsOfAnOrderedAxis) {
  EXPECT_FALSE(areSame("kas.yield data(%h)", R"(
    %x = kas.shift %h by 1 : H
    kas.yield data(%x))"));
  EXPECT_FALSE(areSame(R"(
    %x = kas.shift %h by -1 : H
    kas.yield data(%x))",
                       R"(
    %x = kas.shift %h by 1 : H
    kas.yield data(%x))"));
}

/// Each weight element multiplies one data point here and a sum of neighbours
/// there. A change of basis maps one to the other; they stay different.
TEST_F(SamenessTest, LinearChangeOfBasis) {
  signature = "<H, D | k>(%o: D) from [H]";
  bindings = {{7, 3, 3}, {5, 4, 2}};
  EXPECT_FALSE(areSame(R"(
    %h = kas.reduce sum : H
    %h_d, %h_w = kas.share %h : H
    kas.yield data(%h_d) weight(%o, %h_w))",
                       R"(
    %h = kas.reduce sum : H
    %j = kas.reduce sum : k
    %h_d, %h_w = kas.share %h : H
    %x = kas.unfold %h_d, %j : H, k
    kas.yield data(%x) weight(%o, %h_w))"));
}

/// A low rank whose second weight also sees the group of the input channel, or
/// whose first one sees that of the output channel. Colour refinement cannot
/// tell them apart where the sizes agree.
TEST_F(SamenessTest, WeightByInputOrOutputGroup) {
  signature = "<C | g, t>(%o: C unordered) from [C unordered]";
  bindings = {{8, 2, 3}, {12, 3, 2}};
  llvm::StringLiteral byInput = R"(
    %G = kas.reduce sum : g
    %i = kas.reduce sum : C/g
    %t = kas.reduce sum : t
    %t_1, %t_2 = kas.share %t : t
    %G_d, %G_w = kas.share %G : g
    %c = kas.split %G_d, %i : g, C/g
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%t_1, %c_w) weight(%o, %t_2, %G_w))";
  llvm::StringLiteral byOutput = R"(
    %c = kas.reduce sum : C
    %t = kas.reduce sum : t
    %t_1, %t_2 = kas.share %t : t
    %c_d, %c_w = kas.share %c : C
    %o_1, %o_2 = kas.share %o : C
    %G, %i = kas.merge %o_1 by C/g : C
    kas.expand %i : C/g
    kas.yield data(%c_d) weight(%t_1, %c_w, %G) weight(%o_2, %t_2))";
  EXPECT_FALSE(areSame(byInput, byOutput));
  EXPECT_TRUE(areSame(byInput, byInput));
  for (unsigned index = 0; index < bindings.size(); ++index) {
    ProductTable a = ProductTable::tabulate(parse(signature, byInput)[index]);
    ProductTable b = ProductTable::tabulate(parse(signature, byOutput)[index]);
    a.reduce();
    b.reduce();
    EXPECT_EQ(hashTable(a), hashTable(b));
    EXPECT_FALSE(areEqual(a, b));
  }
}

/// At k = C the window and the channels coincide by accident: one binding does
/// not decide.
TEST_F(SamenessTest, OneBindingIsNotEnough) {
  signature = "<C, H | k>(%o: C, %h: H) from [C, H]";
  llvm::StringLiteral a = R"(
    %q, %r = kas.merge %o by k : C
    %x = kas.split %r, %q : k, C/k
    kas.yield data(%x, %h))";
  llvm::StringLiteral b = "kas.yield data(%o, %h)";
  bindings = {{3, 5, 3}};
  EXPECT_TRUE(areSame(a, b));
  bindings = {{3, 5, 3}, {6, 5, 3}};
  EXPECT_FALSE(areSame(a, b));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Two weights of two elements each; `counts` for each pair, each at a place of
/// its own only when it says so.
static ProductTable makeTable(llvm::ArrayRef<int64_t> counts) {
  ProductTable table;
  table.numWeights = 2;
  for (uint32_t i = 0; i < 4; ++i) {
    ProductRow row;
    row.place = i;
    row.nodes = {i / 2, i % 2};
    row.count = counts[i];
    table.rows.push_back(row);
  }
  table.reduce();
  return table;
}

/// Elements may be scaled: counts matter up to a factor of each element.
TEST(ProductTableTest, FreeCounts) {
  ProductTable ones = makeTable({1, 1, 1, 1});
  EXPECT_FALSE(ones.hasFreeCounts);
  EXPECT_TRUE(areEqual(ones, makeTable({1, 2, 3, 6})));
  ProductTable free = makeTable({1, 2, 2, 1});
  EXPECT_TRUE(free.hasFreeCounts);
  EXPECT_FALSE(areEqual(free, ones));
  // Both have 1 as the common factor of every element.
  EXPECT_TRUE(areEqual(free, makeTable({1, 4, 1, 1})));
  EXPECT_EQ(hashTable(free), hashTable(makeTable({1, 4, 1, 1})));
  EXPECT_FALSE(areEqual(free, makeTable({1, 3, 3, 1})));
  EXPECT_FALSE(areEqual(free, makeTable({4, 1, 1, 1})));
}

namespace {
/// Small random tables with one unordered axis and two weights, and all ways to
/// rename them.
struct SmallTables {
  static constexpr unsigned numNodes = 3;
  using Permutation = std::array<uint32_t, numNodes>;

  static ProductTable draw(Random &random) {
    ProductTable table;
    table.numAxes = 1;
    table.numWeights = 2;
    for (unsigned i = 0; i < 6; ++i) {
      ProductRow row;
      row.place = random.below(2);
      for (unsigned column = 0; column < 3; ++column)
        row.nodes[column] = random.below(numNodes);
      row.count = 1;
      table.rows.push_back(row);
    }
    llvm::sort(table.rows);
    table.rows.erase(std::unique(table.rows.begin(), table.rows.end()),
                     table.rows.end());
    return table;
  }

  static ProductTable rename(const ProductTable &table,
                             llvm::ArrayRef<Permutation> names,
                             bool isSwapped) {
    ProductTable result = table;
    for (ProductRow &row : result.rows) {
      for (unsigned column = 0; column < 3; ++column)
        row.nodes[column] = names[column][row.nodes[column]];
      if (isSwapped)
        std::swap(row.nodes[1], row.nodes[2]);
    }
    llvm::sort(result.rows);
    return result;
  }

  static std::vector<Permutation> getPermutations() {
    Permutation names;
    std::iota(names.begin(), names.end(), 0);
    std::vector<Permutation> result;
    do
      result.push_back(names);
    while (std::next_permutation(names.begin(), names.end()));
    return result;
  }

  static bool areEqualByAllRenamings(const ProductTable &a,
                                     const ProductTable &b) {
    std::vector<Permutation> permutations = getPermutations();
    for (const Permutation &x : permutations)
      for (const Permutation &y : permutations)
        for (const Permutation &z : permutations)
          for (bool isSwapped : {false, true})
            if (rename(a, {x, y, z}, isSwapped).rows == b.rows)
              return true;
    return false;
  }
};
} // namespace

static ProductTable number(ProductTable table) {
  table.number();
  return table;
}

static bool areNumberedEqual(const ProductTable &a, const ProductTable &b) {
  return areEqual(number(a), number(b));
}

TEST(ProductTableTest, MatchingAgreesWithAllRenamings) {
  Random random(1);
  std::vector<SmallTables::Permutation> permutations =
      SmallTables::getPermutations();
  auto draw = [&] { return permutations[random.below(permutations.size())]; };
  unsigned numEqual = 0;
  for (unsigned i = 0; i < 600; ++i) {
    ProductTable a = SmallTables::draw(random);
    ProductTable b = SmallTables::rename(a, {draw(), draw(), draw()}, i & 1);
    EXPECT_TRUE(areNumberedEqual(a, b));
    EXPECT_EQ(hashTable(number(a)), hashTable(number(b)));
    // Near misses: move one node of one row.
    ProductRow &row = b.rows[random.below(b.rows.size())];
    row.nodes[random.below(3)] = random.below(3);
    llvm::sort(b.rows);
    if (std::adjacent_find(b.rows.begin(), b.rows.end()) != b.rows.end())
      continue;
    bool isEqual = SmallTables::areEqualByAllRenamings(a, b);
    EXPECT_EQ(areNumberedEqual(a, b), isEqual) << "table " << i;
    numEqual += isEqual;
  }
  EXPECT_GT(numEqual, 50u);
}
