//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an operator's graph can be cut into stages with the smallest
// intermediate: a minimum cut for each set of reductions that is done.
//
//===----------------------------------------------------------------------===//

#include "StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::schedule;

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
/// and the side of the data (sink). Small and dense: sets of nodes are words.
class Network {
public:
  static constexpr int64_t infinite = int64_t(1) << 60;

  explicit Network(unsigned numNodes)
      : numNodes(numNodes), capacity(numNodes * numNodes, 0),
        next(numNodes, 0) {}

  void addEdge(unsigned from, unsigned to, int64_t amount) {
    int64_t &edge = capacity[from * numNodes + to];
    edge = std::min(edge + amount, infinite);
    next[from] |= uint64_t(1) << to;
  }

  /// Pushes flow until none fits; false when it is infinite.
  bool saturate(unsigned source, unsigned sink) {
    int64_t total = 0;
    while (findPath(source, sink)) {
      int64_t amount = infinite;
      for (unsigned node = sink; node != source; node = previous[node])
        amount = std::min(amount, capacity[previous[node] * numNodes + node]);
      total += amount;
      if (total >= infinite)
        return false;
      for (unsigned node = sink; node != source; node = previous[node]) {
        int64_t &edge = capacity[previous[node] * numNodes + node];
        edge -= amount;
        if (edge == 0)
          next[previous[node]] &= ~(uint64_t(1) << node);
        addEdge(node, previous[node], amount);
      }
    }
    return true;
  }

  /// The nodes from which the sink can be reached: the smallest sink side.
  uint64_t getSinkSide(unsigned sink) const {
    uint64_t side = uint64_t(1) << sink, before = 0;
    while (side != before) {
      before = side;
      for (unsigned node = 0; node < numNodes; ++node)
        if (next[node] & side)
          side |= uint64_t(1) << node;
    }
    return side;
  }

private:
  /// A shortest path with room, as predecessors.
  bool findPath(unsigned source, unsigned sink) {
    uint64_t seen = uint64_t(1) << source;
    unsigned queue[maxNodes], length = 1;
    queue[0] = source;
    for (unsigned head = 0; head < length; ++head) {
      unsigned node = queue[head];
      for (uint64_t found = next[node] & ~seen; found; found &= found - 1) {
        unsigned other = llvm::countr_zero(found);
        previous[other] = node;
        if (other == sink)
          return true;
        queue[length++] = other;
      }
      seen |= next[node];
    }
    return false;
  }

  static constexpr unsigned maxNodes = StageGraph::maxPrimitives + 2;
  unsigned numNodes;
  llvm::SmallVector<int64_t, 256> capacity;
  /// By node: where its edges with room lead.
  llvm::SmallVector<uint64_t, 16> next;
  unsigned previous[maxNodes];
};

} // namespace

/// No coordinate is made to cross.
static constexpr unsigned noForced = ~0u;

StageCuts::StageCuts(const StageGraph &graph)
    : graph(graph), weights(graph.coordinates.size(), 0),
      data(graph.coordinates.size(), false) {
  // One more for each coordinate, so that of equal cuts that with the fewest is
  // the smallest.
  for (const StageGraph::Coordinate &coordinate : graph.coordinates)
    lengths.push_back(fixedLog2(coordinate.size) + 1);
  for (unsigned coordinate : graph.data)
    data[coordinate] = true;
  for (auto [index, weight] : llvm::enumerate(graph.weights))
    for (unsigned coordinate : weight)
      weights[coordinate] |= uint32_t(1) << index;
}

bool StageCuts::isProducedAbove(unsigned coordinate, const DoneSet &done,
                                uint64_t primitives) const {
  unsigned producer = graph.coordinates[coordinate].producer;
  switch (graph.coordinates[coordinate].producerKind) {
  case StageGraph::Producer::Primitive:
    return primitives >> producer & 1;
  case StageGraph::Producer::Reduction:
    return done.reductions >> producer & 1;
  case StageGraph::Producer::Output:
    return false;
  }
  llvm_unreachable("all producers are known");
}

