//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Stages.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

namespace {
/// Collects the coordinates of an operator with their producers and consumers.
class StageGraphBuilder {
public:
  StageGraphBuilder(OperatorOp op, const Binding &binding)
      : symbols(op.getSymbolSet()), binding(binding), yield(op.getYield()) {
    for (Operation &primitive : op.getBody().front().without_terminator()) {
      if (auto reduce = dyn_cast<ReduceOp>(primitive)) {
        result.reductions.push_back(reduce);
        continue;
      }
      positions[&primitive] = result.primitives.size();
      result.primitives.push_back(&primitive);
    }
    for (BlockArgument output : op.getOutputs())
      add(output, StageGraph::End::Output, 0);
    for (auto [index, reduce] : llvm::enumerate(result.reductions))
      add(reduce.getResult(), StageGraph::End::Reduction, index);
    for (auto [index, primitive] : llvm::enumerate(result.primitives))
      for (Value top : primitive->getResults())
        add(top, StageGraph::End::Primitive, index);
    result.graph.numPrimitives = result.primitives.size();
    result.graph.numReductions = result.reductions.size();
    result.graph.numWeights = op.getNumWeights();
  }

  OperatorStageGraph result;

private:
  void add(Value value, StageGraph::End kind, unsigned producer) {
    StageGraph::Coordinate coordinate;
    coordinate.size = *getSize(value).toSize(symbols)->evaluate(binding);
    coordinate.producerKind = kind;
    coordinate.producer = producer;
    OpOperand &use = *value.use_begin();
    if (use.getOwner() == yield) {
      coordinate.consumer = getTensor(use.getOperandNumber());
    } else {
      coordinate.consumerKind = StageGraph::End::Primitive;
      coordinate.consumer = positions.lookup(use.getOwner());
    }
    coordinate.isBound = isBound(value);
    coordinate.isExclusive = bool(value.getDefiningOp<ShareOp>());
    result.graph.coordinates.push_back(coordinate);
    result.coordinates.push_back(value);
  }

  /// The weight side of a share can be no data of a later stage (C8), unless
  /// the data side is in a weight, too, and can take its place.
  bool isBound(Value value) {
    auto share = value.getDefiningOp<ShareOp>();
    if (!share || value != share.getWeight())
      return false;
    OpOperand &use = *share.getData().use_begin();
    return use.getOwner() != yield ||
           use.getOperandNumber() < yield.getData().size();
  }

  /// Which tensor an operand of the yield indexes: 0 is the data.
  unsigned getTensor(unsigned operand) {
    unsigned tensor = 0, end = yield.getData().size();
    while (operand >= end)
      end += yield.getWeights()[tensor++].size();
    return tensor;
  }

  const SymbolSet symbols;
  const Binding &binding;
  YieldOp yield;
  llvm::DenseMap<Operation *, unsigned> positions;
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
