//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "SearchSpaces.h"
#include "kas/Library/Operators.h"
#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <chrono>
#include <ctime>

using namespace kas;
using namespace kas::library;
using namespace kas::search;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// What imitates the operator up to rounding, with no more parameters, is it.
static constexpr double sameError = 1e-6;
/// In the objective: of two that imitate equally well, the smaller one.
static constexpr double errorPerParam = 1e-6;

/// Found are mostly within some hundred.
static constexpr unsigned maxEvaluations = 2000;

static double getSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static double getCpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

static void print(BenchReport &report, StringRef name, StringRef metric,
                  double value, StringRef unit,
                  std::optional<bool> ok = std::nullopt) {
  report.print({name.str(), metric.str(), value, unit.str(), std::nullopt,
                std::nullopt, ok});
}

static llvm::Expected<std::unique_ptr<Searcher>>
makeImitator(StringRef algorithm, std::shared_ptr<const SearchProblem> problem,
             uint64_t seed) {
  SearcherSettings settings;
  settings.seed = seed;
  settings.objective = [](const Metrics &metrics) {
    return metrics.at("imitation_error") + errorPerParam * metrics.at("params");
  };
  return makeSearcher(algorithm, makeGraphState(std::move(problem)), settings,
                      {});
}

/// The elements of the weights of `op` at all bindings.
static uint64_t getNumParams(OperatorOp op, const SearchProblem &problem) {
  SymbolSet symbols = op.getSymbolSet();
  uint64_t params = 0;
  for (const Binding &values : problem.bindings) {
    Binding binding;
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      binding.push_back(
          values[*problem.symbols.lookup(symbols.getName(symbol))]);
    for (llvm::ArrayRef<SizeAttr> sizes : op.getWeightSizes()) {
      uint64_t product = 1;
      for (SizeAttr size : sizes)
        product *= evaluate(size, symbols, binding).value_or(1);
      params += product;
    }
  }
  return params;
}

/// Searches until the operator is found, or all there is has been evaluated.
static Error rediscover(SpaceOp space, OperatorOp op, StringRef algorithm,
                        uint64_t seed, BenchReport &report) {
  EvaluatorSettings settings;
  settings.problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  settings.imitated = op;
  auto evaluator = makeEvaluator("imitation", settings);
  if (!evaluator)
    return evaluator.takeError();
  uint64_t params = getNumParams(op, *settings.problem);
  double begin = getCpuSeconds();
  auto searcher = makeImitator(algorithm, settings.problem, seed);
  if (!searcher)
    return searcher.takeError();
  double best = 1;
  unsigned evaluations = 0;
  while (best > sameError && evaluations < maxEvaluations) {
    std::vector<Candidate> candidates = (*searcher)->ask(1);
    if (candidates.empty())
      break;
    const auto &graph =
        static_cast<const OperatorGraph &>(*candidates.front().solution);
    auto metrics = (*evaluator)->evaluate(graph);
    ++evaluations;
    if (metrics) {
      metrics->emplace("params", graph.cost.params);
      if (graph.cost.params <= params)
        best = std::min(best, metrics->at("imitation_error"));
    }
    Outcome outcome =
        metrics ? Outcome(std::move(*metrics))
                : Outcome(Failure{llvm::toString(metrics.takeError())});
    if (Error error =
            (*searcher)->tell(candidates.front().id, std::move(outcome)))
      return error;
  }
  double seconds = getCpuSeconds() - begin;
  std::string name =
      (op.getSymName() + "/" + algorithm + "/" + Twine(seed)).str();
  print(report, name, "imitation_error", best, "", best <= sameError);
  print(report, name, "evaluations", evaluations, "");
  print(report, name, "cpu_seconds", seconds, "s");
  return Error::success();
}

/// Evaluations per second of wall time with so many threads.
static llvm::Expected<double> measureThreads(SpaceOp space, OperatorOp op,
                                             StringRef algorithm,
                                             unsigned threads, double seconds) {
  EvaluatorSettings settings;
  settings.problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  settings.imitated = op;
  auto evaluator = makeEvaluator("imitation", settings);
  if (!evaluator)
    return evaluator.takeError();
  auto searcher = makeImitator(algorithm, settings.problem, 0);
  if (!searcher)
    return searcher.takeError();
  // The tree is built with the first proposal, by one thread.
  if (Error error = (*searcher)->tell((*searcher)->ask(1).front().id,
                                      Failure{"not evaluated"}))
    return error;
  SearchLimits limits;
  limits.evaluations = ~uint64_t(0);
  limits.seconds = seconds;
  limits.threads = threads;
  double begin = getSeconds();
  auto paramsEvaluator = makeEvaluator("params", settings);
  if (!paramsEvaluator)
    return paramsEvaluator.takeError();
  auto results =
      runSearch(**searcher, {paramsEvaluator->get(), evaluator->get()}, limits);
  return static_cast<double>(results.size()) / (getSeconds() - begin);
}

Error kas::runRediscoverySuite(mlir::MLIRContext &context,
                               const BenchSettings &settings,
                               BenchReport &report) {
  auto spaces = mlir::parseSourceString<mlir::ModuleOp>(namedSpaces, &context);
  if (!spaces)
    return llvm::createStringError("the named spaces do not parse");
  mlir::OwningOpRef<mlir::ModuleOp> library = parseNamedOperators(&context);
  mlir::SymbolTable spaceTable(*spaces), operatorTable(*library);
  for (const NamedOperator &named : getNamedOperators())
    for (StringRef algorithm : {"surrogate", "mcts", "random"}) {
      if (!isSelected(settings, (named.name + "/" + algorithm).str()))
        continue;
      auto space = spaceTable.lookup<SpaceOp>(named.name);
      auto op = operatorTable.lookup<OperatorOp>(named.name);
      // It has no comparison.
      if (named.name == "max_pool2d")
        continue;
      if (Error error = rediscover(space, op, algorithm, /*seed=*/1, report))
        return error;
    }
  auto space = spaceTable.lookup<SpaceOp>("conv2d_spatially_separable");
  auto op = operatorTable.lookup<OperatorOp>("conv2d_spatially_separable");
  for (StringRef algorithm : {"random", "mcts", "surrogate"}) {
    std::string name = ("threads/" + algorithm).str();
    if (!isSelected(settings, name))
      continue;
    double single = 0;
    for (unsigned threads : {1, 2}) {
      auto rate =
          measureThreads(space, op, algorithm, threads, settings.seconds);
      if (!rate)
        return rate.takeError();
      std::string own = (name + "/" + Twine(threads)).str();
      print(report, own, "evaluations_per_second", *rate, "1/s");
      if (threads == 1)
        single = *rate;
      else
        print(report, own, "speedup", *rate / single, "");
    }
  }
  return Error::success();
}
