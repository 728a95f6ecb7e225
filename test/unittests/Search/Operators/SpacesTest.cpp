//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Enumeration.h"
#include "OperatorWriter.h"
#include "PublishedSpaces.h"
#include "kas/Search/Core/Enumerator.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <unordered_map>

using namespace kas;
using namespace kas::search;

namespace {

class SpacesTest : public PublishedSpacesTest {};

bool isSlow() { return std::getenv("KAS_SLOW_TESTS") != nullptr; }

/// Merges twice, three weights: small enough to be listed on all strategies.
constexpr llvm::StringLiteral twoMerges = R"(
kas.space @two_merges<N, Cin, Cout, H | k, s>
    [N, Cout unordered, H, H] from [N, Cin unordered, H, H]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 12, k = 3, s = 2>]
    limits {depth = 8, reduce = 2, split = 2, merge = 2, shift = 1, unfold = 1,
            weights = 3, occurrences.s = 2, occurrences.k = 1, rank_max = 8,
            occurrences.Cin = 2, occurrences.Cout = 2, shift_backward = 0}
)";

/// Strides, two merges, and windows that must be seen: what the distance leaves
/// before it tries all blocks.
constexpr llvm::StringLiteral stridedMerges = R"(
kas.space @strided_merges<C, D, H | k, s>
    [D unordered, H/s] from [C unordered, H]
    bindings [<C = 4, D = 6, H = 16, k = 3, s = 2>]
    limits {depth = 7, reduce = 2, split = 2, merge = 2, shift = 1, unfold = 1,
            stride = 1, weights = 2, sees = ["k"], unfold_ratio = 1.5,
            occurrences.s = 2, occurrences.k = 1, occurrences.H = 0}
)";

/// Windows below merges and without, and windows from carries.
constexpr llvm::StringLiteral oneAxis = R"(
kas.space @one_axis<C, H | k, s>
    [C unordered, H] from [C unordered, H]
    bindings [<C = 2, H = 12, k = 3, s = 2>]
    limits {depth = 6, reduce = 2, unfold = 1, shift = 1, merge = 1, split = 2,
            weights = 1, weight_takes = 0, unfold_ratio = 1.5, shift_block = 2,
            occurrences.s = 2, occurrences.k = 1, occurrences.H = 0}
)";

} // namespace

/// Orders of moves, table, twins: they must not change what is found.
static void expectEqualStrategies(std::shared_ptr<const SearchProblem> problem,
                                  bool withoutDistance, bool withoutAny) {
  Enumeration ordered(problem, {});
  ordered.run();
  EXPECT_GT(ordered.keys.size(), 50u);
  GraphStateOptions options;
  options.useOrdering = false;
  Enumeration table(problem, options, /*useTable=*/true);
  table.run();
  EXPECT_EQ(table.keys, ordered.keys);
  options = {};
  options.useTwins = false;
  Enumeration withoutTwins(problem, options);
  withoutTwins.run();
  EXPECT_EQ(withoutTwins.keys, ordered.keys);
  EXPECT_GE(withoutTwins.finals, ordered.finals);
  options = {};
  options.useBudget = false;
  Enumeration withoutBudget(problem, options);
  withoutBudget.run();
  EXPECT_EQ(withoutBudget.keys, ordered.keys);
  EXPECT_EQ(withoutBudget.finals, ordered.finals);
  if (withoutDistance) {
    options = {};
    options.useDistance = options.useBudget = false;
    Enumeration blind(problem, options);
    blind.run();
    EXPECT_EQ(blind.keys, ordered.keys);
    EXPECT_GT(blind.expansions, ordered.expansions);
  }
  if (withoutAny) {
    options = {};
    options.useOrdering = options.useTwins = options.useBudget = false;
    Enumeration plain(problem, options);
    plain.run();
    EXPECT_EQ(plain.keys, ordered.keys);
    EXPECT_GT(plain.finals, ordered.finals);
  }
}

TEST_F(SpacesTest, SynoTestIsTheSameByAllAlgorithms) {
  std::shared_ptr<SearchProblem> problem = load("syno-test.mlir");
  if (!isSlow())
    problem->limits.depth = 8;
  expectEqualStrategies(problem, isSlow(), isSlow());
}

TEST_F(SpacesTest, SynoTestWithMoreMergesIsTheSameByAllAlgorithms) {
  std::shared_ptr<SearchProblem> problem = load("syno-test.mlir");
  problem->limits.merge = 4;
  if (!isSlow())
    problem->limits.depth = 7;
  expectEqualStrategies(problem, isSlow(), /*withoutAny=*/false);
}

