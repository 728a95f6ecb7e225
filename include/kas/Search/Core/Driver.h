//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver of a search on one machine: asks, evaluates on threads, tells.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_DRIVER_H
#define KAS_SEARCH_CORE_DRIVER_H

#include "kas/Search/Core/Searcher.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kas::search {

struct SearchLimits {
  /// The most candidates to evaluate.
  uint64_t evaluations = 64;
  /// Start no evaluation after so many seconds; 0: no limit. Results then
  /// depend on the speed of the machine.
  double seconds = 0;
  unsigned threads = 1;
};

struct SearchResult {
  Candidate candidate;
  Outcome outcome;
};

/// The metrics of all `evaluators` in turn. The first failure is the outcome,
/// with the name of the evaluator; those after it are not called.
Outcome evaluate(const Candidate &candidate,
                 llvm::ArrayRef<Evaluator *> evaluators);

/// Evaluates the candidates of `searcher` by all `evaluators` in turn (the
/// first failure is the candidate's outcome; later ones are not run) and
/// returns the results by identifier. `progress` is called after each
/// evaluation, by one thread at a time. Without a limit of time and with
/// deterministic evaluators the results do not depend on the number of threads,
/// for searchers whose proposals do not depend on the order of `tell`.
std::vector<SearchResult>
runSearch(Searcher &searcher, llvm::ArrayRef<Evaluator *> evaluators,
          const SearchLimits &limits,
          llvm::function_ref<void(const SearchResult &)> progress = {});

} // namespace kas::search

#endif // KAS_SEARCH_CORE_DRIVER_H
