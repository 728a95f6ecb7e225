//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact costs of an operator, for a binding or as polynomials in its symbols,
// and the pass that prints them.
//
// FLOPs are those of the best stages, as code generation runs them
// (Schedule/StagePlan.h; Syno, section 7, materialized reduction); as
// polynomials those of one nest, because which stages are best depends on
// numbers.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Analysis/Passes.h"
#include "kas/Dialect/Kas/Analysis/Stages.h"
#include "kas/Dialect/Kas/IR/NamedOperator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace mlir;
using namespace kas;
using namespace kas::schedule;

namespace kas {
#define GEN_PASS_DEF_KASPRINTCOSTPASS
#include "kas/Dialect/Kas/Analysis/Passes.h.inc"
} // namespace kas

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// f32.
static constexpr int64_t bytesPerElement = 4;
static constexpr uint64_t maxCost = std::numeric_limits<int64_t>::max();

/// `factor` times the product; nothing when a constant or an exponent does not
/// fit.
static std::optional<SizePolynomial> getProduct(ArrayRef<SizeAttr> sizes,
                                                const SymbolSet &symbols,
                                                int64_t factor = 1) {
  return SizePolynomial::product(
      llvm::map_to_vector(sizes,
                          [&](SizeAttr size) { return *size.toSize(symbols); }),
      factor);
}

/// The reductions that the data depends on.
/// Backwards from the data's coordinates; `reached` is worklist and set in one.
static SmallVector<SizeAttr> getDataReductions(OperatorOp op) {
  llvm::SetVector<Value> reached;
  reached.insert_range(op.getYield().getData());
  SmallVector<SizeAttr> sizes;
  for (unsigned index = 0; index < reached.size(); ++index) {
    Operation *primitive = reached[index].getDefiningOp();
    if (auto reduce = dyn_cast_or_null<ReduceOp>(primitive))
      sizes.push_back(reduce.getSize());
    if (primitive)
      reached.insert_range(primitive->getOperands());
  }
  return sizes;
}

namespace {
/// The multiply-adds of one loop nest.
struct NestCost {
  /// As `macs`, `flopsUnprepared` and `trainingFlops` of `BasicCost`.
  std::optional<SizePolynomial> prepared, unprepared, training;
};
} // namespace

static NestCost getNestCost(OperatorOp op) {
  SymbolSet symbols = op.getSymbolSet();
  // Outputs times these reductions, times `factor`.
  auto getPoints = [&](ArrayRef<SizeAttr> reductions, int64_t factor) {
    SmallVector<SizeAttr> space = op.getOutputSizes();
    llvm::append_range(space, reductions);
    return getProduct(space, symbols, factor);
  };
  SmallVector<SizeAttr> all = llvm::map_to_vector(
      getReductions(op), [](ReduceOp reduce) { return reduce.getSize(); });
  int64_t numWeights = op.getNumWeights();
  if (numWeights == 0) {
    // Only additions or comparisons, one per point; a view has none.
    auto sums = getPoints(all, all.empty() ? 0 : 1);
    return {sums, sums, sums};
  }
  NestCost cost;
  // A max is not taken before the data is there.
  // Reductions that only weights depend on are done before: the weights are one
  // tensor by then, so there is one multiply-add per point.
  cost.prepared = canFactor(op) ? getPoints(getDataReductions(op), 1)
                                : getPoints(all, numWeights);
  cost.unprepared = getPoints(all, numWeights);
  // Forward, the gradient of the data, and that of each weight: numWeights + 2
  // nests, each with a product of numWeights + 1 tensors.
  cost.training = getPoints(all, numWeights * (numWeights + 2));
  return cost;
}

std::optional<SymbolicCost> kas::getSymbolicCost(OperatorOp op) {
  SymbolSet symbols = op.getSymbolSet();
  NestCost macs = getNestCost(op);
  std::optional<SizePolynomial> parameters = SizePolynomial();
  for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
    if (auto size = getProduct(weight, symbols); size && parameters)
      parameters = parameters->add(*size);
    else
      return std::nullopt;
  std::optional<SizePolynomial> elements =
      getProduct(op.getOutputSizes(), symbols);
  for (const auto &others :
       {getProduct(op.getDataSizes(), symbols), parameters})
    if (elements && others)
      elements = elements->add(*others);
    else
      return std::nullopt;
  auto scale = [](const std::optional<SizePolynomial> &number,
                  int64_t factor) -> std::optional<SizePolynomial> {
    return number ? number->scale(factor) : std::nullopt;
  };
  auto flops = scale(macs.prepared, 2), unprepared = scale(macs.unprepared, 2),
       training = scale(macs.training, 2),
       bytes = scale(elements, bytesPerElement);
  // Nothing rather than a wrapped number.
  if (!flops || !unprepared || !training || !bytes)
    return std::nullopt;
  return SymbolicCost{*macs.prepared, *flops,      *unprepared,
                      *training,      *parameters, *bytes};
}

