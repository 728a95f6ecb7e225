//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sampled kernels as IR.
//
// The inverse of reading a kernel: `buildKernel` writes the signature, facts,
// bindings and budget of the problem again, so that the result states the same
// search, and the body from the nodes.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Kernels/KernelGraph.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace kas;
using namespace kas::search;
using namespace kas::solver;

namespace {
/// `names` is made first; every size is written with it.
class KernelBuilder {
public:
  KernelBuilder(OpBuilder &builder, Location location, const KernelGraph &graph,
                const BudgetSolution *solution)
      : builder(builder), location(location), graph(graph),
        problem(*graph.problem), solution(solution) {
    // Variables are named by their first occurrence. The search takes the
    // variables in any order; renaming them by their first occurrence makes
    // equal kernels print alike.
    unsigned numFixed = problem.symbols.size() - problem.rules.variables.size();
    for (unsigned symbol = 0; symbol < numFixed; ++symbol)
      names.push_back(problem.symbols.getName(symbol));
    names.resize(problem.symbols.size());
    for (auto [number, variable] : llvm::enumerate(graph.variables))
      names[variable] = problem.symbols.getName(numFixed + number);
  }

  /// Nodes are in topological order, so one pass builds the body.
  KernelOp build(StringRef name) {
    KernelOp kernel = buildKernel(name);
    OpBuilder::InsertionGuard guard(builder);
    Block &block = kernel.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    for (const KernelNode &node : graph.nodes)
      values.push_back(node.step == KernelStep::Input
                           ? block.addArgument(getType(node.shape), location)
                           : buildStep(node));
    // No size attributes: the output of a search has the shape of the
    // signature, so nothing is left to be matched.
    DagOutputOp::create(builder, location, values.back(), SizeAttr(),
                        SizeAttr());
    return kernel;
  }

private:
  /// In the normal form of the attribute, with the names of this kernel.
  SizeAttr getSize(const Size &size) {
    return SizeAttr::getNormal(builder.getContext(), size, names);
  }

  SymbolicTensorType getType(const TensorShape &shape) {
    return SymbolicTensorType::get(
        builder.getContext(),
        llvm::map_to_vector(shape.dims,
                            [&](const Size &size) { return getSize(size); }),
        shape.numChannelDims);
  }

  /// The names of the symbols [first, last).
  ArrayAttr getNames(unsigned first, unsigned last) {
    SmallVector<StringRef> list(names.begin() + first, names.begin() + last);
    return builder.getStrArrayAttr(list);
  }

  /// One binding per layer: the symbols of the problem, with the number of
  /// groups that was chosen, and the values of the variables if the budget
  /// solver has some.
  ArrayAttr getBindings() {
    SmallVector<Attribute> bindings;
    unsigned numFixed = problem.symbols.size() - problem.rules.variables.size();
    // The solution lists its values by ascending number of the variable.
    SmallVector<unsigned> sorted(graph.variables.begin(),
                                 graph.variables.end());
    llvm::sort(sorted);
    for (auto [layer, binding] : llvm::enumerate(problem.rules.bindings)) {
      SmallVector<std::pair<StringRef, int64_t>> entries;
      for (unsigned symbol = 0; symbol < numFixed; ++symbol)
        entries.emplace_back(names[symbol],
                             problem.groups == symbol && graph.groups
                                 ? *graph.groups
                                 : binding[symbol]);
      if (solution && !solution->values.empty())
        for (auto [variable, value] :
             llvm::zip_equal(sorted, solution->values[layer]))
          entries.emplace_back(names[variable], value);
      bindings.push_back(BindingAttr::getNormal(builder.getContext(), entries));
    }
    return builder.getArrayAttr(bindings);
  }

  /// The bounds that the problem has.
  DictionaryAttr getBudget() {
    NamedAttrList entries;
    auto add = [&](StringRef name, std::optional<int64_t> value) {
      if (value)
        entries.append(name, builder.getI64IntegerAttr(*value));
    };
    add("flops", problem.maxFlops);
    add("flops_min", problem.minFlops);
    add("params", problem.maxParams);
    add("params_min", problem.minParams);
    return entries.getDictionary(builder.getContext());
  }

  /// The certificate: the totals at the values, and the bound of the objective.
  /// docs/reference/tensor-level.md, section 5, says what it proves.
  DictionaryAttr getSolution() {
    NamedAttrList entries;
    if (solution && !solution->totals.empty()) {
      auto add = [&](StringRef name, int64_t value) {
        entries.append(name, builder.getI64IntegerAttr(value));
      };
      add("flops", solution->totals[0]);
      add("params", solution->totals[1]);
      // The objective is FLOPs where they are bounded, or where nothing is.
      add(problem.maxFlops || !problem.maxParams ? "flops_bound"
                                                 : "params_bound",
          solution->bound);
      entries.append("status", builder.getStringAttr(
                                   solution->status == BudgetStatus::Optimal
                                       ? "optimal"
                                       : "bounded"));
    }
    return entries.getDictionary(builder.getContext());
  }

