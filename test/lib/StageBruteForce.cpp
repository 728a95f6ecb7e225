//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageBruteForce.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <map>
#include <optional>

using namespace kas;
using namespace kas::schedule;

using Producer = StageGraph::Producer;

static bool isInWeight(const StageGraph &graph, unsigned position) {
  return llvm::any_of(graph.weights, [&](const auto &weight) {
    return llvm::is_contained(weight, position);
  });
}

bool kas::test::hasNestedWeights(const StageGraph &graph) {
  uint64_t ofData = 0;
  for (unsigned index = graph.coordinates.size(); index-- > 0;) {
    const StageGraph::Coordinate &coordinate = graph.coordinates[index];
    bool isOperand = coordinate.consumer != StageGraph::noPrimitive;
    bool hasData = llvm::is_contained(graph.data, index) ||
                   (isOperand && (ofData >> coordinate.consumer & 1));
    if (isOperand && !hasData && isInWeight(graph, index))
      return true;
    if (coordinate.producerKind == Producer::Primitive && hasData)
      ofData |= uint64_t(1) << coordinate.producer;
  }
  return false;
}

namespace {
class BruteForce {
public:
  BruteForce(const StageGraph &graph, StageCost cost, uint64_t elementTraffic)
      : graph(graph), cost(cost), elementTraffic(elementTraffic) {
    for (unsigned i = 0; i < graph.numReductions; ++i) {
      reductionSizes.push_back(1);
      for (const auto &c : graph.coordinates)
        if (c.producerKind == Producer::Reduction && c.producer == i)
          reductionSizes[i] = c.size;
    }
  }

  using Cost = std::tuple<uint64_t, uint64_t, unsigned>;
  /// The cost of a stage on weights, and its primitives.
  using Group = std::pair<Cost, uint64_t>;

  Cost solve() { return chain({0, 0}, 0, size(graph.data)); }

private:
  struct Done {
    uint32_t reductions, weights;
    bool operator<(const Done &other) const {
      return std::tie(reductions, weights) <
             std::tie(other.reductions, other.weights);
    }
  };

  uint64_t size(const llvm::SmallVectorImpl<unsigned> &tensor) const {
    uint64_t product = 1;
    for (unsigned coordinate : tensor)
      product *= graph.coordinates[coordinate].size;
    return product;
  }

  bool isAbove(const StageGraph::Coordinate &c, Done done,
               uint64_t above) const {
    if (c.producerKind == Producer::Primitive)
      return above >> c.producer & 1;
    return c.producerKind == Producer::Reduction &&
           (done.reductions >> c.producer & 1);
  }

  /// The primitives from which a tensor is reached.
  uint64_t getLive() const {
    uint64_t live = 0;
    for (unsigned i = graph.coordinates.size(); i-- > 0;) {
      const auto &c = graph.coordinates[i];
      bool isUsed =
          llvm::is_contained(graph.data, i) ||
          llvm::any_of(graph.weights,
                       [&](const auto &weight) {
                         return llvm::is_contained(weight, i);
                       }) ||
          (c.consumer != StageGraph::noPrimitive && (live >> c.consumer & 1));
      if (isUsed && c.producerKind == Producer::Primitive)
        live |= uint64_t(1) << c.producer;
    }
    return live;
  }

  /// Whether a primitive that no tensor is reached from is above for its
  /// operands to cross: only the data is repeated so.
  bool isRepeating(Done done, uint64_t above) const {
    uint64_t forced = getLive();
    for (const auto &c : graph.coordinates)
      if (c.consumer != StageGraph::noPrimitive && isAbove(c, done, above))
        forced |= uint64_t(1) << c.consumer;
    return (above & ~forced) != 0;
  }

