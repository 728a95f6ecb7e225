//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpaceProof.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::search;
using namespace kas::test;

namespace {

/// Spaces so small that their operators can be counted by hand.
class BruteForceTest : public testing::Test {
protected:
  BruteForceTest() { context.loadDialect<KasDialect>(); }

  /// The numbers of operators and of classes in the only space of `text`.
  std::pair<uint64_t, size_t> count(llvm::StringRef text,
                                    BruteForceOptions options = {}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    auto problem = std::make_shared<const SearchProblem>(
        SearchProblem::get(*module->getOps<SpaceOp>().begin()));
    SpaceProof proof = proveSpace(problem, options);
    return {proof.statistics.operators,
            proof.count([](const OperatorClass &c) { return c.isFound(); })};
  }

  mlir::MLIRContext context;
};

} // namespace

/// Nothing, or a shift by 1 or -1.
TEST_F(BruteForceTest, Shifts) {
  EXPECT_EQ(count(R"(
    kas.space @shifts<N, H> [N, H] from [N, H] bindings [<N = 1, H = 5>]
      limits {depth = 3, weights = 0, reduce = 0, shift = 1, merge = 0,
              split = 0, unfold = 0})"),
            std::pair(uint64_t(3), size_t(3)));
  // One after the other: twice the same, or back.
  EXPECT_EQ(count(R"(
    kas.space @shifts<N, H> [N, H] from [N, H] bindings [<N = 1, H = 5>]
      limits {depth = 3, weights = 0, reduce = 0, shift = 2, merge = 0,
              split = 0, unfold = 0})"),
            std::pair(uint64_t(7), size_t(5)));
}

/// Nothing; or a merge by s or by H/s and a split of the halves in either
/// order, of which one order is nothing again.
TEST_F(BruteForceTest, MergesAndSplits) {
  EXPECT_EQ(count(R"(
    kas.space @views<N, H | s> [N, H] from [N, H]
      bindings [<N = 1, H = 6, s = 2>, <N = 1, H = 6, s = 3>]
      limits {depth = 3, weights = 0, reduce = 0, shift = 0, merge = 1,
              split = 1, unfold = 0, occurrences.s = 1})"),
            std::pair(uint64_t(5), size_t(3)));
}

/// A weight has the output channel, which the data cannot have, and the
/// reduction or not: a sum, or a dense layer. The reduction is the input's
/// size, as nothing else fits.
TEST_F(BruteForceTest, Weights) {
  constexpr llvm::StringLiteral dense = R"(
    kas.space @dense<N, C, D> [N, D unordered] from [N, C unordered]
      bindings [<N = 1, C = 3, D = 4>, <N = 1, C = 5, D = 2>]
      limits {depth = 2, weights = 1, reduce = 1, shift = 0, merge = 0,
              split = 0, unfold = 0})";
  EXPECT_EQ(count(dense), std::pair(uint64_t(2), size_t(2)));
}
