//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the graph of an operator for the planner of stages
// (Schedule/StagePlan.h).
// The planner knows no MLIR, so that a search may plan millions of candidates;
// `OperatorStageGraph` says what its numbers stand for in the IR.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Stages.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::schedule;

Value kas::getShared(Value coordinate) {
  while (auto share = coordinate.getDefiningOp<ShareOp>())
    coordinate = share.getCoord();
  return coordinate;
}

namespace {
/// Collects the coordinates of an operator with their producers and consumers.
/// Numbers coordinates in the order outputs, reductions, results of primitives,
/// which is an order in which definitions come before users. Shares are
/// dissolved: a coordinate and its copies are one number.
class StageGraphBuilder {
public:
  StageGraphBuilder(OperatorOp op, const Binding &binding)
      : symbols(op.getSymbolSet()), binding(binding) {
    for (BlockArgument output : op.getOutputs())
      add(output, StageGraph::Producer::Output, 0);
    // Results come after operands.
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (auto reduce = dyn_cast<ReduceOp>(primitive))
        addReduction(reduce);
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (!isa<ReduceOp, ShareOp>(primitive))
        addPrimitive(&primitive);
    YieldOp yield = op.getYield();
    result.graph.data = getPositions(yield.getData());
    for (OperandRange weight : yield.getWeights())
      result.graph.weights.push_back(getPositions(weight));
  }

  OperatorStageGraph result;

private:
  void addReduction(ReduceOp reduce) {
    add(reduce.getResult(), StageGraph::Producer::Reduction,
        result.graph.numReductions++);
    result.reductions.push_back(reduce);
  }

  /// Coordinates are linear: each has one consumer, but for tensors that share
  /// it.
  void addPrimitive(Operation *primitive) {
    unsigned index = result.graph.numPrimitives++;
    result.primitives.push_back(primitive);
    for (Value operand : primitive->getOperands())
      result.graph.coordinates[positions.at(getShared(operand))].consumer =
          index;
    for (Value top : primitive->getResults())
      add(top, StageGraph::Producer::Primitive, index);
  }

  void add(Value value, StageGraph::Producer kind, unsigned producer) {
    positions.try_emplace(value, result.coordinates.size());
    result.coordinates.push_back(value);
    StageGraph::Coordinate &coordinate =
        result.graph.coordinates.emplace_back();
    // The binding is legal: every size is an integer.
    coordinate.size = *getSize(value).toSize(symbols)->evaluate(binding);
    coordinate.producerKind = kind;
    coordinate.producer = producer;
  }

  SmallVector<unsigned> getPositions(ValueRange coordinates) const {
    return llvm::map_to_vector(coordinates, [&](Value coordinate) {
      return positions.at(getShared(coordinate));
    });
  }

  const SymbolSet symbols;
  const Binding &binding;
  /// By coordinate: its position in the graph.
  llvm::DenseMap<Value, unsigned> positions;
};
} // namespace

OperatorStageGraph kas::makeStageGraph(OperatorOp op, const Binding &binding) {
  return StageGraphBuilder(op, binding).result;
}

bool kas::canFactor(OperatorOp op) {
  return llvm::all_of(getReductions(op), [](ReduceOp reduce) {
    return reduce.getKind() != ReduceKind::Max;
  });
}
