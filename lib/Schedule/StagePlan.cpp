//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The best stages of an operator: by dynamic programming over sets of
// reductions and weights that are done (docs/internals/rationale/stages.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/StagePlan.h"
#include "StageCut.h"
#include "StageGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <vector>

using namespace kas;
using namespace kas::schedule;
using llvm::ArrayRef;

namespace {

/// A set of reductions (low bits) and weights (above them) that are done.
using Choice = uint32_t;

/// The stages that the data is part of: a chain, along which more and more is
/// done, whose links take groups of weights.
class Planner {
public:
  Planner(const StageGraph &graph, const StagePlanOptions &options)
      : graph(graph), options(options), cuts(graph),
        groups(graph, cuts, options) {}

  StagePlan plan() {
    unsigned numWeights = graph.weights.size();
    all = (Choice(1) << (graph.numReductions + numWeights)) - 1;
    Node data;
    data.elements = groups.getTensorSize(graph.data);
    data.isReached = true;
    nodes.push_back(data);
    if (graph.numReductions + numWeights <= StageGraph::maxChoices)
      // Sets come after their subsets.
      for (Choice choice = 1; choice <= all; ++choice)
        addNodes(choice);
    Node output;
    output.done = all;
    output.primitives = (uint64_t(1) << graph.numPrimitives) - 1;
    output.elements = groups.getOutputSize();
    nodes.push_back(output);
    for (unsigned from = 0; from + 1 < nodes.size(); ++from)
      if (nodes[from].isReached)
        relax(from, nodes.size() - 1);
    return trace();
  }

private:
  /// A point between two stages: what is done, where the graph is cut, and the
  /// cheapest way to get there. The first one is the data, the last the output.
  struct Node {
    Choice done = 0;
    uint64_t primitives = 0, elements = 1;
    bool isReached = false;
    PlanCost cost;
    unsigned previous = 0;
    /// What the stage that leads here multiplies the one before with.
    llvm::SmallVector<GroupOperand, 2> operands;
  };

  uint32_t getReductions(Choice choice) const {
    return choice & ((uint32_t(1) << graph.numReductions) - 1);
  }
  uint32_t getWeights(Choice choice) const {
    return choice >> graph.numReductions;
  }
  DoneSet getDone(Choice choice) const {
    return {getReductions(choice), getWeights(choice), /*hasData=*/true};
  }

  Node makeNode(Choice choice, const StageCut &cut) const {
    Node node;
    node.done = choice;
    node.primitives = cut.primitives;
    node.elements = cut.elements;
    return node;
  }

  llvm::SmallVector<StageCut, 1> findCuts(Choice choice,
                                          uint64_t primitives) const {
    auto found = cuts.find(getDone(choice), primitives);
    llvm::erase_if(found, [&](const StageCut &cut) {
      return cut.elements > options.maxIntermediateElements;
    });
    return found;
  }

  /// Adds the points at which `choice` is done, and tries the stages there.
  void addNodes(Choice choice) {
    unsigned begin = nodes.size();
    auto found = findCuts(choice, 0);
    for (const StageCut &cut : found)
      nodes.push_back(makeNode(choice, cut));
    for (unsigned from = 0; !found.empty() && from < begin; ++from) {
      if (!nodes[from].isReached || (nodes[from].done & ~choice) != 0)
        continue;
      for (const StageCut &cut : found) {
        // Cuts are nested but for those where a scalar is repeated.
        uint64_t primitives = nodes[from].primitives;
        if ((primitives & ~cut.primitives) == 0)
          relax(from, findNode(begin, choice, cut));
        else
          for (const StageCut &nested : findCuts(choice, primitives))
            relax(from, findNode(begin, choice, nested));
      }
    }
  }

  /// The point from `begin` on with this cut, made when there is none.
  unsigned findNode(unsigned begin, Choice choice, const StageCut &cut) {
    for (unsigned index = begin; index < nodes.size(); ++index)
      if (nodes[index].primitives == cut.primitives)
        return index;
    nodes.push_back(makeNode(choice, cut));
    return nodes.size() - 1;
  }

  StageShape getShape(const Node &start, const Node &end) const {
    StageShape shape;
    shape.reductions = getReductions(end.done & ~start.done);
    shape.primitives = end.primitives & ~start.primitives;
    shape.elements = end.elements;
    shape.read = start.elements;
    shape.hasData = true;
    return shape;
  }