  /// The elements that cross, or 0 when there is no such cut.
  uint64_t crossing(Done done, bool hasData, uint64_t above) const {
    uint64_t elements = 1;
    bool any = false;
    for (unsigned i = 0; i < graph.coordinates.size(); ++i) {
      const auto &c = graph.coordinates[i];
      bool inTensor = false, needed = false;
      auto use = [&](bool isAbove) { (isAbove ? inTensor : needed) = true; };
      if (llvm::is_contained(graph.data, i))
        use(hasData);
      for (unsigned w = 0; w < graph.weights.size(); ++w)
        if (llvm::is_contained(graph.weights[w], i))
          use(done.weights >> w & 1);
      bool isOperand = c.consumer != StageGraph::noPrimitive;
      bool operandAbove = isOperand && (above >> c.consumer & 1);
      if (isAbove(c, done, above)) {
        if (needed || (isOperand && !operandAbove))
          return 0;
        continue;
      }
      if (inTensor && isOperand && !operandAbove && hasData)
        return 0;
      if (!inTensor && !operandAbove)
        continue;
      elements *= c.size;
      any = true;
    }
    return any ? elements : 0;
  }

  static Cost plus(const Cost &a, const Cost &b) {
    return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
            std::get<2>(a) + std::get<2>(b)};
  }

  /// Calls `visit` with the subsets of `set`.
  template <typename Set, typename Visit>
  static void forEachSubset(Set set, Visit visit) {
    Set subset = 0;
    do {
      visit(subset);
      subset = (subset - set) & set;
    } while (subset != 0);
  }

  /// The operands of a stage that are weights, or stages on weights.
  struct Operands {
    Cost cost;
    unsigned count = 0;
    uint32_t summed = 0;
    /// The weights and primitives of each.
    llvm::SmallVector<std::pair<uint32_t, uint64_t>, 3> parts;
  };

  /// Whether one of them can be the data of the operator that computes a stage
  /// with the primitives `above`.
  bool hasFirst(const Operands &operands, uint64_t above) const {
    for (auto [weights, primitives] : operands.parts)
      above &= ~primitives;
    return llvm::any_of(operands.parts, [&](const auto &part) {
      for (unsigned w = 0; w < graph.weights.size(); ++w)
        if (part.first >> w & 1)
          for (unsigned coordinate : graph.weights[w]) {
            unsigned consumer = graph.coordinates[coordinate].consumer;
            if (consumer != StageGraph::noPrimitive && (above >> consumer & 1))
              return false;
          }
      return true;
    });
  }

  /// Calls `visit` with the ways in which a stage can have `weights` as
  /// operands.
  template <typename Visit>
  void forEachOperands(uint32_t weights, uint32_t reductions, uint64_t inside,
                       bool isPart, Operands operands, Visit visit,
                       uint32_t all) {
    if (weights == 0)
      return visit(operands);
    uint32_t first = weights & -weights;
    forEachSubset(weights & ~first, [&](uint32_t subset) {
      uint32_t block = first | subset;
      if (subset == 0) {
        uint64_t read = size(graph.weights[llvm::countr_zero(first)]);
        Operands more = operands;
        more.cost = plus(more.cost, Cost(ofElements(read), read, 0));
        ++more.count;
        more.parts.emplace_back(block, 0);
        forEachOperands(weights & ~block, reductions, inside, isPart, more,
                        visit, all);
      }
      forEachSubset(reductions & ~operands.summed, [&](uint32_t sums) {
        // All of them as one again changes nothing.
        if ((subset == 0 && sums == 0) || (isPart && block == all))
          return;
        std::optional<Group> stage = group(block, sums, inside, !isPart);
        if (!stage)
          return;
        Operands more = operands;
        more.cost = plus(more.cost, stage->first);
        ++more.count;
        more.summed |= sums;
        more.parts.emplace_back(block, stage->second);
        forEachOperands(weights & ~block, reductions, inside, isPart, more,
                        visit, all);
      });
    });
  }

