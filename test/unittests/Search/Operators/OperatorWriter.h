//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States and operators of the search, step by step.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_OPERATORWRITER_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_OPERATORWRITER_H

#include "GraphRules.h"
#include "gtest/gtest.h"

namespace kas {

/// Makes the steps of an operator whether the rules allow them or not.
class OperatorWriter {
public:
  explicit OperatorWriter(std::shared_ptr<const search::SearchProblem> problem,
                          const search::GraphStateOptions &options = {})
      : space(problem, options) {
    search::GraphState root(std::shared_ptr<search::GraphSpace>(
        &space, [](search::GraphSpace *) {}));
    state.assign(root.getData());
  }

  /// Coordinates are named by the expressions they are.
  search::ExprId output(unsigned index) { return state.live[index].expr; }
  search::ExprId reduce(llvm::StringRef size) {
    apply(search::ReduceMove, getReduceCode(size));
    return state.getLive().back().expr;
  }
  void contract(llvm::ArrayRef<search::ExprId> shared,
                llvm::ArrayRef<search::ExprId> taken) {
    apply(search::ContractMove, getContractCode(shared, taken));
  }
  search::ExprId split(search::ExprId a, search::ExprId b) {
    return binary(search::SplitMove, a, b);
  }
  search::ExprId unfold(search::ExprId a, search::ExprId b) {
    return binary(search::UnfoldMove, a, b);
  }
  search::ExprId shift(search::ExprId a) {
    unsigned index = find(a);
    apply(search::ShiftMove, index << 8);
    return state.live[index].expr;
  }
  std::pair<search::ExprId, search::ExprId> merge(search::ExprId a,
                                                  llvm::StringRef block) {
    unsigned index = find(a);
    search::SizeId id = size(block);
    llvm::ArrayRef<search::SizeId> blocks =
        space.sizes.getBlocks(state.live[index].size);
    apply(search::MergeMove,
          index << 8 | (llvm::find(blocks, id) - blocks.begin()));
    return {state.live[index].expr, state.getLive().back().expr};
  }
  search::ExprId stride(search::ExprId a, llvm::StringRef factor) {
    unsigned index = find(a);
    llvm::ArrayRef<search::SizeId> factors = space.distance.getStrideFactors();
    apply(search::StrideMove,
          index << 8 | (llvm::find(factors, size(factor)) - factors.begin()));
    return state.live[index].expr;
  }
  void expand(search::ExprId a) { apply(search::ExpandMove, find(a) << 8); }
  search::ExprId shiftBack(search::ExprId a) {
    unsigned index = find(a);
    apply(search::ShiftMove, index << 8 | 1);
    return state.live[index].expr;
  }
  uint64_t finish() {
    apply(search::FinishMove, 0);
    return state.finalKey;
  }

  const search::LiveCoord &get(search::ExprId expr) {
    return state.live[find(expr)];
  }
  search::SizeId size(llvm::StringRef text) {
    return space.sizes.intern(
        llvm::cantFail(parseSize(text, space.problem->symbols)));
  }

  /// Whether the search makes this move here.
  bool lists(unsigned kind, uint32_t code) {
    bool isListed = false;
    forEachMove(space, state, kind, kind, code, [&](search::Move move) {
      isListed = move.code == code;
      return true;
    });
    return isListed;
  }
  unsigned countMoves(unsigned kind) {
    unsigned count = 0;
    forEachMove(space, state, kind, kind, 0, [&](search::Move) {
      ++count;
      return false;
    });
    return count;
  }

  search::GraphSpace space;
  search::GraphStateData state;

protected:
  uint32_t getReduceCode(llvm::StringRef text) {
    return llvm::find(space.reduceSizes, size(text)) -
           space.reduceSizes.begin();
  }
  uint32_t getContractCode(llvm::ArrayRef<search::ExprId> shared,
                           llvm::ArrayRef<search::ExprId> taken) {
    uint32_t code = 0;
    for (search::ExprId coord : shared)
      code |= search::Shared << (2 * find(coord));
    for (search::ExprId coord : taken)
      code |= search::Taken << (2 * find(coord));
    return code;
  }
  unsigned find(search::ExprId expr) {
    for (auto [index, coord] : llvm::enumerate(state.getLive()))
      if (coord.expr == expr)
        return index;
    ADD_FAILURE() << "no such coordinate";
    return 0;
  }

private:
  search::ExprId binary(unsigned kind, search::ExprId a, search::ExprId b) {
    unsigned first = find(a), second = find(b);
    apply(kind, first << 8 | second);
    return state.live[first - (second < first)].expr;
  }
  void apply(unsigned kind, uint32_t code) {
    applyMove(space, state, kind, code, getMoveKey(space, state, kind, code));
  }
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_OPERATORWRITER_H
