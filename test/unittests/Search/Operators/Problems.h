//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Search problems in text, and their complete lists of solutions.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_PROBLEMS_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_PROBLEMS_H

#include "kas/Search/Core/RandomSearcher.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace kas {

/// Convolutions in one dimension: merges, splits, shifts, unfolds, two weights.
inline constexpr llvm::StringLiteral conv1d = R"(
kas.space @conv1d<N, Cin, Cout, W | k, g>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 2, Cin = 8, Cout = 12, W = 10, k = 3, g = 2>,
              <N = 1, Cin = 16, Cout = 8, W = 7, k = 3, g = 2> x 3]
    limits {depth = 7, reduce = 3, weights = 2, shift = 1, merge = 1}
    budget {flops = 100000}
)";

/// Strides, and an input that is not a bare symbol.
inline constexpr llvm::StringLiteral strided = R"(
kas.space @strided<N, C, D, H | k, s>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 6, D = 4, H = 12, k = 3, s = 2>]
    limits {depth = 6, reduce = 2, stride = 1, unfold = 1, shift = 1}
    budget {flops = 2000}
)";

/// Flattening, with every primitive but unfold and stride.
inline constexpr llvm::StringLiteral views = R"(
kas.space @views<A, B | g>
    [A*g, B] from [A, B*g]
    bindings [<A = 6, B = 8, g = 2>]
    limits {depth = 5, weights = 0, expand = 1, merge = 2, split = 2, reduce = 1}
)";

/// All solutions, in the order of `seed`.
inline std::vector<std::shared_ptr<const search::OperatorGraph>>
enumerate(std::shared_ptr<const search::SearchProblem> problem,
          uint64_t seed = 0, search::GraphStateOptions stateOptions = {}) {
  search::RandomSearcher::Options options;
  options.seed = seed;
  options.expansionsPerRollout = options.expansionsPerAsk = ~uint64_t(0) >> 1;
  search::RandomSearcher searcher(makeGraphState(problem, stateOptions),
                                  options);
  std::vector<std::shared_ptr<const search::OperatorGraph>> graphs;
  for (const search::Candidate &candidate : searcher.ask(1000000))
    graphs.push_back(std::static_pointer_cast<const search::OperatorGraph>(
        candidate.solution));
  EXPECT_TRUE(searcher.isExhausted());
  return graphs;
}

/// The problem of the only space in `text`.
class ProblemTest : public testing::Test {
protected:
  ProblemTest() { context.loadDialect<KasDialect>(); }

  std::shared_ptr<const search::SearchProblem> parse(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return std::make_shared<const search::SearchProblem>(
        search::SearchProblem::get(*module->getOps<SpaceOp>().begin()));
  }

  mlir::MLIRContext context;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_PROBLEMS_H
