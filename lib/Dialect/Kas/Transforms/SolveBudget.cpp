//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives the free variables of a kernel values within budgets of FLOPs and
// parameters: the problem for Solver/Budget.h and its solution in IR.
// Source: Canvas, section 6.3; the exact mode is our own
// (docs/internals/tensor-level.md, "What differs from the paper, and why").
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/SolveKernel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-solve-budget"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

namespace kas {
#define GEN_PASS_DEF_KASSOLVEBUDGETPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

/// One term of a cost over `symbols`, or nothing when it does not fit.
static std::optional<CostTerm> getTerm(int64_t factor, ArrayRef<SizeAttr> sizes,
                                       const SymbolSet &symbols) {
  std::optional<Size> product = Size();
  for (SizeAttr size : sizes) {
    product = product->multiply(*size.toSize(symbols));
    if (!product)
      return std::nullopt;
  }
  return CostTerm{factor, *product};
}

namespace {
/// Collects sizes, costs and limits over the symbols of one kernel. A layer is
/// a binding with its multiplicity.
class ProblemBuilder {
public:
  ProblemBuilder(KernelOp kernel, const SolveBudgetOptions &options)
      : kernel(kernel), options(options), symbols(kernel.getSymbolSet()) {}

  FailureOr<BudgetProblem> make() {
    if (kernel.getBindings().empty())
      return kernel.emitOpError("requires bindings to solve for budgets");
    SizeRules rules = getSizeRules(kernel);
    problem.numSymbols = symbols.size();
    problem.variables = rules.variables;
    addLayers(rules);
    problem.costs.resize(2);
    problem.costs[0].name = "flops";
    problem.costs[1].name = "params";
    // The layers are ordered by their parameters, as in the implementation
    // that the paper's numbers come from.
    problem.sensitivity = 1;
    if (failed(addBudgets()) || failed(addSteps()))
      return failure();
    if (llvm::Error error = problem.check())
      return kernel.emitOpError() << llvm::toString(std::move(error));
    return problem;
  }

private:
  /// Channels of the first input order the layers for the heuristic.
  void addLayers(const SizeRules &rules) {
    TensorShape input;
    Block &block = kernel.getBody().front();
    if (block.getNumArguments() > 0)
      input = getShape(block.getArgument(0), symbols);
    for (auto [binding, count] :
         llvm::zip_equal(rules.bindings, kernel.getMultiplicities())) {
      int64_t channels = 1;
      for (const Size &size :
           ArrayRef(input.dims).take_front(input.numChannelDims))
        if (std::optional<int64_t> value = size.evaluate(binding))
          // Saturates: the number only orders layers by how wide they are.
          if (__builtin_mul_overflow(channels, *value, &channels))
            channels = INT32_MAX;
      problem.layers.push_back({binding, count, channels});
    }
  }

  /// Cost 0 is FLOPs, cost 1 parameters; missing bounds do not bind.
  LogicalResult addBudgets() {
    auto get = [&](StringRef name) -> std::optional<int64_t> {
      auto value = kernel.getBudget().getAs<IntegerAttr>(name);
      return value ? std::optional(value.getInt()) : std::nullopt;
    };
    problem.costs[0].upper = get("flops");
    problem.costs[0].lower = get("flops_min");
    problem.costs[1].upper = get("params");
    problem.costs[1].lower = get("params_min");
    // What is to be used up: FLOPs where they are limited, else parameters.
    problem.objective = problem.costs[0].upper ? 0 : 1;
    if (!problem.costs[problem.objective].upper)
      return kernel.emitOpError(
          "requires an upper budget of 'flops' or 'params'");
    return success();
  }

  /// Every size must become an integer, every cost counts.
  LogicalResult addSteps() {
    Block &block = kernel.getBody().front();
    for (BlockArgument input : block.getArguments())
      if (failed(addTensor(input)))
        return failure();
    for (Operation &op : block) {
      for (Value result : op.getResults())
        if (failed(addTensor(result)))
          return failure();
      auto step = dyn_cast<DagOpInterface>(op);
      if (!step)
        continue;
      for (SizeAttr size : step.getImpliedSizes())
        addSize(*size.toSize(symbols));
      if (failed(addCost(op, 0, step.getFlops())) ||
          failed(addCost(op, 1, step.getParams())))
        return failure();
    }
    return success();
  }

