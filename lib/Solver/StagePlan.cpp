//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/StagePlan.h"
#include "StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>
#include <vector>

using namespace kas;
using llvm::ArrayRef;

namespace {

/// A set of reductions (low bits) and weights (above them) that are done.
using Choice = uint32_t;

class Planner {
public:
  Planner(const StageGraph &graph, const StagePlanOptions &options)
      : graph(graph), options(options) {
    findSizes();
  }

  StagePlan plan() {
    unsigned numChoices = graph.numReductions + graph.numWeights;
    if (graph.numPrimitives > StageGraph::maxPrimitives ||
        numChoices > StageGraph::maxChoices)
      return makeSingleStage();
    all = (Choice(1) << numChoices) - 1;
    search();
    return trace();
  }

private:
  /// A point between two stages: what is done, where the graph is cut, and the
  /// cheapest way to get there. The first one is the data, the last the output.
  struct Node {
    Choice done = 0;
    uint64_t primitives = 0, elements = 1;
    bool reached = false;
    uint64_t macs = 0, traffic = 0;
    unsigned stages = 0, previous = 0;
  };

  uint32_t getReductions(Choice choice) const {
    return choice & ((uint32_t(1) << graph.numReductions) - 1);
  }
  uint32_t getWeights(Choice choice) const {
    return choice >> graph.numReductions;
  }

  void findSizes() {
    reductionSizes.assign(graph.numReductions, 1);
    tensorSizes.assign(graph.numWeights + 1, 1);
    auto multiply = [](uint64_t &product, uint64_t size) {
      product = llvm::SaturatingMultiply(product, size);
    };
    for (const StageGraph::Coordinate &coordinate : graph.coordinates) {
      if (coordinate.producerKind == StageGraph::End::Reduction)
        reductionSizes[coordinate.producer] = coordinate.size;
      if (coordinate.producerKind == StageGraph::End::Output)
        multiply(outputSize, coordinate.size);
      if (coordinate.consumerKind == StageGraph::End::Tensor)
        multiply(tensorSizes[coordinate.consumer], coordinate.size);
    }
  }

  /// Multiply-adds of a stage that takes `taken` and yields `elements`.
  uint64_t getMacs(ArrayRef<uint64_t> reductions, unsigned numWeights,
                   uint64_t elements) const {
    if (reductions.empty() && numWeights == 0)
      return 0;
    uint64_t macs = elements;
    for (uint64_t size : reductions)
      macs = llvm::SaturatingMultiply(macs, size);
    return llvm::SaturatingMultiply(macs, uint64_t(std::max(numWeights, 1u)));
  }

  uint64_t getMacs(Choice taken, uint64_t elements) const {
    llvm::SmallVector<uint64_t> reductions;
    for (unsigned i = 0; i < graph.numReductions; ++i)
      if (getReductions(taken) >> i & 1)
        reductions.push_back(reductionSizes[i]);
    return getMacs(reductions, llvm::popcount(getWeights(taken)), elements);
  }

  uint64_t getTraffic(Choice taken, uint64_t from, uint64_t to) const {
    uint64_t traffic = llvm::SaturatingAdd(from, to);
    for (unsigned i = 0; i < graph.numWeights; ++i)
      if (getWeights(taken) >> i & 1)
        traffic = llvm::SaturatingAdd(traffic, tensorSizes[i + 1]);
    return traffic;
  }

  /// The possible points between stages; sets come after their subsets.
  void findNodes() {
    nodes.emplace_back();
    nodes.front().elements = tensorSizes[0];
    nodes.front().reached = true;
    for (Choice choice = 1; choice <= all && all != 0; ++choice) {
      // An intermediate is the result of a reduction.
      if (getReductions(choice) == 0)
        continue;
      std::optional<StageCut> cut =
          findCut(graph, getReductions(choice), getWeights(choice));
      if (!cut || cut->elements > options.maxIntermediateElements)
        continue;
      Node &node = nodes.emplace_back();
      node.done = choice;
      node.primitives = cut->primitives;
      node.elements = cut->elements;
    }
    Node &output = nodes.emplace_back();
    output.done = all;
    output.primitives = (uint64_t(1) << graph.numPrimitives) - 1;
    output.elements = outputSize;
  }

