//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of operators as what a search is for.
//
// A stage is a space of its own, with widths in the place of symbols; each
// combination of widths is a variant (docs/internals/search-algorithms.md,
// "Sequences of states").
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/CandidateSpace.h"
#include "kas/Search/Evaluators/SequenceEvaluators.h"
#include "kas/Search/Pass/Explain.h"
#include "kas/Search/Pass/SearchTarget.h"
#include "llvm/ADT/SetVector.h"

using namespace kas;
using namespace kas::search;

namespace {
/// `stages` has for each variant and stage its least costs and whether it is
/// empty.
class SequenceTarget final : public SearchTarget {
public:
  SequenceTarget(SequenceSpaceOp space, SequenceProblem given,
                 StageSummaries stages)
      : space(space),
        problem(std::make_shared<const SequenceProblem>(std::move(given))),
        stages(std::move(stages)), printer(makeSequencePrinter(problem)) {}

  mlir::Operation *getOp() const override { return space; }
  SpaceOp getLayerSpace() const override {
    return SequenceSpaceOp(space).getLayerSpace();
  }
  /// In an order in which the text can be parsed: what is referred to comes
  /// first. A space may be used by several stages, hence the set.
  llvm::SmallVector<mlir::Operation *> getOps() const override {
    SequenceSpaceOp op = space;
    llvm::SetVector<mlir::Operation *> ops;
    ops.insert(op.getLayerSpace());
    for (SpaceOp stage : op.getStageSpaces())
      ops.insert(stage);
    ops.insert(op);
    return ops.takeVector();
  }
  llvm::StringRef getNoun() const override { return "sequence"; }
  std::unique_ptr<State> makeState() const override {
    return makeSequenceSearch(problem, stages);
  }
  uint64_t getTreeExpansions() const override {
    return CandidateSpace::Options().treeExpansions;
  }
  /// The sum over operators and steps.
  double getCost(const Solution &solution) const override {
    return static_cast<double>(
        SequenceView(*problem, solution).getCost().flops);
  }
  llvm::Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(llvm::StringRef name,
                const EvaluatorSettings &settings) const override {
    EvaluatorSettings own = settings;
    own.space = getLayerSpace();
    return makeSequenceEvaluator(name, own, problem);
  }
  /// The definition of FLOPs that this search counts by, as for spaces.
  SearchSettings getSettings() const override {
    return {{"flops_of", flopsOfPreparedWeights.str()}};
  }
  std::string print(const Solution &solution) override {
    return printer(solution);
  }
  mlir::Operation *build(mlir::OpBuilder &builder, llvm::StringRef name,
                         const Solution &solution) const override;
  std::vector<std::string> explainEmpty() const override;

private:
  SequenceSpaceOp space;
  std::shared_ptr<const SequenceProblem> problem;
  StageSummaries stages;
  std::function<std::string(const Solution &)> printer;
};
} // namespace

/// The first of `name`, `name_0`, ... that is free for a sequence of `stages`
/// operators, whose names begin with it. A sequence is named NAME and its
/// operators NAME_0, NAME_1, ...: all of these must be free.
static std::string getFreeName(mlir::Operation *table, llvm::StringRef name,
                               size_t stages) {
  auto isTaken = [&](const llvm::Twine &symbol) {
    return mlir::SymbolTable::lookupSymbolIn(table, symbol.str()) != nullptr;
  };
  std::string result = name.str();
  for (unsigned number = 0;; ++number) {
    bool isFree = !isTaken(result);
    for (size_t stage = 0; stage < stages && isFree; ++stage)
      isFree = !isTaken(result + "_" + llvm::Twine(stage));
    if (isFree)
      return result;
    result = (name + "_" + llvm::Twine(number)).str();
  }
}

