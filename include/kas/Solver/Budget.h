//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values for the free variables of a kernel at every layer that it replaces,
// under budgets on what all layers cost together. Plain data, no ops.
//
// Source: Canvas, section 6.3 (dynamic variable solver by analytical
// constraints). `solveBudgetLikeCanvas` is the paper's heuristic;
// `solveBudget` maximizes the use of a budget and says how far from the
// optimum it can be. Both models are written out in
// docs/reference/tensor-level.md.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_BUDGET_H
#define KAS_SOLVER_BUDGET_H

#include "kas/Support/Size.h"
#include "llvm/Support/Error.h"

namespace kas::solver {

/// `factor` (at least 0) times `size`.
struct CostTerm {
  int64_t factor = 1;
  Size size;
};

/// One kernel, written with the same symbols at every layer.
struct BudgetProblem {
  struct Layer {
    /// One value per symbol; those of variables do not count.
    Binding binding;
    /// How many times the network has this layer: its costs count as often.
    int64_t count = 1;
    /// What its variables should be proportional to. Canvas takes the square
    /// root of inputs times outputs, rounded up.
    int64_t channels = 1;
  };

  /// A sum of terms, in which variables have no negative exponents: costs
  /// never fall when a variable grows. Budgets are on the sum over all layers.
  struct Cost {
    std::string name;
    llvm::SmallVector<CostTerm, 4> terms;
    std::optional<int64_t> lower, upper;
  };

  /// A bound on a sum at each layer by itself, such as on the elements of a
  /// tensor.
  struct Limit {
    llvm::SmallVector<CostTerm, 1> terms;
    int64_t maximum = INT64_MAX;
  };

  unsigned numSymbols = 0;
  /// The free symbols. Each has one value per layer, from 1 to `maxValue`.
  llvm::SmallVector<unsigned, 4> variables;
  llvm::SmallVector<Layer, 0> layers;
  /// Must be integers at every layer; at most one variable in each.
  llvm::SmallVector<Size, 0> sizes;
  llvm::SmallVector<Cost, 2> costs;
  llvm::SmallVector<Limit, 2> limits;
  int64_t maxValue = int64_t(1) << 20;
  /// The cost whose use is maximized.
  unsigned objective = 0;
  /// The cost whose growth orders the layers in Canvas's heuristic.
  unsigned sensitivity = 0;

  /// A total of this much or more is over every budget.
  static constexpr int64_t costCeiling = int64_t(1) << 62;

  /// Reports whatever is outside of the class of problems above.
  llvm::Error check() const;
};

/// What no choice of values can satisfy together.
struct BudgetConflict {
  enum class Kind : uint8_t {
    /// Size `index` is no integer at `layer`, whatever the variables are.
    Size,
    /// No value up to the maximum makes all sizes that hold variable `index`
    /// (a position in `variables`) integers at `layer`.
    Variable,
    /// Limit `index` is exceeded at `layer` by the least values.
    Limit,
    /// The lower budget of cost `index`.
    Lower,
    /// The upper budget of cost `index` (or the ceiling of all costs).
    Upper
  };
  Kind kind;
  unsigned index = 0;
  /// For `Size`, `Variable` and `Limit`.
  unsigned layer = 0;

  bool operator==(const BudgetConflict &other) const = default;
};

enum class BudgetStatus : uint8_t {
  /// No values use more of the objective's budget.
  Optimal,
  /// Within the budgets; at most `bound` can be used.
  Bounded,
  /// Nothing satisfies all of `conflicts`.
  Infeasible,
  /// Nothing was found, and neither was a proof that there is nothing.
  Unknown
};

struct BudgetSolution {
  BudgetStatus status = BudgetStatus::Unknown;
  /// By layer and position in `variables`; empty when nothing was found.
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>, 0> values;
  /// The total of each cost.
  llvm::SmallVector<int64_t, 2> totals;
  /// No choice of values has a higher total of the objective.
  int64_t bound = 0;
  /// When infeasible: a set that cannot be satisfied. Budgets conflict on top
  /// of sizes and limits, which always hold. When unknown: what the heuristic
  /// of Canvas ran into.
  llvm::SmallVector<BudgetConflict, 2> conflicts;
  /// No smaller set conflicts.
  bool isSmallestConflict = false;
  /// The search computed the cost of a layer so often.
  uint64_t numEvaluations = 0;
};

struct BudgetOptions {
  /// When the branching has computed the cost of a layer so often, the best
  /// found so far and the bound are the result. A count, so that results do not
  /// depend on time; the default is some milliseconds.
  uint64_t maxEvaluations = 20'000;
  /// At least 1: with p the largest value in proportion to the channels that
  /// fits, every value must lie from p / spread to p * spread, unless nothing
  /// within the budgets does; optimum and bound are then those of these values.
  /// With 0, values are chosen for the objective alone.
  int64_t spread = 0;
};

/// Maximizes the total of the objective under all budgets: an integer program,
/// solved by a proportional start, exchanges of two steps, bounds (the budget
/// in the residue class that totals lie in, and a Lagrangian bound for each
/// other budget) and branch and bound. The problem must pass `check`.
BudgetSolution solveBudget(const BudgetProblem &problem,
                           const BudgetOptions &options = {});

/// The heuristic of Canvas: the least legal values in proportion to the
/// channels, then rounds that double all variables of a layer at once, in the
/// order of what that costs, as long as it fits; the last round is the first in
/// which one did not. What the least values exceed, or a lower budget that the
/// result misses, makes the result unknown: other values may do. The bound is
/// the upper budget unless nothing is free. The problem must pass `check`, and
/// variables may occur in numerators only.
BudgetSolution solveBudgetLikeCanvas(const BudgetProblem &problem);

/// Reports why `solution` is none of `problem`: values outside of their range,
/// sizes, limits, budgets, totals, or a bound or conflict that a look at the
/// extreme values disproves.
llvm::Error verify(const BudgetProblem &problem,
                   const BudgetSolution &solution);

} // namespace kas::solver

#endif // KAS_SOLVER_BUDGET_H
