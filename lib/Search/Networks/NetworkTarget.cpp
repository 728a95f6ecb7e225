//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets the search pass search transformations of a network, and the evaluators
// for them.
//
// The target connects four things: the state of NetworkState.h, evaluators, the
// script as the text of a candidate, and the transformed function as its IR.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/NetworkTarget.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Search/Evaluators/LatencyEvaluator.h"
#include "kas/Search/Networks/FisherScorer.h"
#include "kas/Search/Networks/LayerTimes.h"
#include "kas/Search/Pass/SearchTarget.h"
#include "kas/Support/Bytecode.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// Solutions of a network search are configurations.
static const NetworkConfiguration &getConfiguration(const Solution &solution) {
  return static_cast<const NetworkConfiguration &>(solution);
}

namespace {

/// `flops` or `params`, counted by the state.
class NetworkCostEvaluator final : public Evaluator {
public:
  explicit NetworkCostEvaluator(StringRef name) : name(name) {}

  StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    const NetworkConfiguration &configuration = getConfiguration(solution);
    // Two FLOPs per multiply-add.
    return Metrics{{name, name == "flops" ? 2 * configuration.macs
                                          : configuration.params}};
  }

private:
  std::string name;
};

/// Threads share the scorer, which locks itself.
class FisherEvaluator final : public Evaluator {
public:
  explicit FisherEvaluator(std::unique_ptr<FisherScorer> scorer)
      : scorer(std::move(scorer)) {}

  StringRef getName() const override { return "fisher"; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    Expected<double> score = scorer->score(getConfiguration(solution));
    if (!score)
      return score.takeError();
    // The ratio tells at once whether the network has lost capacity: above 1 it
    // has more Fisher Potential than the original.
    return Metrics{{"fisher", *score},
                   {"fisher_ratio", *score / scorer->getOriginal()}};
  }

private:
  std::unique_ptr<FisherScorer> scorer;
};

/// A sum of layers that were measured alone; cheaper than `latency`, which runs
/// the whole network.
class LayerLatencyEvaluator final : public Evaluator {
public:
  explicit LayerLatencyEvaluator(std::unique_ptr<LayerTimes> times)
      : times(std::move(times)) {}

  StringRef getName() const override { return "layer_latency"; }
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override {
    Expected<double> time = times->getTime(getConfiguration(solution));
    if (!time)
      return time.takeError();
    return Metrics{{"layer_latency_ms", *time},
                   {"layer_latency_ratio", *time / times->getOriginal()}};
  }

private:
  std::unique_ptr<LayerTimes> times;
};

/// `scored` may be `function` itself.
class NetworkTarget final : public SearchTarget {
public:
  NetworkTarget(func::FuncOp function, func::FuncOp scored,
                NetworkProblem problem, std::string settings)
      : function(function), scored(scored),
        problem(std::make_shared<const NetworkProblem>(std::move(problem))),
        settings(std::move(settings)),
        context(function->getContext()->getDialectRegistry(),
                MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    // A copy of the module in the context of this object, see `context`.
    own = readBytecode(writeBytecode(function), &context);
  }

  Operation *getOp() const override { return function; }
  StringRef getNoun() const override { return "network"; }
  std::unique_ptr<State> makeState() const override {
    return makeNetworkState(problem);
  }
  // Only of the smallest networks all configurations can be listed. Each layer
  // multiplies the number of configurations by that of its programs.
  uint64_t getTreeExpansions() const override { return 1000; }
  double getCost(const Solution &solution) const override {
    return 2 * getConfiguration(solution).macs;
  }
  Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(StringRef name,
                const EvaluatorSettings &settings) const override;
  /// The function itself is in the settings as the op of the target.
  SearchSettings getSettings() const override {
    return {{"network_search", settings}};
  }
  std::string print(const Solution &solution) override {
    return printScript(*problem, getConfiguration(solution));
  }
  Operation *build(OpBuilder &builder, StringRef name,
                   const Solution &solution) const override;
  /// There is always the configuration that keeps every layer.
  std::vector<std::string> explainEmpty() const override { return {}; }

private:
  /// The whole network, transformed, as text. Locks `mutex`.
  Expected<CandidateText> describe(const NetworkConfiguration &) const;

