//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop nests of an operator's stages at each binding, for predicted times:
// what `-kas-rfactor` and `getCoordinates` make of its `kas.operator`, as plain
// data.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/OperatorNests.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;
using llvm::SmallVector;
using schedule::IndexExpr;
using schedule::Interval;
using schedule::LoopNest;
using schedule::Stage;
using schedule::StageOperand;
using schedule::StagePlan;

static constexpr unsigned none = ~0u;

static bool isLeaf(const GraphCoord &coord) {
  return coord.kind == CoordKind::Output || coord.kind == CoordKind::Reduce;
}

static bool isBinary(const GraphCoord &coord) {
  return coord.kind == CoordKind::Split || coord.kind == CoordKind::Unfold;
}

namespace {

/// Orders the dimensions of intermediates as `-kas-rfactor` does.
class FrontierOrder {
public:
  explicit FrontierOrder(const OperatorGraph &graph);

  void sort(Stage &stage) const {
    if (stage.isOfWeights) {
      llvm::sort(stage.frontier, [&](unsigned a, unsigned b) {
        return positions[a] < positions[b];
      });
      return;
    }
    auto key = [&](unsigned node) {
      bool isData = fromOutput[node] && dataDimension[node] != none;
      return std::tuple(isData ? dataDimension[node] : block, isData,
                        dataDimension[node], positions[node]);
    };
    llvm::sort(stage.frontier,
               [&](unsigned a, unsigned b) { return key(a) < key(b); });
  }

private:
  void findPositions(const OperatorGraph &graph);

  /// By node: its place among the coordinates of the `kas.operator`.
  SmallVector<unsigned, 24> positions;
  /// By node: the first dimension of the data that it is used for, and whether
  /// it comes from the output.
  SmallVector<unsigned, 24> dataDimension;
  SmallVector<bool, 24> fromOutput;
  unsigned block = none;
};

/// The index of each node in one stage.
class StageIndices {
public:
  StageIndices(const OperatorGraph &graph, const schedule::StageGraph &stages,
               const Binding &binding)
      : graph(graph), stages(stages), binding(binding) {}

  /// The nest of `stage`, whose operands have the coordinates `inputs`.
  LoopNest build(const Stage &stage, llvm::ArrayRef<unsigned> outputs,
                 llvm::ArrayRef<SmallVector<unsigned>> inputs);

private:
  int64_t getSize(unsigned node) const { return stages.coordinates[node].size; }
  int64_t getParameter(unsigned node) const {
    return graph.coords[node].parameter.evaluate(binding).value_or(1);
  }
  IndexExpr addDimension(int64_t extent) {
    ranges.push_back({0, extent - 1});
    return IndexExpr::getLoop(ranges.size() - 1);
  }
  void addLoop(unsigned node, bool isReduction);
  void addPrimitive(unsigned node);
  bool isProven(const schedule::Guard &guard) const {
    Interval interval = guard.expr.getInterval(ranges);
    return interval.lower >= 0 && interval.upper < guard.extent;
  }
  IndexExpr resolve(IndexExpr expr) const;
  void setTensor(LoopNest::Tensor &tensor,
                 llvm::ArrayRef<unsigned> nodes) const;

  const OperatorGraph &graph;
  const schedule::StageGraph &stages;
  const Binding &binding;
  LoopNest nest;
  SmallVector<IndexExpr, 24> indices;
  /// Of the loops, then of the coordinates that are clipped; and what stands
  /// for each.
  SmallVector<Interval, 16> ranges;
  SmallVector<IndexExpr, 16> replacements;
};

} // namespace

/// One op makes both halves of a merge, the quotient first.
void FrontierOrder::findPositions(const OperatorGraph &graph) {
  unsigned next = 0;
  positions.assign(graph.coords.size(), none);
  for (auto [node, coord] : llvm::enumerate(graph.coords)) {
    if (positions[node] != none)
      continue;
    if (coord.kind != CoordKind::MergeQuotient &&
        coord.kind != CoordKind::MergeRemainder) {
      positions[node] = next++;
      continue;
    }
    for (CoordKind kind : {CoordKind::MergeQuotient, CoordKind::MergeRemainder})
      for (auto [other, half] : llvm::enumerate(graph.coords))
        if (half.kind == kind && half.first == coord.first)
          positions[other] = next++;
  }
}

FrontierOrder::FrontierOrder(const OperatorGraph &graph) {
  findPositions(graph);
  unsigned count = graph.coords.size();
  dataDimension.assign(count, none);
  for (auto [dimension, node] : llvm::enumerate(graph.data))
    dataDimension[node] = std::min<unsigned>(dataDimension[node], dimension);
  for (unsigned node = count; node-- > 0;) {
    const GraphCoord &coord = graph.coords[node];
    if (isLeaf(coord))
      continue;
    auto reach = [&](unsigned operand) {
      dataDimension[operand] =
          std::min(dataDimension[operand], dataDimension[node]);
    };
    reach(coord.first);
    if (isBinary(coord))
      reach(coord.second);
  }
  for (const GraphCoord &coord : graph.coords) {
    if (coord.kind == CoordKind::Reduce)
      block = std::min(block, dataDimension[fromOutput.size()]);
    fromOutput.push_back(
        coord.kind == CoordKind::Output ||
        (!isLeaf(coord) && (fromOutput[coord.first] ||
                            (isBinary(coord) && fromOutput[coord.second]))));
  }
}

void StageIndices::addLoop(unsigned node, bool isReduction) {
  int64_t extent = getSize(node);
  nest.loops.push_back({extent, isReduction});
  indices[node] = addDimension(extent).simplify(ranges);
}

