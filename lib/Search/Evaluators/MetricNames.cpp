//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which metrics each evaluator gives, so that a mistyped one is an error before
// a search begins.
//
// The table must agree with what the evaluators return.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/MetricNames.h"
#include "kas/Support/NearName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::search;
using llvm::StringRef;

namespace {
/// An evaluator and its metrics. `N` at the end of a metric stands for any
/// number.
struct MetricsOf {
  StringRef evaluator;
  std::vector<StringRef> metrics;
};
} // namespace

/// Of operators, sequences, kernels and networks: equal names mean the same. A
/// metric that several kinds of candidates have is in the table once.
static llvm::ArrayRef<MetricsOf> getTable() {
  static const std::vector<MetricsOf> table = {
      {"flops", {"flops"}},
      {"params", {"params"}},
      {"flops_unprepared", {"flops_unprepared"}},
      {"training_flops", {"training_flops"}},
      {"bytes", {"bytes"}},
      {"latency", {"latency_ms"}},
      {"predicted_ms", {"predicted_ms", "predicted_least_ms"}},
      {"imitation",
       {"imitation_error", "imitation_excess", "imitation_missing"}},
      {"training", {"accuracy", "loss", "epochs", "accuracy_N"}},
      {"fisher", {"fisher", "fisher_ratio"}},
      {"layer_latency", {"layer_latency_ms", "layer_latency_ratio"}}};
  return table;
}

std::optional<std::vector<std::string>>
kas::search::getMetricsOf(StringRef evaluator) {
  for (const MetricsOf &entry : getTable())
    if (entry.evaluator == evaluator)
      return std::vector<std::string>(entry.metrics.begin(),
                                      entry.metrics.end());
  // The one proxy with a metric that is not named `proxy_*`.
  if (evaluator == "proxy=fisher")
    return std::vector<std::string>{"fisher"};
  if (evaluator.consume_front("proxy="))
    return std::vector<std::string>{("proxy_" + evaluator).str()};
  // `external`, and evaluators of plug-ins.
  return std::nullopt;
}

/// Whether `metric` is `name`, or `name` ends with `_N` and it with a number.
/// `accuracy_3` matches `accuracy_N`, `accuracy_` and `accuracy_x` do not.
static bool matches(StringRef metric, StringRef name) {
  if (!name.consume_back("_N"))
    return metric == name;
  return metric.consume_front(name) && metric.consume_front("_") &&
         !metric.empty() && llvm::all_of(metric, llvm::isDigit);
}

/// The evaluator that gives `metric`; empty where none is known to. Of several
/// the first of the table.
static std::string findEvaluator(StringRef metric) {
  for (const MetricsOf &entry : getTable())
    if (llvm::any_of(entry.metrics,
                     [&](StringRef name) { return matches(metric, name); }))
      return entry.evaluator.str();
  return metric.consume_front("proxy_") ? ("proxy=" + metric).str() : "";
}

/// What a user may have meant by a metric that is not to be had. In this order:
/// an evaluator that is not among those requested, a near name among the
/// metrics that are given, and a near name among all metrics with its
/// evaluator. Empty if nothing is near.
static std::string suggest(StringRef metric,
                           llvm::ArrayRef<std::string> known) {
  if (std::string evaluator = findEvaluator(metric); !evaluator.empty())
    return ", which requires '" + evaluator + "' among the evaluators";
  llvm::SmallVector<StringRef> names(known.begin(), known.end());
  if (std::string near = suggestNearName(metric, names); !near.empty())
    return near;
  names.clear();
  for (const MetricsOf &entry : getTable())
    llvm::append_range(names, entry.metrics);
  StringRef near = findNearName(metric, names);
  if (near.empty())
    return "";
  return " (did you mean '" + near.str() + "', which requires '" +
         findEvaluator(near) + "' among the evaluators?)";
}

llvm::Error kas::search::checkMetrics(StringRef option,
                                      llvm::ArrayRef<std::string> metrics,
                                      llvm::ArrayRef<std::string> evaluators) {
  std::vector<std::string> known;
  for (const std::string &evaluator : evaluators) {
    auto names = getMetricsOf(evaluator);
    // An evaluator with unknown metrics may give any: nothing can be checked.
    if (!names)
      return llvm::Error::success();
    for (std::string &name : *names)
      if (!llvm::is_contained(known, name))
        known.push_back(std::move(name));
  }
  for (const std::string &metric : metrics)
    if (llvm::none_of(known, [&](const std::string &name) {
          return matches(metric, name);
        }))
      return llvm::createStringError(
          "requires metrics that the evaluators give for the option '" +
          option + "', of " + llvm::join(known, ", ") + ", got '" + metric +
          "'" + suggest(metric, known));
  return llvm::Error::success();
}