  /// What an operand costs that is a stage on weights, summing `sums`, with the
  /// primitives of its cut among `inside`.
  std::optional<Group> group(uint32_t weights, uint32_t sums, uint64_t inside,
                             bool isOperandOfData) {
    auto key = std::make_tuple(weights, sums, inside, isOperandOfData);
    auto it = groups.find(key);
    if (it != groups.end())
      return it->second;
    // What is computed before counts only among the smallest results.
    bool isFree = isOperandOfData && cost == StageCost::Prepared;
    uint64_t smallest = UINT64_MAX;
    std::optional<Group> result;
    forEachSubset(inside, [&](uint64_t above) {
      if (isRepeating({sums, weights}, above))
        return;
      uint64_t elements = crossing({sums, weights}, false, above);
      if (elements == 0 || (isFree && elements > smallest))
        return;
      if (elements < smallest && isFree)
        result.reset();
      smallest = std::min(smallest, elements);
      Operands start;
      start.cost = Cost(ofElements(elements), elements, 1);
      forEachOperands(
          weights, sums, above, true, start,
          [&](const Operands &operands) {
            if (!hasFirst(operands, above))
              return;
            Cost cost = operands.cost;
            std::get<0>(cost) +=
                macs(elements, sums & ~operands.summed, operands.count);
            // Its result is read.
            std::get<0>(cost) += ofElements(elements);
            std::get<1>(cost) += elements;
            Group group(cost, above);
            result = result ? std::min(*result, group) : group;
          },
          weights);
    });
    if (isFree && result)
      result->first =
          Cost(ofElements(smallest), smallest, std::get<2>(result->first));
    return groups[key] = result;
  }

  uint64_t macs(uint64_t elements, uint32_t reductions,
                unsigned operands) const {
    uint64_t points = elements;
    for (unsigned i = 0; i < graph.numReductions; ++i)
      if (reductions >> i & 1)
        points *= reductionSizes[i];
    if (operands == 1)
      return reductions ? points : 0;
    return points * (cost == StageCost::Training ? operands * operands - 1
                                                 : operands - 1);
  }

  uint64_t ofElements(uint64_t elements) const {
    return (cost == StageCost::Training ? 3 : 1) * elementTraffic * elements;
  }

  Cost chain(Done done, uint64_t cut, uint64_t elements) {
    auto [it, isNew] = memo.try_emplace({done, cut});
    if (!isNew)
      return it->second;
    std::optional<Cost> result;
    uint32_t reductions = (1u << graph.numReductions) - 1;
    uint32_t weights = (1u << graph.weights.size()) - 1;
    uint64_t primitives = (uint64_t(1) << graph.numPrimitives) - 1;
    auto tryStage = [&](Done next, uint64_t above, uint64_t size,
                        const Cost &rest) {
      uint32_t sums = next.reductions & ~done.reductions;
      uint32_t taken = next.weights & ~done.weights;
      Operands start;
      start.cost = Cost(ofElements(elements + size), elements + size, 1);
      start.count = 1;
      forEachOperands(
          taken, sums, above & ~cut, false, start,
          [&](const Operands &operands) {
            Cost cost = plus(operands.cost, rest);
            std::get<0>(cost) +=
                macs(size, sums & ~operands.summed, operands.count);
            result = result ? std::min(*result, cost) : cost;
          },
          taken);
    };
    uint64_t outputSize = 1;
    for (const auto &c : graph.coordinates)
      if (c.producerKind == Producer::Output)
        outputSize *= c.size;
    tryStage({reductions, weights}, primitives, outputSize, Cost(0, 0, 0));
    forEachSubset(reductions & ~done.reductions, [&](uint32_t sums) {
      forEachSubset(weights & ~done.weights, [&](uint32_t taken) {
        if (sums == 0 && taken == 0)
          return;
        Done next = {done.reductions | sums, done.weights | taken};
        forEachSubset(primitives & ~cut, [&](uint64_t added) {
          uint64_t size = crossing(next, true, cut | added);
          if (size != 0)
            tryStage(next, cut | added, size, chain(next, cut | added, size));
        });
      });
    });
    return memo[{done, cut}] = *result;
  }

  const StageGraph &graph;
  StageCost cost;
  uint64_t elementTraffic;
  llvm::SmallVector<uint64_t> reductionSizes;
  std::map<std::pair<Done, uint64_t>, Cost> memo;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, bool>, std::optional<Group>>
      groups;
};
} // namespace

std::tuple<uint64_t, uint64_t, unsigned>
kas::test::findLeastStages(const StageGraph &graph, StageCost cost,
                           uint64_t elementTraffic) {
  return BruteForce(graph, cost, elementTraffic).solve();
}
