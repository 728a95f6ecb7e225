//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph of a found operator for the planner of stages, and its FLOPs.
//
// The planner (kas/Schedule/StagePlan.h) knows coordinates, producers and
// consumers only; this file translates the graph at one binding.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/StagePlan.h"
#include "kas/Search/Operators/OperatorGraph.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::search;
using schedule::StageGraph;

namespace {
/// Makes the graph for the planner of stages.
class StageGraphBuilder {
public:
  StageGraphBuilder(const OperatorGraph &graph, const Binding &binding)
      : graph(graph), binding(binding) {}

  StageGraph build() {
    for (const GraphCoord &coord : graph.coords)
      add(coord);
    result.data.assign(graph.data.begin(), graph.data.end());
    for (llvm::ArrayRef<unsigned> weight : graph.weights)
      result.weights.emplace_back(weight.begin(), weight.end());
    // An expand consumes a coordinate without making one.
    for (unsigned index : graph.expanded)
      result.coordinates[index].consumer = result.numPrimitives++;
    return result;
  }

private:
  /// The producer of a coordinate is an output, a reduction, or the primitive
  /// that makes it.
  void add(const GraphCoord &coord) {
    StageGraph::Coordinate &coordinate = result.coordinates.emplace_back();
    coordinate.size = coord.size.evaluate(binding).value_or(1);
    if (coord.kind == CoordKind::Output)
      return;
    if (coord.kind == CoordKind::Reduce) {
      coordinate.producerKind = StageGraph::Producer::Reduction;
      coordinate.producer = result.numReductions++;
      return;
    }
    coordinate.producerKind = StageGraph::Producer::Primitive;
    coordinate.producer = getPrimitive(coord);
  }

  /// The primitive that makes `coord`; both halves of a merge are made by one.
  unsigned getPrimitive(const GraphCoord &coord) {
    unsigned &consumer = result.coordinates[coord.first].consumer;
    // A coordinate is an operand once: these are both halves of a merge.
    if (consumer == StageGraph::noPrimitive)
      consumer = result.numPrimitives++;
    if (coord.kind == CoordKind::Split || coord.kind == CoordKind::Unfold)
      result.coordinates[coord.second].consumer = consumer;
    return consumer;
  }

  const OperatorGraph &graph;
  const Binding &binding;
  StageGraph result;
};
} // namespace

StageGraph kas::search::getStageGraph(const OperatorGraph &graph,
                                      const Binding &binding) {
  return StageGraphBuilder(graph, binding).build();
}

std::optional<uint64_t> kas::search::getFlops(const SearchProblem &problem,
                                              const OperatorGraph &graph,
                                              schedule::StageCost cost) {
  schedule::StagePlanOptions options;
  options.cost = cost;
  uint64_t flops = 0;
  // Layers are summed up with their multiplicities.
  for (auto [binding, multiplicity] :
       llvm::zip_equal(problem.bindings, problem.multiplicities)) {
    // 2 FLOPs per multiply-add. Saturating: too large stays too large.
    uint64_t macs = planStages(getStageGraph(graph, binding), options).macs;
    uint64_t ofBinding =
        llvm::SaturatingMultiply(macs, uint64_t(2 * multiplicity));
    flops = llvm::SaturatingAdd(flops, ofBinding);
  }
  return flops > INT64_MAX ? std::nullopt : std::optional(flops);
}
