//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators: from a candidate to named metrics.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_EVALUATOR_H
#define KAS_SEARCH_CORE_EVALUATOR_H

#include "kas/Search/Core/Baseline.h"
#include <map>
#include <string>

namespace kas::search {

/// Metrics by name, e.g. `flops`, `params`, `latency_ms`. Smaller is better
/// unless the name says otherwise.
using Metrics = std::map<std::string, double>;

/// Evaluates candidates. Evaluators are called from several threads at once.
class Evaluator {
public:
  virtual ~Evaluator();

  /// The name by which it is requested.
  virtual llvm::StringRef getName() const = 0;

  /// The same candidate always gives the same metrics. Measured times do not;
  /// a search with one such evaluator cannot be repeated to the letter.
  virtual bool isDeterministic() const = 0;

  /// The metrics of `solution`, or why it has none: it does not compile, it
  /// crashes, it takes too long, it is over a budget that only the evaluator
  /// can check. A failure is a result, never the end of a search.
  virtual llvm::Expected<Metrics> evaluate(const Solution &solution) = 0;

  /// The metrics of what candidates are compared with; empty where it cannot be
  /// evaluated by its nature. Without an implementation: those of the
  /// baseline's own evaluator of the same name.
  virtual llvm::Expected<Metrics> evaluateBaseline(const Baseline &baseline);

  /// Takes note of the metrics of a candidate that all evaluators have
  /// evaluated, in this run of the search or, before its first candidate, in an
  /// earlier one: for evaluators that compare candidates.
  virtual void observe(const Metrics &metrics) {}
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_EVALUATOR_H
