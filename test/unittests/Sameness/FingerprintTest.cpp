//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fingerprints do not depend on names, and tell near misses apart.
//
//===----------------------------------------------------------------------===//

#include "SamenessFixture.h"
#include "kas/Support/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace kas;
using namespace kas::test;

namespace {

constexpr FingerprintOptions allOptions[] = {
    {3, 2, 2}, {8, 3, 2}, {2, 2, 3, 32}, {2, 0, 4, 128}, {0, 0, 3, 32}};

/// What all of them begin with.
constexpr llvm::StringLiteral reductions = R"(
    %i = kas.reduce sum : C/g
    %r = kas.reduce sum : r
    %j = kas.reduce sum : k
    %j_d, %j_w = kas.share %j : k
    %r_1, %r_2 = kas.share %r : r
    %x = kas.unfold %h, %j_d : H, k)";

constexpr llvm::StringLiteral bodies[] = {
    // A grouped convolution of low rank.
    R"(
    %G = kas.reduce sum : g
    %i_d, %i_w = kas.share %i : C/g
    %c = kas.split %G, %i_d : g, C/g
    kas.yield data(%c, %x) weight(%r_1, %i_w) weight(%o, %r_2, %j_w))",
    // The same, but the first weight has the window.
    R"(
    %G = kas.reduce sum : g
    %i_d, %i_w = kas.share %i : C/g
    %c = kas.split %G, %i_d : g, C/g
    kas.yield data(%c, %x) weight(%r_1, %i_w, %j_w) weight(%o, %r_2))",
    // The groups are those of the output.
    R"(
    %i_d, %i_w = kas.share %i : C/g
    %q, %m = kas.merge %o by D/g : D
    %q_d, %q_w = kas.share %q : g
    %c = kas.split %q_d, %i_d : g, C/g
    kas.yield data(%c, %x) weight(%r_1, %i_w) weight(%q_w, %m, %r_2, %j_w))"};

class FingerprintTest : public SamenessTest {
protected:
  FingerprintTest() {
    signature = "<C, D, H | g, k, r>(%o: D unordered, %h: H) from "
                "[C unordered, H]";
    bindings = {{6, 8, 7, 2, 3, 5}};
  }
  ConcreteOperator get(llvm::StringRef body) {
    return parse(signature, (reductions + body).str()).front();
  }
};

/// The same operator by other names.
class Disguise {
public:
  Disguise(ConcreteOperator op, Random &random)
      : op(std::move(op)), random(random) {}

  ConcreteOperator make() {
    for (llvm::SmallVector<unsigned, 6> &weight : op.weights) {
      // Elements are renamed, dimensions change places.
      unsigned &coord = weight[random.below(weight.size())];
      coord = addShift(coord);
      shuffle(weight);
    }
    shuffle(op.weights);
    for (auto [axis, coord] : llvm::zip_equal(op.inputs, op.data))
      if (axis.isUnordered)
        coord = addShift(coord);
    shuffleLoops();
    return op;
  }

private:
  template <typename Range>
  void shuffle(Range &range) {
    for (size_t i = range.size(); i > 1; --i)
      std::swap(range[i - 1], range[random.below(i)]);
  }

  unsigned addShift(unsigned of) {
    ConcreteCoord coord;
    coord.kind = ConcreteCoord::Shift;
    coord.size = op.coords[of].size;
    coord.first = of;
    coord.parameter = random.below(coord.size);
    op.coords.push_back(coord);
    return op.coords.size() - 1;
  }

  /// Reductions in another order.
  void shuffleLoops() {
    std::vector<unsigned> loops;
    for (auto [index, coord] : llvm::enumerate(op.coords))
      if (coord.kind == ConcreteCoord::Loop && index >= op.outputs.size())
        loops.push_back(index);
    std::vector<unsigned> shuffled = loops;
    shuffle(shuffled);
    std::vector<unsigned> names(op.coords.size());
    for (unsigned index = 0; index < names.size(); ++index)
      names[index] = index;
    for (auto [from, to] : llvm::zip_equal(loops, shuffled))
      names[from] = to;
    std::vector<ConcreteCoord> coords(op.coords.size());
    for (auto [index, coord] : llvm::enumerate(op.coords)) {
      ConcreteCoord &moved = coords[names[index]];
      moved = coord;
      moved.first = names[coord.first];
      moved.second = names[coord.second];
    }
    op.coords = std::move(coords);
    for (unsigned &coord : op.data)
      coord = names[coord];
    for (llvm::SmallVector<unsigned, 6> &weight : op.weights)
      for (unsigned &coord : weight)
        coord = names[coord];
  }

  ConcreteOperator op;
  Random &random;
};

} // namespace

