//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties as limits: what the search lists with them is what it lists
// without, less the operators that do not have them by brute force.
//
//===----------------------------------------------------------------------===//

#include "Enumeration.h"
#include "Problems.h"
#include "PropertyOracle.h"

using namespace kas;
using namespace kas::search;

namespace {

using PropertiesTest = ProblemTest;

using Facts = PropertyOracle::Facts;
using Windows = llvm::ArrayRef<Size>;

/// One or more properties, as limits and as what the oracle says.
struct Case {
  const char *name;
  void (*set)(SpaceLimits &limits, Windows windows);
  bool (*holds)(const Facts &facts);
};
const Case cases[] = {
    {"sees",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.assign(windows.begin(), windows.end());
     },
     [](const Facts &facts) { return facts.sees; }},
    {"reaches = 1", [](SpaceLimits &limits, Windows) { limits.reaches = 1; },
     [](const Facts &facts) { return facts.reachesInOne; }},
    {"reaches = 2", [](SpaceLimits &limits, Windows) { limits.reaches = 2; },
     [](const Facts &facts) { return facts.reachesInTwo; }},
    {"sees all",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.resize(windows.size());
     },
     [](const Facts &facts) { return facts.seesAll; }},
    {"sees all of the first axis",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.assign(windows.begin(), windows.end());
       limits.sees.front() = std::nullopt;
     },
     [](const Facts &facts) { return facts.seesAllOfFirst; }},
    {"equivariant",
     [](SpaceLimits &limits, Windows windows) {
       limits.equivariant.assign(windows.size(), Translations::ZeroPadded);
     },
     [](const Facts &facts) { return facts.isZeroPadded; }},
    {"cyclic",
     [](SpaceLimits &limits, Windows windows) {
       limits.equivariant.assign(windows.size(), Translations::Cyclic);
     },
     [](const Facts &facts) { return facts.isCyclic; }},
    {"cyclic along the first axis",
     [](SpaceLimits &limits, Windows windows) {
       limits.equivariant.assign(windows.size(), Translations::None);
       limits.equivariant.front() = Translations::Cyclic;
     },
     [](const Facts &facts) { return facts.isCyclicAlongFirst; }},
    {"any_grid", [](SpaceLimits &limits, Windows) { limits.anyGrid = true; },
     [](const Facts &facts) { return facts.fitsAnyGrid; }},
    {"sees all on any grid",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.resize(windows.size());
       limits.anyGrid = true;
     },
     [](const Facts &facts) { return facts.seesAll && facts.fitsAnyGrid; }},
    {"one_product",
     [](SpaceLimits &limits, Windows) { limits.oneProduct = true; },
     [](const Facts &facts) { return facts.hasOneProduct; }},
    {"linear_path",
     [](SpaceLimits &limits, Windows) { limits.linearPath = true; },
     [](const Facts &facts) { return facts.isLinear; }},
    {"causal", [](SpaceLimits &limits, Windows) { limits.causal = true; },
     [](const Facts &facts) { return facts.isCausal; }},
    {"sees and causal",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.assign(windows.begin(), windows.end());
       limits.causal = true;
     },
     [](const Facts &facts) { return facts.sees && facts.isCausal; }},
    {"sees and reaches",
     [](SpaceLimits &limits, Windows windows) {
       limits.sees.assign(windows.begin(), windows.end());
       limits.reaches = 2;
     },
     [](const Facts &facts) { return facts.sees && facts.reachesInTwo; }},
};

/// How many operators of all spaces have a property, and how many do not.
struct Total {
  size_t with = 0, without = 0;
};
std::map<std::string, Total> totals;

