//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/OperatorGraph.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// The product of sizes at a binding; saturates.
static uint64_t multiplyAll(llvm::ArrayRef<Size> sizes,
                            const Binding &binding) {
  uint64_t product = 1;
  for (const Size &size : sizes)
    product = llvm::SaturatingMultiply(
        product, static_cast<uint64_t>(size.evaluate(binding).value_or(0)));
  return product;
}

std::optional<GraphCost>
kas::getCost(const SearchProblem &problem, llvm::ArrayRef<Size> reductions,
             llvm::ArrayRef<llvm::SmallVector<Size, 6>> weights) {
  GraphCost cost;
  llvm::SmallVector<Size, 10> loops(reductions);
  for (const Dimension &output : problem.outputs)
    loops.push_back(output.size);
  bool isView = weights.empty() && reductions.empty();
  uint64_t products = isView ? 0 : std::max<uint64_t>(weights.size(), 1);
  for (auto [binding, count] :
       llvm::zip_equal(problem.bindings, problem.multiplicities)) {
    auto multiplicity = static_cast<uint64_t>(count);
    cost.flops = llvm::SaturatingMultiplyAdd(
        multiplicity,
        llvm::SaturatingMultiply(multiplyAll(loops, binding), 2 * products),
        cost.flops);
    for (const llvm::SmallVector<Size, 6> &weight : weights)
      cost.params = llvm::SaturatingMultiplyAdd(
          multiplicity, multiplyAll(weight, binding), cost.params);
  }
  if (cost.flops > INT64_MAX || cost.params > INT64_MAX)
    return std::nullopt;
  return cost;
}

std::optional<GraphCost> kas::getCost(const SearchProblem &problem,
                                      const OperatorGraph &graph) {
  llvm::SmallVector<Size, 6> reductions;
  for (const GraphCoord &coord : graph.coords)
    if (coord.kind == CoordKind::Reduce)
      reductions.push_back(coord.size);
  llvm::SmallVector<llvm::SmallVector<Size, 6>, 2> weights;
  for (llvm::ArrayRef<unsigned> weight : graph.weights) {
    llvm::SmallVector<Size, 6> &sizes = weights.emplace_back();
    for (unsigned coord : weight)
      sizes.push_back(graph.coords[coord].size);
  }
  return getCost(problem, reductions, weights);
}

//===----------------------------------------------------------------------===//
// IR
//===----------------------------------------------------------------------===//

namespace {
/// Builds the body of one operator.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder &builder, Location location,
              const SearchProblem &problem, const OperatorGraph &graph)
      : builder(builder), location(location), problem(problem), graph(graph),
        others(graph.coords.size()), ofWeights(graph.coords.size()),
        remainders(graph.coords.size()) {}

  void build(Block *block);

private:
  SizeAttr getAttr(const Size &size) {
    return SizeAttr::getNormal(builder.getContext(), size, problem.symbols);
  }
  Value create(unsigned index, Block *block);
  Value createMerge(unsigned index);
  void share(unsigned index, Value value);

  OpBuilder &builder;
  Location location;
  const SearchProblem &problem;
  const OperatorGraph &graph;
  /// By coordinate: the value for its use outside weights, and one per weight
  /// that uses it.
  std::vector<Value> others;
  std::vector<SmallVector<Value, 2>> ofWeights;
  /// By the coordinate that was merged: the half not handed out yet.
  std::vector<Value> remainders;
};
} // namespace

/// One op makes both halves, at the first of them.
Value BodyBuilder::createMerge(unsigned index) {
  const GraphCoord &coord = graph.coords[index];
  if (remainders[coord.first])
    return remainders[coord.first];
  auto merge = MergeOp::create(builder, location, others[coord.first],
                               getAttr(coord.parameter));
  bool isQuotient = coord.kind == CoordKind::MergeQuotient;
  remainders[coord.first] =
      isQuotient ? merge.getRemainder() : merge.getQuotient();
  return isQuotient ? merge.getQuotient() : merge.getRemainder();
}

