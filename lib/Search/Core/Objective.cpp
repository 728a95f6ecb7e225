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

static constexpr double unknown = std::numeric_limits<double>::infinity();

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

Expected<Objective::Sum> Objective::parseSum(llvm::StringRef text) {
  Sum sum;
  for (llvm::StringRef rest = text; !rest.empty() || sum.empty();) {
    Term term;
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

double Objective::getCost(const Metrics &metrics) const {
  if (!pareto)
    return evaluate(axes.front(), metrics);
  double sum = 0;
  for (const Sum &axis : axes) {
    double value = evaluate(axis, metrics);
    sum += value > 0 ? std::log(value) : value;
  }
  return sum;
}

/// Measured time first, then predicted time, work, and size.
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

void Objective::sort(std::vector<SearchResult> &results) const {
  ParetoFront front;
  if (pareto)
    front = getFront(*this, results);
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
  for (const Key &key : keys)
    sorted.push_back(std::move(results[key.index]));
  results = std::move(sorted);
}

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
    Expected<Metrics> metrics = evaluator->evaluate(solution);
    if (!metrics)
      return metrics;
    for (const auto &[name, value] : *metrics)
      if (!std::isfinite(value))
        return createStringError("metric '" + llvm::Twine(name) +
                                 "' requires a finite number");
    for (const MetricLimit &limit : limits) {
      auto metric = metrics->find(limit.metric);
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

std::vector<std::string>
kas::search::getMetricNames(llvm::ArrayRef<SearchResult> results) {
  std::set<std::string> names;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      for (const auto &[name, value] : *metrics)
        names.insert(name);
  return std::vector<std::string>(names.begin(), names.end());
}

ParetoFront kas::search::getFront(const Objective &objective,
                                  llvm::ArrayRef<SearchResult> results) {
  std::vector<std::string> names = getMetricNames(results);
  ParetoFront front;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      front.insert(result.candidate.id, objective.getPoint(*metrics, names));
  return front;
}
