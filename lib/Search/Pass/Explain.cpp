//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Explains why a space is empty: tries variants of it with one bound lifted.
//
// An empty space is a mistake of a limit as a rule. Each explanation is found
// by experiment: lift one bound, and search a little; whether operators appear
// then is a proof, that none appear is only an indication.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Pass/Explain.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Operators/GraphState.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::search;

/// Some operators of a variant. Up to `count` operators that random rollouts
/// find within the effort; none does not mean that there are none.
/// Deterministic: the seed is fixed.
static std::vector<std::shared_ptr<const Solution>>
findOperators(const SearchProblem &problem, uint64_t expansions,
              unsigned count) {
  auto searcher = llvm::cantFail(makeSearcher(
      "random", makeGraphState(std::make_shared<const SearchProblem>(problem)),
      {}, {"expansions-per-ask=" + std::to_string(expansions)}));
  std::vector<std::shared_ptr<const Solution>> found;
  for (const Candidate &candidate : searcher->ask(count))
    found.push_back(candidate.solution);
  return found;
}

static bool hasOperator(const SearchProblem &problem, uint64_t expansions) {
  return !findOperators(problem, expansions, 1).empty();
}

/// `0.1 GFLOP`, `384 FLOP`. At most four digits before the unit: `9999 FLOP`,
/// `10 kFLOP`.
static std::string formatCount(double value, llvm::StringRef unit) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  const char *prefix = "";
  for (const char *next : {"k", "M", "G", "T"}) {
    if (value < 1e4)
      break;
    value /= 1e3;
    prefix = next;
  }
  stream << llvm::format("%.4g ", value) << prefix << unit;
  return text;
}

/// One number of the budget: without it there are operators. `number` is the
/// cost that `bound` limits. With `isLeast` it is a lower bound, and the
/// largest value that was found is reported, else the smallest. 100 samples
/// give an impression of what is possible, not the optimum.
static void explainBudget(const SearchProblem &problem, uint64_t expansions,
                          std::optional<double> SearchBudget::*bound,
                          uint64_t GraphCost::*number, llvm::StringRef unit,
                          bool isLeast, std::vector<std::string> &reasons) {
  if (!(problem.budget.*bound))
    return;
  SearchProblem variant = problem;
  variant.budget.*bound = std::nullopt;
  // Without operators even so, this bound is not to blame.
  auto found = findOperators(variant, expansions, 100);
  if (found.empty())
    return;
  std::optional<uint64_t> best;
  for (const auto &solution : found) {
    uint64_t value = static_cast<const OperatorGraph &>(*solution).cost.*number;
    best = !best     ? value
           : isLeast ? std::max(*best, value)
                     : std::min(*best, value);
  }
  if (best)
    reasons.push_back(
        "the budget of " + std::string(isLeast ? "at least " : "") +
        formatCount(*(problem.budget.*bound), unit) +
        " excludes every operator: without it the " +
        (isLeast ? "largest" : "smallest") + " that was found has " +
        formatCount(static_cast<double>(*best), unit));
}

/// Raises one limit step by step up to `most` more; the first value with
/// operators is reported.
static void explainLimit(const SearchProblem &problem, uint64_t expansions,
                         llvm::StringRef name, unsigned SpaceLimits::*limit,
                         unsigned most, std::vector<std::string> &reasons) {
  SearchProblem variant = problem;
  for (unsigned more = 1; more <= most; ++more) {
    variant.limits.*limit = problem.limits.*limit + more;
    if (!hasOperator(variant, expansions))
      continue;
    unsigned allowed = problem.limits.*limit;
    std::string needed = std::to_string(allowed + more);
    if (name == "depth")
      reasons.push_back("an operator needs " + needed +
                        " steps, depth allows " + std::to_string(allowed));
    else
      reasons.push_back("an operator needs " + name.str() + " = " + needed +
                        ", the limit is " + std::to_string(allowed));
    return;
  }
}

/// One property: without it there are operators. `drop` switches the property
/// off and returns whether it was on.
static void explainProperty(const SearchProblem &problem, uint64_t expansions,
                            llvm::StringRef name,
                            llvm::function_ref<bool(SpaceLimits &)> drop,
                            std::vector<std::string> &reasons) {
  SearchProblem variant = problem;
  if (drop(variant.limits) && hasOperator(variant, expansions))
    reasons.push_back("limit '" + name.str() +
                      "' excludes every operator: without it there are some");
}

