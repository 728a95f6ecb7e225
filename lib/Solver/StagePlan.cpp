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
using namespace kas::solver;
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

  Node makeNode(Choice choice, const StageCut &cut) const {
    Node node;
    node.done = choice;
    node.primitives = cut.primitives;
    node.elements = cut.elements;
    return node;
  }

  llvm::SmallVector<StageCut, 1> findCutsOf(Choice choice,
                                            uint64_t primitives) const {
    auto cuts =
        findCuts(graph, getReductions(choice), getWeights(choice), primitives);
    llvm::erase_if(cuts, [&](const StageCut &cut) {
      return cut.elements > options.maxIntermediateElements;
    });
    return cuts;
  }

  /// Adds the points at which `choice` is done, and tries the stages there.
  void addNodes(Choice choice) {
    unsigned begin = nodes.size();
    auto cuts = findCutsOf(choice, 0);
    for (const StageCut &cut : cuts)
      nodes.push_back(makeNode(choice, cut));
    for (unsigned from = 0; !cuts.empty() && from < begin; ++from) {
      const Node start = nodes[from];
      if (!start.reached || (start.done & ~choice) != 0 ||
          getReductions(choice & ~start.done) == 0)
        continue;
      for (const StageCut &cut : cuts) {
        // Cuts are nested but for those where a scalar is repeated.
        if ((start.primitives & ~cut.primitives) == 0)
          relax(from, findNode(begin, choice, cut));
        else
          for (const StageCut &nested : findCutsOf(choice, start.primitives))
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

  void search() {
    Node data;
    data.elements = tensorSizes[0];
    data.reached = true;
    nodes.push_back(data);
    // Sets come after their subsets. An intermediate is the result of a
    // reduction.
    for (uint64_t choice = 1; choice <= all; ++choice)
      if (getReductions(choice) != 0)
        addNodes(choice);
    StageCut output;
    output.primitives = (uint64_t(1) << graph.numPrimitives) - 1;
    output.elements = outputSize;
    nodes.push_back(makeNode(all, output));
    for (unsigned from = 0; from + 1 < nodes.size(); ++from)
      if (nodes[from].reached)
        relax(from, nodes.size() - 1);
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

StagePlan kas::solver::planStages(const StageGraph &graph,
                                  const StagePlanOptions &options) {
  return Planner(graph, options).plan();
}