  func::FuncOp function, scored;
  std::shared_ptr<const NetworkProblem> problem;
  std::string settings;
  mutable std::mutex mutex;
  /// Of its own: candidates are described by other threads.
  mutable MLIRContext context;
  OwningOpRef<ModuleOp> own;
};

} // namespace

/// The evaluators that run the network get it as text by `describe`.
Expected<std::unique_ptr<Evaluator>>
NetworkTarget::makeEvaluator(StringRef name,
                             const EvaluatorSettings &given) const {
  static constexpr llvm::StringLiteral names[] = {
      "flops", "params", "fisher", "layer_latency", "latency", "external"};
  if (!llvm::is_contained(names, name))
    return createStringError("requires an evaluator of networks among " +
                             llvm::join(ArrayRef(names), ", ") + ", got '" +
                             name + "'");
  if (name == "flops" || name == "params")
    return std::make_unique<NetworkCostEvaluator>(name);
  if (name == "fisher") {
    auto scorer = FisherScorer::create(scored, problem);
    if (!scorer)
      return scorer.takeError();
    return std::make_unique<FisherEvaluator>(std::move(*scorer));
  }
  if (name == "layer_latency") {
    auto times = LayerTimes::create(
        problem, function->getContext()->getDialectRegistry(), given,
        makeLatencyEvaluator);
    if (!times)
      return times.takeError();
    return std::make_unique<LayerLatencyEvaluator>(std::move(*times));
  }
  // Named like the member on purpose: the rest of the settings is kept.
  EvaluatorSettings own = given;
  own.describe = [this](const Solution &solution) {
    return describe(getConfiguration(solution));
  };
  return kas::search::makeEvaluator(name, own);
}

Expected<CandidateText>
NetworkTarget::describe(const NetworkConfiguration &configuration) const {
  std::lock_guard<std::mutex> lock(mutex);
  // Diagnostics of the private context become the reason of the error.
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(ModuleOp(*own)->clone());
  // The module has that function alone.
  auto candidate = *module->getOps<func::FuncOp>().begin();
  if (failed(applyConfiguration(candidate, *problem, configuration)))
    return createStringError(reason);
  CandidateText text{"function", {}, {}, {}};
  llvm::raw_string_ostream(text.text) << *module;
  return text;
}

/// For the pass, so in the pass's own context and thread.
Operation *NetworkTarget::build(OpBuilder &builder, StringRef name,
                                const Solution &solution) const {
  func::FuncOp candidate = func::FuncOp(function).clone();
  candidate.setName(name);
  builder.insert(candidate);
  // The state has made the same programs of the same layers.
  LogicalResult applied =
      applyConfiguration(candidate, *problem, getConfiguration(solution));
  assert(succeeded(applied) && "a program that a state has made");
  (void)applied;
  return candidate;
}

/// The factory checks that the operations are functions and the limits are
/// legal before it looks at the network.
void kas::search::registerNetworkSearch() {
  registerNetworkTarget([](const NetworkRequest &request)
                            -> FailureOr<std::unique_ptr<SearchTarget>> {
    auto function = dyn_cast<func::FuncOp>(request.network);
    auto scored = dyn_cast<func::FuncOp>(request.scored);
    if (!function || !scored)
      return request.network->emitError("requires networks that are functions");
    NetworkLimits limits;
    for (const std::string &limit : request.limits)
      if (Error error = parseNetworkLimit(limit, limits))
        return function.emitError("requires limits of the search that make "
                                  "sense: ")
               << llvm::toString(std::move(error));
    FailureOr<NetworkProblem> problem = NetworkProblem::get(function, limits);
    if (failed(problem))
      return failure();
    // Scripts name layers, and parts of a split are not convolutions of their
    // own. The marks are on the function itself, since the script is to be
    // applied to the user's module.
    SmallVector<linalg::LinalgOp> convolutions = findConvolutions(function);
    for (const NetworkProblem::Layer &layer : problem->layers)
      convolutions[layer.index]->setAttr(
          KasDialect::layerAttrName,
          StringAttr::get(function.getContext(), layer.name));
    std::string settings = "limits " + llvm::join(request.limits, ",");
    // Scores depend on the scored network, so it decides whether a database can
    // go on.
    if (scored != function)
      llvm::raw_string_ostream(settings) << "\nscored " << *scored;
    return std::unique_ptr<SearchTarget>(std::make_unique<NetworkTarget>(
        function, scored, std::move(*problem), std::move(settings)));
  });
}
