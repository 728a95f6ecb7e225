//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A budget problem in numbers: for every layer the values that each variable
// may take, and costs as polynomials of positions in those.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_SOLVER_BUDGETMODEL_H
#define KAS_LIB_SOLVER_BUDGETMODEL_H

#include "kas/Solver/Budget.h"

namespace kas::solver {

/// Sums and products that stop at the ceiling of costs, so that they stay
/// monotone. Operands lie between 0 and the ceiling.
inline int64_t saturatingAdd(int64_t left, int64_t right) {
  // Twice the ceiling is the first number that does not fit.
  return int64_t(std::min(uint64_t(left) + uint64_t(right),
                          uint64_t(BudgetProblem::costCeiling)));
}
inline int64_t saturatingMultiply(int64_t left, int64_t right) {
  int64_t product = 0;
  bool overflows = __builtin_mul_overflow(left, right, &product);
  return overflows ? BudgetProblem::costCeiling
                   : std::min(product, BudgetProblem::costCeiling);
}

class BudgetModel {
public:
  /// The values of one variable at one layer: the first `count` multiples of
  /// `step`, or a list (for variables in denominators).
  struct Domain {
    int64_t step = 1;
    int64_t count = 0;
    llvm::SmallVector<int64_t, 0> list;

    /// What the variable's power in a polynomial is of; `step` times this is
    /// its value.
    int64_t getMultiplier(int64_t index) const {
      return list.empty() ? index + 1 : list[index];
    }
    int64_t getValue(int64_t index) const {
      return step * getMultiplier(index);
    }
  };

  struct Term {
    int64_t coefficient = 0;
    /// Position of the variable and exponent.
    llvm::SmallVector<std::pair<unsigned, unsigned>, 2> powers;
  };
  using Polynomial = llvm::SmallVector<Term, 4>;

  /// Fails when the problem is outside of its class.
  static llvm::Expected<BudgetModel> create(const BudgetProblem &problem);

  /// Sizes that no values make integers, empty domains, and limits that the
  /// least values exceed.
  llvm::SmallVector<BudgetConflict> findStaticConflicts() const;

  const Domain &getDomain(unsigned layer, unsigned variable) const {
    return domains[layer * numVariables + variable];
  }
  const Polynomial &getCost(unsigned layer, unsigned cost) const {
    return costs[layer * numCosts + cost];
  }
  /// The cost at a layer, all its copies counted; `indices` are positions in
  /// the domains of the layer's variables.
  int64_t evaluateCost(unsigned layer, unsigned cost,
                       llvm::ArrayRef<int64_t> indices) const {
    return evaluate(getCost(layer, cost), layer, indices);
  }
  /// The first limit that is exceeded.
  std::optional<unsigned>
  findExceededLimit(unsigned layer, llvm::ArrayRef<int64_t> indices) const;
  bool isWithinLimits(unsigned layer, llvm::ArrayRef<int64_t> indices) const {
    return !findExceededLimit(layer, indices);
  }

  unsigned numLayers = 0, numVariables = 0, numCosts = 0, numLimits = 0;

private:
  int64_t evaluate(const Polynomial &polynomial, unsigned layer,
                   llvm::ArrayRef<int64_t> indices) const;
  llvm::Error makeDomains(const BudgetProblem &problem, unsigned layer);
  llvm::Expected<Polynomial> makePolynomial(const BudgetProblem &problem,
                                            unsigned layer,
                                            llvm::ArrayRef<CostTerm> terms,
                                            int64_t count);

  llvm::SmallVector<Domain, 0> domains;
  llvm::SmallVector<Polynomial, 0> costs, limits;
  llvm::SmallVector<int64_t, 2> maxima;
  llvm::SmallVector<BudgetConflict> illegalSizes;
};

} // namespace kas::solver

#endif // KAS_LIB_SOLVER_BUDGETMODEL_H
