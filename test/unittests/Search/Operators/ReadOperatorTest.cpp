//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/ReadOperator.h"
#include "Problems.h"
#include "Sameness.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Library/Operators.h"

using namespace kas;
using namespace kas::search;
using namespace kas::test;

namespace {

class ReadOperatorTest : public ProblemTest {
protected:
  ReadOperatorTest() {
    scratch = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  }

  OperatorOp build(const SearchProblem &problem, const OperatorGraph &graph) {
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(scratch->getBody());
    return buildOperator(builder, scratch->getLoc(), "candidate", problem,
                         graph);
  }
  static std::string print(mlir::Operation *op) {
    std::string text;
    llvm::raw_string_ostream(text) << *op;
    return text;
  }

  template <typename OpTy>
  OpTy parseOp(llvm::StringRef text) {
    given = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return *given->getOps<OpTy>().begin();
  }
  std::string getError(llvm::StringRef text, const SearchProblem &problem) {
    return llvm::toString(
        readOperator(parseOp<OperatorOp>(text), problem).takeError());
  }

  mlir::OwningOpRef<mlir::ModuleOp> scratch, given;
};

} // namespace

/// What the search builds is read as what it was.
TEST_F(ReadOperatorTest, ReadsWhatTheSearchBuilds) {
  for (llvm::StringRef text : {conv1d, strided, views}) {
    auto problem = parse(text);
    unsigned count = 0;
    for (const auto &graph : enumerate(problem)) {
      if (++count > 2000)
        break;
      OperatorOp op = build(*problem, *graph);
      GivenOperator read = llvm::cantFail(readOperator(op, *problem));
      EXPECT_EQ(read.graph->cost.flops, graph->cost.flops);
      EXPECT_EQ(read.graph->cost.params, graph->cost.params);
      OperatorOp again = build(*read.problem, *read.graph);
      // Of the halves of a merge either may come first.
      if (op.getBody().getOps<MergeOp>().empty())
        ASSERT_EQ(print(again), print(op));
      if (count % 50 == 0)
        for (const Binding &binding : problem->bindings)
          EXPECT_TRUE(
              areSame({makeConcrete(*problem, *graph, binding)},
                      {makeConcrete(*read.problem, *read.graph, binding)}))
              << print(op);
      again.erase();
      op.erase();
    }
    EXPECT_GT(count, 10u);
  }
}

/// The operators of the library whose reductions are sums and whose windows are
/// centred compute the same as they are read, and cost the same.
TEST_F(ReadOperatorTest, ReadsTheLibrary) {
  constexpr llvm::StringLiteral space = R"(
kas.space @layers<N, Cin, Cout, H, W | k, g, r>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 4, Cout = 4, H = 5, W = 4, k = 3, g = 2, r = 2>]
)";
  auto problem = parse(space);
  auto library = library::parseNamedOperators(&context);
  std::vector<std::string> names;
  for (auto op : library->getOps<OperatorOp>()) {
    llvm::Expected<GivenOperator> read = readOperator(op, *problem);
    if (!read) {
      llvm::consumeError(read.takeError());
      continue;
    }
    names.push_back(op.getSymName().str());
    Binding binding;
    SymbolSet symbols = op.getSymbolSet();
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      binding.push_back(
          problem
              ->bindings[0][*problem->symbols.lookup(symbols.getName(symbol))]);
    EXPECT_TRUE(areSame(
        {*makeConcrete(op, binding)},
        {makeConcrete(*read->problem, *read->graph, problem->bindings[0])}))
        << names.back();
    Cost cost = *getCost(op, binding, [&] { return op.emitError(); });
    EXPECT_EQ(read->graph->cost.flops, uint64_t(cost.flops)) << names.back();
    EXPECT_EQ(read->graph->cost.params, uint64_t(cost.parameters))
        << names.back();
  }
  for (llvm::StringRef name :
       {"bottleneck", "conv1x1", "conv2d", "conv2d_depthwise_separable",
        "conv2d_grouped", "conv2d_spatially_separable", "shift_conv2d"})
    EXPECT_TRUE(llvm::is_contained(names, name)) << name.str();
}

