//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the search pass can search: operators of a space, sequences, kernels,
// and networks where they are registered.
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
  double getCost(const Solution &solution) const override {
    return static_cast<double>(getGraph(solution).cost.flops);
  }
  // Databases without this one count weights each time that data meets them.
  SearchSettings getSettings() const override {
    return {{"flops_of", flopsOfPreparedWeights.str()}};
  }
  llvm::Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(llvm::StringRef name,
                const EvaluatorSettings &settings) const override {
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

static const KernelGraph &getKernel(const Solution &solution) {
  return static_cast<const KernelGraph &>(solution);
}

/// The totals at the values that the budget gives the variables.
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
  // Only the smallest spaces of kernels can be listed.
  uint64_t getTreeExpansions() const override { return 10000; }
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
    if (found - names < 2)
      return std::make_unique<KernelCostEvaluator>(name, found - names);
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
  mlir::Operation *build(mlir::OpBuilder &builder, llvm::StringRef name,
                         const Solution &solution) const override {
    const KernelGraph &graph = getKernel(solution);
    return buildKernel(builder, KernelOp(kernel).getLoc(), name, graph,
                       &graph.solve());
  }
  std::vector<std::string> explainEmpty() const override { return {}; }

private:
  /// Builds the kernel in a module of its own, from any thread.
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

  llvm::Expected<CandidateText> describe(const KernelGraph &graph) const {
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
  mutable std::mutex mutex;
  mutable mlir::MLIRContext context;
};
} // namespace

llvm::FailureOr<std::unique_ptr<SearchTarget>>
kas::search::makeKernelTarget(KernelOp kernel,
                              llvm::ArrayRef<std::string> limits,
                              llvm::StringRef groups) {
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
  std::string settings = "limits " + llvm::join(limits, ",");
  if (!groups.empty())
    settings += " groups " + groups.str();
  return std::unique_ptr<SearchTarget>(std::make_unique<KernelTarget>(
      kernel, std::move(*problem), std::move(settings)));
}

//===----------------------------------------------------------------------===//
// Transformations of a network
//===----------------------------------------------------------------------===//

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