Value BodyBuilder::create(unsigned index, Block *block) {
  const GraphCoord &coord = graph.coords[index];
  switch (coord.kind) {
  case CoordKind::Output:
    return block->getArgument(coord.amount);
  case CoordKind::Reduce:
    return ReduceOp::create(builder, location, ReduceKind::Sum,
                            getAttr(coord.size));
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    return createMerge(index);
  case CoordKind::Split:
    return SplitOp::create(builder, location, others[coord.first],
                           others[coord.second]);
  case CoordKind::Shift:
    return ShiftOp::create(builder, location, others[coord.first],
                           coord.amount);
  case CoordKind::Unfold:
    return UnfoldOp::create(builder, location, others[coord.first],
                            others[coord.second], Attribute());
  case CoordKind::Stride:
    return StrideOp::create(builder, location, others[coord.first],
                            getAttr(coord.parameter));
  }
  llvm_unreachable("all kinds are handled");
}

/// Gives each weight that uses the coordinate a value of its own, and keeps one
/// for the use elsewhere, if there is one.
void BodyBuilder::share(unsigned index, Value value) {
  size_t uses = llvm::count_if(graph.weights, [&](ArrayRef<unsigned> weight) {
    return llvm::is_contained(weight, index);
  });
  bool isUsedElsewhere =
      llvm::is_contained(graph.data, index) ||
      llvm::is_contained(graph.expanded, index) ||
      llvm::any_of(graph.coords, [&](const GraphCoord &coord) {
        bool isLeaf =
            coord.kind == CoordKind::Output || coord.kind == CoordKind::Reduce;
        bool isBinary =
            coord.kind == CoordKind::Split || coord.kind == CoordKind::Unfold;
        return !isLeaf &&
               (coord.first == index || (isBinary && coord.second == index));
      });
  for (size_t use = isUsedElsewhere ? 0 : 1; use < uses; ++use) {
    auto share = ShareOp::create(builder, location, value);
    value = share.getData();
    ofWeights[index].push_back(share.getWeight());
  }
  if (isUsedElsewhere)
    others[index] = value;
  else
    ofWeights[index].push_back(value);
}

void BodyBuilder::build(Block *block) {
  // Merging writes the remainder down before the loop gets to it.
  for (unsigned index = 0; index < graph.coords.size(); ++index)
    share(index, create(index, block));
  for (unsigned index : graph.expanded)
    ExpandOp::create(builder, location, others[index]);
  SmallVector<Value> data = llvm::map_to_vector(
      graph.data, [&](unsigned index) { return others[index]; });
  SmallVector<SmallVector<Value>> weights;
  for (ArrayRef<unsigned> weight : graph.weights) {
    SmallVector<Value> &values = weights.emplace_back();
    for (unsigned index : weight)
      values.push_back(ofWeights[index].pop_back_val());
  }
  YieldOp::create(builder, location, data,
                  llvm::map_to_vector(weights, [](SmallVector<Value> &values) {
                    return ValueRange(values);
                  }));
}

OperatorOp kas::buildOperator(OpBuilder &builder, Location location,
                              StringRef name, const SearchProblem &problem,
                              const OperatorGraph &graph) {
  OpBuilder::InsertionGuard guard(builder);
  MLIRContext *context = builder.getContext();
  SmallVector<StringRef> primaries, coefficients;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    (problem.symbols.getKind(symbol) == SymbolKind::Primary ? primaries
                                                            : coefficients)
        .push_back(problem.symbols.getName(symbol));
  auto getAttr = [&](const Dimension &dimension) {
    return SizeAttr::getNormal(context, dimension.size, problem.symbols);
  };
  auto getFlags = [&](ArrayRef<Dimension> shape) {
    return llvm::map_to_vector(shape, [](const Dimension &dimension) {
      return dimension.isUnordered;
    });
  };
  SmallVector<Attribute> inputSizes;
  for (const Dimension &dimension : problem.inputs)
    inputSizes.push_back(getAttr(dimension));
  auto op = OperatorOp::create(
      builder, location, builder.getStringAttr(name),
      /*sym_visibility=*/nullptr, builder.getStrArrayAttr(primaries),
      builder.getStrArrayAttr(coefficients),
      builder.getDenseBoolArrayAttr(getFlags(problem.outputs)),
      builder.getArrayAttr(inputSizes),
      builder.getDenseBoolArrayAttr(getFlags(problem.inputs)));
  Block *block = builder.createBlock(&op.getBody());
  for (const Dimension &dimension : problem.outputs)
    block->addArgument(CoordType::get(context, getAttr(dimension)), location);
  builder.setInsertionPointToStart(block);
  BodyBuilder(builder, location, problem, graph).build(block);
  return op;
}
