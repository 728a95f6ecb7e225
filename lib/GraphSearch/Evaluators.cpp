//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/Evaluators.h"
#include "kas/GraphSearch/LatencyEvaluator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;

namespace {

/// One number of `GraphCost`.
class CostEvaluator final : public Evaluator {
public:
  CostEvaluator(std::shared_ptr<const SearchProblem> problem,
                llvm::StringRef name, uint64_t GraphCost::*number)
      : problem(std::move(problem)), name(name), number(number) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }

  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    std::optional<GraphCost> cost =
        getCost(*problem, static_cast<const OperatorGraph &>(solution));
    if (!cost)
      return llvm::createStringError("does not fit 63 bits");
    return Metrics{{name, static_cast<double>((*cost).*number)}};
  }

private:
  std::shared_ptr<const SearchProblem> problem;
  std::string name;
  uint64_t GraphCost::*number;
};

using Factories = std::map<std::string, EvaluatorFactory, std::less<>>;

} // namespace

static EvaluatorFactory makeCostFactory(llvm::StringRef name,
                                        uint64_t GraphCost::*number) {
  return [=](const EvaluatorSettings &settings) {
    return std::make_unique<CostEvaluator>(settings.problem, name, number);
  };
}

static Factories &getFactories() {
  static Factories factories = {
      {"flops", makeCostFactory("flops", &GraphCost::flops)},
      {"params", makeCostFactory("params", &GraphCost::params)},
      {"latency", makeLatencyEvaluator}};
  return factories;
}

void kas::registerEvaluator(llvm::StringRef name, EvaluatorFactory factory) {
  getFactories()[name.str()] = std::move(factory);
}

llvm::Expected<std::unique_ptr<Evaluator>>
kas::makeEvaluator(llvm::StringRef name, const EvaluatorSettings &settings) {
  Factories &factories = getFactories();
  if (auto factory = factories.find(name); factory != factories.end())
    return factory->second(settings);
  return llvm::createStringError(
      "requires an evaluator among " +
      llvm::join(llvm::make_first_range(factories), ", ") + ", got '" + name +
      "'");
}
