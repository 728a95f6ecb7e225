//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem of a search of sequences: one problem for each stage and choice
// of widths, and costs of the steps between stages.
//
// A variant is a choice of all widths; substituting them gives ordinary spaces,
// so everything about spaces works for stages.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/SequenceProblem.h"
#include "kas/Search/Core/Enumerator.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

/// A size for each width.
using Widths = decltype(SequenceProblem::Variant::widths);

/// All choices; the last width changes fastest. The product of all lists of
/// widths.
static std::vector<Widths> getChoices(SequenceSpaceOp op) {
  std::vector<Widths> choices{{}};
  for (mlir::NamedAttribute width : op.getWidths()) {
    std::vector<Widths> next;
    for (const Widths &choice : choices)
      for (auto size : llvm::cast<mlir::ArrayAttr>(width.getValue())
                           .getAsRange<SizeAttr>()) {
        next.push_back(choice);
        next.back().emplace_back(width.getName(), size);
      }
    choices = std::move(next);
  }
  return choices;
}

/// `bindings` without the widths. Widths are no symbols of the stages any more.
static mlir::ArrayAttr withoutWidths(mlir::ArrayAttr bindings,
                                     const Widths &widths) {
  return mlir::ArrayAttr::get(
      bindings.getContext(),
      llvm::map_to_vector(
          bindings.getAsRange<BindingAttr>(),
          [&](BindingAttr binding) -> mlir::Attribute {
            llvm::SmallVector<std::pair<llvm::StringRef, int64_t>> entries;
            for (auto [name, value] :
                 llvm::zip_equal(binding.getNames(), binding.getValues()))
              if (!llvm::is_contained(llvm::make_first_range(widths), name))
                entries.emplace_back(name.getValue(), value);
            return BindingAttr::getNormal(bindings.getContext(), entries);
          }));
}

/// `sizes` with the widths in the place of their symbols; null where one does
/// not fit.
static mlir::ArrayAttr substitute(mlir::ArrayAttr sizes, const Widths &widths) {
  llvm::SmallVector<mlir::Attribute> result;
  for (auto size : sizes.getAsRange<SizeAttr>()) {
    for (auto [name, width] : widths)
      if (size)
        size = substituteSymbol(size, name, width);
    if (!size)
      return nullptr;
    result.push_back(size);
  }
  return mlir::ArrayAttr::get(sizes.getContext(), result);
}

/// `space` with the widths in the place of their symbols, without a parent.
/// Attributes of the copy are changed one by one; the copy is dropped by the
/// caller.
static mlir::FailureOr<mlir::OwningOpRef<SpaceOp>>
substitute(SpaceOp space, const Widths &widths) {
  mlir::OwningOpRef<SpaceOp> copy(space.clone());
  mlir::Builder builder(space.getContext());
  mlir::ArrayAttr outputs = substitute(space.getOutputSizes(), widths);
  mlir::ArrayAttr inputs = substitute(space.getInputSizes(), widths);
  if (!outputs || !inputs)
    return space.emitOpError("requires sizes of 62 bits with the widths of a "
                             "sequence");
  llvm::SmallVector<mlir::Attribute> primaries;
  for (auto name : space.getPrimaries().getAsRange<mlir::StringAttr>())
    if (!llvm::is_contained(llvm::make_first_range(widths), name))
      primaries.push_back(name);
  // Limits on symbols that are gone.
  mlir::NamedAttrList limits(space.getLimits());
  for (auto [name, width] : widths)
    limits.erase(("occurrences." + name.getValue()).str());
  copy->setOutputSizesAttr(outputs);
  copy->setInputSizesAttr(inputs);
  copy->setPrimariesAttr(builder.getArrayAttr(primaries));
  copy->setBindingsAttr(withoutWidths(space.getBindings(), widths));
  copy->setLimitsAttr(limits.getDictionary(space.getContext()));
  // Reports at the space what does not fit. Verified like a space that somebody
  // wrote.
  if (mlir::failed(copy->verify()))
    return mlir::failure();
  return copy;
}