TEST_F(ReadOperatorTest, SaysWhatDoesNotFit) {
  auto problem = parse(R"(
kas.space @layers<N, C, W | k> [N, C, W] from [N, C, W]
    bindings [<N = 1, C = 4, W = 4, k = 3>]
)");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, L>(%n: N, %c: C, %l: L)
    from [N, C, L] { kas.yield data(%n, %c, %l) })",
                     *problem),
            "requires the symbol 'L' of @a in the space, got none of that "
            "name");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, W, k>(%n: N, %c: C, %w: W)
    from [N, C, W] { kas.yield data(%n, %c, %w) })",
                     *problem),
            "requires the symbol 'k' of @a to be primary in both it and the "
            "space, or a coefficient in both");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, W>(%n: N, %w: W, %c: C)
    from [N, C, W] { %i = kas.shift %w by 1 : W
      kas.yield data(%n, %c, %i) })",
                     *problem),
            "");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C>(%n: N, %c: C) from [N, C] {
      kas.yield data(%n, %c) })",
                     *problem),
            "requires @a to have the shapes of the space, got others");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, W | k>(%n: N, %c: C, %w: W)
    from [N, C, W] { %i = kas.reduce max : k
      %x = kas.unfold %w, %i : W, k
      kas.yield data(%n, %c, %x) })",
                     *problem),
            "requires sums as reductions for a search, got kas.reduce");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, W | k>(%n: N, %c: C, %w: W)
    from [N, C, W] { %i = kas.reduce sum : k
      %x = kas.unfold %w, %i low 0 : W, k
      kas.yield data(%n, %c, %x) })",
                     *problem),
            "requires windows that are centred or causal for a search, got "
            "kas.unfold");
  EXPECT_EQ(getError(R"(kas.operator @a<N, C, W | k>(%n: N, %c: C, %w: W)
    from [N, C, W] { %i = kas.reduce sum : k
      %x = kas.unfold %w, %i causal : W, k
      kas.yield data(%n, %c, %x) })",
                     *problem),
            "");
  std::string illegal =
      getError(R"(kas.operator @a<N, C, W>(%n: N, %c: C, %w: W)
    from [N, C, W] { %i = kas.shift %w by 9 : W
      kas.yield data(%n, %c, %i) })",
               *problem);
  EXPECT_TRUE(llvm::StringRef(illegal).starts_with(
      "@a cannot be at a binding of the space: "))
      << illegal;
}

TEST_F(ReadOperatorTest, ReadsSequences) {
  auto problem = parse(R"(
kas.space @layers<N, C, D, W | k> [N, D, W] from [N, C, W]
    bindings [<N = 1, C = 8, D = 4, W = 12, k = 3>]
)");
  constexpr llvm::StringLiteral text = R"(
kas.operator @a<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @b<N, C, D, W>(%n: N, %d: D, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%d, %c_w)
}
)";
  auto op = parseOp<SequenceOp>(
      (text + "kas.sequence @s [@a, @b] between [normalize_relu]").str());
  GivenSequence read = llvm::cantFail(readSequence(op, *problem));
  SequenceView view(*read.problem, *read.solution);
  EXPECT_EQ(view.getNumStages(), 2u);
  EXPECT_EQ(view.getStep(0), SequenceStep::NormalizeRelu);
  // As the search counts such a sequence: test/Search/sequences.mlir.
  EXPECT_EQ(view.getCost().flops, 1632u);
  EXPECT_EQ(view.getCost().params, 72u);
  auto joined = parseOp<SequenceOp>(
      (text + "kas.sequence @s [@a join @a] between []").str());
  EXPECT_EQ(llvm::toString(readSequence(joined, *problem).takeError()),
            "requires a sequence without 'join', got 's'");
  auto gate = parseOp<SequenceOp>(
      (text + "kas.sequence @s [@b multiply @b] between []").str());
  GivenSequence two = llvm::cantFail(readSequence(gate, *problem));
  // Twice the operator, and one product for each element.
  EXPECT_EQ(SequenceView(*two.problem, *two.solution).getCost().flops,
            2u * 2 * 8 * 4 * 12 + 4 * 12);
  auto half =
      parseOp<SequenceOp>((text + "kas.sequence @s [@a] between []").str());
  EXPECT_EQ(llvm::toString(readSequence(half, *problem).takeError()),
            "requires @s to have the shapes of the space, got others");
}
