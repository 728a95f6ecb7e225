//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The targets of the search pass: operators of a space, sequences, kernels,
// and networks where they are registered.
//
// The pass knows this interface only: adding a kind of search means adding a
// target. Targets own the problem and outlive the session.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Pass/SearchTarget.h"
#include "kas/Search/Core/CandidateSpace.h"
#include "kas/Search/Operators/GraphState.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "kas/Search/Pass/Explain.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

llvm::StringRef SearchTarget::getName() const {
  return mlir::SymbolTable::getSymbolName(getOp()).getValue();
}

//===----------------------------------------------------------------------===//
// Operators of a space
//===----------------------------------------------------------------------===//

namespace {
/// Candidates are `OperatorGraph`s.
class SpaceTarget final : public SearchTarget {
public:
  explicit SpaceTarget(SpaceOp space)
      : space(space), problem(std::make_shared<const SearchProblem>(
                          SearchProblem::get(space))),
        printer(problem) {}

  mlir::Operation *getOp() const override { return space; }
  SpaceOp getLayerSpace() const override { return space; }
  llvm::StringRef getNoun() const override { return "operator"; }
  std::unique_ptr<State> makeState() const override {
    return makeGraphState(problem);
  }
  uint64_t getTreeExpansions() const override {
    return CandidateSpace::Options().treeExpansions;
  }
  /// The FLOPs that the search has counted already.
  double getCost(const Solution &solution) const override {
    return static_cast<double>(getGraph(solution).cost.flops);
  }
  // Databases without this one count weights each time that data meets them. A
  // search with other FLOPs has other metrics, so this is part of its identity.
  SearchSettings getSettings() const override {
    return {{"flops_of", flopsOfPreparedWeights.str()}};
  }
  llvm::Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(llvm::StringRef name,
                const EvaluatorSettings &settings) const override {
    // Evaluators that run the network need the space, to find its layers.
    EvaluatorSettings own = settings;
    own.problem = problem;
    own.space = space;
    return kas::search::makeEvaluator(name, own);
  }
  std::string print(const Solution &solution) override {
    return printer.print(getGraph(solution));
  }
  mlir::Operation *build(mlir::OpBuilder &builder, llvm::StringRef name,
                         const Solution &solution) const override {
    // In the context of the builder, unlike `print`.
    return buildOperator(builder, SpaceOp(space).getLoc(), name, *problem,
                         getGraph(solution));
  }
  std::vector<std::string> explainEmpty() const override {
    return explainEmptySpace(*problem);
  }

private:
  static const OperatorGraph &getGraph(const Solution &solution) {
    return static_cast<const OperatorGraph &>(solution);
  }

  SpaceOp space;
  std::shared_ptr<const SearchProblem> problem;
  OperatorPrinter printer;
};
} // namespace

std::unique_ptr<SearchTarget> kas::search::makeSpaceTarget(SpaceOp space) {
  return std::make_unique<SpaceTarget>(space);
}

//===----------------------------------------------------------------------===//
// Kernels like a given one
//===----------------------------------------------------------------------===//

/// Solutions of a kernel search are kernels.
static const KernelGraph &getKernel(const Solution &solution) {
  return static_cast<const KernelGraph &>(solution);
}

/// The totals at the values that the budget gives the variables. A kernel with
/// variables has the values that the budget solver chooses for it
/// (docs/internals/tensor-level.md); without any legal values it has no cost.
static llvm::Expected<llvm::ArrayRef<int64_t>>
getTotals(const KernelGraph &graph) {
  const BudgetSolution &budget = graph.solve();
  if (budget.totals.empty())
    return llvm::createStringError(
        "no values of its variables are within the budgets");
  return budget.totals;
}

namespace {
/// The total of one cost, at the values that the budget gives the variables.
/// `cost` is the index of the cost in the totals: 0 for FLOPs, 1 for
/// parameters.
class KernelCostEvaluator final : public Evaluator {
public:
  KernelCostEvaluator(llvm::StringRef name, unsigned cost)
      : name(name), cost(cost) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    llvm::Expected<llvm::ArrayRef<int64_t>> totals =
        getTotals(getKernel(solution));
    if (!totals)
      return totals.takeError();
    return Metrics{{name, static_cast<double>((*totals)[cost])}};
  }

private:
  std::string name;
  unsigned cost;
};

/// `context` is private, since texts are made on the threads of the driver, and
/// the context of the pass may not allow that.
class KernelTarget final : public SearchTarget {
public:
  KernelTarget(KernelOp kernel, KernelProblem problem, std::string settings)
      : kernel(kernel),
        problem(std::make_shared<const KernelProblem>(std::move(problem))),
        settings(std::move(settings)) {
    context.loadDialect<KasDialect>();
  }