  /// Tries the stages from one point to another.
  void relax(unsigned from, unsigned to) {
    const Node &start = nodes[from];
    Node &end = nodes[to];
    StageShape shape = getShape(start, end);
    groups.forEachPartition(
        getWeights(end.done & ~start.done), shape,
        [&](ArrayRef<GroupOperand> operands) {
          PlanCost cost = start.cost + groups.getCost(shape, operands);
          if (end.isReached && !(cost < end.cost))
            return;
          end.isReached = true;
          end.cost = cost;
          end.previous = from;
          end.operands.assign(operands.begin(), operands.end());
        });
  }

  /// The stages from the data to the output.
  StagePlan trace() {
    StagePlan plan;
    plan.macs = nodes.back().cost.macs;
    plan.traffic = nodes.back().cost.traffic;
    llvm::SmallVector<unsigned> chain;
    for (unsigned to = nodes.size() - 1; to != 0; to = nodes[to].previous)
      chain.push_back(to);
    StageOperand input;
    for (unsigned to : llvm::reverse(chain)) {
      const Node &node = nodes[to];
      const Node &start = nodes[node.previous];
      bool isLast = to + 1 == nodes.size();
      Stage stage =
          groups.makeStage(getShape(start, node), node.operands, plan);
      stage.operands.insert(stage.operands.begin(), input);
      for (unsigned index = 0; index < graph.coordinates.size(); ++index)
        if (isLast ? graph.coordinates[index].producerKind ==
                         StageGraph::Producer::Output
                   : cuts.crosses(index, getDone(node.done), node.primitives))
          stage.frontier.push_back(index);
      input = {StageOperand::Kind::Stage, unsigned(plan.stages.size())};
      plan.stages.push_back(std::move(stage));
    }
    return plan;
  }

  const StageGraph &graph;
  const StagePlanOptions &options;
  StageCuts cuts;
  WeightGroups groups;
  Choice all = 0;
  std::vector<Node> nodes;
};

/// All in one loop nest, of a graph that is too large for bit sets.
class SingleNest {
public:
  explicit SingleNest(const StageGraph &graph) : graph(graph) {}

  StagePlan plan(StageCost cost) const {
    Stage stage;
    fill(stage.reductions, graph.numReductions);
    fill(stage.primitives, graph.numPrimitives);
    stage.operands.push_back({});
    stage.elements = 1;
    uint64_t points = 1;
    auto multiply = [](uint64_t &product, uint64_t size) {
      product = llvm::SaturatingMultiply(product, size);
    };
    for (auto [index, coordinate] : llvm::enumerate(graph.coordinates)) {
      if (coordinate.producerKind == StageGraph::Producer::Primitive)
        continue;
      multiply(points, coordinate.size);
      if (coordinate.producerKind == StageGraph::Producer::Reduction)
        continue;
      multiply(stage.elements, coordinate.size);
      stage.frontier.push_back(index);
    }
    StagePlan plan;
    plan.traffic = stage.elements;
    auto read = [&](ArrayRef<unsigned> tensor) {
      uint64_t elements = 1;
      for (unsigned coordinate : tensor)
        multiply(elements, graph.coordinates[coordinate].size);
      plan.traffic = llvm::SaturatingAdd(plan.traffic, elements);
    };
    read(graph.data);
    for (auto [index, weight] : llvm::enumerate(graph.weights)) {
      stage.operands.push_back({StageOperand::Kind::Weight, unsigned(index)});
      read(weight);
    }
    uint64_t numOperands = stage.operands.size();
    bool hasSums = graph.numReductions != 0;
    stage.macs =
        getStageMacs(StageCost::Unprepared, points, numOperands, hasSums);
    plan.macs = getStageMacs(cost, points, numOperands, hasSums);
    plan.stages.push_back(std::move(stage));
    return plan;
  }

private:
  static void fill(llvm::SmallVectorImpl<unsigned> &list, unsigned count) {
    list.assign(llvm::seq(count).begin(), llvm::seq(count).end());
  }

  const StageGraph &graph;
};

} // namespace

StagePlan kas::schedule::planStages(const StageGraph &graph,
                                    const StagePlanOptions &options) {
  if (graph.numPrimitives > StageGraph::maxPrimitives ||
      graph.numReductions + graph.weights.size() >= 32)
    return SingleNest(graph).plan(options.cost);
  return Planner(graph, options).plan();
}
