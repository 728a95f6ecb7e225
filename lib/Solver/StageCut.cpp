//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

using namespace kas;
using namespace kas::solver;

namespace {

/// log2 in units of 2^-32, in integers, so that it is the same everywhere.
int64_t fixedLog2(uint64_t value) {
  unsigned integer = llvm::Log2_64(value);
  // The mantissa in [1, 2) with 62 fractional bits; squaring yields one bit of
  // the logarithm at a time.
  unsigned __int128 mantissa = (unsigned __int128)value << (62 - integer);
  int64_t result = integer;
  for (int bit = 0; bit < 32; ++bit) {
    mantissa = (mantissa * mantissa) >> 62;
    result <<= 1;
    if (mantissa >> 63) {
      mantissa >>= 1;
      result |= 1;
    }
  }
  return result;
}

/// A network for the minimum cut: primitives, the side of the output (source)
/// and the side of the data (sink). Small and dense.
class Network {
public:
  static constexpr int64_t infinite = int64_t(1) << 60;

  explicit Network(unsigned numNodes)
      : numNodes(numNodes), capacity(numNodes * numNodes, 0) {}

  void addEdge(unsigned from, unsigned to, int64_t amount) {
    int64_t &edge = capacity[from * numNodes + to];
    edge = std::min(edge + amount, infinite);
  }

  /// Pushes flow until none fits; false when it is infinite.
  bool saturate(unsigned source, unsigned sink) {
    int64_t total = 0;
    llvm::SmallVector<int> previous;
    while (findPath(source, sink, previous)) {
      int64_t amount = infinite;
      for (unsigned node = sink; node != source; node = previous[node])
        amount = std::min(amount, capacity[previous[node] * numNodes + node]);
      for (unsigned node = sink; node != source; node = previous[node]) {
        capacity[previous[node] * numNodes + node] -= amount;
        capacity[node * numNodes + previous[node]] += amount;
      }
      total += amount;
      if (total >= infinite)
        return false;
    }
    return true;
  }

  /// The nodes from which the sink can be reached: the smallest sink side.
  uint64_t getSinkSide(unsigned sink) const {
    uint64_t side = uint64_t(1) << sink;
    bool changed = true;
    while (changed) {
      changed = false;
      for (unsigned node = 0; node < numNodes; ++node) {
        if (side >> node & 1)
          continue;
        for (unsigned next = 0; next < numNodes; ++next) {
          if (!(side >> next & 1) || capacity[node * numNodes + next] == 0)
            continue;
          side |= uint64_t(1) << node;
          changed = true;
          break;
        }
      }
    }
    return side;
  }

private:
  /// A shortest path with room, as predecessors.
  bool findPath(unsigned source, unsigned sink,
                llvm::SmallVectorImpl<int> &previous) const {
    previous.assign(numNodes, -1);
    previous[source] = source;
    llvm::SmallVector<unsigned> queue = {source};
    for (size_t head = 0; head < queue.size(); ++head) {
      unsigned node = queue[head];
      for (unsigned next = 0; next < numNodes; ++next) {
        if (previous[next] >= 0 || capacity[node * numNodes + next] == 0)
          continue;
        previous[next] = node;
        if (next == sink)
          return true;
        queue.push_back(next);
      }
    }
    return false;
  }

  unsigned numNodes;
  llvm::SmallVector<int64_t> capacity;
};

} // namespace

/// Whether the producer of `coordinate` is above the cut.
static bool isProducedAbove(const StageGraph::Coordinate &coordinate,
                            uint64_t primitives, uint32_t reductions) {
  switch (coordinate.producerKind) {
  case StageGraph::End::Primitive:
    return primitives >> coordinate.producer & 1;
  case StageGraph::End::Reduction:
    return reductions >> coordinate.producer & 1;
  default:
    return false;
  }
}

