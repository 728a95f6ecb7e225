//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamenessOperator.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::search;
using namespace kas::test;

namespace {
/// Reads the body of a `kas.operator`.
class BodyReader {
public:
  BodyReader(OperatorOp op, const Binding &binding)
      : op(op), symbols(op.getSymbolSet()), binding(binding) {}

  std::optional<ConcreteOperator> read();

private:
  int64_t valueOf(SizeAttr size) {
    return *kas::evaluate(size, symbols, binding);
  }
  unsigned lookup(mlir::Value value) { return indices.lookup(value); }
  void add(mlir::Value value, ConcreteCoord coord) {
    coord.size = valueOf(getSize(value));
    indices[value] = result.coords.size();
    result.coords.push_back(coord);
  }
  void addAxes(llvm::SmallVectorImpl<ConcreteAxis> &axes,
               llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<bool> unordered) {
    for (auto [size, flag] : llvm::zip_equal(sizes, unordered))
      axes.push_back({size, flag});
  }
  void addPrimitive(mlir::Operation *primitive);

  OperatorOp op;
  SymbolSet symbols;
  const Binding &binding;
  ConcreteOperator result;
  llvm::DenseMap<mlir::Value, unsigned> indices;
};
} // namespace

void BodyReader::addPrimitive(mlir::Operation *primitive) {
  using Coord = ConcreteCoord;
  llvm::TypeSwitch<mlir::Operation *>(primitive)
      .Case([&](ReduceOp reduce) {
        add(reduce.getResult(), {});
        if (reduce.getKind() == ReduceKind::Mean)
          result.divisor *= result.coords.back().size;
      })
      .Case([&](SplitOp split) {
        add(split.getResult(), {Coord::Split, 1, lookup(split.getOuter()),
                                lookup(split.getInner()), 0});
      })
      .Case([&](MergeOp merge) {
        unsigned whole = lookup(merge.getCoord());
        int64_t block = valueOf(merge.getBlock());
        add(merge.getQuotient(), {Coord::Quotient, 1, whole, 0, block});
        add(merge.getRemainder(), {Coord::Remainder, 1, whole, 0, block});
      })
      .Case([&](ShiftOp shift) {
        add(shift.getResult(), {Coord::Shift, 1, lookup(shift.getCoord()), 0,
                                static_cast<int64_t>(shift.getAmount())});
      })
      .Case([&](UnfoldOp unfold) {
        int64_t low =
            unfold.getLowValue([&](SizeAttr size) { return valueOf(size); });
        add(unfold.getResult(), {Coord::Unfold, 1, lookup(unfold.getCoord()),
                                 lookup(unfold.getWindow()), low});
      })
      .Case([&](StrideOp stride) {
        add(stride.getResult(), {Coord::Stride, 1, lookup(stride.getCoord()), 0,
                                 valueOf(stride.getFactor())});
      })
      .Case([&](ShareOp share) {
        unsigned index = lookup(share.getCoord());
        indices[share.getData()] = indices[share.getWeight()] = index;
      });
}

std::optional<ConcreteOperator> BodyReader::read() {
  for (mlir::Value output : op.getOutputs())
    add(output, {});
  for (mlir::Operation &primitive : op.getBody().front().without_terminator()) {
    if (auto reduce = llvm::dyn_cast<ReduceOp>(primitive);
        reduce && reduce.getKind() == ReduceKind::Max)
      return std::nullopt;
    addPrimitive(&primitive);
  }
  YieldOp yield = op.getYield();
  for (mlir::Value value : yield.getData())
    result.data.push_back(lookup(value));
  for (mlir::OperandRange weight : yield.getWeights()) {
    llvm::SmallVector<unsigned, 6> &coords = result.weights.emplace_back();
    for (mlir::Value value : weight)
      coords.push_back(lookup(value));
  }
  llvm::SmallVector<int64_t> outputs, inputs;
  for (mlir::Value output : op.getOutputs())
    outputs.push_back(valueOf(getSize(output)));
  for (auto size : op.getInputSizes().getAsRange<SizeAttr>())
    inputs.push_back(valueOf(size));
  addAxes(result.outputs, outputs, op.getOutputUnordered());
  addAxes(result.inputs, inputs, op.getInputUnordered());
  return result;
}

std::optional<ConcreteOperator>
kas::test::makeConcrete(OperatorOp op, const Binding &binding) {
  return BodyReader(op, binding).read();
}

/// `isCyclic`: all windows wrap around. Those of the search are written out,
/// and never leave the three copies that they are in; those of brute force are
/// single nodes.
static ConcreteCoord makeConcrete(const OperatorGraph &graph,
                                  const GraphCoord &coord,
                                  const Binding &binding, bool isCyclic) {
  auto valueOf = [&](const Size &size) { return *size.evaluate(binding); };
  ConcreteCoord result{ConcreteCoord::Loop, valueOf(coord.size), coord.first,
                       coord.second, 0};
  switch (coord.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    result.kind = coord.kind == CoordKind::MergeQuotient
                      ? ConcreteCoord::Quotient
                      : ConcreteCoord::Remainder;
    result.parameter = valueOf(coord.parameter);
    break;
  case CoordKind::Split:
    result.kind = ConcreteCoord::Split;
    break;
  case CoordKind::Shift:
    result.kind = ConcreteCoord::Shift;
    result.parameter = coord.amount;
    break;
  case CoordKind::Unfold:
    result.kind =
        isCyclic ? ConcreteCoord::CyclicUnfold : ConcreteCoord::Unfold;
    result.parameter = coord.getLow(valueOf(graph.coords[coord.second].size));
    break;
  case CoordKind::Stride:
    result.kind = ConcreteCoord::Stride;
    result.parameter = valueOf(coord.parameter);
    break;
  }
  return result;
}

ConcreteOperator kas::test::makeConcrete(const SearchProblem &problem,
                                         const OperatorGraph &graph,
                                         const Binding &binding) {
  ConcreteOperator result;
  for (const GraphCoord &coord : graph.coords)
    result.coords.push_back(
        ::makeConcrete(graph, coord, binding, problem.limits.cyclic));
  for (const Dimension &output : problem.outputs)
    result.outputs.push_back(
        {*output.size.evaluate(binding), output.isUnordered});
  for (const Dimension &input : problem.inputs)
    result.inputs.push_back({*input.size.evaluate(binding), input.isUnordered});
  result.data.assign(graph.data.begin(), graph.data.end());
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    result.weights.emplace_back(weight);
  return result;
}
