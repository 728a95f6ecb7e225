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
#include "kas/Search/Core/Session.h"
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
/// Of two that imitate equally well, the smaller one.
static constexpr const char *objective = "imitation_error+1e-6*params";

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

/// A search for what computes the same as `op`.
static llvm::Expected<std::unique_ptr<Session>>
makeImitator(SpaceOp space, OperatorOp op, StringRef algorithm, uint64_t seed,
             const SearchLimits &limits = {}) {
  EvaluatorSettings settings;
  settings.problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  settings.imitated = op;
  SessionOptions options;
  options.algorithm = algorithm;
  options.seed = seed;
  options.objective = objective;
  options.limits = limits;
  auto session =
      Session::create({.root = makeGraphState(settings.problem)}, options);
  if (!session)
    return session.takeError();
  if (Error error = (*session)->makeEvaluators(
          {"params", "imitation"},
          [&](StringRef name) { return makeEvaluator(name, settings); }))
    return error;
  return session;
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
  uint64_t params = getNumParams(op, SearchProblem::get(space));
  auto session = makeImitator(space, op, algorithm, seed);
  if (!session)
    return session.takeError();
  double begin = getCpuSeconds();
  double best = 1;
  unsigned evaluations = 0;
  while (best > sameError && evaluations < maxEvaluations) {
    auto result = (*session)->step();
    if (!result)
      return result.takeError();
    if (!*result)
      break;
    ++evaluations;
    const auto *metrics = std::get_if<Metrics>(&(*result)->outcome);
    if (metrics && metrics->at("params") <= static_cast<double>(params))
      best = std::min(best, metrics->at("imitation_error"));
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
  SearchLimits limits;
  limits.evaluations = ~uint64_t(0);
  limits.seconds = seconds;
  limits.threads = threads;
  auto session = makeImitator(space, op, algorithm, /*seed=*/0, limits);
  if (!session)
    return session.takeError();
  // The tree is built with the first proposal, by one thread.
  auto first = (*session)->ask(1);
  if (!first)
    return first.takeError();
  if (Error error =
          (*session)->tell(first->front().id, Failure{"not evaluated"}))
    return error;
  double begin = getSeconds();
  auto results = (*session)->run();
  if (!results)
    return results.takeError();
  return static_cast<double>(results->evaluated.size() +
                             results->failed.size()) /
         (getSeconds() - begin);
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
