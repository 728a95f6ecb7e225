//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States of one space with generous limits, and what the rules allow of them.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_RULECHECKER_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_RULECHECKER_H

#include "GraphWeightRules.h"
#include "OperatorWriter.h"
#include "Problems.h"

namespace kas {

inline constexpr llvm::StringLiteral rulesSpace = R"(
kas.space @rules<N, C, D, H | k, s, g>
    [N, D unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 24, D = 36, H = 30, k = 5, s = 2, g = 3>]
    limits {depth = 16, chain = 100, reduce = 6, split = 6, merge = 4, shift = 4,
            unfold = 4, expand = 4, stride = 2, weights = 3, stride_size = 40,
            weight_takes = 0, weight_shares = 0, rank_max = 100, pooling = 4,
            size_symbols = 3, reduce_ratio = 1000, window = 9,
            occurrences.C = 3, occurrences.D = 3, occurrences.H = 3,
            occurrences.k = 4, occurrences.s = 4, occurrences.g = 4}
)";

/// Nothing but the rules decides on a move.
constexpr search::GraphStateOptions onlyRules = {.useDistance = false,
                                                 .useBudget = false,
                                                 .useOrdering = false,
                                                 .useTwins = false};

/// A state of the space, and whether a move is made there. The coordinates of
/// the output are a channel and two positions.
class RuleChecker : public OperatorWriter {
public:
  explicit RuleChecker(std::shared_ptr<const search::SearchProblem> problem,
                       const search::GraphStateOptions &options = onlyRules)
      : OperatorWriter(problem, options), d(output(0)), h(output(1)),
        w(output(2)) {}

  bool merges(search::ExprId whole, llvm::StringRef block) {
    return canMerge(space, state, get(whole)) &&
           canMergeBy(space, state, get(whole), size(block));
  }
  bool unfolds(search::ExprId base, search::ExprId window) {
    return canUnfold(space, state, get(base), get(window));
  }
  bool splits(search::ExprId outer, search::ExprId inner) {
    return canSplit(space, state, get(outer), get(inner));
  }
  bool shifts(search::ExprId base, bool isBackward = false) {
    return canShift(space, get(base), isBackward);
  }
  bool strides(search::ExprId base) {
    return canStride(space, state, get(base), size("s"));
  }
  bool takesRenamed(llvm::ArrayRef<search::ExprId> taken,
                    llvm::ArrayRef<search::ExprId> shared) {
    return takesRenamedShift(space, state, getContractCode(shared, taken));
  }
  bool takesDetermined(llvm::ArrayRef<search::ExprId> taken,
                       llvm::ArrayRef<search::ExprId> shared) {
    return isDetermined(space, state, getContractCode(shared, taken));
  }
  bool takesSummed(llvm::ArrayRef<search::ExprId> taken,
                   llvm::ArrayRef<search::ExprId> shared) {
    return takesSummedShift(space, state, getContractCode(shared, taken));
  }
  bool takesFullRank(llvm::ArrayRef<search::ExprId> taken,
                     llvm::ArrayRef<search::ExprId> shared) {
    return makesFullRank(space, state, getContractCode(shared, taken));
  }
  bool takesAbsorbedRank(llvm::ArrayRef<search::ExprId> taken,
                         llvm::ArrayRef<search::ExprId> shared) {
    return absorbsRank(space, state, getContractCode(shared, taken));
  }
  bool takesFullCarry(llvm::ArrayRef<search::ExprId> taken,
                      llvm::ArrayRef<search::ExprId> shared) {
    return makesFullCarry(space, state, getContractCode(shared, taken));
  }
  bool hasFullWindows() { return kas::search::hasFullWindows(space, state); }
  bool expands(search::ExprId coord) {
    return canExpand(space, state, get(coord));
  }

  /// Whether the search lists the move.
  bool listsReduce(llvm::StringRef size) {
    return lists(search::ReduceMove, getReduceCode(size));
  }
  bool contracts(llvm::ArrayRef<search::ExprId> shared,
                 llvm::ArrayRef<search::ExprId> taken) {
    return lists(search::ContractMove, getContractCode(shared, taken));
  }
  bool listsShift(search::ExprId base) {
    return lists(search::ShiftMove, find(base) << 8);
  }
  bool listsMerge(search::ExprId whole, llvm::StringRef block) {
    const search::SizeId *id =
        llvm::find(space.sizes.getBlocks(get(whole).size), size(block));
    uint32_t low = id - space.sizes.getBlocks(get(whole).size).begin();
    return lists(search::MergeMove, find(whole) << 8 | low);
  }

  search::ExprId d, h, w;
};

/// A fresh state, and more of them under other limits.
class RulesTest : public ProblemTest, public RuleChecker {
protected:
  RulesTest() : RulesTest(rulesSpace) {}
  explicit RulesTest(llvm::StringRef text) : RuleChecker(parse(text)) {}

  /// The space with other limits.
  std::shared_ptr<search::SearchProblem>
  vary(llvm::function_ref<void(search::SearchProblem &)> change) {
    auto problem = std::make_shared<search::SearchProblem>(*space.problem);
    change(*problem);
    return problem;
  }
  std::shared_ptr<search::SearchProblem>
  limit(llvm::function_ref<void(search::SpaceLimits &)> change) {
    return vary(
        [&](search::SearchProblem &problem) { change(problem.limits); });
  }
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_RULECHECKER_H
