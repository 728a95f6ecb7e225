//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proves that no two operators of a long list are the same: fingerprints tell
// nearly all apart, exact comparison decides about the rest.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_LONGLIST_H
#define KAS_TEST_LIB_LONGLIST_H

#include "kas/Search/Operators/GraphState.h"
#include "kas/Support/FlatMap.h"
#include "llvm/Support/raw_ostream.h"

namespace kas::test {

struct LongListOptions {
  size_t maxOperators = SIZE_MAX;
  /// Of each multiset of reductions, at most so many operators, and as many
  /// states looked at. Lists from all over a space that is too large.
  size_t maxPerReductions = SIZE_MAX;
  size_t maxStatesPerReductions = SIZE_MAX;
};

/// Solutions of a problem that the search reaches, each key once, as the moves
/// that lead to them: a million fit into little memory.
class LongList {
public:
  LongList(std::shared_ptr<const search::SearchProblem> problem,
           const LongListOptions &options);

  /// Calls `visit` with the number of each operator, as it is listed. Those
  /// for which it returns false are left out.
  void enumerate(
      llvm::function_ref<bool(size_t, const search::OperatorGraph &)> visit);

  size_t size() const { return ends.size(); }
  size_t getNumLeftOut() const { return numLeftOut; }
  /// Multisets of reductions with an operator.
  size_t getNumReductionSets() const { return numReductionSets; }
  /// Some limit of the options has been reached.
  bool isCut() const { return isCutShort; }
  std::shared_ptr<const search::OperatorGraph> getGraph(size_t number) const;

private:
  /// Of one multiset of reductions.
  struct Counts {
    size_t operators = 0, states = 0;
  };
  void descend(size_t depth, Counts *counts);
  void add(const search::State &state, Counts *counts);

  const LongListOptions options;
  std::unique_ptr<search::State> root;
  /// By depth of the traversal.
  std::vector<std::unique_ptr<search::State>> states;
  std::vector<search::Move> path;
  /// The paths of all operators, one after the other, and where each ends.
  std::vector<search::Move> moves;
  std::vector<size_t> ends;
  FlatMap<uint8_t> keys;
  size_t numReductionSets = 0, numLeftOut = 0;
  bool isCutShort = false;
  llvm::function_ref<bool(size_t, const search::OperatorGraph &)> visit =
      nullptr;
};

/// Lists the operators and returns the groups that share every fingerprint, as
/// described below: the same ones are in one group, but not all of a group need
/// be the same. An operator with a size that is no integer at the first binding
/// is left out; the other bindings tell apart only those defined there.
std::vector<std::vector<size_t>>
findUndecided(const search::SearchProblem &problem, LongList &list,
              llvm::ArrayRef<Binding> bindings, llvm::raw_ostream &log);

/// Lists the operators and looks for pairs that are the same at all `bindings`,
/// each operator with the first one that it equals. The first binding is looked
/// at for all operators, so it should be tiny; the others for those that it
/// does not tell apart. Writes to `log` how many operators are left at each
/// step.
std::vector<std::pair<size_t, size_t>>
findDuplicates(const search::SearchProblem &problem, LongList &list,
               llvm::ArrayRef<Binding> bindings, llvm::raw_ostream &log);

} // namespace kas::test

#endif // KAS_TEST_LIB_LONGLIST_H