/// Whether the consumer of `coordinate` is above the cut.
static bool isConsumedAbove(const StageGraph::Coordinate &coordinate,
                            uint64_t primitives, uint32_t weights) {
  if (coordinate.consumerKind == StageGraph::End::Primitive)
    return primitives >> coordinate.consumer & 1;
  return coordinate.consumer == 0 || weights >> (coordinate.consumer - 1) & 1;
}

bool kas::solver::crosses(const StageGraph::Coordinate &coordinate,
                          uint64_t primitives, uint32_t reductions,
                          uint32_t weights) {
  return !isProducedAbove(coordinate, primitives, reductions) &&
         isConsumedAbove(coordinate, primitives, weights);
}

/// The smallest cut with at least `primitives` above, which may have no
/// coordinate that crosses; `forced`, if any, is made to cross.
static std::optional<StageCut>
findSmallestCut(const StageGraph &graph, uint32_t reductions, uint32_t weights,
                uint64_t primitives, const StageGraph::Coordinate *forced,
                bool &hasFrontier) {
  unsigned source = graph.numPrimitives, sink = source + 1;
  Network network(graph.numPrimitives + 2);
  auto isPrimitive = [](StageGraph::End end) {
    return end == StageGraph::End::Primitive;
  };
  for (unsigned primitive = 0; primitive < graph.numPrimitives; ++primitive)
    if (primitives >> primitive & 1)
      network.addEdge(primitive, sink, Network::infinite);
  for (const StageGraph::Coordinate &coordinate : graph.coordinates) {
    unsigned from =
        isPrimitive(coordinate.producerKind)
            ? coordinate.producer
            : (isProducedAbove(coordinate, 0, reductions) ? sink : source);
    unsigned to =
        isPrimitive(coordinate.consumerKind)
            ? coordinate.consumer
            : (isConsumedAbove(coordinate, 0, weights) ? sink : source);
    if (&coordinate == forced) {
      network.addEdge(source, from, Network::infinite);
      network.addEdge(to, sink, Network::infinite);
    }
    if (from == to)
      continue;
    // What is above is used above only.
    network.addEdge(to, from, Network::infinite);
    network.addEdge(from, to,
                    coordinate.isBound ? Network::infinite
                                       : fixedLog2(coordinate.size) + 1);
  }
  if (!network.saturate(source, sink))
    return std::nullopt;
  StageCut cut;
  cut.primitives =
      network.getSinkSide(sink) & ((uint64_t(1) << graph.numPrimitives) - 1);
  hasFrontier = false;
  uint64_t exclusive = 0;
  for (const StageGraph::Coordinate &coordinate : graph.coordinates) {
    if (!crosses(coordinate, cut.primitives, reductions, weights))
      continue;
    hasFrontier = true;
    if (coordinate.isExclusive) {
      if (exclusive >> coordinate.producer & 1)
        return std::nullopt;
      exclusive |= uint64_t(1) << coordinate.producer;
    }
    cut.elements =
        llvm::SaturatingMultiply(cut.elements, uint64_t(coordinate.size));
  }
  return cut;
}

llvm::SmallVector<StageCut, 1> kas::solver::findCuts(const StageGraph &graph,
                                                     uint32_t reductions,
                                                     uint32_t weights,
                                                     uint64_t primitives) {
  bool hasFrontier = false;
  std::optional<StageCut> cut = findSmallestCut(
      graph, reductions, weights, primitives, nullptr, hasFrontier);
  if (!cut)
    return {};
  if (hasFrontier)
    return {*cut};
  // The data of the next stage has rank 1 at least (C10): the scalar is
  // repeated along one coordinate. Which one decides what can follow.
  llvm::SmallVector<StageCut, 1> cuts;
  for (const StageGraph::Coordinate &coordinate : graph.coordinates) {
    cut = findSmallestCut(graph, reductions, weights, primitives, &coordinate,
                          hasFrontier);
    if (cut && hasFrontier)
      cuts.push_back(*cut);
  }
  return cuts;
}
