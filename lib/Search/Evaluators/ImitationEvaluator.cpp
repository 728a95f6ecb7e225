//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator `imitation`: compares candidates with a given operator as sets
// of functions.
//
// Metrics compare both directions, because one operator may be a special case
// of the other: missing and excess are the two halves of "not the same set of
// functions".
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/ImitationEvaluator.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Search/Evaluators/Imitation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// The operator to imitate at one binding, and what it computes. One for each
/// binding of the space. The samples are computed once and fitted by every
/// candidate.
struct Target {
  Binding binding;
  ProductList products;
  /// The number of samples, for both directions.
  unsigned count = 0;
  ImitationSamples fitted, held;
};

class ImitationEvaluator final : public Evaluator {
public:
  /// Exact imitation is what the evaluator looks for, so the iteration goes on
  /// for long and with little regularization; most candidates stop after few
  /// sweeps by `progress`.
  explicit ImitationEvaluator(std::shared_ptr<const SearchProblem> problem)
      : problem(std::move(problem)) {
    // Where nothing is lost to noise, a fit that can be exact soon is.
    options.sweeps = 20;
    options.restarts = 2;
    options.ridge = 1e-9;
    options.tolerance = 1e-9;
    options.progress = 0.02;
  }

  llvm::StringRef getName() const override { return "imitation"; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override;
  /// Called once per binding before the search; its errors are errors of the
  /// options.
  Error addTarget(OperatorOp op, const Binding &binding);

private:
  std::shared_ptr<const SearchProblem> problem;
  std::vector<Target> targets;
  ImitationOptions options;
};

/// The data of what is fitted and of what is held, and random weights. Fixed:
/// the metric is a function of the candidate.
enum Seeds : uint64_t { FittedSeed = 1, HeldSeed = 2, WeightSeed = 3 };

} // namespace

/// The normal equations of a weight are dense, see `fitWeight`.
static Error checkWeights(const ProductList &products) {
  for (uint32_t size : products.weightSizes)
    if (size > maxFittedElements)
      return createStringError("requires at most %lld elements of a weight at "
                               "the bindings to imitate at, got %u",
                               static_cast<long long>(maxFittedElements), size);
  return Error::success();
}

/// The symbols of the operator are bound by name to those of the space.
Error ImitationEvaluator::addTarget(OperatorOp op, const Binding &binding) {
  SymbolSet symbols = op.getSymbolSet();
  Binding own;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol) {
    std::optional<unsigned> index =
        problem->symbols.lookup(symbols.getName(symbol));
    if (!index)
      return createStringError(
          "requires the symbol '" + symbols.getName(symbol) + "' of @" +
          op.getSymName() + " in the space, got none of that name");
    own.push_back(binding[*index]);
  }
  // A concrete copy is made in a module of its own, which is dropped at the
  // end; the user's module is not changed.
  mlir::OwningOpRef<mlir::ModuleOp> scratch =
      mlir::ModuleOp::create(op.getLoc());
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(scratch->getBody());
  // Its diagnostics are the reason of the error here.
  std::string reason;
  mlir::ScopedDiagnosticHandler handler(op.getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          if (reason.empty())
                                            reason = diagnostic.str();
                                          return mlir::success();
                                        });
  auto concrete =
      specialize(builder, op, own, "imitated", [&] { return op.emitError(); });
  if (mlir::failed(concrete))
    return createStringError("cannot imitate @" + op.getSymName() + ": " +
                             reason);
  // Equal numbers at this binding; the expressions may be written differently.
  auto isShape = [&](llvm::ArrayRef<Dimension> shape,
                     llvm::ArrayRef<SizeAttr> sizes) {
    return llvm::equal(
        shape, sizes, [&](const Dimension &dimension, SizeAttr size) {
          return dimension.size.evaluate(binding) == size.getConstantValue();
        });
  };
  llvm::SmallVector<SizeAttr> outputs =
      llvm::map_to_vector(concrete->getOutputs(),
                          [](mlir::Value output) { return getSize(output); });
  if (!isShape(problem->inputs, concrete->getDataSizes()) ||
      !isShape(problem->outputs, outputs))
    return createStringError("requires @" + op.getSymName() +
                             " to have the shapes of the space, got others");
  Expected<ProductList> products = getProducts(*concrete);
  if (!products)
    return products.takeError();
  if (Error error = checkWeights(*products))
    return error;

  // Enough equations for as many unknowns, three for each. With three equations
  // for each unknown the fit generalizes to the held samples; four samples at
  // least for operators with few weights.
  uint64_t params = 0;
  for (uint32_t size : products->weightSizes)
    params += size;
  Target target;
  target.count = std::max<uint64_t>(
      4, llvm::divideCeil(3 * params, products->getNumPoints()));
  target.fitted = ImitationSamples::getRandom(*products, target.count,
                                              FittedSeed, WeightSeed);
  target.held = ImitationSamples::getRandom(*products, target.count, HeldSeed,
                                            WeightSeed);
  target.binding = binding;
  target.products = std::move(*products);
  targets.push_back(std::move(target));
  return Error::success();
}

/// The largest error over the bindings: the operators are the same only if they
/// are so everywhere.
Expected<Metrics> ImitationEvaluator::evaluate(const Solution &solution) {
  const auto &graph = static_cast<const OperatorGraph &>(solution);
  double missing = 0, excess = 0;
  for (const Target &target : targets) {
    Expected<ProductList> products =
        getProducts(*problem, graph, target.binding);
    if (!products)
      return products.takeError();
    if (Error error = checkWeights(*products))
      return error;
    missing = std::max(missing, getImitationError(*products, target.fitted,
                                                  target.held, options));
    // The other direction: what the candidate computes is imitated by the
    // target.
    auto compute = [&](uint64_t seed) {
      return ImitationSamples::getRandom(*products, target.count, seed,
                                         WeightSeed);
    };
    excess =
        std::max(excess, getImitationError(target.products, compute(FittedSeed),
                                           compute(HeldSeed), options));
  }
  // The mean falls when either half does, so a search sees progress.
  return Metrics{{"imitation_error", (missing + excess) / 2},
                 {"imitation_excess", excess},
                 {"imitation_missing", missing}};
}

Expected<std::unique_ptr<Evaluator>>
kas::search::makeImitationEvaluator(const EvaluatorSettings &settings) {
  if (!settings.imitated)
    return createStringError(
        "requires an operator to imitate (the option 'imitate') for the "
        "evaluator 'imitation', got none");
  auto evaluator = std::make_unique<ImitationEvaluator>(settings.problem);
  for (const Binding &binding : settings.problem->bindings)
    if (Error error = evaluator->addTarget(settings.imitated, binding))
      return error;
  return evaluator;
}
