//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The registry of evaluators by name, and those that count: FLOPs, parameters,
// bytes.
//
// An evaluator that counts reads the graph of the candidate and never compiles
// it; the others are in files of their own.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Evaluators/ExternalEvaluator.h"
#include "kas/Search/Evaluators/ImitationEvaluator.h"
#include "kas/Search/Evaluators/LatencyEvaluator.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "kas/Search/Evaluators/TrainingEvaluator.h"
#include "kas/Support/NearName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::search;

namespace {

/// One number of `GraphCost`. The search computes these costs while it builds
/// the graph, so evaluating is a look-up.
class CostEvaluator final : public Evaluator {
public:
  CostEvaluator(llvm::StringRef name, uint64_t GraphCost::*number)
      : name(name), number(number) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }

  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    const GraphCost &cost = static_cast<const OperatorGraph &>(solution).cost;
    return Metrics{{name, static_cast<double>(cost.*number)}};
  }

private:
  /// By value: the name outlives the caller's string.
  std::string name;
  /// A pointer to the member of `GraphCost` that is the metric.
  uint64_t GraphCost::*number;
};

/// A number that is counted when it is needed. Unlike a `CostEvaluator` it
/// needs the problem, for the bindings. Nothing from `count` means that the
/// number is too large.
class CountEvaluator final : public Evaluator {
public:
  using Count = std::function<std::optional<uint64_t>(const SearchProblem &,
                                                      const OperatorGraph &)>;

  CountEvaluator(llvm::StringRef name,
                 std::shared_ptr<const SearchProblem> problem, Count count)
      : name(name), problem(std::move(problem)), count(std::move(count)) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }

  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    std::optional<uint64_t> number =
        count(*problem, static_cast<const OperatorGraph &>(solution));
    // A number beyond 63 bits is an overflow of `count`, not a metric.
    if (!number)
      return llvm::createStringError("does not fit 63 bits");
    return Metrics{{name, static_cast<double>(*number)}};
  }

private:
  std::string name;
  std::shared_ptr<const SearchProblem> problem;
  Count count;
};

// Ordered by name, so that errors list the names in a fixed order.
using Factories = std::map<std::string, EvaluatorFactory, std::less<>>;

} // namespace

std::optional<uint64_t> kas::search::getBytes(const SearchProblem &problem,
                                              const OperatorGraph &graph) {
  // Parameters already count over the bindings and multiplicities; to these
  // come input and output of every binding.
  uint64_t elements = graph.cost.params;
  for (auto [binding, multiplicity] :
       llvm::zip_equal(problem.bindings, problem.multiplicities))
    for (llvm::ArrayRef<Dimension> shape :
         {llvm::ArrayRef(problem.inputs), llvm::ArrayRef(problem.outputs)}) {
      auto product = static_cast<uint64_t>(multiplicity);
      for (const Dimension &dimension : shape)
        // A size that is no integer at this binding cannot occur in a
        // candidate; 0 then is only a fallback.
        product = llvm::SaturatingMultiply(
            product, static_cast<uint64_t>(
                         dimension.size.evaluate(binding).value_or(0)));
      elements = llvm::SaturatingAdd(elements, product);
    }
  // Saturating: the sum stays too large once it is, and is refused below.
  // 4 bytes for an f32.
  uint64_t bytes = llvm::SaturatingMultiply<uint64_t>(elements, 4);
  return bytes > INT64_MAX ? std::nullopt : std::optional(bytes);
}

/// The factories ignore what an evaluator of a cost does not need.
static EvaluatorFactory makeCostFactory(llvm::StringRef name,
                                        uint64_t GraphCost::*number) {
  return [=](const EvaluatorSettings &) {
    return std::make_unique<CostEvaluator>(name, number);
  };
}

static EvaluatorFactory makeCountFactory(llvm::StringRef name,
                                         CountEvaluator::Count count) {
  return [=](const EvaluatorSettings &settings) {
    return std::make_unique<CountEvaluator>(name, settings.problem, count);
  };
}

/// `cost` says which FLOPs: with weights that are combined before the run or
/// not, or those of a training step.
static EvaluatorFactory makeFlopsFactory(llvm::StringRef name,
                                         schedule::StageCost cost) {
  return makeCountFactory(
      name, [=](const SearchProblem &problem, const OperatorGraph &graph) {
        return getFlops(problem, graph, cost);
      });
}

/// A function-local static is there at its first use, also when that is in a
/// static constructor.
static Factories &getFactories() {
  static Factories factories = {
      {"flops", makeCostFactory("flops", &GraphCost::flops)},
      {"params", makeCostFactory("params", &GraphCost::params)},
      {"flops_unprepared",
       makeFlopsFactory("flops_unprepared", schedule::StageCost::Unprepared)},
      {"training_flops",
       makeFlopsFactory("training_flops", schedule::StageCost::Training)},
      {"bytes", makeCountFactory("bytes", getBytes)},
      {"imitation", makeImitationEvaluator},
      {"latency", makeLatencyEvaluator},
      {"predicted_ms", makePredictedTimeEvaluator},
      {"training", makeTrainingEvaluator},
      {"external", makeExternalEvaluator}};
  return factories;
}

void kas::search::registerEvaluator(llvm::StringRef name,
                                    EvaluatorFactory factory) {
  getFactories()[name.str()] = std::move(factory);
}

llvm::Expected<std::unique_ptr<Evaluator>>
kas::search::makeEvaluator(llvm::StringRef name,
                           const EvaluatorSettings &settings) {
  // Registered evaluators replace built-in ones of the same name, see
  // `registerEvaluator`.
  Factories &factories = getFactories();
  if (auto factory = factories.find(name); factory != factories.end())
    return factory->second(settings);
  auto known =
      llvm::to_vector_of<llvm::StringRef>(llvm::make_first_range(factories));
  return llvm::createStringError("requires an evaluator among " +
                                 llvm::join(known, ", ") + ", got '" + name +
                                 "'" + suggestNearName(name, known));
}