/// Spaces, and the text of the window that their operators must see: layers,
/// groups, strides, images without and with axes that may be exchanged,
/// windows from carries without unfolds, windows below merges, windows that
/// look back or wrap around, and mixing along an axis by position and by
/// distance.
const struct {
  const char *text, *window;
} spaces[] = {
    {R"(
kas.space @conv1d<N, Cin, Cout, W | k, g>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 4, Cout = 4, W = 6, k = 3, g = 2>,
              <N = 1, Cin = 4, Cout = 6, W = 7, k = 3, g = 2>]
    limits {depth = 6, reduce = 3, weights = 2, shift = 2, merge = 1,
            rank_max = 2, unfold_ratio = 1.5}
)",
     "k"},
    {R"(
kas.space @grouped<N, C, W | g>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 8, W = 4, g = 2>]
    limits {depth = 5, reduce = 2, weights = 2, shift = 1, merge = 2, split = 3,
            unfold = 0, rank_max = 4, occurrences.W = 1, weight_takes = 0}
)",
     "3"},
    {R"(
kas.space @strided<N, C, D, H | k, s>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 4, D = 4, H = 10, k = 3, s = 2>]
    limits {depth = 7, reduce = 3, stride = 1, unfold = 1, shift = 1, merge = 1,
            unfold_ratio = 1.5, occurrences.H = 1, weights = 1}
)",
     "k"},
    {R"(
kas.space @images<N, C, H | k>
    [N, C unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 2, H = 5, k = 3>]
    limits {depth = 6, reduce = 3, unfold = 2, shift = 2, merge = 0, split = 1,
            unfold_ratio = 1.5, weights = 1, weight_takes = 0, swap_axes = 0}
)",
     "k"},
    {R"(
kas.space @images<N, C, H | k>
    [N, C unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 2, H = 5, k = 3>]
    limits {depth = 6, reduce = 3, unfold = 2, shift = 2, merge = 0, split = 1,
            unfold_ratio = 1.5, weights = 1, weight_takes = 0, swap_axes = 1}
)",
     "k"},
    {R"(
kas.space @carries<N, C, H | s>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 6, s = 3>]
    limits {depth = 8, reduce = 2, unfold = 0, shift = 2, merge = 2, split = 2,
            weights = 1, weight_takes = 0, shift_block = 4, pooling = 9}
)",
     "s"},
    {R"(
kas.space @merged<N, C, H | k, s>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 12, k = 3, s = 2>]
    limits {depth = 7, reduce = 2, unfold = 1, shift = 1, merge = 2, split = 2,
            weights = 1, weight_takes = 0, unfold_ratio = 1.5, shift_block = 2,
            occurrences.s = 2, occurrences.k = 1, shift_backward = 0}
)",
     "k"},
    {R"(
kas.space @sequence<N, C, D, T | k, g>
    [N, D unordered, T] from [N, C unordered, T]
    bindings [<N = 1, C = 4, D = 4, T = 6, k = 3, g = 2>,
              <N = 1, C = 4, D = 6, T = 7, k = 3, g = 2>]
    limits {depth = 6, reduce = 3, weights = 2, shift = 1, merge = 1,
            rank_max = 2, unfold_ratio = 1.5, look_back = 1}
)",
     "k"},
    {R"(
kas.space @strided_sequence<N, C, D, T | k, s>
    [N, D unordered, T/s] from [N, C unordered, T]
    bindings [<N = 1, C = 4, D = 4, T = 10, k = 3, s = 2>]
    limits {depth = 7, reduce = 3, stride = 1, unfold = 1, shift = 1, merge = 1,
            unfold_ratio = 1.5, occurrences.T = 1, weights = 1, look_back = 1}
)",
     "k"},
    {R"(
kas.space @circle<N, C, D, T | k, g>
    [N, D unordered, T] from [N, C unordered, T]
    bindings [<N = 1, C = 4, D = 4, T = 6, k = 3, g = 2>,
              <N = 1, C = 4, D = 6, T = 7, k = 3, g = 2>]
    limits {depth = 6, reduce = 3, weights = 2, shift = 1, merge = 1,
            rank_max = 2, unfold_ratio = 1.5, cyclic = 1}
)",
     "k"},
    {R"(
kas.space @torus<N, C, H | k>
    [N, C unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 2, H = 5, k = 3>]
    limits {depth = 6, reduce = 3, unfold = 2, shift = 1, merge = 0, split = 1,
            unfold_ratio = 1.5, weights = 1, weight_takes = 0, cyclic = 1}
)",
     "k"},
    {R"(
kas.space @mixed<N, C, H | k>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 5, k = 3>, <N = 1, C = 3, H = 6, k = 3>]
    limits {depth = 6, reduce = 2, unfold = 2, shift = 1, merge = 0, split = 1,
            expand = 1, unfold_ratio = 0.5, window = 6, weights = 2,
            weight_takes = 0, occurrences.H = 3}
)",
     "k"},
    {R"(
kas.space @strided_mixing<N, C, H | k, s>
    [N, C unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 9, k = 3, s = 3>]
    limits {depth = 5, reduce = 2, stride = 1, unfold = 1, shift = 0, merge = 0,
            split = 1, expand = 1, unfold_ratio = 0.5, window = 9, weights = 1,
            weight_takes = 0, occurrences.H = 3}
)",
     "k"},
    {R"(
kas.space @mixed_axes<N, C, H, W | k>
    [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 2, H = 4, W = 5, k = 3>]
    limits {depth = 5, reduce = 2, unfold = 1, shift = 1, merge = 0, split = 0,
            unfold_ratio = 1, weights = 1, weight_takes = 0, occurrences.H = 2,
            occurrences.W = 1}
)",
     "k"},
};

} // namespace