  /// Each distinct size once: all must be integers at every layer.
  void addSize(const Size &size) {
    if (!llvm::is_contained(problem.sizes, size))
      problem.sizes.push_back(size);
  }

  /// Its sizes, and a limit of its elements for a batch.
  LogicalResult addTensor(Value tensor) {
    auto type = cast<SymbolicTensorType>(tensor.getType());
    for (const Size &size : getShape(tensor, symbols).dims)
      addSize(size);
    std::optional<CostTerm> elements =
        getTerm(options.batch, type.getDims(), symbols);
    if (!elements)
      return emitError(tensor.getLoc(),
                       "the number of elements does not fit a size");
    bool isNew = llvm::none_of(problem.limits, [&](const auto &limit) {
      return limit.terms[0].size == elements->size;
    });
    // Costs may not fall when a variable grows; a tensor that shrinks then is
    // largest where the variable is 1.
    for (unsigned variable : problem.variables)
      isNew &= elements->size.getExponent(variable) >= 0;
    if (isNew)
      problem.limits.push_back({{*elements}, options.maxElements});
    return success();
  }

  /// Adds the terms of one op to cost number `cost`.
  LogicalResult addCost(Operation &op, unsigned cost,
                        ArrayRef<SizeProduct> products) {
    for (const SizeProduct &product : products) {
      std::optional<CostTerm> term =
          getTerm(product.factor, product.sizes, symbols);
      if (!term)
        return op.emitOpError("has a cost whose exponents and constant do not "
                              "fit a size");
      problem.costs[cost].terms.push_back(*term);
    }
    return success();
  }

