//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exact solver of budget problems, on the model in numbers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_SOLVER_BUDGETSEARCH_H
#define KAS_LIB_SOLVER_BUDGETSEARCH_H

#include "BudgetModel.h"

namespace kas::solver {

/// The largest position from `first` to `last` with `holds`, which holds at
/// `first` and, once false, stays so.
template <typename Predicate>
int64_t findLast(int64_t first, int64_t last, Predicate &&holds) {
  while (first < last) {
    int64_t middle = first + (last - first + 1) / 2;
    if (holds(middle))
      first = middle;
    else
      last = middle - 1;
  }
  return first;
}

/// The same when the position is likely to be close to `first`.
template <typename Predicate>
int64_t findLastNear(int64_t first, int64_t last, Predicate &&holds) {
  int64_t step = 1;
  while (step <= last - first && holds(first + step)) {
    first += step;
    step *= 2;
  }
  return findLast(first, std::min(last, first + step - 1), holds);
}

/// The budgets that a search has to keep; nothing stands for 0 and for the
/// ceiling of all costs.
struct BudgetRange {
  llvm::SmallVector<int64_t, 2> lower, upper;
};

/// Maximizes one cost. An item is a variable at a layer; a point is a position
/// in its domain for every item.
class BudgetSearch {
public:
  BudgetSearch(const BudgetModel &model, const BudgetProblem &problem,
               BudgetRange range, unsigned objective, uint64_t maxEvaluations);

  /// With `stopWhenFeasible`, the first point within the budgets will do.
  void run(bool stopWhenFeasible = false);
  /// Values are to stay within a factor of the largest proportional ones; 0
  /// sets no limit.
  void setSpread(int64_t factor) { spread = factor; }

  bool hasPoint() const { return bestValue >= 0; }
  llvm::ArrayRef<int64_t> getPoint() const { return best; }
  /// Whether the search ended by itself, so that there is no better point.
  bool isProven() const { return proven; }
  int64_t getBound() const { return bound; }
  uint64_t getNumEvaluations() const { return numEvaluations; }

private:
  using Point = llvm::SmallVector<int64_t, 0>;

  unsigned itemOf(unsigned layer, unsigned variable) const {
    return layer * model.numVariables + variable;
  }
  llvm::MutableArrayRef<int64_t> layerOf(Point &point, unsigned layer) const {
    return llvm::MutableArrayRef(point).slice(layer * model.numVariables,
                                              model.numVariables);
  }
  int64_t getTotal(const Point &point, unsigned cost) const;
  bool isWithinUpper(const Point &point) const;

  // Domains and bounds.
  bool tighten();
  bool tightenUpper();
  bool tightenLower();
  bool narrow();
  int64_t boundByResidue(int64_t total) const;
  int64_t boundByLagrangian(unsigned cost, Point &argument) const;
  llvm::SmallVector<Point, 0> getExtremes(unsigned layer) const;
  void computeBound();

  // Good points.
  Point getProportional() const;
  void improve(Point point);
  bool improveByStep(Point &point, llvm::MutableArrayRef<int64_t> totals) const;
  bool improveByPair(Point &point, llvm::MutableArrayRef<int64_t> totals) const;
  void offer(const Point &point, llvm::ArrayRef<int64_t> totals);

  // Branch and bound.
  bool isDone() const {
    return (stopWhenFeasible && hasPoint()) ||
           (hasPoint() && bestValue >= bound);
  }
  void branch();
  void branchOn(unsigned position);
  bool setItem(unsigned position, int64_t index);
  void update(unsigned side, unsigned layer);
  int64_t findLargest(unsigned position);

  const BudgetModel &model;
  const BudgetProblem &problem;
  BudgetRange range;
  unsigned objective;
  uint64_t maxEvaluations;
  bool stopWhenFeasible = false;
  int64_t spread = 0;

  Point low, high;
  Point best;
  int64_t bestValue = -1;
  int64_t bound = 0;
  bool proven = false;
  uint64_t numEvaluations = 0;

  // The branch: items of whole layers in this order; `corner[0]` has the open
  // items at their least values, `corner[1]` at their greatest.
  llvm::SmallVector<unsigned, 0> order;
  Point corner[2];
  /// By layer and cost, and their sums, which may be past the ceiling.
  llvm::SmallVector<int64_t, 0> layerCosts[2];
  llvm::SmallVector<__int128, 2> totals[2];
};

} // namespace kas::solver

#endif // KAS_LIB_SOLVER_BUDGETSEARCH_H
