//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what the search lists in a tiny space with what brute force finds,
// class by class: which operators are missing, and which come twice.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_SPACEPROOF_H
#define KAS_TEST_LIB_SPACEPROOF_H

#include "BruteForce.h"
#include "Sameness.h"
#include "SearchLimits.h"

namespace kas::test {

using OperatorGraphs =
    std::vector<std::shared_ptr<const search::OperatorGraph>>;

/// The solutions of `problem` that the search reaches, each key once, in the
/// order of a traversal of all moves.
OperatorGraphs
enumerateBySearch(std::shared_ptr<const search::SearchProblem> problem);

/// What is known about a class of operators.
struct OperatorClass {
  /// The smallest operator by brute force: fewest steps, then fewest
  /// parameters, then fewest violated limits; with the limits it violates.
  search::OperatorGraph smallest;
  unsigned steps = ~0u;
  uint64_t params = 0;
  LimitSet violated;
  /// How many operators brute force found of it.
  uint64_t numFound = 0;
  /// Whether it may be the same as another class (`SamenessClasses`).
  bool isUnknown = false;
  /// What the search lists of it, by index.
  llvm::SmallVector<unsigned, 1> listed;

  bool isFound() const { return numFound > 0; }
  /// A smallest operator obeys all limits of the search.
  bool isWithinLimits() const { return isFound() && violated.none(); }
};

struct SpaceProof {
  OperatorGraphs listed;
  std::vector<OperatorClass> classes;
  BruteForceStatistics statistics;

  size_t count(llvm::function_ref<bool(const OperatorClass &)> predicate) const;
};

/// Lists `problem` by the search and, if `options` are given, by brute force.
SpaceProof proveSpace(std::shared_ptr<const search::SearchProblem> problem,
                      const std::optional<BruteForceOptions> &options);

} // namespace kas::test

#endif // KAS_TEST_LIB_SPACEPROOF_H