/// Diagnostics are at the sequence space or at the space of the stage.
mlir::FailureOr<SequenceProblem> SequenceProblem::get(SequenceSpaceOp op) {
  SequenceProblem problem;
  problem.layers = SearchProblem::get(op.getLayerSpace());
  for (int32_t step : op.getBetween())
    problem.steps.push_back(static_cast<SequenceStep>(step));
  auto names = op.getStages().getAsRange<mlir::FlatSymbolRefAttr>();
  for (mlir::FlatSymbolRefAttr name : names)
    problem.spaces.push_back(
        std::distance(names.begin(), llvm::find(names, name)));
  for (const Widths &widths : getChoices(op)) {
    Variant &variant = problem.variants.emplace_back();
    variant.widths = widths;
    for (SpaceOp space : op.getStageSpaces()) {
      auto stage = substitute(space, widths);
      if (mlir::failed(stage))
        return mlir::failure();
      variant.stages.push_back(std::make_shared<const SearchProblem>(
          SearchProblem::get(stage->get())));
      if (std::optional<std::string> reason =
              findImpossibleProperty(*variant.stages.back()))
        return space.emitOpError(*reason);
    }
  }
  return problem;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Saturating, as sums of saturated costs.
static GraphCost operator+(const GraphCost &a, const GraphCost &b) {
  return {llvm::SaturatingAdd(a.flops, b.flops),
          llvm::SaturatingAdd(a.params, b.params)};
}

/// Element-wise on the result of the stage: two operations for scale and
/// offset, one for the rectifier, one for a sum or product with another result.
/// A normalization has two parameters per channel, dimension 1.
GraphCost SequenceProblem::getStepCost(uint32_t variant, size_t stage,
                                       SequenceStep step) const {
  const SearchProblem &before = *variants[variant].stages[stage];
  GraphCost cost;
  for (auto [binding, multiplicity] :
       llvm::zip_equal(before.bindings, before.multiplicities)) {
    auto count = static_cast<uint64_t>(multiplicity);
    uint64_t elements = count;
    for (const Dimension &dimension : before.outputs)
      elements = llvm::SaturatingMultiply(
          elements,
          static_cast<uint64_t>(dimension.size.evaluate(binding).value_or(0)));
    uint64_t operations =
        (normalizes(step) ? 2 : 0) + (rectifies(step) || combines(step));
    cost.flops = llvm::SaturatingAdd(
        cost.flops, llvm::SaturatingMultiply(elements, operations));
    if (normalizes(step))
      cost.params += 2 * count *
                     static_cast<uint64_t>(
                         before.outputs[1].size.evaluate(binding).value_or(0));
  }
  return cost;
}

/// Steps are counted after the stage that they follow.
GraphCost SequenceView::getCost() const {
  GraphCost cost;
  for (size_t stage = 0; stage < getNumStages(); ++stage)
    cost = cost + getStage(stage).cost;
  for (size_t step = 0; step < getNumSteps(); ++step)
    cost = cost + problem.getStepCost(variant, step, getStep(step));
  return cost;
}

/// Bounds how little a stage can cost. Of an enumeration that is cut off
/// nothing is known: the least costs are 0.
static StageSummary summarize(std::shared_ptr<const SearchProblem> problem,
                              uint64_t expansions) {
  Enumerator::Options options;
  options.buildTree = false;
  Enumerator enumerator(makeGraphState(std::move(problem)), options);
  Enumerator::Limits limits;
  limits.expansions = expansions;
  std::optional<GraphCost> least;
  // FLOPs and parameters separately: a bound on each.
  auto found = [&](llvm::ArrayRef<Move>, const State &state) {
    GraphCost cost =
        static_cast<const OperatorGraph &>(*state.getSolution()).cost;
    least = least ? GraphCost{std::min(least->flops, cost.flops),
                              std::min(least->params, cost.params)}
                  : cost;
  };
  if (enumerator.run(limits, found) != Enumerator::Status::Complete)
    return {};
  return {least.value_or(GraphCost()), !least};
}

/// A list for each variant, as sizes differ.
StageSummaries kas::search::summarizeStages(const SequenceProblem &problem,
                                            uint64_t expansions) {
  StageSummaries summaries;
  for (const SequenceProblem::Variant &variant : problem.variants) {
    summaries.emplace_back();
    for (const auto &stage : variant.stages)
      summaries.back().push_back(summarize(stage, expansions));
  }
  return summaries;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// The stage with the budget that the others leave it at least. Only upper
/// bounds are tightened: the least costs of the others are certain.
static std::shared_ptr<const SearchProblem>
tighten(const SequenceProblem &problem, uint32_t variant, size_t stage,
        llvm::ArrayRef<StageSummary> stages) {
  auto result =
      std::make_shared<SearchProblem>(*problem.variants[variant].stages[stage]);
  GraphCost others;
  for (auto [index, other] : llvm::enumerate(stages))
    if (index != stage)
      others = others + other.least;
  auto lower = [](std::optional<double> &bound, std::optional<double> total,
                  uint64_t others) {
    if (!total)
      return;
    double left = *total - static_cast<double>(others);
    bound = bound ? std::min(*bound, left) : left;
  };
  lower(result->budget.maxFlops, problem.layers.budget.maxFlops, others.flops);
  lower(result->budget.maxParams, problem.layers.budget.maxParams,
        others.params);
  return result;
}

/// Whether these parts, and the cheapest others, are within the budget. Called
/// after each part, so the rest is cut off early.
static bool isWithin(const SequenceProblem &problem,
                     llvm::ArrayRef<StageSummary> stages, uint32_t variant,
                     Parts parts) {
  SequenceView view(problem, variant, parts);
  GraphCost cost = view.getCost();
  for (const StageSummary &other : stages.drop_front(view.getNumStages()))
    cost = cost + other.least;
  auto flops = static_cast<double>(cost.flops);
  const SearchBudget &budget = problem.layers.budget;
  // The lower bound is decided at the end.
  bool isComplete = parts.size() + 1 == 2 * problem.getNumStages();
  return flops <= budget.maxFlops.value_or(flops) &&
         static_cast<double>(cost.params) <=
             budget.maxParams.value_or(static_cast<double>(cost.params)) &&
         (!isComplete || flops >= budget.minFlops.value_or(flops));
}

/// Whether the stage that was completed last is in the one order of those that
/// it can be exchanged with: the stages before it, back to the beginning of the
/// parallel ones or to another step than the one before it. The first of all
/// has no such step, so that it can be exchanged with the second.
static bool isInOrder(const SequenceProblem &problem,
                      const SequenceView &view) {
  size_t last = view.getNumStages() - 1;
  for (size_t stage = last; stage > 0; --stage) {
    SequenceStep step = view.getStep(stage - 1);
    if (!combines(step) || step != view.getStep(last - 1))
      return true;
    // Left of another combination is its result, and no stage.
    bool isResult = stage > 1 && combines(view.getStep(stage - 2)) &&
                    view.getStep(stage - 2) != step;
    if (isResult)
      return true;
    if (problem.spaces[stage - 1] != problem.spaces[last])
      continue;
    const OperatorGraph &before = view.getStage(stage - 1);
    const OperatorGraph &own = view.getStage(last);
    if (before.key() > own.key())
      return false;
    if (before.key() == own.key() && step == SequenceStep::Add &&
        own.weights.size() == 1)
      return false;
  }
  return true;
}

/// Parts alternate: stage, step, stage, ...
std::unique_ptr<State>
kas::search::makeSequenceSearch(std::shared_ptr<const SequenceProblem> problem,
                                StageSummaries stages) {
  std::vector<SequenceVariant> variants;
  for (uint32_t number = 0; number < problem->variants.size(); ++number) {
    SequenceVariant &parts = variants.emplace_back();
    for (size_t stage = 0; stage < problem->getNumStages(); ++stage) {
      // A choice of the step that comes before this stage.
      if (stage)
        parts.push_back(makeChoiceState("between", problem->steps.size()));
      parts.push_back(
          makeGraphState(tighten(*problem, number, stage, stages[number])));
    }
  }
  SequenceOptions options;
  options.variantName = "widths";
  options.isAllowed = [problem, stages = std::move(stages)](uint32_t variant,
                                                            Parts parts) {
    SequenceView view(*problem, variant, parts);
    return (parts.size() % 2 == 0 || isInOrder(*problem, view)) &&
           isWithin(*problem, stages[variant], variant, parts);
  };
  return makeSequenceState(std::move(variants), std::move(options));
}

/// The operators come first, as the sequence refers to them.
SequenceOp kas::search::buildSequence(mlir::OpBuilder &builder,
                                      mlir::Location location,
                                      llvm::StringRef name,
                                      const SequenceProblem &problem,
                                      const Solution &solution) {
  SequenceView view(problem, solution);
  llvm::SmallVector<mlir::Attribute> stages;
  llvm::SmallVector<int32_t> steps;
  for (size_t stage = 0; stage < view.getNumStages(); ++stage) {
    OperatorOp op = buildOperator(builder, location,
                                  (name + "_" + llvm::Twine(stage)).str(),
                                  view.getProblem(stage), view.getStage(stage));
    stages.push_back(mlir::FlatSymbolRefAttr::get(op.getSymNameAttr()));
  }
  for (size_t step = 0; step < view.getNumSteps(); ++step)
    steps.push_back(static_cast<int32_t>(view.getStep(step)));
  return SequenceOp::create(builder, location, builder.getStringAttr(name),
                            /*sym_visibility=*/nullptr,
                            builder.getArrayAttr(stages),
                            builder.getDenseI32ArrayAttr(steps));
}
