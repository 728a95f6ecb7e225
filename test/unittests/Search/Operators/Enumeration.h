//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Complete lists of spaces by plain recursion, without any driver.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_ENUMERATION_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_ENUMERATION_H

#include "GraphStateImpl.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <set>

namespace kas {

/// Visits every state below a root, depth first, in the order of moves.
class Enumeration {
public:
  /// `useTable`: no key twice, which replaces the ordering rule.
  Enumeration(std::shared_ptr<const search::SearchProblem> problem,
              const search::GraphStateOptions &options, bool useTable = false)
      : space(
            std::make_shared<search::GraphSpace>(std::move(problem), options)),
        useTable(useTable) {}

  void run() {
    path.push_back(std::make_unique<search::GraphState>(space));
    visit(0);
    path.clear();
  }

  std::shared_ptr<search::GraphSpace> space;
  /// Called for each operator that is new, and for each way to one.
  llvm::function_ref<void(const search::GraphState &)> onOperator = nullptr;
  llvm::function_ref<void(llvm::ArrayRef<std::unique_ptr<search::GraphState>>)>
      onPath = nullptr;
  std::set<uint64_t> keys;
  uint64_t expansions = 0, finals = 0;
  bool isStopped = false;

private:
  void visit(unsigned depth) {
    const search::GraphState &state = *path[depth];
    if (state.isTerminal()) {
      ++finals;
      if (onPath)
        onPath(llvm::ArrayRef(path).take_front(depth + 1));
      if (keys.insert(state.key()).second && onOperator)
        onOperator(state);
      return;
    }
    if (useTable && !table.insert(state.key()).second)
      return;
    ++expansions;
    llvm::SmallVector<search::Move, 32> moves;
    state.getMoves(moves);
    if (path.size() == depth + 1)
      path.push_back(std::make_unique<search::GraphState>(space));
    for (search::Move move : moves) {
      if (isStopped)
        return;
      path[depth + 1]->assign(*path[depth]);
      path[depth + 1]->apply(move);
      visit(depth + 1);
    }
  }

  bool useTable;
  std::set<uint64_t> table;
  std::vector<std::unique_ptr<search::GraphState>> path;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_ENUMERATION_H
