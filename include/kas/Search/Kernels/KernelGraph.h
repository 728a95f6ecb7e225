//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that the sampler found: plain data, their budgets, and their IR.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_KERNELS_KERNELGRAPH_H
#define KAS_SEARCH_KERNELS_KERNELGRAPH_H

#include "kas/Search/Core/State.h"
#include "kas/Search/Kernels/KernelProblem.h"
#include "kas/Solver/Budget.h"
#include "mlir/IR/Builders.h"
#include <mutex>

namespace kas::search {

/// A tensor of a kernel and the primitive that makes it.
struct KernelNode {
  KernelStep step = KernelStep::Input;
  /// Positions of the operands among the nodes; they come first.
  int left = -1, right = -1;
  /// Bit i: dimension i of the operand is meant (shift, unfold, transpose,
  /// shuffle, reorder, scale, fold, softmax, mix).
  unsigned dims = 0;
  /// Shift: by how much. Unfold: the dilation. Group dimensions of a
  /// fully-connected layer; batch dimensions of a product.
  int amount = 0;
  /// The common dimensions of a merge.
  unsigned prefix = 0, suffix = 0;
  bool transposesLeft = false, transposesRight = false, isScaled = false;
  /// Output channels; the factor of groups; the product of the new sizes of a
  /// mix.
  Size size;
  /// By unfolded dimension.
  llvm::SmallVector<Size, 2> windows;

  solver::TensorShape shape;
  /// `DagOpInterface::getImpliedSizes`, `getFlops`, `getParams`.
  llvm::SmallVector<Size, 2> impliedSizes;
  std::optional<solver::CostTerm> flops, params;

  /// A merge that repeats nothing, of two tensors of one shape, whose operands
  /// may be swapped.
  bool commutes = false;
};

/// A complete kernel of a search problem. All shapes are solved; some variables
/// may be free, which the budget then gives values.
class KernelGraph final : public Solution {
public:
  std::shared_ptr<const KernelProblem> problem;
  /// The input first; the last one is the output, up to a view.
  llvm::SmallVector<KernelNode, 12> nodes;
  /// The variables that occur, in the order of their first occurrence.
  llvm::SmallVector<unsigned, 4> variables;
  /// The number of groups, where the problem leaves it open.
  std::optional<int64_t> groups;
  uint64_t hash = 0;

  uint64_t key() const override { return hash; }
  /// How often each primitive occurs, the numbers of nodes and of free
  /// variables, and the logarithm of the number of groups.
  void getFeatures(llvm::SmallVectorImpl<double> &features) const override;

  /// The problem's layers with the number of groups, sizes, costs, limits and
  /// budgets: those that `getBudgetProblem` states for the kernel's IR. With no
  /// upper budget, FLOPs have one that never binds.
  solver::BudgetProblem getBudgetProblem() const;
  /// Values for the variables that use as much of the budget as can be, with a
  /// certificate. Computed once; from any thread.
  const solver::BudgetSolution &solve() const;

private:
  mutable std::once_flag solved;
  mutable solver::BudgetSolution solution;
};

/// Builds `graph` as `kas.kernel @name`, with values for its variables if the
/// solution has some.
KernelOp buildKernel(mlir::OpBuilder &builder, mlir::Location location,
                     llvm::StringRef name, const KernelGraph &graph,
                     const solver::BudgetSolution *solution = nullptr);

} // namespace kas::search

#endif // KAS_SEARCH_KERNELS_KERNELGRAPH_H