FailureOr<Cost> kas::getCost(OperatorOp op, const Binding &binding,
                             EmitErrorFn emitError) {
  if (failed(verifyBinding(op, binding, emitError)))
    return failure();
  std::optional<SymbolicCost> symbolic = getSymbolicCost(op);
  std::optional<int64_t> parameters, bytes;
  if (symbolic) {
    parameters = symbolic->parameters.evaluate(binding);
    bytes = symbolic->bytes.evaluate(binding);
  }
  OperatorStageGraph graph = makeStageGraph(op, binding);
  bool fits = parameters && bytes;
  auto getFlops = [&](StageCost cost) {
    StagePlanOptions options;
    options.cost = cost;
    // No intermediate fits then, so the plan is one nest.
    if (!canFactor(op))
      options.maxIntermediateElements = 0;
    uint64_t macs = planStages(graph.graph, options).macs;
    // The planner saturates; twice as many FLOPs must fit 63 bits.
    fits &= macs <= maxCost / 2;
    return 2 * static_cast<int64_t>(macs);
  };
  Cost cost;
  cost.flops = getFlops(StageCost::Prepared);
  cost.macs = cost.flops / 2;
  cost.flopsUnprepared = getFlops(StageCost::Unprepared);
  cost.trainingFlops = getFlops(StageCost::Training);
  if (!fits)
    return emitError() << "requires costs of operator '" << op.getSymName()
                       << "' below 2^63, got more";
  cost.parameters = *parameters;
  cost.bytes = *bytes;
  return cost;
}

FailureOr<Cost> kas::getCost(ApplyOp apply) {
  auto emitError = [&] { return apply.emitOpError(); };
  OperatorOp op = apply.getOperator();
  if (!op)
    return emitError() << "requires a kas.operator, got '@" << apply.getCallee()
                       << "'";
  FailureOr<Binding> binding = inferBinding(apply, op, emitError);
  if (failed(binding))
    return failure();
  return getCost(op, *binding, emitError);
}

//===----------------------------------------------------------------------===//
// kas-print-cost
//===----------------------------------------------------------------------===//

/// `print` makes a text of one number.
template <typename Number, typename Print>
static std::string toString(const BasicCost<Number> &cost, Print print) {
  return "MACs " + print(cost.macs) + ", FLOPs " + print(cost.flops) +
         ", unprepared FLOPs " + print(cost.flopsUnprepared) +
         ", training FLOPs " + print(cost.trainingFlops) + ", parameters " +
         print(cost.parameters) + ", bytes " + print(cost.bytes);
}

static std::string toString(const Cost &cost) {
  return toString(cost, [](int64_t value) { return llvm::itostr(value); });
}

namespace {
/// Remarks: polynomials of each operator, numbers of each application, and
/// those of one operator at a binding that options give.
struct KasPrintCostPass
    : public kas::impl::KasPrintCostPassBase<KasPrintCostPass> {
  using KasPrintCostPassBase::KasPrintCostPassBase;

  static LogicalResult printSymbolic(OperatorOp op) {
    std::optional<SymbolicCost> cost = getSymbolicCost(op);
    if (!cost)
      return op.emitOpError("requires costs whose constants and exponents fit, "
                            "got larger ones");
    SymbolSet symbols = op.getSymbolSet();
    auto print = [&](const SizePolynomial &polynomial) {
      return kas::toString(polynomial, symbols);
    };
    op.emitRemark() << "cost of '" << op.getSymName()
                    << "': " << toString(*cost, print);
    return success();
  }

  LogicalResult printNamed() {
    std::string text = llvm::join(bind, ",");
    auto named = getNamedOperator(getOperation(), operatorName, text);
    if (failed(named))
      return failure();
    auto [op, binding] = *named;
    FailureOr<Cost> cost = getCost(
        op, binding, [&] { return mlir::emitError(getOperation()->getLoc()); });
    if (failed(cost))
      return failure();
    op.emitRemark() << "cost of '" << op.getSymName() << "' at " << text << ": "
                    << toString(*cost);
    return success();
  }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (auto operatorOp = dyn_cast<OperatorOp>(op))
        return WalkResult(printSymbolic(operatorOp));
      if (auto apply = dyn_cast<ApplyOp>(op)) {
        FailureOr<Cost> cost = getCost(apply);
        if (failed(cost))
          return WalkResult::interrupt();
        apply.emitRemark() << "cost of applying '" << apply.getCallee()
                           << "': " << toString(*cost);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted() ||
        (!operatorName.empty() && failed(printNamed())))
      signalPassFailure();
    else
      markAllAnalysesPreserved();
  }
};
} // namespace