  KernelOp kernel;
  const SolveBudgetOptions &options;
  SymbolSet symbols;
  BudgetProblem problem;
};
} // namespace

FailureOr<BudgetProblem>
kas::getBudgetProblem(KernelOp kernel, const SolveBudgetOptions &options) {
  return ProblemBuilder(kernel, options).make();
}

//===----------------------------------------------------------------------===//
// The solution
//===----------------------------------------------------------------------===//

/// `flops within 1000`, for messages.
static std::string describe(const BudgetConflict &conflict,
                            const BudgetProblem &problem, KernelOp kernel) {
  SymbolSet symbols = kernel.getSymbolSet();
  std::string text;
  llvm::raw_string_ostream os(text);
  switch (conflict.kind) {
  case BudgetConflict::Kind::Size:
    os << '\'' << toString(problem.sizes[conflict.index], symbols)
       << "' is an integer";
    break;
  case BudgetConflict::Kind::Variable:
    os << "a value of '" << symbols.getName(problem.variables[conflict.index])
       << "' up to " << problem.maxValue << " makes all sizes integers";
    break;
  case BudgetConflict::Kind::Limit:
    os << "the tensor of "
       << toString(problem.limits[conflict.index].terms[0].size, symbols)
       << " elements is within the limit";
    break;
  case BudgetConflict::Kind::Lower:
    os << problem.costs[conflict.index].name << " of at least "
       << *problem.costs[conflict.index].lower;
    return text;
  case BudgetConflict::Kind::Upper:
    os << problem.costs[conflict.index].name << " of at most "
       << problem.costs[conflict.index].upper.value_or(
              BudgetProblem::costCeiling - 1);
    return text;
  }
  os << " at binding " << conflict.layer;
  return text;
}

/// An infeasible kernel names constraints that cannot hold together.
static LogicalResult reportConflict(KernelOp kernel,
                                    const BudgetProblem &problem,
                                    const BudgetSolution &solution) {
  InFlightDiagnostic diagnostic =
      solution.status == BudgetStatus::Infeasible
          ? kernel.emitOpError("is infeasible, because it is impossible that ")
          : kernel.emitOpError("has no solution that was found");
  // The heuristic may miss a solution that exists, so it says less.
  if (solution.status != BudgetStatus::Infeasible &&
      !solution.conflicts.empty())
    diagnostic << ", because it was missed that ";
  for (auto [index, conflict] : llvm::enumerate(solution.conflicts))
    diagnostic << (index == 0 ? "" : " and ")
               << describe(conflict, problem, kernel);
  return diagnostic;
}

/// Writes values, totals and status into the kernel.
static void writeSolution(KernelOp kernel, const BudgetProblem &problem,
                          const BudgetSolution &solution) {
  SymbolSet symbols = kernel.getSymbolSet();
  SmallVector<Attribute> bindings;
  for (auto [attr, values] : llvm::zip_equal(
           kernel.getBindings().getAsRange<BindingAttr>(), solution.values)) {
    SmallVector<std::pair<StringRef, int64_t>> entries;
    for (auto [name, value] :
         llvm::zip_equal(attr.getNames(), attr.getValues()))
      entries.push_back({name.getValue(), value});
    for (auto [variable, value] : llvm::zip_equal(problem.variables, values))
      entries.push_back({symbols.getName(variable), value});
    bindings.push_back(BindingAttr::getNormal(kernel.getContext(), entries));
  }
  Builder builder(kernel.getContext());
  kernel.setBindingsAttr(builder.getArrayAttr(bindings));
  NamedAttrList entries;
  for (auto [cost, total] : llvm::zip_equal(problem.costs, solution.totals))
    entries.set(cost.name, builder.getI64IntegerAttr(total));
  // An upper bound of what any solution can use: how near to the optimum this
  // is.
  entries.set(problem.costs[problem.objective].name + "_bound",
              builder.getI64IntegerAttr(solution.bound));
  entries.set("status",
              builder.getStringAttr(solution.status == BudgetStatus::Optimal
                                        ? "optimal"
                                        : "bounded"));
  kernel.setSolutionAttr(entries.getDictionary(kernel.getContext()));
}

/// Solves for the bindings as they are; reports only what is no problem of the
/// solver.
static FailureOr<std::pair<BudgetProblem, BudgetSolution>>
solveAsBound(KernelOp kernel, const SolveBudgetOptions &options) {
  FailureOr<BudgetProblem> problem = getBudgetProblem(kernel, options);
  if (failed(problem))
    return failure();
  if (options.likeCanvas)
    for (const Size &size : problem->sizes)
      for (unsigned variable : problem->variables)
        if (size.getExponent(variable) < 0)
          return kernel.emitOpError("requires variables in numerators only for "
                                    "the heuristic of Canvas, got '")
                 << toString(size, kernel.getSymbolSet()) << "'";
  BudgetSolution solution =
      options.likeCanvas ? solveBudgetLikeCanvas(*problem)
                         : solveBudget(*problem, {.spread = options.spread});
  return std::pair(std::move(*problem), std::move(solution));
}

//===----------------------------------------------------------------------===//
// The number of groups
//===----------------------------------------------------------------------===//

/// The numbers that `groups` may be at all layers; reports a symbol that groups
/// nothing.
static FailureOr<SmallVector<int64_t>> getGroupCandidates(KernelOp kernel,
                                                          StringRef groups) {
  SymbolSet symbols = kernel.getSymbolSet();
  std::optional<unsigned> symbol = symbols.lookup(groups);
  SmallVector<int64_t> multiples;
  SizeRules rules = getSizeRules(kernel);
  for (const SizeRules::Divides &fact : rules.facts)
    if (symbol && fact.divisor == Size::symbol(*symbol))
      for (const Binding &binding : rules.bindings)
        multiples.push_back(binding[fact.multiple]);
  if (multiples.empty())
    return kernel.emitOpError("requires bindings, and a symbol that divides "
                              "another one as groups, got '")
           << groups << "'";
  return groupCandidates(multiples);
}

/// Gives `name` one value in all bindings.
/// Changes the attribute in place; the caller restores it.
static void bindGroups(KernelOp kernel, StringRef name, int64_t value) {
  SmallVector<Attribute> bindings;
  for (auto attr : kernel.getBindings().getAsRange<BindingAttr>()) {
    SmallVector<std::pair<StringRef, int64_t>> entries;
    for (auto [other, old] : llvm::zip_equal(attr.getNames(), attr.getValues()))
      entries.push_back(
          {other.getValue(), other.getValue() == name ? value : old});
    bindings.push_back(BindingAttr::getNormal(kernel.getContext(), entries));
  }
  kernel.setBindingsAttr(ArrayAttr::get(kernel.getContext(), bindings));
}

/// The same for each number of groups that keeps the kernel legal, and of those
/// within the budgets the one that uses most.
/// One problem per candidate, at most as many as the channels have divisors.
static LogicalResult solveWithGroups(KernelOp kernel,
                                     const SolveBudgetOptions &options) {
  FailureOr<SmallVector<int64_t>> candidates =
      getGroupCandidates(kernel, options.groups);
  if (failed(candidates))
    return failure();
  ArrayAttr before = kernel.getBindings();
  std::optional<std::pair<BudgetProblem, BudgetSolution>> best, first;
  int64_t chosen = 0;
  for (int64_t candidate : *candidates) {
    bindGroups(kernel, options.groups, candidate);
    {
      // A number that is not legal is no error: the next one may be.
      ScopedDiagnosticHandler silence(kernel.getContext(),
                                      [](Diagnostic &) { return success(); });
      if (failed(mlir::verify(kernel)))
        continue;
    }
    auto solved = solveAsBound(kernel, options);
    if (failed(solved)) {
      kernel.setBindingsAttr(before);
      return failure();
    }
    unsigned objective = solved->first.objective;
    LDBG() << kernel.getSymName() << ": " << options.groups << " = "
           << candidate << ": "
           << (solved->second.values.empty()
                   ? "no solution"
                   : std::to_string(solved->second.totals[objective]));
    // Its conflict is reported where no candidate has a solution.
    if (!first)
      first = *solved;
    if (solved->second.values.empty() ||
        (best &&
         solved->second.totals[objective] <= best->second.totals[objective]))
      continue;
    best = std::move(*solved);
    chosen = candidate;
  }
  if (!best) {
    kernel.setBindingsAttr(before);
    if (!first)
      return kernel.emitOpError("is legal with none of ")
             << candidates->size() << " numbers of groups '" << options.groups
             << "'";
    return reportConflict(kernel, first->first, first->second);
  }
  bindGroups(kernel, options.groups, chosen);
  writeSolution(kernel, best->first, best->second);
  return success();
}

LogicalResult kas::solveBudget(KernelOp kernel,
                               const SolveBudgetOptions &options) {
  if (!options.groups.empty())
    return solveWithGroups(kernel, options);
  auto solved = solveAsBound(kernel, options);
  if (failed(solved))
    return failure();
  auto &[problem, solution] = *solved;
  if (solution.values.empty())
    return reportConflict(kernel, problem, solution);
  LDBG() << kernel.getSymName() << ": " << solution.totals[problem.objective]
         << " of at most " << solution.bound;
  writeSolution(kernel, problem, solution);
  return success();
}

namespace {
struct KasSolveBudgetPass
    : public kas::impl::KasSolveBudgetPassBase<KasSolveBudgetPass> {
  using KasSolveBudgetPassBase::KasSolveBudgetPassBase;

  void runOnOperation() override {
    if (spread < 0) {
      emitError(getOperation()->getLoc())
          << "option 'spread' must be at least 0, got " << spread.getValue();
      return signalPassFailure();
    }
    SolveBudgetOptions options;
    options.likeCanvas = mode == BudgetMode::Canvas;
    options.batch = batch;
    options.maxElements = maxElements;
    options.spread = spread;
    options.groups = groups;
    WalkResult result = getOperation()->walk([&](KernelOp kernel) {
      if (kernel.getBudget().empty())
        return WalkResult::advance();
      return failed(solveBudget(kernel, options)) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