TEST_F(SpacesTest, TwoMergesAreTheSameByAllAlgorithms) {
  auto problem = std::make_shared<SearchProblem>(*parse(twoMerges));
  if (!isSlow())
    problem->limits.depth = 5;
  expectEqualStrategies(problem, /*withoutDistance=*/true, /*withoutAny=*/true);
}

TEST_F(SpacesTest, StridedMergesAreTheSameByAllAlgorithms) {
  auto problem = std::make_shared<SearchProblem>(*parse(stridedMerges));
  if (isSlow())
    expectEqualStrategies(problem, /*withoutDistance=*/true,
                          /*withoutAny=*/true);
  problem->limits.sees.clear();
  problem->limits.depth = isSlow() ? 6 : 5;
  expectEqualStrategies(problem, /*withoutDistance=*/true, isSlow());
}

/// A copy of the large space that can be listed: three weights, two merges and
/// all kinds of steps, for one small layer.
TEST_F(SpacesTest, ASmallLargeSpaceIsTheSameByAllAlgorithms) {
  std::shared_ptr<SearchProblem> problem = load("large.mlir");
  problem->budget = {};
  problem->limits.reduce = 3;
  problem->limits.shiftBackward = true;
  problem->limits.depth = isSlow() ? 6 : 5;
  expectEqualStrategies(problem, /*withoutDistance=*/true, /*withoutAny=*/true);
}

/// What is remembered stays below the limit, and is only for speed.
TEST_F(SpacesTest, MemoryIsBounded) {
  std::shared_ptr<SearchProblem> problem = load("syno-test.mlir");
  GraphStateOptions options;
  options.maxDistanceBytes = size_t(1) << 17;
  Enumerator bounded(makeGraphState(problem, options), {});
  EXPECT_EQ(bounded.run(), Enumerator::Status::Complete);
  EXPECT_EQ(bounded.getStatistics().solutions, 1362u);
  DistanceStatistics statistics = getDistanceStatistics(bounded.getRoot());
  EXPECT_LE(statistics.numBytes, options.maxDistanceBytes);
  Enumerator free(makeGraphState(problem), {});
  free.run();
  EXPECT_GT(getDistanceStatistics(free.getRoot()).numBytes,
            options.maxDistanceBytes);
  EXPECT_LT(getDistanceStatistics(free.getRoot()).computed,
            statistics.computed);
  // The tree.
  Enumerator::Options few;
  few.maxBytes = size_t(1) << 19;
  Enumerator large(makeGraphState(load("syno-resnet18.mlir")), few);
  EXPECT_EQ(large.run(), Enumerator::Status::OutOfMemory);
  EXPECT_LE(large.getNumBytes(), few.maxBytes);
  EXPECT_GT(large.getStatistics().solutions, 500u);
}

TEST_F(SpacesTest, SynoResnet18IsTheSameByAllAlgorithms) {
  expectEqualStrategies(load("syno-resnet18.mlir"), false, true);
}

TEST_F(SpacesTest, DeeperSynoResnet18IsTheSameWithATable) {
  std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
  problem->limits.depth = 14;
  Enumeration ordered(problem, {});
  ordered.run();
  EXPECT_GT(ordered.keys.size(), 20000u);
  GraphStateOptions options;
  options.useOrdering = false;
  Enumeration table(problem, options, /*useTable=*/true);
  table.run();
  EXPECT_EQ(table.keys, ordered.keys);
}

TEST_F(SpacesTest, CountsAreKnown) {
  Enumeration test(load("syno-test.mlir"), {});
  test.run();
  EXPECT_EQ(test.keys.size(), 1362u);
  auto count = [&](unsigned depth) {
    std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
    problem->limits.depth = depth;
    Enumeration resnet(problem, {});
    resnet.run();
    return resnet.keys.size();
  };
  EXPECT_EQ(count(12), 13965u);
  EXPECT_EQ(count(14), 22643u);
  // The other limits leave no more.
  if (isSlow())
    EXPECT_EQ(count(16), 22643u);
}