  mlir::Operation *getOp() const override { return kernel; }
  llvm::StringRef getNoun() const override { return "kernel"; }
  std::unique_ptr<State> makeState() const override {
    return makeKernelState(problem);
  }
  // Only the smallest spaces of kernels can be listed. A state of a kernel has
  // far more moves than one of an operator.
  uint64_t getTreeExpansions() const override { return 10000; }
  /// Kernels that no values fit come last.
  double getCost(const Solution &solution) const override {
    const BudgetSolution &budget = getKernel(solution).solve();
    return budget.totals.empty() ? std::numeric_limits<double>::infinity()
                                 : static_cast<double>(budget.totals[0]);
  }
  llvm::Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(llvm::StringRef name,
                const EvaluatorSettings &settings) const override {
    static constexpr llvm::StringLiteral names[] = {"flops", "params",
                                                    "latency", "external"};
    const auto *found = llvm::find(names, name);
    if (found == std::end(names))
      return llvm::createStringError("requires an evaluator of kernels among " +
                                     llvm::join(llvm::ArrayRef(names), ", ") +
                                     ", got '" + name + "'");
    // The order of `names` is that of the totals: the first two are counted.
    if (found - names < 2)
      return std::make_unique<KernelCostEvaluator>(name, found - names);
    // The others get the text of the kernel.
    EvaluatorSettings own = settings;
    own.describe = [this](const Solution &solution) {
      return describe(getKernel(solution));
    };
    return kas::search::makeEvaluator(name, own);
  }
  SearchSettings getSettings() const override {
    return {{"kernel_search", settings}};
  }
  std::string print(const Solution &solution) override {
    std::string text;
    llvm::raw_string_ostream stream(text);
    buildAlone(getKernel(solution),
               [&](KernelOp kernel) { stream << kernel << "\n"; });
    return text;
  }
  /// In the context of the pass.
  mlir::Operation *build(mlir::OpBuilder &builder, llvm::StringRef name,
                         const Solution &solution) const override {
    const KernelGraph &graph = getKernel(solution);
    return buildKernel(builder, KernelOp(kernel).getLoc(), name, graph,
                       &graph.solve());
  }
  /// What excludes all kernels is not known.
  std::vector<std::string> explainEmpty() const override { return {}; }

private:
  /// Builds the kernel in a module of its own, from any thread. `use` is called
  /// with the kernel before the module is dropped.
  void buildAlone(const KernelGraph &graph,
                  llvm::function_ref<void(KernelOp)> use) const {
    std::lock_guard<std::mutex> lock(mutex);
    mlir::OpBuilder builder(&context);
    auto module = mlir::OwningOpRef<mlir::ModuleOp>(
        mlir::ModuleOp::create(builder.getUnknownLoc()));
    builder.setInsertionPointToEnd(module->getBody());
    use(buildKernel(builder, builder.getUnknownLoc(), "candidate", graph,
                    &graph.solve()));
  }

  /// A kernel text has bindings of its own, with values for the symbols and the
  /// variables.
  llvm::Expected<CandidateText> describe(const KernelGraph &graph) const {
    // Without values for its variables it cannot run.
    if (llvm::Error error = getTotals(graph).takeError())
      return error;
    CandidateText text{"kernel", {}, {}, {}};
    buildAlone(graph, [&](KernelOp kernel) {
      llvm::raw_string_ostream(text.text) << kernel << "\n";
      for (auto attr : kernel.getBindings().getAsRange<BindingAttr>()) {
        auto &values = text.bindings.emplace_back();
        for (auto [name, value] :
             llvm::zip_equal(attr.getNames(), attr.getValues()))
          values.emplace_back(name.str(), value);
      }
      text.multiplicities = kernel.getMultiplicities();
    });
    return text;
  }

  KernelOp kernel;
  std::shared_ptr<const KernelProblem> problem;
  std::string settings;
  /// Guards `context`.
  mutable std::mutex mutex;
  mutable mlir::MLIRContext context;
};
} // namespace

llvm::FailureOr<std::unique_ptr<SearchTarget>>
kas::search::makeKernelTarget(KernelOp kernel,
                              llvm::ArrayRef<std::string> limits,
                              llvm::StringRef groups) {
  // Limits are parsed one by one, so that the error can name the wrong one.
  KernelLimits parsed;
  for (const std::string &limit : limits)
    if (llvm::Error error = parseKernelLimit(limit, parsed))
      return kernel.emitOpError(
                 "requires limits of the search that make sense: ")
             << llvm::toString(std::move(error));
  llvm::FailureOr<KernelProblem> problem =
      KernelProblem::get(kernel, parsed, groups);
  if (failed(problem))
    return mlir::failure();
  // Both decide which kernels there are, so they are part of the database.
  std::string settings = "limits " + llvm::join(limits, ",");
  if (!groups.empty())
    settings += " groups " + groups.str();
  return std::unique_ptr<SearchTarget>(std::make_unique<KernelTarget>(
      kernel, std::move(*problem), std::move(settings)));
}

//===----------------------------------------------------------------------===//
// Transformations of a network
//===----------------------------------------------------------------------===//

/// Set once, before passes run, by a library on top of this one: a library
/// refers to those below it only.
static NetworkTargetFactory &getNetworkTargetFactory() {
  static NetworkTargetFactory factory;
  return factory;
}

void kas::search::registerNetworkTarget(NetworkTargetFactory factory) {
  getNetworkTargetFactory() = std::move(factory);
}

llvm::FailureOr<std::unique_ptr<SearchTarget>>
kas::search::makeNetworkTarget(const NetworkRequest &request) {
  if (const NetworkTargetFactory &factory = getNetworkTargetFactory())
    return factory(request);
  return request.network->emitError(
      "requires a program that links the library of network searches");
}
