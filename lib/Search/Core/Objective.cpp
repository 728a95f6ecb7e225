//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses objectives (weighted sums, Pareto fronts) and ranks metrics by them.
//
// The grammar is that of `Objective::parse`: sums of terms `factor*metric`, or
// `pareto(sum, sum, ...)`. Without a text the default order of metrics is used.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Objective.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <limits>
#include <set>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

// Infinity sorts after every value, and no point with an infinity dominates in
// that axis.
static constexpr double unknown = std::numeric_limits<double>::infinity();

/// Metrics are identifiers; a digit at the front would be read as a factor.
static bool isName(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Where the term that starts `text` ends: before a sign that is not that of an
/// exponent (`1e-9*flops`).
static size_t findTermEnd(llvm::StringRef text) {
  for (size_t index = 1; index < text.size(); ++index) {
    bool isSign = text[index] == '+' || text[index] == '-';
    char before = text[index - 1];
    bool isExponent =
        (before == 'e' || before == 'E') && index >= 2 &&
        (llvm::isDigit(text[index - 2]) || text[index - 2] == '.');
    if (isSign && !isExponent)
      return index;
  }
  return text.size();
}

/// Splits at signs: `2*loss-accuracy` has the terms 2*loss and -1*accuracy. The
/// loop runs at least once, so an empty text is an error.
Expected<Objective::Sum> Objective::parseSum(llvm::StringRef text) {
  Sum sum;
  for (llvm::StringRef rest = text; !rest.empty() || sum.empty();) {
    Term term;
    // The sign of the first term is optional; between terms the end of the term
    // before guarantees one.
    if (rest.consume_front("-"))
      term.factor = -1;
    else if (!sum.empty())
      rest.consume_front("+");
    llvm::StringRef part = rest.take_front(findTermEnd(rest));
    rest = rest.drop_front(part.size());
    if (part.contains('*')) {
      auto [number, name] = part.split('*');
      double factor = 0;
      if (number.getAsDouble(factor) || !std::isfinite(factor))
        return createStringError("requires a number before '*', got '" +
                                 number + "'");
      term.factor *= factor;
      part = name;
    }
    if (!isName(part))
      return createStringError(
          "requires a sum of metrics such as '2*loss-accuracy', got '" + text +
          "'");
    term.metric = part.str();
    sum.push_back(std::move(term));
  }
  return sum;
}

/// Spaces are removed first; errors quote the text as it was given.
Expected<Objective> Objective::parse(llvm::StringRef text) {
  Objective objective;
  std::string compact;
  for (char c : text)
    if (!llvm::isSpace(c))
      compact += c;
  llvm::StringRef rest = compact;
  if (rest.empty())
    return objective;
  llvm::SmallVector<llvm::StringRef> parts = {rest};
  if (rest.consume_front("pareto(")) {
    if (!rest.consume_back(")"))
      return createStringError("requires ')' at the end, got '" + text + "'");
    objective.pareto = true;
    parts.clear();
    rest.split(parts, ',');
    if (parts.size() < 2)
      return createStringError("requires two axes or more, got '" + text + "'");
  }
  for (llvm::StringRef part : parts) {
    Expected<Sum> sum = parseSum(part);
    if (!sum)
      return sum.takeError();
    objective.axes.push_back(std::move(*sum));
    objective.axisNames.push_back(part.str());
  }
  return objective;
}

/// NaN and overflow are unknown as well: a comparison with NaN would make
/// sorting undefined.
double Objective::evaluate(const Sum &sum, const Metrics &metrics) {
  double value = 0;
  for (const Term &term : sum) {
    auto metric = metrics.find(term.metric);
    if (metric == metrics.end())
      return unknown;
    value += term.factor * metric->second;
  }
  return std::isfinite(value) ? value : unknown;
}

/// The default objective has no axes; then all metrics of `names` are axes, in
/// their order.
ObjectivePoint Objective::getPoint(const Metrics &metrics,
                                   llvm::ArrayRef<std::string> names) const {
  ObjectivePoint point;
  for (const Sum &axis : axes)
    point.push_back(evaluate(axis, metrics));
  if (isDefault())
    for (const std::string &name : names) {
      auto metric = metrics.find(name);
      point.push_back(metric == metrics.end() ? unknown : metric->second);
    }
  return point;
}

std::vector<std::string>
Objective::getAxisNames(llvm::ArrayRef<std::string> names) const {
  return isDefault() ? names.vec() : axisNames;
}

std::vector<std::string> Objective::getMetrics() const {
  std::vector<std::string> metrics;
  for (const Sum &axis : axes)
    for (const Term &term : axis)
      if (!llvm::is_contained(metrics, term.metric))
        metrics.push_back(term.metric);
  return metrics;
}

/// Of a front one number is needed, for searchers that follow a single reward.
/// A sum of logarithms does not depend on the units: halving any axis counts
/// the same.
double Objective::getCost(const Metrics &metrics) const {
  if (!pareto)
    return evaluate(axes.front(), metrics);
  double sum = 0;
  for (const Sum &axis : axes) {
    double value = evaluate(axis, metrics);
    // Not positive: an accuracy with a negative factor, for instance. Its
    // logarithm does not exist.
    sum += value > 0 ? std::log(value) : value;
  }
  return sum;
}

/// Measured time first, then predicted time, work, and size. Compared
/// lexicographically.
using DefaultRank = std::array<double, 4>;

/// What is unknown counts as most.
static DefaultRank getDefaultRank(const Metrics &metrics) {
  static constexpr std::array<const char *, 4> names = {
      "latency_ms", "predicted_ms", "flops", "params"};
  DefaultRank rank;
  for (auto [value, name] : llvm::zip_equal(rank, names)) {
    auto metric = metrics.find(name);
    value = metric == metrics.end() ? unknown : metric->second;
  }
  return rank;
}

/// Total and deterministic: equal costs are ordered by identifier. Failures
/// must have been removed.
void Objective::sort(std::vector<SearchResult> &results) const {
  ParetoFront front;
  if (pareto)
    front = getFront(*this, results);
  // Members of the front first, then by cost. For sums only `rank[0]` is used.
  struct Key {
    bool isDominated;
    DefaultRank rank;
    uint64_t id;
    size_t index;
    auto operator<=>(const Key &) const = default;
  };
  std::vector<Key> keys;
  for (const auto &[index, result] : llvm::enumerate(results)) {
    const Metrics &metrics = std::get<Metrics>(result.outcome);
    DefaultRank rank = {};
    if (isDefault())
      rank = getDefaultRank(metrics);
    else
      rank[0] = getCost(metrics);
    uint64_t id = result.candidate.id;
    keys.push_back({pareto && !front.contains(id), rank, id, index});
  }
  llvm::sort(keys, [](const Key &a, const Key &b) { return (a <=> b) < 0; });
  std::vector<SearchResult> sorted;
  // Results are large (paths, IR): moved once, by index.
  for (const Key &key : keys)
    sorted.push_back(std::move(results[key.index]));
  results = std::move(sorted);
}

/// `<=` is looked for first, so a text with neither becomes an error of the
/// name.
Expected<MetricLimit> MetricLimit::parse(llvm::StringRef text) {
  MetricLimit limit;
  limit.isUpper = text.contains("<=");
  auto [name, bound] = text.split(limit.isUpper ? "<=" : ">=");
  if (!isName(name.trim()) || bound.trim().getAsDouble(limit.bound) ||
      !std::isfinite(limit.bound))
    return createStringError(
        "requires a limit such as 'flops<=1e9' or 'accuracy>=0.7', got '" +
        text + "'");
  limit.metric = name.trim().str();
  return limit;
}

namespace {

/// See `makeCheckedEvaluator`.
class CheckedEvaluator final : public Evaluator {
public:
  CheckedEvaluator(std::unique_ptr<Evaluator> evaluator,
                   std::vector<MetricLimit> limits)
      : evaluator(std::move(evaluator)), limits(std::move(limits)) {}

  llvm::StringRef getName() const override { return evaluator->getName(); }
  bool isDeterministic() const override { return evaluator->isDeterministic(); }
  // Limits are for candidates.
  Expected<Metrics> evaluateBaseline(const Baseline &baseline) override {
    return evaluator->evaluateBaseline(baseline);
  }
  Expected<Metrics> evaluate(const Solution &solution) override {
    // An evaluator's own failure stays as it is, with its reason.
    Expected<Metrics> metrics = evaluator->evaluate(solution);
    if (!metrics)
      return metrics;
    // JSON and SQLite have no way to write NaN or infinity, and objectives none
    // to compare them.
    for (const auto &[name, value] : *metrics)
      if (!std::isfinite(value))
        return createStringError("metric '" + llvm::Twine(name) +
                                 "' requires a finite number");
    for (const MetricLimit &limit : limits) {
      auto metric = metrics->find(limit.metric);
      // Another evaluator may give this metric; that one then checks it.
      if (metric == metrics->end())
        continue;
      if (limit.isUpper ? metric->second > limit.bound
                        : metric->second < limit.bound)
        return createStringError(
            "the limit is %s %s %g, got %g", limit.metric.c_str(),
            limit.isUpper ? "<=" : ">=", limit.bound, metric->second);
    }
    return metrics;
  }
  void observe(const Metrics &metrics) override { evaluator->observe(metrics); }

private:
  std::unique_ptr<Evaluator> evaluator;
  std::vector<MetricLimit> limits;
};

} // namespace

std::unique_ptr<Evaluator>
kas::search::makeCheckedEvaluator(std::unique_ptr<Evaluator> evaluator,
                                  std::vector<MetricLimit> limits) {
  return std::make_unique<CheckedEvaluator>(std::move(evaluator),
                                            std::move(limits));
}

/// The union over candidates: those that failed early or were not in the final
/// round have fewer metrics.
std::vector<std::string>
kas::search::getMetricNames(llvm::ArrayRef<SearchResult> results) {
  std::set<std::string> names;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      for (const auto &[name, value] : *metrics)
        names.insert(name);
  return std::vector<std::string>(names.begin(), names.end());
}

/// O(n * front) comparisons. Failures are not on a front.
ParetoFront kas::search::getFront(const Objective &objective,
                                  llvm::ArrayRef<SearchResult> results) {
  std::vector<std::string> names = getMetricNames(results);
  ParetoFront front;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      front.insert(result.candidate.id, objective.getPoint(*metrics, names));
  return front;
}
