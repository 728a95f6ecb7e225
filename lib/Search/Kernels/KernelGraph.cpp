//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A finished kernel of the tensor-level search: from a state to a graph, and
// its budget problem.
//
// A state keeps sizes as small numbers in flat arrays, for speed; a graph has
// sizes themselves and outlives the state.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Kernels/KernelGraph.h"
#include "KernelStateImpl.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

//===----------------------------------------------------------------------===//
// From a state
//===----------------------------------------------------------------------===//

namespace {
class GraphWriter {
public:
  GraphWriter(const KernelSpace &space, const KernelStateData &data)
      : space(space), sizes(space.sizes), data(data),
        graph(std::make_shared<KernelGraph>()) {}

  /// Variables come in the order in which steps introduce them, by `size`.
  std::shared_ptr<KernelGraph> write() {
    graph->problem = space.problem;
    for (const FlatNode &node : data.getNodes())
      graph->nodes.push_back(writeNode(node));
    const auto &all = space.problem->rules.variables;
    for (const KernelNode &node : graph->nodes)
      for (unsigned variable : all)
        if (node.size.getExponent(variable) != 0 &&
            !llvm::is_contained(graph->variables, variable))
          graph->variables.push_back(variable);
    if (data.groups)
      graph->groups = space.problem->groupCandidates[data.groups - 1];
    return graph;
  }

private:
  /// Field by field; sizes are looked up.
  KernelNode writeNode(const FlatNode &flat) {
    KernelNode node;
    node.step = flat.step;
    node.left = flat.left;
    node.right = flat.right;
    node.dims = flat.dims;
    node.amount = flat.amount;
    node.prefix = flat.prefix;
    node.suffix = flat.suffix;
    node.transposesLeft = flat.transposesLeft;
    node.transposesRight = flat.transposesRight;
    node.isScaled = flat.isScaled;
    // Subtraction of equal shapes is aligned, too, but does not commute.
    node.commutes = flat.isAligned && flat.step != KernelStep::Sub;
    node.size = sizes[flat.size];
    node.shape.numChannelDims = flat.shape.numChannels;
    for (unsigned dim = 0; dim < flat.shape.rank; ++dim)
      node.shape.dims.push_back(sizes[flat.shape.dims[dim]]);
    if (flat.step == KernelStep::Unfold)
      addWindows(flat, node);
    for (SizeId size : flat.implied)
      if (size != oneSize)
        // 1 is no condition.
        node.impliedSizes.push_back(sizes[size]);
    if (flat.flopsFactor)
      // Without a factor there are no FLOPs; `flops` is `noSize` then.
      node.flops = CostTerm{flat.flopsFactor, sizes[flat.flops]};
    if (flat.params != noSize)
      node.params = CostTerm{1, sizes[flat.params]};
    return node;
  }

  /// A node stores the number of the choice; each spatial dimension has its own
  /// windows.
  void addWindows(const FlatNode &flat, KernelNode &node) {
    const FlatShape &operand = data.nodes[flat.left].shape;
    for (unsigned dim = 0; dim < operand.rank; ++dim)
      if (flat.dims >> dim & 1)
        node.windows.push_back(
            sizes[space.windows[operand.roles[dim] - Spatial][flat.window]]);
  }

  const KernelSpace &space;
  const KernelSizes &sizes;
  const KernelStateData &data;
  std::shared_ptr<KernelGraph> graph;
};
} // namespace

/// The key of the state identifies the kernel up to isomorphism, see
/// KernelHash.cpp.
std::shared_ptr<const Solution> KernelState::getSolution() const {
  assert(isTerminal() && "only a terminal state has a solution");
  std::shared_ptr<KernelGraph> graph = GraphWriter(*space, data).write();
  graph->hash = key();
  return graph;
}

/// `numKernelSteps` + 3 numbers, the same for all kernels.
void KernelGraph::getFeatures(llvm::SmallVectorImpl<double> &features) const {
  llvm::SmallVector<double, numKernelSteps> counts(numKernelSteps, 0);
  for (const KernelNode &node : nodes)
    if (node.step != KernelStep::Input)
      ++counts[static_cast<unsigned>(node.step)];
  features.append(counts.begin(), counts.end());
  features.push_back(static_cast<double>(nodes.size()));
  features.push_back(static_cast<double>(variables.size()));
  // The logarithm, so that twice as many groups are one more.
  features.push_back(groups ? std::log2(static_cast<double>(*groups)) : 0);
}

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

/// Layers differ by their bindings only. A variable has a value for each layer,
/// which must make all `sizes` integers.
BudgetProblem KernelGraph::getBudgetProblem() const {
  BudgetProblem result;
  const KernelProblem &from = *problem;
  result.numSymbols = from.symbols.size();
  result.variables.assign(variables.begin(), variables.end());
  llvm::sort(result.variables);
  for (auto [binding, count] :
       llvm::zip_equal(from.rules.bindings, from.multiplicities)) {
    BudgetProblem::Layer layer{binding, count, 1};
    // The chosen number of groups takes the place of the symbol's own value in
    // every layer.
    if (from.groups && groups)
      layer.binding[*from.groups] = *groups;
    // Values are proportioned to the input channels.
    for (const Size &size :
         llvm::ArrayRef(from.input.dims).take_front(from.input.numChannelDims))
      layer.channels *= size.evaluate(layer.binding).value_or(1);
    result.layers.push_back(std::move(layer));
  }
  result.costs.resize(2);
  result.costs[0] = {"flops", {}, from.minFlops, from.maxFlops};
  result.costs[1] = {"params", {}, from.minParams, from.maxParams};
  // The heuristic orders the layers by the growth of cost 1, the parameters.
  result.sensitivity = 1;
  // As in the certificate that KernelBuilder.cpp writes.
  result.objective = from.maxFlops || !from.maxParams ? 0 : 1;
  auto addSize = [&](const Size &size) {
    if (!llvm::is_contained(result.sizes, size))
      result.sizes.push_back(size);
  };
  // Sizes of all tensors must be integers, and so must the implied ones.
  for (const KernelNode &node : nodes) {
    std::optional<Size> elements = Size();
    for (const Size &size : node.shape.dims) {
      addSize(size);
      elements = elements->multiply(size);
    }
    for (const Size &size : node.impliedSizes)
      addSize(size);
    // The search has seen that these fit. Each is stated once; limits are the
    // same for equal products.
    if (llvm::none_of(result.limits, [&](const BudgetProblem::Limit &limit) {
          return limit.terms[0].size == *elements;
        }))
      result.limits.push_back(
          {{CostTerm{from.limits.batch, *elements}}, from.limits.maxElements});
    if (node.flops)
      result.costs[0].terms.push_back(*node.flops);
    if (node.params)
      result.costs[1].terms.push_back(*node.params);
  }
  return result;
}

/// Solved on demand and kept: several evaluators need the values. `call_once`
/// makes it safe for threads.
const BudgetSolution &KernelGraph::solve() const {
  std::call_once(solved, [&] { solution = solveBudget(getBudgetProblem()); });
  return solution;
}