/// See docs/reference/properties.md for each of them.
static void explainProperties(const SearchProblem &problem, uint64_t expansions,
                              std::vector<std::string> &reasons) {
  explainProperty(
      problem, expansions, "sees",
      [](SpaceLimits &limits) {
        bool isGiven = !limits.sees.empty();
        limits.sees.clear();
        return isGiven;
      },
      reasons);
  explainProperty(
      problem, expansions, "reaches",
      [](SpaceLimits &limits) { return std::exchange(limits.reaches, 0) != 0; },
      reasons);
  explainProperty(
      problem, expansions, "equivariant",
      [](SpaceLimits &limits) {
        return !std::exchange(limits.equivariant, {}).empty();
      },
      reasons);
  for (auto [name, flag] : {std::pair<llvm::StringRef, bool SpaceLimits::*>(
                                "any_grid", &SpaceLimits::anyGrid),
                            {"one_product", &SpaceLimits::oneProduct},
                            {"linear_path", &SpaceLimits::linearPath},
                            {"causal", &SpaceLimits::causal}})
    explainProperty(
        problem, expansions, name,
        [&, flag = flag](SpaceLimits &limits) {
          return std::exchange(limits.*flag, false);
        },
        reasons);
}

/// `<k = 3, C = 8>`. For messages: `<symbol = value, ...>` in the order of the
/// symbols.
static std::string describeBinding(const SearchProblem &problem,
                                   const Binding &binding) {
  std::string text = "<";
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    text += (symbol ? ", " : "") + problem.symbols.getName(symbol).str() +
            " = " + std::to_string(binding[symbol]);
  return text + ">";
}

/// Bindings without which, one at a time, there are operators. A budget is that
/// of all layers, and says nothing of one. Operators must be legal at every
/// binding, so a single one, such as a layer with an odd number of channels,
/// can exclude all.
static void explainBindings(const SearchProblem &problem, uint64_t expansions,
                            std::vector<std::string> &reasons) {
  SearchProblem unbounded = problem;
  unbounded.budget = {};
  // With one binding there is nothing to leave out; with operators beyond the
  // budget, bindings are not the reason.
  if (problem.bindings.size() < 2 || hasOperator(unbounded, expansions))
    return;
  for (size_t index = 0; index < problem.bindings.size(); ++index) {
    SearchProblem variant = unbounded;
    variant.bindings.erase(variant.bindings.begin() + index);
    variant.multiplicities.erase(variant.multiplicities.begin() + index);
    if (hasOperator(variant, expansions))
      reasons.push_back("binding " +
                        describeBinding(problem, problem.bindings[index]) +
                        " excludes every operator: without it there are some");
  }
}

/// Cheap causes first. Each call of `findOperators` is bounded by `expansions`,
/// and there are a few dozen of them, so the whole takes seconds at most.
std::vector<std::string>
kas::search::explainEmptySpace(const SearchProblem &problem,
                               uint64_t expansions) {
  std::vector<std::string> reasons;
  explainBudget(problem, expansions, &SearchBudget::maxFlops, &GraphCost::flops,
                "FLOP", false, reasons);
  explainBudget(problem, expansions, &SearchBudget::minFlops, &GraphCost::flops,
                "FLOP", true, reasons);
  explainBudget(problem, expansions, &SearchBudget::maxParams,
                &GraphCost::params, "parameters", false, reasons);
  explainProperties(problem, expansions, reasons);
  explainBindings(problem, expansions, reasons);
  // Depth up to 8 more, limits of single kinds up to 2 more.
  explainLimit(problem, expansions, "depth", &SpaceLimits::depth, 8, reasons);
  for (const auto &[name, limit] :
       {std::pair<llvm::StringRef, unsigned SpaceLimits::*>(
            "reduce", &SpaceLimits::reduce),
        {"split", &SpaceLimits::split},
        {"merge", &SpaceLimits::merge},
        {"shift", &SpaceLimits::shift},
        {"expand", &SpaceLimits::expand},
        {"unfold", &SpaceLimits::unfold},
        {"stride", &SpaceLimits::stride},
        {"weights", &SpaceLimits::weights}})
    explainLimit(problem, expansions, name, limit, 2, reasons);
  // `occurrences` of each symbol, up to 4 more.
  for (unsigned symbol = 0; symbol < problem.occurrences.size(); ++symbol) {
    SearchProblem variant = problem;
    for (unsigned more = 1; more <= 4; ++more) {
      variant.occurrences[symbol] = problem.occurrences[symbol] + more;
      if (!hasOperator(variant, expansions))
        continue;
      reasons.push_back("an operator needs occurrences." +
                        problem.symbols.getName(symbol).str() + " = " +
                        std::to_string(variant.occurrences[symbol]) +
                        ", the limit is " +
                        std::to_string(problem.occurrences[symbol]));
      break;
    }
  }
  // Combinations of bounds are not tried, but for the budget as a whole.
  if (reasons.empty()) {
    SearchProblem variant = problem;
    variant.budget = {};
    reasons.push_back(
        hasOperator(variant, expansions)
            ? "no single bound of the budget excludes every operator, but all "
              "of them together do"
            : "no single limit is to blame; nothing was found with any of "
              "them a little larger");
  }
  return reasons;
}