  /// Symbols of a problem are in this order: primaries, coefficients,
  /// variables.
  KernelOp buildKernel(StringRef name) {
    unsigned numFixed = problem.symbols.size() - problem.rules.variables.size();
    SmallVector<Attribute> divisors, multiples;
    for (const SizeRules::Divides &fact : problem.rules.facts) {
      divisors.push_back(getSize(fact.divisor));
      multiples.push_back(builder.getStringAttr(names[fact.multiple]));
    }
    return KernelOp::create(
        builder, location, name, StringAttr(), problem.requiresTheorem,
        getNames(0, problem.numPrimaries),
        getNames(problem.numPrimaries, numFixed), getVariableNames(),
        builder.getArrayAttr(divisors), builder.getArrayAttr(multiples),
        getType(problem.output), getBindings(), problem.multiplicities,
        getBudget(), getSolution());
  }

  ArrayAttr getVariableNames() {
    SmallVector<StringRef> list;
    for (unsigned variable : graph.variables)
      list.push_back(names[variable]);
    return builder.getStrArrayAttr(list);
  }

  /// The dimensions of the mask, ascending.
  static SmallVector<int64_t> getDims(const KernelNode &node) {
    SmallVector<int64_t> dims;
    for (unsigned mask = node.dims; mask; mask &= mask - 1)
      dims.push_back(llvm::countr_zero(mask));
    return dims;
  }

  /// One operation of the dialect per step. Enumerators of a family (folds,
  /// merges, functions) follow each other in the same order as those of the
  /// dialect's attribute, hence the differences.
  Value buildStep(const KernelNode &node) {
    using enum KernelStep;
    Value left = values[node.left];
    SmallVector<int64_t> dims = getDims(node);
    switch (node.step) {
    case FC:
      return DagFCOp::create(builder, location, left, node.amount,
                             getSize(node.size));
    case Group:
      return DagGroupOp::create(builder, location, left, 0, getSize(node.size));
    case GroupAll:
      return DagGroupAllOp::create(builder, location, left);
    case Shift:
      return DagShiftOp::create(builder, location, left, dims[0], node.amount);
    case Unfold: {
      SmallVector<Attribute> windows;
      for (const Size &size : node.windows)
        windows.push_back(getSize(size));
      return DagUnfoldOp::create(builder, location, left, dims,
                                 builder.getArrayAttr(windows), node.amount);
    }
    case Transpose:
      return DagTransposeOp::create(builder, location, left, dims);
    case Shuffle:
      return DagShuffleOp::create(builder, location, left, dims[0],
                                  getSize(node.size));
    case Reorder:
    case InverseReorder:
      return DagReorderOp::create(builder, location, left, dims[0],
                                  node.step == InverseReorder);
    case Scale:
      return DagScaleOp::create(builder, location, left, dims);
    case Norm:
      return DagNormOp::create(builder, location, left);
    case Mix: {
      SmallVector<Attribute> sizes;
      // A mix writes the new sizes, of which the node has only the product.
      for (int64_t dim : dims)
        sizes.push_back(getSize(node.shape.dims[dim]));
      return DagMixOp::create(builder, location, left, dims,
                              builder.getArrayAttr(sizes));
    }
    case FoldSum:
    case FoldMean:
    case FoldMax:
      return DagFoldOp::create(
          builder, location,
          static_cast<DagFoldKind>(static_cast<unsigned>(node.step) -
                                   static_cast<unsigned>(FoldSum)),
          left, dims);
    case Softmax:
      return DagSoftmaxOp::create(builder, location, left, dims);
    case Add:
    case Sub:
    case Mul:
    case Min:
    case Max:
      return DagBroadcastOp::create(
          builder, location,
          static_cast<DagBroadcastKind>(static_cast<unsigned>(node.step) -
                                        static_cast<unsigned>(Add)),
          left, values[node.right],
          ArrayRef<int64_t>{int64_t(node.prefix), int64_t(node.suffix)});
    case MatMul:
      return DagMatMulOp::create(builder, location, left, values[node.right],
                                 node.amount, node.transposesLeft,
                                 node.transposesRight, node.isScaled);
    // Functions of one element: ReLU to Sqr.
    default:
      return DagUnaryOp::create(
          builder, location,
          static_cast<DagUnaryKind>(static_cast<unsigned>(node.step) -
                                    static_cast<unsigned>(ReLU)),
          left);
    }
  }

  OpBuilder &builder;
  Location location;
  const KernelGraph &graph;
  const KernelProblem &problem;
  const BudgetSolution *solution;
  /// By symbol of the problem. Variables that do not occur have no name.
  SmallVector<StringRef> names;
  SmallVector<Value> values;
};
} // namespace

KernelOp kas::search::buildKernel(OpBuilder &builder, Location location,
                                  StringRef name, const KernelGraph &graph,
                                  const BudgetSolution *solution) {
  return KernelBuilder(builder, location, graph, solution).build(name);
}
