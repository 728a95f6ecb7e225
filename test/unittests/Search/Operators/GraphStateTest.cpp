//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problems.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>
#include <set>

using namespace kas;
using namespace kas::search;

namespace {

class GraphStateTest : public ProblemTest {};

/// How often a primitive occurs in an operator; weights count as one step each.
struct StepCounts {
  explicit StepCounts(OperatorOp op) : weights(op.getNumWeights()) {
    op.walk([&](mlir::Operation *primitive) {
      reduce += mlir::isa<ReduceOp>(primitive);
      split += mlir::isa<SplitOp>(primitive);
      merge += mlir::isa<MergeOp>(primitive);
      shift += mlir::isa<ShiftOp>(primitive);
      expand += mlir::isa<ExpandOp>(primitive);
      unfold += mlir::isa<UnfoldOp>(primitive);
      stride += mlir::isa<StrideOp>(primitive);
    });
  }
  unsigned reduce = 0, split = 0, merge = 0, shift = 0, expand = 0, unfold = 0,
           stride = 0, weights;
  unsigned getDepth() const {
    return reduce + split + merge + shift + expand + unfold + stride + weights;
  }
};

} // namespace

static void expectWithinLimits(const StepCounts &counts,
                               const SpaceLimits &limits) {
  EXPECT_LE(counts.getDepth(), limits.depth);
  EXPECT_LE(counts.reduce, limits.reduce);
  EXPECT_LE(counts.split, limits.split);
  EXPECT_LE(counts.merge, limits.merge);
  EXPECT_LE(counts.shift, limits.shift);
  EXPECT_LE(counts.expand, limits.expand);
  EXPECT_LE(counts.unfold, limits.unfold);
  EXPECT_LE(counts.stride, limits.stride);
  EXPECT_LE(counts.weights, limits.weights);
}

/// The operator verifies, is legal at every binding, costs what the analysis
/// says, and is within limits and budgets.
static void expectValid(OperatorOp op, const SearchProblem &problem,
                        const OperatorGraph &graph) {
  ASSERT_TRUE(mlir::succeeded(mlir::verify(op)));
  auto emitError = [&] { return op.emitError(); };
  uint64_t flops = 0, params = 0;
  for (auto [binding, multiplicity] :
       llvm::zip_equal(problem.bindings, problem.multiplicities)) {
    ASSERT_TRUE(mlir::succeeded(verifyBinding(op, binding, emitError)));
    mlir::FailureOr<Cost> expected = getCost(op, binding, emitError);
    ASSERT_TRUE(mlir::succeeded(expected));
    flops += multiplicity * expected->flops;
    params += multiplicity * expected->parameters;
  }
  EXPECT_EQ(graph.cost.flops, flops);
  EXPECT_EQ(graph.cost.params, params);
  EXPECT_LE(flops, problem.budget.maxFlops.value_or(INFINITY));
  EXPECT_LE(params, problem.budget.maxParams.value_or(INFINITY));
  expectWithinLimits(StepCounts(op), problem.limits);
}

TEST_F(GraphStateTest, OperatorsAreValid) {
  for (llvm::StringRef text : {conv1d, strided, views}) {
    SCOPED_TRACE(text.str());
    std::shared_ptr<const SearchProblem> problem = parse(text);
    auto graphs = enumerate(problem);
    EXPECT_GE(graphs.size(), 5u);
    mlir::OpBuilder builder(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    std::set<std::string> texts;
    for (const auto &graph : graphs) {
      OperatorOp op = buildOperator(builder, module->getLoc(), "candidate",
                                    *problem, *graph);
      expectValid(op, *problem, *graph);
      std::string printed;
      llvm::raw_string_ostream(printed) << op;
      EXPECT_TRUE(texts.insert(printed).second) << printed;
      if (HasFailure())
        FAIL() << printed;
    }
  }
}

static std::set<uint64_t>
getKeys(llvm::ArrayRef<std::shared_ptr<const OperatorGraph>> graphs) {
  std::set<uint64_t> keys;
  for (const auto &graph : graphs)
    EXPECT_TRUE(keys.insert(graph->key()).second);
  return keys;
}

TEST_F(GraphStateTest, TheSeedChangesOnlyTheOrder) {
  for (llvm::StringRef text : {conv1d, strided, views}) {
    SCOPED_TRACE(text.str());
    std::shared_ptr<const SearchProblem> problem = parse(text);
    auto a = enumerate(problem, 1), b = enumerate(problem, 2);
    EXPECT_EQ(getKeys(a), getKeys(b));
    auto c = enumerate(problem, 1);
    ASSERT_EQ(a.size(), c.size());
    for (size_t index = 0; index < a.size(); ++index)
      EXPECT_EQ(a[index]->key(), c[index]->key());
  }
}

/// The distance is admissible: without it nothing more is found. Without it the
/// search takes long, so the quick suite cuts the depth.
static void expectNothingLost(std::shared_ptr<const SearchProblem> original,
                              unsigned quickDepth) {
  auto problem = std::make_shared<SearchProblem>(*original);
  if (!std::getenv("KAS_SLOW_TESTS"))
    problem->limits.depth = quickDepth;
  GraphStateOptions options;
  options.useDistance = false;
  std::set<uint64_t> keys = getKeys(enumerate(problem));
  EXPECT_GE(keys.size(), 3u);
  EXPECT_EQ(keys, getKeys(enumerate(problem, 0, options)));
}

TEST_F(GraphStateTest, TheDistanceLosesNoConvolution) {
  expectNothingLost(parse(conv1d), 5);
}

TEST_F(GraphStateTest, TheDistanceLosesNothingStrided) {
  expectNothingLost(parse(strided), 5);
}

TEST_F(GraphStateTest, TheDistanceLosesNoView) {
  expectNothingLost(parse(views), 4);
}

TEST_F(GraphStateTest, StatesKeepTheirContracts) {
  std::unique_ptr<State> root = makeGraphState(parse(conv1d));
  Random random(17);
  for (unsigned rollout = 0; rollout < 200; ++rollout) {
    std::unique_ptr<State> state = root->clone();
    for (;;) {
      EXPECT_EQ(state->key(), state->clone()->key());
      std::vector<Move> moves;
      for (unsigned kind = 0; kind < state->getNumKinds(); ++kind)
        for (auto move = state->nextMove(kind); move;
             move = state->nextMove(kind, move)) {
          EXPECT_EQ(move->kind, kind);
          EXPECT_TRUE(moves.empty() || moves.back() < *move);
          moves.push_back(*move);
        }
      EXPECT_TRUE(moves.empty() || !state->isTerminal());
      if (moves.empty())
        break;
      uint64_t before = state->key();
      state->apply(moves[random.below(moves.size())]);
      EXPECT_NE(state->key(), before);
    }
    if (state->isTerminal())
      EXPECT_EQ(state->key(), state->getSolution()->key());
  }
}