TEST_F(FingerprintTest, NamesDoNotMatter) {
  constexpr uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (llvm::StringRef body : bodies) {
    ConcreteOperator op = get(body);
    for (unsigned repetition = 0; repetition < 6; ++repetition) {
      ConcreteOperator other = Disguise(op, random).make();
      for (const FingerprintOptions &options : allOptions) {
        Fingerprinter fingerprinter(options);
        EXPECT_EQ(fingerprinter.compute(op), fingerprinter.compute(other));
      }
    }
  }
}

TEST_F(FingerprintTest, NearMissesDiffer) {
  for (const FingerprintOptions &options : allOptions) {
    Fingerprinter fingerprinter(options);
    std::set<uint64_t> different;
    for (llvm::StringRef body : bodies)
      different.insert(fingerprinter.compute(get(body)));
    EXPECT_EQ(different.size(), std::size(bodies));
  }
}

/// Positions beside each other are looked at: a weight that has half of one is
/// seen where that half stays and the other changes.
TEST_F(FingerprintTest, PlacesAreNeighbors) {
  ConcreteOperator op = get(bodies[0]);
  auto hasNeighbors = [&](unsigned count) {
    std::vector<OutputPosition> places = choosePositions(op, count);
    for (const OutputPosition &a : places)
      for (const OutputPosition &b : places)
        if (b[1] == a[1] + 1)
          return true;
    return false;
  };
  EXPECT_FALSE(hasNeighbors(2));
  EXPECT_TRUE(hasNeighbors(3));
}

/// What colours alone do not tell apart: one ring of all channels, or rings of
/// each group.
TEST_F(SamenessTest, FingerprintsOfRings) {
  signature = "<C | g, s>(%o: C unordered) from [C unordered]";
  bindings = {{12, 3, 2}};
  auto make = [&](llvm::StringRef ring) {
    return parse(signature, ("%s = kas.reduce sum : s\n" + ring).str()).front();
  };
  // The data beside o is o, and its successor in the ring.
  ConcreteOperator one = make(R"(
    %x = kas.split %o, %s : C, s
    %y = kas.shift %x by 1 : C*s
    %q, %m = kas.merge %y by s : C*s
    kas.expand %m : s
    %q_d, %q_w = kas.share %q : C
    kas.yield data(%q_d) weight(%q_w))");
  ConcreteOperator many = make(R"(
    %G, %i = kas.merge %o by C/g : C
    %x = kas.split %i, %s : C/g, s
    %y = kas.shift %x by 1 : C*s/g
    %q, %m = kas.merge %y by s : C*s/g
    kas.expand %m : s
    %c = kas.split %G, %q : g, C/g
    %c_d, %c_w = kas.share %c : C
    kas.yield data(%c_d) weight(%c_w))");
  auto areEqual = [&](const FingerprintOptions &options) {
    Fingerprinter fingerprinter(options);
    return fingerprinter.compute(one) == fingerprinter.compute(many);
  };
  EXPECT_TRUE(areEqual({0, 0, 3}));
  EXPECT_FALSE(areEqual({0, 0, 4, 32}));
  EXPECT_TRUE(areEqual({0, 0, 4, 8})) << "classes are larger";
  EXPECT_FALSE(test::areSame({one}, {many}));
}

/// Rings of some channels or of more: no fixed number of rounds sees how long
/// they are. Where `g*s**2` is `D`, they are as long.
TEST_F(SamenessTest, FingerprintsOfRingsOfLengths) {
  signature = "<C, D | g, s>(%o: D unordered) from [C unordered]";
  auto make = [&](llvm::StringRef ring) {
    constexpr llvm::StringLiteral above = R"(
      %r = kas.reduce sum : g
      %r_d, %r_w = kas.share %r : g
      %i = kas.reduce sum : C/g
      %i_d, %i_w = kas.share %i : C/g
      %c = kas.split %i_d, %r_d : C/g, g
      %s = kas.reduce sum : s)";
    constexpr llvm::StringLiteral below = R"(
      kas.yield data(%c)
        weight(%M_d, %q_d, %r_w) weight(%M_w, %q_w, %m, %i_w))";
    return parse(signature, (above + ring + below).str()).front();
  };
  auto areEqual = [&](const FingerprintOptions &options) {
    ConcreteOperator a = make(R"(
      %Q, %M = kas.merge %o by D/(g*s) : D
      %M_d, %M_w = kas.share %M : D/(g*s)
      %x = kas.split %Q, %s : g*s, s
      %y = kas.shift %x by 1 : g*s**2
      %q, %m = kas.merge %y by s : g*s**2
      %q_d, %q_w = kas.share %q : g*s
    )");
    ConcreteOperator b = make(R"(
      %M, %Q = kas.merge %o by D/s : D
      %M_d, %M_w = kas.share %M : s
      %x = kas.split %Q, %s : D/s, s
      %y = kas.shift %x by 1 : D
      %q, %m = kas.merge %y by s : D
      %q_d, %q_w = kas.share %q : D/s
    )");
    Fingerprinter fingerprinter(options);
    bool isEqual = fingerprinter.compute(a) == fingerprinter.compute(b);
    // Exact comparison takes long where there are many channels.
    if (bindings.front()[1] <= 36)
      EXPECT_EQ(test::areSame({a}, {b}), bindings.front()[1] == 12);
    return isEqual;
  };
  // Fewer channels would make any two of the products a full rank.
  bindings = {{9, 36, 3, 2}};
  EXPECT_TRUE(areEqual({1, 1, 4, 128}));
  EXPECT_FALSE(areEqual({1, 1, 0, 128}));
  EXPECT_TRUE(areEqual({1, 1, 0, 32})) << "classes are larger";
  bindings = {{16, 144, 4, 3}};
  EXPECT_TRUE(areEqual({1, 1, 8, 200}));
  EXPECT_FALSE(areEqual({1, 1, 0, 200}));
  bindings = {{9, 12, 3, 2}};
  EXPECT_TRUE(areEqual({1, 1, 0, 128}));
}

