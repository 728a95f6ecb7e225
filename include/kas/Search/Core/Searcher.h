//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Searchers: the ask/tell interface between algorithms, which propose
// candidates, and drivers, which have them evaluated.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SEARCHER_H
#define KAS_SEARCH_CORE_SEARCHER_H

#include "kas/Search/Core/Evaluator.h"
#include <variant>
#include <vector>

namespace kas::search {

/// A proposal. Identifiers count up from 0 in the order of proposal.
struct Candidate {
  uint64_t id = 0;
  std::shared_ptr<const Solution> solution;
  /// The candidate that it is a variation of, where there is one.
  std::optional<uint64_t> parent = {};
};

/// Why a candidate has no metrics.
struct Failure {
  std::string reason;
};

/// What became of a candidate.
using Outcome = std::variant<Metrics, Failure>;

/// Counts of what a searcher did, all since it was made.
struct SearchStatistics {
  /// States whose moves were listed.
  uint64_t expansions = 0;
  /// Rollouts from the root.
  uint64_t rollouts = 0;
  /// States without moves that are no candidates.
  uint64_t deadEnds = 0;
  /// Candidates that had been proposed before.
  uint64_t duplicates = 0;
  /// Candidates proposed, those with metrics, those that failed.
  uint64_t asked = 0, evaluated = 0, failed = 0;
};

/// An algorithm. All functions may be called from any thread, in any order.
class Searcher {
public:
  virtual ~Searcher();

  /// Up to `count` candidates that were not proposed before. Fewer mean that no
  /// more are to be had now: the space is exhausted, or the algorithm's effort
  /// for one call is spent (`isExhausted` tells), or `stop` was called.
  virtual std::vector<Candidate> ask(unsigned count) = 0;

  /// Returns the outcome of a candidate, in any order. An identifier that was
  /// not proposed, or has an outcome already, is an error and changes nothing.
  virtual llvm::Error tell(uint64_t id, Outcome outcome) = 0;

  /// Every candidate of the space has been proposed.
  virtual bool isExhausted() const = 0;

  /// Makes a running and all later calls of `ask` return soon. For limits of
  /// time.
  virtual void stop() = 0;

  virtual SearchStatistics getStatistics() const = 0;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SEARCHER_H
