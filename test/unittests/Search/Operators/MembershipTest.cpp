//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators are found among the solutions of a problem by their keys.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/Membership.h"
#include "Problems.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::search;

namespace {
class MembershipTest : public ProblemTest {
protected:
  OperatorOp parseOperator(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return *module->getOps<OperatorOp>().begin();
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The dense convolution, written in another way than the search does.
constexpr llvm::StringLiteral dense = R"(
kas.operator @dense<B, I, O, X | k>(%n: B, %o: O, %x: X) from [B, I, X] {
  %j = kas.reduce sum : k
  %c = kas.reduce sum : I
  %c_d, %c_w = kas.share %c : I
  %j_d, %j_w = kas.share %j : k
  %u = kas.unfold %x, %j_d : X, k
  kas.yield data(%n, %c_d, %u) weight(%j_w, %o, %c_w)
}
)";
} // namespace

TEST_F(MembershipTest, SolutionsAreFound) {
  std::string cyclic = conv1d.str();
  cyclic.insert(cyclic.find("depth"), "cyclic = 1, ");
  for (llvm::StringRef text :
       {llvm::StringRef(conv1d), llvm::StringRef(cyclic),
        llvm::StringRef(strided), llvm::StringRef(views)}) {
    auto problem = parse(text);
    auto graphs = enumerate(problem);
    EXPECT_GT(graphs.size(), 10u);
    for (auto [number, graph] : llvm::enumerate(graphs)) {
      if (number % 8)
        continue;
      mlir::OwningOpRef<mlir::ModuleOp> owner =
          mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
      mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(owner->getBody());
      OperatorOp op =
          buildOperator(builder, owner->getLoc(), "x", *problem, *graph);
      Membership membership = getMembership(problem, op);
      EXPECT_EQ(membership.key, graph->key());
      EXPECT_TRUE(membership.reasons.empty());
    }
  }
}

TEST_F(MembershipTest, SymbolsAndOrderDoNotMatter) {
  std::string text = conv1d.str();
  text.erase(text.find("    budget"));
  auto problem = parse(text);
  Membership membership = getMembership(problem, parseOperator(dense));
  ASSERT_TRUE(membership.key);
  EXPECT_TRUE(llvm::any_of(enumerate(problem), [&](const auto &graph) {
    return graph->key() == *membership.key;
  }));
}

TEST_F(MembershipTest, WindowsLookBackOrLieAround) {
  std::string text = conv1d.str();
  text.erase(text.find("    budget"));
  std::string back = text;
  back.insert(back.find("depth"), "causal = 1, ");
  std::string causal = dense.str();
  causal.insert(causal.find(" : X, k"), " causal");
  EXPECT_TRUE(getMembership(parse(back), parseOperator(causal)).key);
  EXPECT_TRUE(getMembership(parse(text), parseOperator(dense)).key);
  EXPECT_EQ(getMembership(parse(back), parseOperator(dense)).reasons.front(),
            "it has an unfold that does not look back");
  EXPECT_EQ(getMembership(parse(text), parseOperator(causal)).reasons.front(),
            "it has an unfold that is not in the middle");
}

/// The dense convolution around a circle; `amount` and `copies` are 1 and 3.
static std::string getCyclic(int amount, int copies) {
  return llvm::formatv(R"(
kas.operator @cyclic<B, I, O, X | k>(%n: B, %o: O, %x: X) from [B, I, X] {{
  %j = kas.reduce sum : k
  %c = kas.reduce sum : I
  %z = kas.reduce sum : 1
  %c_d, %c_w = kas.share %c : I
  %j_d, %j_w = kas.share %j : k
  %t = kas.stride %z by {1} : 1
  %m = kas.shift %t by {0} : {1}
  %s = kas.split %m, %x : {1}, X
  %u = kas.unfold %s, %j_d : {1}*X, k
  %q, %y = kas.merge %u by X : {1}*X
  kas.expand %q : {1}
  kas.yield data(%n, %c_d, %y) weight(%j_w, %o, %c_w)
}
)",
                       amount, copies);
}

TEST_F(MembershipTest, CyclicWindowsAreRead) {
  std::string text = conv1d.str();
  text.erase(text.find("    budget"));
  std::string cyclic = text;
  cyclic.insert(cyclic.find("depth"), "cyclic = 1, ");
  auto problem = parse(cyclic);
  Membership membership =
      getMembership(problem, parseOperator(getCyclic(1, 3)));
  ASSERT_TRUE(membership.key) << membership.reasons.front();
  EXPECT_TRUE(llvm::any_of(enumerate(problem), [&](const auto &graph) {
    return graph->key() == *membership.key;
  }));
  // Of the first copy the window reads two parts of which one is cut.
  for (auto [amount, copies] : {std::pair(2, 3), {1, 2}})
    EXPECT_FALSE(
        getMembership(problem, parseOperator(getCyclic(amount, copies))).key);
  EXPECT_EQ(getMembership(problem, parseOperator(dense)).reasons.front(),
            "it has an unfold that does not wrap around");
  EXPECT_FALSE(getMembership(parse(text), parseOperator(getCyclic(1, 3))).key);
}

/// Low ranks, and Monarch matrices with a rank.
constexpr llvm::StringLiteral ranks = R"(
kas.space @ranks<N, C, D, R | b>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 48, D = 80, R = 3, b = 4>]
    limits {depth = 8, reduce = 3, shift = 0, unfold = 0, pooling = 1,
            occurrences.R = 3}
)";