/// Two factors of one size of an unordered output: which one the data has does
/// not matter.
TEST_F(SamenessTest, EqualFactorsOfChannelsAreInterchangeable) {
  signature = "<C, D | g, s>(%o: D unordered) from [C unordered]";
  bindings = {{12, 12, 3, 2}, {18, 36, 2, 3}};
  auto make = [](llvm::StringRef first, llvm::StringRef second) {
    return ("%r = kas.reduce sum : g\n%r_d, %r_1 = kas.share %r : g\n"
            "%r_d2, %r_2 = kas.share %r_d : g\n"
            "%i = kas.reduce sum : C/(g*s)\n"
            "%a, %m = kas.merge %o by D/s : D\n"
            "%b, %c = kas.merge %m by D/s**2 : D/s\n"
            "%x_d, %x_1 = kas.share " +
            first +
            " : s\n"
            "%x_d2, %x_2 = kas.share %x_d : s\n"
            "%ri = kas.split %r_d2, %i : g, C/(g*s)\n"
            "%y = kas.split %x_d2, %ri : s, C/s\n"
            "kas.yield data(%y) weight(%x_1, %c, %r_1) weight(%x_2, " +
            second + ", %r_2)\n")
        .str();
  };
  EXPECT_TRUE(areSame(make("%a", "%b"), make("%b", "%a")));
}

/// Two weights have each channel of a ring. Beside one place of the data one of
/// them says nothing: its element follows from that of the other.
TEST_F(SamenessTest, FingerprintsOfRingsOfTwoWeights) {
  signature = "<C, D, H | g, k, s>(%o: D unordered, %h: H) from "
              "[C unordered, H]";
  bindings = {{12, 24, 20, 3, 3, 2}};
  auto make = [&](llvm::StringRef ring, llvm::StringRef channel) {
    constexpr llvm::StringLiteral above = R"(
      %s = kas.reduce sum : s
      %j = kas.reduce sum : k
      %j_d, %j_w = kas.share %j : k
      %c = kas.reduce sum : C
      %c_d, %c_w = kas.share %c : C
      %x = kas.unfold %h, %j_d : H, k)";
    std::string weights = llvm::formatv(R"(
      kas.yield data(%c_d, %x) weight(%q_d, {0}%j_w) weight(%q_w, {1}%m, %c_w))",
                                        channel.empty() ? "" : "%M_d, ",
                                        channel.empty() ? "" : "%M_w, ");
    return parse(signature, (above + ring + channel + weights).str()).front();
  };
  const ConcreteOperator rings[] = {
      make(R"(
      %y = kas.split %o, %s : D, s
      %z = kas.shift %y by 1 : D*s
      %q, %m = kas.merge %z by s : D*s
      %q_d, %q_w = kas.share %q : D)",
           ""),
      make(R"(
      %M, %Q = kas.merge %o by D/s : D
      %y = kas.split %Q, %s : D/s, s
      %z = kas.shift %y by 1 : D
      %q, %m = kas.merge %z by s : D
      %q_d, %q_w = kas.share %q : D/s)",
           "\n%M_d, %M_w = kas.share %M : s"),
      make(R"(
      %Q, %M = kas.merge %o by D/(g*s) : D
      %y = kas.split %Q, %s : g*s, s
      %z = kas.shift %y by 1 : g*s**2
      %q, %m = kas.merge %z by s : g*s**2
      %q_d, %q_w = kas.share %q : g*s)",
           "\n%M_d, %M_w = kas.share %M : D/(g*s)")};
  auto count = [&](const FingerprintOptions &options) {
    Fingerprinter fingerprinter(options);
    std::set<uint64_t> different;
    for (const ConcreteOperator &op : rings)
      different.insert(fingerprinter.compute(op));
    return different.size();
  };
  EXPECT_EQ(count({1, 1, 0, 128}), 1u) << "one place of the data";
  EXPECT_EQ(count({2, 3, 3, 128}), 1u) << "too few rounds";
  EXPECT_EQ(count({2, 3, 0, 128}), 3u);
}
