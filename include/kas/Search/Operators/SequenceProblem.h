//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search problem of a `kas.sequence_space`, as plain data, and its
// candidates.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_SEQUENCEPROBLEM_H
#define KAS_SEARCH_OPERATORS_SEQUENCEPROBLEM_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/Search/Core/SequenceState.h"
#include "kas/Search/Operators/OperatorGraph.h"

namespace kas::search {

/// Which sequences of operators to search for.
struct SequenceProblem {
  /// One choice of all widths.
  struct Variant {
    llvm::SmallVector<std::pair<mlir::StringAttr, SizeAttr>, 2> widths;
    /// By stage: its problem, with the widths in the place of their symbols.
    std::vector<std::shared_ptr<const SearchProblem>> stages;
  };

  /// The signature, the bindings and the budget of the layers.
  SearchProblem layers;
  std::vector<SequenceStep> steps;
  /// By stage: the number of the first stage of the same space. Empty where no
  /// candidates are listed.
  std::vector<size_t> spaces;
  std::vector<Variant> variants;

  size_t getNumStages() const { return variants.front().stages.size(); }

  /// The problem that `op` states. Reports a stage that makes no sense with a
  /// width, or that cannot have its properties.
  static mlir::FailureOr<SequenceProblem> get(SequenceSpaceOp op);

  /// What a step after a stage costs, summed over the bindings times their
  /// multiplicities.
  GraphCost getStepCost(uint32_t variant, size_t stage,
                        SequenceStep step) const;
};

/// A solution of a `SequenceProblem`. Its parts are operators and, between
/// them, numbers of steps.
class SequenceView {
public:
  SequenceView(const SequenceProblem &problem, const Solution &solution)
      : SequenceView(problem,
                     static_cast<const SequenceSolution &>(solution).variant,
                     static_cast<const SequenceSolution &>(solution).parts) {}
  /// Of the first parts of a solution.
  SequenceView(const SequenceProblem &problem, uint32_t variant, Parts parts)
      : problem(problem), variant(variant), parts(parts) {}

  uint32_t getVariant() const { return variant; }
  size_t getNumStages() const { return (parts.size() + 1) / 2; }
  const OperatorGraph &getStage(size_t index) const {
    return static_cast<const OperatorGraph &>(*parts[2 * index]);
  }
  const SearchProblem &getProblem(size_t index) const {
    return *problem.variants[variant].stages[index];
  }
  size_t getNumSteps() const { return parts.size() / 2; }
  SequenceStep getStep(size_t index) const {
    return problem
        .steps[static_cast<const Choice &>(*parts[2 * index + 1]).number];
  }
  /// The costs of all parts together.
  GraphCost getCost() const;

private:
  const SequenceProblem &problem;
  uint32_t variant;
  Parts parts;
};

/// What is known of the operators of a stage.
struct StageSummary {
  /// No operator costs less: exact where the stage was listed completely, else
  /// 0.
  GraphCost least;
  /// There is none.
  bool isEmpty = false;
};
/// By variant and stage.
using StageSummaries = std::vector<llvm::SmallVector<StageSummary, 4>>;

/// Lists each stage as far as `expansions` steps go.
StageSummaries summarizeStages(const SequenceProblem &problem,
                               uint64_t expansions = 200000);

/// The root of the search that `problem` states. What cannot stay within the
/// budget by the least costs of `stages` is left early.
std::unique_ptr<State>
makeSequenceSearch(std::shared_ptr<const SequenceProblem> problem,
                   StageSummaries stages);

/// Builds a solution as `kas.sequence @name` after its operators `@name_0`,
/// `@name_1`, ...
SequenceOp buildSequence(mlir::OpBuilder &builder, mlir::Location location,
                         llvm::StringRef name, const SequenceProblem &problem,
                         const Solution &solution);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_SEQUENCEPROBLEM_H
