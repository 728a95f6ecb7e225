//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator as a graph of coordinates, the solution of a search, and its IR.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/OperatorGraph.h"
#include "FullRanks.h"
#include "kas/Dialect/Kas/IR/SearchAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::search;

/// 2 + 8 + 1 + 8 numbers: logarithms of costs, kinds, weights, and for four
/// weights their coordinates.
void OperatorGraph::getFeatures(llvm::SmallVectorImpl<double> &features) const {
  features.push_back(std::log2(1.0 + static_cast<double>(cost.flops)));
  features.push_back(std::log2(1.0 + static_cast<double>(cost.params)));
  constexpr unsigned numKinds = static_cast<unsigned>(CoordKind::Stride) + 1;
  double counts[numKinds] = {};
  // Computed in topological order.
  llvm::SmallVector<bool, 16> hasOutput;
  for (const GraphCoord &coord : coords) {
    counts[static_cast<unsigned>(coord.kind)] += 1;
    bool isBinary =
        coord.kind == CoordKind::Split || coord.kind == CoordKind::Unfold;
    hasOutput.push_back(
        coord.kind == CoordKind::Output ||
        (coord.kind != CoordKind::Reduce &&
         (hasOutput[coord.first] || (isBinary && hasOutput[coord.second]))));
  }
  features.append(std::begin(counts), std::end(counts));
  features.push_back(static_cast<double>(weights.size()));
  // Features of missing weights are 0.
  constexpr size_t maxWeights = 4;
  for (size_t index = 0; index < maxWeights; ++index) {
    double rank = 0, ofOutput = 0;
    if (index < weights.size())
      for (unsigned coord : weights[index]) {
        rank += 1;
        ofOutput += hasOutput[coord];
      }
    features.push_back(rank);
    features.push_back(ofOutput);
  }
}

//===----------------------------------------------------------------------===//
// IR
//===----------------------------------------------------------------------===//

namespace {
/// Builds the body of one operator. `create` makes the value of a coordinate,
/// `share` the values for its uses.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder &builder, Location location,
              const SearchProblem &problem, const OperatorGraph &graph)
      : builder(builder), location(location), problem(problem), graph(graph),
        others(graph.coords.size()), ofWeights(graph.coords.size()),
        remainders(graph.coords.size()) {}

  /// Coordinates in the order of the graph, which is topological.
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
  /// By coordinate: the value for its use outside weights, and by weight the
  /// one for that.
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

/// Operands outside of weights are in `others`.
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
    return UnfoldOp::create(
        builder, location, others[coord.first], others[coord.second],
        coord.isCausal ? Attribute(builder.getUnitAttr()) : Attribute());
  case CoordKind::Stride:
    return StrideOp::create(builder, location, others[coord.first],
                            getAttr(coord.parameter));
  }
  llvm_unreachable("all kinds are handled");
}

/// Gives each weight that uses the coordinate a value of its own, and keeps one
/// for the use elsewhere, if there is one. The weight that the stages take last
/// comes first, nearest to the output. The chain of shares decides the order of
/// stages, see `stageOfWeights`.
void BodyBuilder::share(unsigned index, Value value) {
  SmallVector<unsigned, 4> users;
  for (auto [number, weight] : llvm::enumerate(graph.weights))
    if (llvm::is_contained(weight, index))
      users.push_back(number);
  llvm::sort(users, [&](unsigned a, unsigned b) {
    return graph.stageOfWeights[a] > graph.stageOfWeights[b];
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
  // The last use takes the value itself; all others need a share.
  ofWeights[index].resize(graph.weights.size());
  for (auto [place, weight] : llvm::enumerate(users)) {
    if (place + 1 == users.size() && !isUsedElsewhere) {
      ofWeights[index][weight] = value;
      return;
    }
    auto share = ShareOp::create(builder, location, value);
    value = share.getData();
    ofWeights[index][weight] = share.getWeight();
  }
  others[index] = value;
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
  for (auto [number, weight] : llvm::enumerate(graph.weights)) {
    SmallVector<Value> &values = weights.emplace_back();
    for (unsigned index : weight)
      values.push_back(ofWeights[index][number]);
  }
  YieldOp::create(builder, location, data,
                  llvm::map_to_vector(weights, [](SmallVector<Value> &values) {
                    return ValueRange(values);
                  }));
}

/// The symbols are those of the problem, whether they occur or not.
OperatorOp kas::search::buildOperator(OpBuilder &builder, Location location,
                                      StringRef name,
                                      const SearchProblem &problem,
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
  // W14 at the bindings where it holds, for people and for later passes.
  llvm::SmallVector<int64_t> fullRankAt = getFullRankBindings(problem, graph);
  if (!fullRankAt.empty())
    op->setAttr(fullRankAtAttrName,
                DenseI64ArrayAttr::get(context, fullRankAt));
  return op;
}