/// The factors of the output, Q and t, in one order or the other.
static std::string getMonarch(bool isQuotient) {
  return llvm::formatv(R"(
kas.operator @monarch<M, I, O, R | b>(%m: M, %ot: O) from [M, I] {{
  %s = kas.reduce sum : R
  %g = kas.reduce sum : b
  %c = kas.reduce sum : I/b
  {0} = kas.merge %ot by {1} : O
  %t1, %t2 = kas.share %t : b
  %s1, %s2 = kas.share %s : R
  %g_d, %g2 = kas.share %g : b
  %gd, %g1 = kas.share %g_d : b
  %cd, %c1 = kas.share %c : I/b
  %x = kas.split %gd, %cd : b, I/b
  kas.yield data(%m, %x) weight(%g1, %t1, %s1, %c1) weight(%t2, %q, %g2, %s2)
})",
                       isQuotient ? "%t, %q" : "%q, %t",
                       isQuotient ? "O/b" : "b");
}

TEST_F(MembershipTest, SymbolsOfNoShapeAreMatchedByName) {
  auto problem = parse(ranks);
  auto find = [&](llvm::StringRef rank) {
    std::string text = getMonarch(/*isQuotient=*/true);
    for (size_t place = 0; (place = text.find("R", place)) != std::string::npos;
         ++place)
      text.replace(place, 1, rank);
    return getMembership(problem, parseOperator(text));
  };
  Membership membership = find("R");
  ASSERT_TRUE(membership.key);
  EXPECT_TRUE(llvm::any_of(enumerate(problem), [&](const auto &graph) {
    return graph->key() == *membership.key;
  }));
  EXPECT_FALSE(find("S").key);
  EXPECT_FALSE(find("C").key) << "that is the size of the input";
}

TEST_F(MembershipTest, FactorsOfUnorderedOutputsAreASet) {
  auto problem = parse(ranks);
  Membership one = getMembership(problem, parseOperator(getMonarch(true)));
  Membership other = getMembership(problem, parseOperator(getMonarch(false)));
  ASSERT_TRUE(one.key && other.key);
  EXPECT_EQ(*one.key, *other.key);
  // Not so where the output is ordered.
  std::string text = ranks.str();
  text.replace(text.find("D unordered"), 11, "D");
  auto ordered = parse(text);
  one = getMembership(ordered, parseOperator(getMonarch(true)));
  other = getMembership(ordered, parseOperator(getMonarch(false)));
  ASSERT_TRUE(one.key && other.key);
  EXPECT_NE(*one.key, *other.key);
}

TEST_F(MembershipTest, ReasonsNameBounds) {
  auto find = [&](llvm::StringRef text) {
    Membership membership = getMembership(parse(conv1d), parseOperator(text));
    return membership.reasons.empty() ? "" : membership.reasons.front();
  };
  EXPECT_EQ(find(R"(
    kas.operator @short<N, C>(%n: N, %c: C) from [N, C] {
      kas.yield data(%n, %c)
    })"),
            "its output is [N, C], that of the space is [N, Cout, W]");
  EXPECT_EQ(find(R"(
    kas.operator @far<N, Cin, Cout, W>(%n: N, %o: Cout, %w: W)
        from [N, Cin, W] {
      %c = kas.reduce sum : Cin
      %d, %e = kas.share %c : Cin
      %t = kas.shift %w by 2 : W
      kas.yield data(%n, %d, %t) weight(%o, %e)
    })"),
            "it shifts by 2, the search by 1 and -1");
  EXPECT_EQ(find(R"(
    kas.operator @two<N, Cin, Cout, W>(%n: N, %o: Cout, %w: W)
        from [N, Cin, W] {
      %c = kas.reduce sum : Cin
      %d, %e = kas.share %c : Cin
      %t = kas.shift %w by 1 : W
      %u = kas.shift %t by 1 : W
      kas.yield data(%n, %d, %u) weight(%o, %e)
    })"),
            "it has 2 shifts, the limit 'shift' is 1");
  EXPECT_EQ(find(R"(
    kas.operator @other<N, Cin, Cout, W | m>(%n: N, %o: Cout, %w: W)
        from [N, Cin, W] {
      %c = kas.reduce sum : Cin
      %j = kas.reduce sum : m
      %d, %e = kas.share %c : Cin
      %u = kas.unfold %w, %j : W, m
      kas.yield data(%n, %d, %u) weight(%o, %e)
    })"),
            "its size m is none of the space");
  EXPECT_EQ(find(R"(
    kas.operator @most<N, Cin, Cout, W>(%n: N, %o: Cout, %w: W)
        from [N, Cin, W] {
      %c = kas.reduce max : Cin
      %d, %e = kas.share %c : Cin
      kas.yield data(%n, %d, %w) weight(%o, %e)
    })"),
            "it reduces by a maximum, the search by sums");
}

TEST_F(MembershipTest, CostsAreComparedWithTheBudget) {
  std::string text = conv1d.str();
  size_t place = text.find("flops = 100000");
  text.replace(place, 14, "min_flops = 9000000000, params = 10");
  Membership membership = getMembership(parse(text), parseOperator(dense));
  ASSERT_EQ(membership.reasons.size(), 2u);
  // 2 * 3 * (2 * 8 * 12 * 10 + 3 * 16 * 8 * 7), and 3 * (8 * 12 + 3 * 16 * 8).
  EXPECT_EQ(membership.reasons[0],
            "it has 27648 FLOPs, the budget 'min_flops' is 9000000000");
  EXPECT_EQ(membership.reasons[1],
            "it has 1440 parameters, the budget 'params' is 10");
}
