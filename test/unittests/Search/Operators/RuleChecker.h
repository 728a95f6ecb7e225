//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States of one space with generous limits, and what the rules say of them.
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
constexpr GraphStateOptions onlyRules = {.useDistance = false,
                                         .useBudget = false,
                                         .useOrdering = false,
                                         .useTwins = false};

/// A state of the space, and whether a move is made there. The coordinates of
/// the output are a channel and two positions.
class RuleChecker : public OperatorWriter {
public:
  explicit RuleChecker(std::shared_ptr<const SearchProblem> problem,
                       const GraphStateOptions &options = onlyRules)
      : OperatorWriter(problem, options), d(output(0)), h(output(1)),
        w(output(2)) {}

  bool merges(ExprId whole, llvm::StringRef block) {
    return canMerge(space, state, get(whole)) &&
           canMergeBy(space, state, get(whole), size(block));
  }
  bool unfolds(ExprId base, ExprId window) {
    return canUnfold(space, state, get(base), get(window));
  }
  bool splits(ExprId outer, ExprId inner) {
    return canSplit(space, state, get(outer), get(inner));
  }
  bool shifts(ExprId base, bool isBackward = false) {
    return canShift(space, get(base), isBackward);
  }
  bool strides(ExprId base) {
    return canStride(space, state, get(base), size("s"));
  }
  bool takesRenamed(llvm::ArrayRef<ExprId> taken,
                    llvm::ArrayRef<ExprId> shared) {
    return takesRenamedShift(space, state, getContractCode(shared, taken));
  }
  bool takesDetermined(llvm::ArrayRef<ExprId> taken,
                       llvm::ArrayRef<ExprId> shared) {
    return isDetermined(space, state, getContractCode(shared, taken));
  }
  bool takesSummed(llvm::ArrayRef<ExprId> taken,
                   llvm::ArrayRef<ExprId> shared) {
    return takesSummedShift(space, state, getContractCode(shared, taken));
  }
  bool expands(ExprId coord) { return canExpand(space, state, get(coord)); }

  /// Whether the search lists the move.
  bool listsReduce(llvm::StringRef size) {
    return lists(ReduceMove, getReduceCode(size));
  }
  bool contracts(llvm::ArrayRef<ExprId> shared, llvm::ArrayRef<ExprId> taken) {
    return lists(ContractMove, getContractCode(shared, taken));
  }
  bool listsShift(ExprId base) { return lists(ShiftMove, find(base) << 8); }
  bool listsMerge(ExprId whole, llvm::StringRef block) {
    const SizeId *id =
        llvm::find(space.sizes.getBlocks(get(whole).size), size(block));
    uint32_t low = id - space.sizes.getBlocks(get(whole).size).begin();
    return lists(MergeMove, find(whole) << 8 | low);
  }

  ExprId d, h, w;
};

/// A fresh state, and more of them under other limits.
class RulesTest : public ProblemTest, public RuleChecker {
protected:
  RulesTest() : RulesTest(rulesSpace) {}
  explicit RulesTest(llvm::StringRef text) : RuleChecker(parse(text)) {}

  /// The space with other limits.
  std::shared_ptr<SearchProblem>
  vary(llvm::function_ref<void(SearchProblem &)> change) {
    auto problem = std::make_shared<SearchProblem>(*space.problem);
    change(*problem);
    return problem;
  }
  std::shared_ptr<SearchProblem>
  limit(llvm::function_ref<void(SpaceLimits &)> change) {
    return vary([&](SearchProblem &problem) { change(problem.limits); });
  }
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_RULECHECKER_H