/// docs/internals/search-space-counts.md has them.
TEST_F(SpacesTest, CountsWithPropertiesAreKnown) {
  std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
  Size window = llvm::cantFail(parseSize("k1", problem->symbols));
  problem->limits.sees = {window, window};
  Enumeration seeing(problem, {});
  seeing.run();
  EXPECT_EQ(seeing.keys.size(), 527u);
  problem->limits.reaches = 2;
  Enumeration both(problem, {});
  both.run();
  EXPECT_EQ(both.keys.size(), 522u);
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// The named operators of the ResNet-18 space, by their steps.
static std::vector<std::pair<std::string, uint64_t>>
writeNamedOperators(std::shared_ptr<const SearchProblem> problem) {
  std::vector<std::pair<std::string, uint64_t>> named;
  enum Kind { Operator1, Operator2, Grouped };
  for (Kind kind : {Operator1, Operator2, Grouped}) {
    OperatorWriter writer(problem);
    ExprId o = writer.output(0), h = writer.output(1), w = writer.output(2);
    ExprId i = writer.reduce("k1"), j = writer.reduce("k1");
    ExprId t = writer.reduce("Cout/(g*s)"), g = writer.reduce("g");
    ExprId c = writer.reduce("Cin/g");
    switch (kind) {
    case Operator1:
      writer.contract({i, t, g, j}, {o});
      writer.contract({g, j, c}, {t});
      break;
    case Operator2:
      writer.contract({i, t, g}, {o});
      writer.contract({g, j, c}, {t});
      break;
    case Grouped:
      writer.contract({g, t}, {o});
      writer.contract({i, j, g, c}, {t});
      break;
    }
    writer.split(g, c);
    ExprId u = writer.unfold(h, i);
    if (kind == Operator2)
      writer.shift(u);
    writer.unfold(w, j);
    constexpr const char *names[] = {"Operator 1", "Operator 2",
                                     "Conv2d_group_oas"};
    named.emplace_back(names[kind], writer.finish());
  }
  OperatorWriter kernel(problem);
  ExprId o = kernel.output(0), h = kernel.output(1), w = kernel.output(2);
  ExprId s = kernel.reduce("s"), k = kernel.reduce("k1");
  ExprId c = kernel.reduce("Cin");
  auto [q, r] = kernel.merge(kernel.shift(kernel.split(h, s)), "s");
  kernel.contract({k, c}, {o, r});
  kernel.unfold(w, k);
  named.emplace_back("kernel_07923", kernel.finish());
  OperatorWriter conv(problem);
  o = conv.output(0), h = conv.output(1), w = conv.output(2);
  ExprId i = conv.reduce("k1"), j = conv.reduce("k1");
  c = conv.reduce("Cin");
  conv.contract({i, j, c}, {o});
  conv.unfold(h, i);
  conv.unfold(w, j);
  named.emplace_back("conv2d", conv.finish());
  return named;
}

TEST_F(SpacesTest, NamedOperatorsAreMembers) {
  std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
  // The dense convolution is what the budget excludes.
  problem->budget = {};
  Enumeration enumeration(problem, {});
  enumeration.run();
  for (const auto &[name, key] : writeNamedOperators(problem))
    EXPECT_TRUE(enumeration.keys.contains(key)) << name;
}

//===----------------------------------------------------------------------===//
// Distance and costs
//===----------------------------------------------------------------------===//

/// Along the ways to an operator the distance is never more than the steps that
/// follow. Counts the states.
static uint64_t checkDistance(std::shared_ptr<const SearchProblem> problem,
                              const GraphStateOptions &options,
                              uint64_t wanted) {
  uint64_t states = 0, wrong = 0;
  Enumeration enumeration(problem, options);
  auto check = [&](llvm::ArrayRef<std::unique_ptr<GraphState>> path) {
    // The last move, the end, is no step.
    int steps = static_cast<int>(path.size()) - 2;
    unsigned reductions = path.back()->getData().counts[ReduceMove];
    for (const auto &state : path.drop_back()) {
      // It knows nothing of reductions that are still to come.
      if (state->getData().counts[ReduceMove] == reductions) {
        std::optional<int> distance = state->getDistance();
        wrong += !distance || *distance > steps;
        ++states;
      }
      --steps;
    }
    enumeration.isStopped = states >= wanted;
  };
  enumeration.onPath = check;
  enumeration.run();
  EXPECT_EQ(wrong, 0u);
  return states;
}

/// On ways that were found without it.
TEST_F(SpacesTest, TheDistanceIsNeverTooLarge) {
  GraphStateOptions options;
  options.useDistance = options.useTwins = options.useBudget = false;
  auto test = load("syno-test.mlir"), resnet = load("syno-resnet18.mlir");
  test->limits.depth = isSlow() ? 12 : 7;
  resnet->limits.depth = 5;
  auto small = std::make_shared<SearchProblem>(*parse(conv1d));
  small->limits.depth = isSlow() ? 7 : 5;
  EXPECT_GE(checkDistance(test, options, UINT64_MAX), 100u);
  EXPECT_GE(checkDistance(resnet, options, UINT64_MAX), 1u);
  options.useOrdering = false;
  EXPECT_GE(checkDistance(small, options, UINT64_MAX), 100u);
}

namespace {
/// Visits every state once, in any order of moves and without the distance, and
/// finds the fewest steps from each to an operator.
class ShortestWays {
public:
  explicit ShortestWays(std::shared_ptr<const SearchProblem> problem)
      : space(std::make_shared<GraphSpace>(std::move(problem), getOptions())) {}

  void run() { visit(GraphState(space)); }

  static constexpr int never = 99;
  uint64_t states = 0, alive = 0, wrong = 0, passed = 0, exact = 0;

private:
  static GraphStateOptions getOptions() {
    GraphStateOptions options;
    options.useDistance = options.useOrdering = options.useTwins =
        options.useBudget = false;
    return options;
  }

  int visit(const GraphState &state) {
    auto [known, isNew] = steps.try_emplace(state.key(), never);
    if (!isNew)
      return known->second;
    llvm::SmallVector<Move, 32> moves;
    state.getMoves(moves);
    // The distance knows nothing of reductions that are still to come.
    int least = never, withReductions = never;
    for (Move move : moves) {
      if (move.kind == FinishMove) {
        least = 0;
        continue;
      }
      GraphState next(state);
      next.apply(move);
      int rest = std::min(visit(next) + 1, never);
      (move.kind == ReduceMove ? withReductions : least) =
          std::min(move.kind == ReduceMove ? withReductions : least, rest);
    }
    std::optional<int> distance = state.getDistance();
    ++states;
    alive += least < never;
    wrong += least < never && (!distance || *distance > least);
    exact += least < never && distance == least;
    passed += least == never && distance;
    return steps[state.key()] = std::min(least, withReductions);
  }

  std::shared_ptr<GraphSpace> space;
  std::unordered_map<uint64_t, int> steps;
};
} // namespace

/// The problem, with windows to see along all axes.
static std::shared_ptr<SearchProblem>
see(std::shared_ptr<SearchProblem> problem, llvm::StringRef window) {
  problem->limits.sees.assign(
      problem->getAxes().size(),
      llvm::cantFail(parseSize(window, problem->symbols)));
  return problem;
}

/// On all states of several spaces, found without it: a million when slow.
TEST_F(SpacesTest, TheDistanceIsNeverMoreThanTheFewestSteps) {
  struct Case {
    std::shared_ptr<SearchProblem> problem;
    unsigned quickDepth, depth;
  };
  auto merging = load("syno-test.mlir");
  merging->limits.merge = 3;
  Case cases[] = {
      {load("syno-test.mlir"), 4, 7},
      {merging, 4, 6},
      {std::make_shared<SearchProblem>(*parse(conv1d)), 4, 5},
      {std::make_shared<SearchProblem>(*parse(strided)), 3, 5},
      {std::make_shared<SearchProblem>(*parse(views)), 4, 5},
      {std::make_shared<SearchProblem>(*parse(twoMerges)), 3, 5},
      {see(std::make_shared<SearchProblem>(*parse(conv1d)), "k"), 4, 5},
      {see(std::make_shared<SearchProblem>(*parse(oneAxis)), "k"), 5, 7},
  };
  uint64_t states = 0;
  for (Case &test : cases) {
    // More operators, more states that lead to one.
    test.problem->budget = {};
    test.problem->limits.depth = isSlow() ? test.depth : test.quickDepth;
    ShortestWays ways(test.problem);
    ways.run();
    EXPECT_EQ(ways.wrong, 0u);
    llvm::outs() << "states " << ways.states << ", alive " << ways.alive
                 << ", of these exact " << ways.exact << ", dead but passed "
                 << ways.passed << "\n";
    states += ways.states;
  }
  EXPECT_GE(states, isSlow() ? 1000000u : 2000u);
}

/// On the ways to operators of a large space, in all orders of moves.
TEST_F(SpacesTest, TheDistanceIsNeverTooLargeInAnyOrder) {
  GraphStateOptions options;
  options.useOrdering = options.useTwins = false;
  uint64_t wanted = isSlow() ? 1000000 : 20000;
  EXPECT_GE(checkDistance(load("syno-resnet18.mlir"), options, wanted), wanted);
}

/// Bounds on FLOPs cut states only, no operator.
TEST_F(SpacesTest, BoundsOnFlopsLoseNothing) {
  std::shared_ptr<SearchProblem> problem = load("syno-resnet18.mlir");
  if (!isSlow())
    problem->limits.depth = 9;
  Enumeration bounded(problem, {});
  bounded.run();
  GraphStateOptions options;
  options.useBudget = false;
  Enumeration unbounded(problem, options);
  unbounded.run();
  EXPECT_EQ(bounded.keys, unbounded.keys);
  EXPECT_GT(bounded.keys.size(), 1000u);
  EXPECT_LT(bounded.expansions, unbounded.expansions);
}