static void expectEqualLists(mlir::MLIRContext &context,
                             std::shared_ptr<const SearchProblem> problem,
                             const char *window) {
  PropertyOracle oracle(context, problem);
  llvm::SmallVector<Size> windows(
      problem->getAxes().size(),
      llvm::cantFail(parseSize(window, problem->symbols)));
  std::map<uint64_t, Facts> facts;
  Enumeration all(problem, {});
  auto describe = [&](const GraphState &state) {
    facts[state.key()] = oracle.describe(
        static_cast<const OperatorGraph &>(*state.getSolution()), windows);
  };
  all.onOperator = describe;
  all.run();
  for (const Case &entry : cases) {
    SCOPED_TRACE(entry.name);
    std::set<uint64_t> expected;
    for (auto &[key, known] : facts)
      if (entry.holds(known))
        expected.insert(key);
    auto limited = std::make_shared<SearchProblem>(*problem);
    entry.set(limited->limits, windows);
    Enumeration some(limited, {});
    some.run();
    EXPECT_TRUE(some.keys == expected)
        << some.keys.size() << " of " << facts.size() << " operators, "
        << expected.size() << " expected";
    EXPECT_LE(some.expansions, all.expansions);
    // The same whatever way leads to an operator.
    GraphStateOptions options;
    options.useOrdering = options.useTwins = false;
    Enumeration plain(limited, options, /*useTable=*/true);
    plain.run();
    EXPECT_TRUE(plain.keys == expected) << plain.keys.size();
    totals[entry.name].with += expected.size();
    totals[entry.name].without += facts.size() - expected.size();
    if (std::getenv("KAS_PRINT_COUNTS"))
      llvm::errs() << entry.name << ": " << facts.size() << " -> "
                   << some.keys.size() << " (" << all.expansions << " -> "
                   << some.expansions << " states)\n";
  }
}

TEST_F(PropertiesTest, ListsAreThoseOfBruteForce) {
  for (auto [text, window] : spaces) {
    SCOPED_TRACE(text);
    expectEqualLists(context, parse(text), window);
  }
  for (const Case &entry : cases) {
    EXPECT_GT(totals[entry.name].with, 5u) << entry.name;
    EXPECT_GT(totals[entry.name].without, 5u) << entry.name;
  }
}
