//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a search is after: limits on metrics, and one number or a front.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_OBJECTIVE_H
#define KAS_SEARCH_CORE_OBJECTIVE_H

#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/ParetoFront.h"

namespace kas::search {

/// Makes metrics comparable. Less is better; a metric of which more is better
/// has a negative factor.
class Objective {
public:
  /// Reads `text`:
  /// * `latency_ms` or `2*loss+1e-9*flops-accuracy`: a weighted sum.
  /// * `pareto(flops,params,2*loss-accuracy)`: a front of weighted sums.
  /// * nothing: `latency_ms`, then `flops`, then `params`, one after the other;
  ///   the front is that of all metrics.
  static llvm::Expected<Objective> parse(llvm::StringRef text);

  struct Term {
    double factor = 1;
    std::string metric;
  };
  using Sum = llvm::SmallVector<Term, 2>;
  /// One where there is no front, none of the default.
  llvm::ArrayRef<Sum> getAxes() const { return axes; }

  bool isDefault() const { return axes.empty(); }
  bool isPareto() const { return pareto; }

  /// One value per axis; infinity where a metric is unknown. Without axes, one
  /// per metric of `names`.
  ObjectivePoint getPoint(const Metrics &metrics,
                          llvm::ArrayRef<std::string> names) const;

  /// What the axes are called, for people.
  std::vector<std::string>
  getAxisNames(llvm::ArrayRef<std::string> names) const;

  /// What a search for the least of one number follows: the weighted sum, or
  /// of a front the sum of the logarithms of its axes (each counts by ratios;
  /// those that are not positive count as they are). There must be axes.
  double getCost(const Metrics &metrics) const;

  /// The metrics that the axes are made of, each once, in the order of the
  /// text.
  std::vector<std::string> getMetrics() const;

  /// Sorts evaluated candidates, the best first: the front first when one is
  /// requested, then by cost.
  void sort(std::vector<SearchResult> &results) const;

private:
  static llvm::Expected<Sum> parseSum(llvm::StringRef text);
  static double evaluate(const Sum &sum, const Metrics &metrics);

  std::vector<Sum> axes;
  std::vector<std::string> axisNames;
  bool pareto = false;
};

/// A bound on a metric, of the form `flops<=1e9` or `accuracy>=0.7`.
struct MetricLimit {
  std::string metric;
  bool isUpper = true;
  double bound = 0;

  static llvm::Expected<MetricLimit> parse(llvm::StringRef text);
};

/// Wraps an evaluator: metrics that are not finite, or are beyond one of
/// `limits`, make a failure. What comes later is then not run.
std::unique_ptr<Evaluator>
makeCheckedEvaluator(std::unique_ptr<Evaluator> evaluator,
                     std::vector<MetricLimit> limits);

/// The names of all metrics of `results`, in order.
std::vector<std::string> getMetricNames(llvm::ArrayRef<SearchResult> results);

/// The front of the evaluated candidates among `results`, by identifier.
ParetoFront getFront(const Objective &objective,
                     llvm::ArrayRef<SearchResult> results);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_OBJECTIVE_H