/// What clips a coordinate becomes a dimension of its own, whose range is known
/// where the point exists; its expression is put in at the end.
void StageIndices::addPrimitive(unsigned node) {
  const GraphCoord &coord = graph.coords[node];
  IndexExpr index = indices[coord.first];
  switch (coord.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    llvm_unreachable("a loop");
  case CoordKind::Split:
    index = IndexExpr();
    index.add(indices[coord.first], getSize(coord.second));
    index.add(indices[coord.second], 1);
    break;
  case CoordKind::Unfold:
    index.add(indices[coord.second], 1);
    index.constant -= coord.getLow(getSize(coord.second));
    break;
  case CoordKind::Shift:
    index.constant += coord.amount;
    index = index.divide(getSize(coord.first), /*isRemainder=*/true, ranges);
    break;
  case CoordKind::Stride:
    index = IndexExpr();
    index.add(indices[coord.first], getParameter(node));
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    index = index.divide(getParameter(node),
                         coord.kind == CoordKind::MergeRemainder, ranges);
    break;
  }
  index = index.simplify(ranges);
  if (coord.kind == CoordKind::Unfold) {
    schedule::Guard guard{index, getSize(node)};
    if (!isProven(guard)) {
      index = addDimension(guard.extent);
      replacements.push_back(guard.expr);
      nest.guards.push_back(std::move(guard));
    }
  }
  indices[node] = std::move(index);
}

/// Puts the expressions of the clipped coordinates in.
IndexExpr StageIndices::resolve(IndexExpr expr) const {
  auto isClipped = [&] {
    for (unsigned loop = nest.loops.size(); loop < ranges.size(); ++loop)
      if (expr.dependsOn(loop))
        return true;
    return false;
  };
  while (isClipped())
    expr = expr.replaceLoops(replacements).simplify(ranges);
  return expr;
}

void StageIndices::setTensor(LoopNest::Tensor &tensor,
                             llvm::ArrayRef<unsigned> nodes) const {
  for (unsigned node : nodes) {
    tensor.indices.push_back(resolve(indices[node]));
    tensor.shape.push_back(getSize(node));
  }
}

LoopNest StageIndices::build(const Stage &stage,
                             llvm::ArrayRef<unsigned> outputs,
                             llvm::ArrayRef<SmallVector<unsigned>> inputs) {
  nest = LoopNest();
  indices.assign(graph.coords.size(), IndexExpr());
  ranges.clear();
  replacements.clear();
  for (unsigned node : outputs)
    addLoop(node, /*isReduction=*/false);
  unsigned reduction = 0;
  for (unsigned node = 0; node < graph.coords.size(); ++node)
    if (graph.coords[node].kind == CoordKind::Reduce &&
        llvm::is_contained(stage.reductions, reduction++))
      addLoop(node, /*isReduction=*/true);
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
    replacements.push_back(IndexExpr::getLoop(loop));
  for (unsigned node = 0; node < graph.coords.size(); ++node)
    if (!isLeaf(graph.coords[node]) &&
        llvm::is_contained(stage.primitives, stages.coordinates[node].producer))
      addPrimitive(node);
  for (unsigned node : outputs) {
    nest.output.indices.push_back(
        IndexExpr::getLoop(nest.output.indices.size()));
    nest.output.shape.push_back(getSize(node));
  }
  for (auto [number, nodes] : llvm::enumerate(inputs)) {
    LoopNest::Tensor &tensor = nest.inputs.emplace_back();
    setTensor(tensor, nodes);
    // All but the data are weights, or made of them.
    tensor.isPrepacked = number != 0;
  }
  for (schedule::Guard &guard : nest.guards)
    guard.expr = resolve(guard.expr);
  llvm::erase_if(nest.guards,
                 [&](const schedule::Guard &guard) { return isProven(guard); });
  nest.splitLoops();
  return std::move(nest);
}

OperatorNests::OperatorNests(std::shared_ptr<const SearchProblem> problem,
                             uint64_t traffic)
    : problem(std::move(problem)), traffic(traffic) {}

void OperatorNests::describe(
    const OperatorGraph &graph,
    llvm::function_ref<void(unsigned, llvm::ArrayRef<LoopNest>)> use) const {
  FrontierOrder order(graph);
  schedule::StagePlanOptions options;
  options.cost = schedule::StageCost::Prepared;
  options.traffic = traffic;
  SmallVector<unsigned> results;
  for (unsigned node = 0; node < problem->outputs.size(); ++node)
    results.push_back(node);
  for (auto [number, binding] : llvm::enumerate(problem->bindings)) {
    schedule::StageGraph stages = getStageGraph(graph, binding);
    StagePlan plan = planStages(stages, options);
    StageIndices indices(graph, stages, binding);
    SmallVector<LoopNest, 2> nests;
    for (auto [index, stage] : llvm::enumerate(plan.stages)) {
      bool isLast = index + 1 == plan.stages.size();
      if (!isLast)
        order.sort(stage);
      if (stage.isOfWeights)
        continue;
      SmallVector<SmallVector<unsigned>, 3> inputs;
      for (const StageOperand &operand : stage.operands)
        inputs.push_back(operand.kind == StageOperand::Kind::Data ? stages.data
                         : operand.kind == StageOperand::Kind::Weight
                             ? stages.weights[operand.index]
                             : plan.stages[operand.index].frontier);
      nests.push_back(
          indices.build(stage, isLast ? results : stage.frontier, inputs));
    }
    use(number, nests);
  }
}