  /// Tries the stage from one point to another.
  void relax(unsigned from, unsigned to) {
    const Node &start = nodes[from];
    Node &end = nodes[to];
    Choice taken = end.done & ~start.done;
    uint64_t macs =
        llvm::SaturatingAdd(start.macs, getMacs(taken, end.elements));
    uint64_t traffic = llvm::SaturatingAdd(
        start.traffic, getTraffic(taken, start.elements, end.elements));
    unsigned stages = start.stages + 1;
    if (end.reached && std::tie(end.macs, end.traffic, end.stages) <=
                           std::tie(macs, traffic, stages))
      return;
    end.reached = true;
    end.macs = macs;
    end.traffic = traffic;
    end.stages = stages;
    end.previous = from;
  }

  void search() {
    findNodes();
    for (unsigned to = 1; to < nodes.size(); ++to)
      for (unsigned from = 0; from < to; ++from) {
        bool isOutput = to + 1 == nodes.size();
        Choice taken = nodes[to].done & ~nodes[from].done;
        bool nested = (nodes[from].done & ~nodes[to].done) == 0 &&
                      (nodes[from].primitives & ~nodes[to].primitives) == 0;
        if (nested && nodes[from].reached &&
            (isOutput || getReductions(taken) != 0))
          relax(from, to);
      }
  }

  /// The stages from the data to the output.
  StagePlan trace() const {
    StagePlan plan;
    plan.macs = nodes.back().macs;
    plan.traffic = nodes.back().traffic;
    for (unsigned to = nodes.size() - 1; to != 0; to = nodes[to].previous)
      plan.stages.push_back(makeStage(nodes[nodes[to].previous], nodes[to],
                                      to + 1 == nodes.size()));
    std::reverse(plan.stages.begin(), plan.stages.end());
    return plan;
  }

  Stage makeStage(const Node &from, const Node &to, bool isLast) const {
    Stage stage;
    auto addBits = [](uint64_t bits, llvm::SmallVectorImpl<unsigned> &list) {
      for (; bits != 0; bits &= bits - 1)
        list.push_back(llvm::countr_zero(bits));
    };
    Choice taken = to.done & ~from.done;
    addBits(getReductions(taken), stage.reductions);
    addBits(getWeights(taken), stage.weights);
    addBits(to.primitives & ~from.primitives, stage.primitives);
    for (auto [index, coordinate] : llvm::enumerate(graph.coordinates)) {
      bool isFrontier =
          isLast ? coordinate.producerKind == StageGraph::End::Output
                 : crosses(coordinate, to.primitives, getReductions(to.done),
                           getWeights(to.done));
      if (isFrontier)
        stage.frontier.push_back(index);
    }
    stage.macs = getMacs(taken, to.elements);
    stage.elements = to.elements;
    return stage;
  }

  StagePlan makeSingleStage() const {
    StagePlan plan;
    Stage &stage = plan.stages.emplace_back();
    auto fill = [](llvm::SmallVectorImpl<unsigned> &list, unsigned count) {
      list.assign(llvm::seq(count).begin(), llvm::seq(count).end());
    };
    fill(stage.reductions, graph.numReductions);
    fill(stage.weights, graph.numWeights);
    fill(stage.primitives, graph.numPrimitives);
    for (auto [index, coordinate] : llvm::enumerate(graph.coordinates))
      if (coordinate.producerKind == StageGraph::End::Output)
        stage.frontier.push_back(index);
    stage.macs = plan.macs =
        getMacs(reductionSizes, graph.numWeights, outputSize);
    stage.elements = outputSize;
    plan.traffic = outputSize;
    for (uint64_t size : tensorSizes)
      plan.traffic = llvm::SaturatingAdd(plan.traffic, size);
    return plan;
  }

  const StageGraph &graph;
  const StagePlanOptions &options;
  Choice all = 0;
  std::vector<Node> nodes;
  llvm::SmallVector<uint64_t> reductionSizes, tensorSizes;
  uint64_t outputSize = 1;
};

} // namespace

StagePlan kas::planStages(const StageGraph &graph,
                          const StagePlanOptions &options) {
  return Planner(graph, options).plan();
}