/// The symbols are inserted next to those that the module has.
mlir::Operation *SequenceTarget::build(mlir::OpBuilder &builder,
                                       llvm::StringRef name,
                                       const Solution &solution) const {
  mlir::Operation *table = builder.getInsertionBlock()->getParentOp();
  return buildSequence(builder, SequenceSpaceOp(space).getLoc(),
                       getFreeName(table, name, problem->getNumStages()),
                       *problem, solution);
}

/// `M = 2*Cin`. For messages; the widths of the variant in terms of the layers'
/// symbols.
static std::string describeWidths(const SequenceProblem::Variant &variant,
                                  const SymbolSet &symbols) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(variant.widths, stream, [&](const auto &width) {
    stream << width.first.getValue() << " = ";
    stream << toString(*width.second.toSize(symbols), symbols);
  });
  return text;
}

/// Only when every variant is empty, see `dropEmptyVariants`; so the first
/// variant stands for all.
std::vector<std::string> SequenceTarget::explainEmpty() const {
  std::vector<std::string> reasons;
  SequenceSpaceOp op = space;
  for (auto [number, summary] : llvm::enumerate(stages.front())) {
    if (!summary.isEmpty)
      continue;
    const SequenceProblem::Variant &variant = problem->variants.front();
    for (const std::string &reason : explainEmptySpace(*variant.stages[number]))
      // Why the stage alone has no operator.
      reasons.push_back(
          "stage '@" + op.getStageSpaces()[number].getSymName().str() +
          "' has no operator" +
          (variant.widths.empty()
               ? ""
               : " with " + describeWidths(variant, problem->layers.symbols)) +
          ": " + reason);
  }
  // Stages have operators, so the sum of their costs is too large.
  if (reasons.empty())
    reasons.push_back("the stages have operators, but the budget of '@" +
                      op.getLayers().str() +
                      "' excludes every sequence of them");
  return reasons;
}

/// Leaves the variants out that have a stage without an operator, and says so;
/// not where nothing would be left. Remarks instead of errors: a width may be
/// legal and yet useless, such as one with too few channels.
static void dropEmptyVariants(SequenceSpaceOp space, SequenceProblem &problem,
                              StageSummaries &stages) {
  auto isEmpty = [](const StageSummary &stage) { return stage.isEmpty; };
  // All variants are empty: keep them, so that the search ends with an
  // explanation.
  if (llvm::all_of(stages, [&](llvm::ArrayRef<StageSummary> variant) {
        return llvm::any_of(variant, isEmpty);
      }))
    return;
  std::vector<SequenceProblem::Variant> variants;
  StageSummaries left;
  for (auto [variant, summaries] : llvm::zip_equal(problem.variants, stages)) {
    auto *empty = llvm::find_if(summaries, isEmpty);
    if (empty == summaries.end()) {
      variants.push_back(variant);
      left.push_back(summaries);
      continue;
    }
    size_t number = empty - summaries.begin();
    mlir::InFlightDiagnostic remark =
        space.emitRemark() << "left out "
                           << describeWidths(variant, problem.layers.symbols)
                           << ": stage '@"
                           << space.getStageSpaces()[number].getSymName()
                           << "' has no operator";
    for (const std::string &reason : explainEmptySpace(*variant.stages[number]))
      remark.attachNote(space.getLoc()) << reason;
  }
  problem.variants = std::move(variants);
  stages = std::move(left);
}

/// Listing the stages to summarize them takes most of the time of this
/// function.
llvm::FailureOr<std::unique_ptr<SearchTarget>>
kas::search::makeSequenceTarget(SequenceSpaceOp space) {
  llvm::FailureOr<SequenceProblem> problem = SequenceProblem::get(space);
  if (mlir::failed(problem))
    return mlir::failure();
  StageSummaries stages = summarizeStages(*problem);
  dropEmptyVariants(space, *problem, stages);
  return std::unique_ptr<SearchTarget>(std::make_unique<SequenceTarget>(
      space, std::move(*problem), std::move(stages)));
}