bool StageCuts::isInTensorAbove(unsigned coordinate,
                                const DoneSet &done) const {
  return (data[coordinate] && done.hasData) ||
         (weights[coordinate] & done.weights) != 0;
}

bool StageCuts::crosses(unsigned coordinate, const DoneSet &done,
                        uint64_t primitives) const {
  unsigned consumer = graph.coordinates[coordinate].consumer;
  bool isUsedAbove =
      isInTensorAbove(coordinate, done) ||
      (consumer != StageGraph::noPrimitive && (primitives >> consumer & 1));
  return isUsedAbove && !isProducedAbove(coordinate, done, primitives);
}

std::optional<StageCut> StageCuts::findSmallest(const DoneSet &done,
                                                uint64_t primitives,
                                                uint64_t below, unsigned forced,
                                                bool &hasFrontier) const {
  unsigned source = graph.numPrimitives, sink = source + 1;
  Network network(graph.numPrimitives + 2);
  for (auto [index, coordinate] : llvm::enumerate(graph.coordinates)) {
    bool isPrimitive =
        coordinate.producerKind == StageGraph::Producer::Primitive;
    unsigned from = isPrimitive
                        ? coordinate.producer
                        : (isProducedAbove(index, done, 0) ? sink : source);
    // What is above is used above only.
    bool isBelow = index == forced || (weights[index] & ~done.weights) != 0 ||
                   (data[index] && !done.hasData);
    if (isBelow && from != source)
      network.addEdge(source, from, Network::infinite);
    unsigned consumer = coordinate.consumer;
    bool isOperand = consumer != StageGraph::noPrimitive;
    if (isOperand && from != source)
      network.addEdge(consumer, from, Network::infinite);
    bool isInTensor = isInTensorAbove(index, done);
    if (isOperand && isInTensor && done.hasData)
      primitives |= uint64_t(1) << consumer;
    if (from != sink && (isInTensor || isOperand))
      network.addEdge(from, isInTensor ? sink : consumer, lengths[index]);
  }
  for (unsigned primitive = 0; primitive < graph.numPrimitives; ++primitive)
    if (primitives >> primitive & 1)
      network.addEdge(primitive, sink, Network::infinite);
  for (unsigned primitive = 0; primitive < graph.numPrimitives; ++primitive)
    if (below >> primitive & 1)
      network.addEdge(source, primitive, Network::infinite);
  if (!network.saturate(source, sink))
    return std::nullopt;
  StageCut cut;
  cut.primitives =
      network.getSinkSide(sink) & ((uint64_t(1) << graph.numPrimitives) - 1);
  hasFrontier = false;
  for (auto [index, coordinate] : llvm::enumerate(graph.coordinates)) {
    if (!crosses(index, done, cut.primitives))
      continue;
    hasFrontier = true;
    cut.elements =
        llvm::SaturatingMultiply(cut.elements, uint64_t(coordinate.size));
  }
  return cut;
}

llvm::SmallVector<StageCut, 1> StageCuts::find(const DoneSet &done,
                                               uint64_t primitives,
                                               uint64_t below) const {
  bool hasFrontier = false;
  std::optional<StageCut> cut =
      findSmallest(done, primitives, below, noForced, hasFrontier);
  if (!cut)
    return {};
  if (hasFrontier)
    return {*cut};
  // The data of the next stage has rank 1 at least (C10): the scalar is
  // repeated along one coordinate. Which one decides what can follow.
  llvm::SmallVector<StageCut, 1> cuts;
  if (!done.hasData)
    return cuts;
  for (auto [index, coordinate] : llvm::enumerate(graph.coordinates)) {
    if (coordinate.consumer == StageGraph::noPrimitive)
      continue;
    cut = findSmallest(done, primitives | uint64_t(1) << coordinate.consumer,
                       below, index, hasFrontier);
    if (cut && hasFrontier)
      cuts.push_back(*cut);
  }
  return cuts;
}
