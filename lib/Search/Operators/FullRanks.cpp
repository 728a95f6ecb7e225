//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At which bindings weights multiplied together take all values: rule W14 of
// docs/internals/canonical-form.md.
//
// Works on the finished operator; during the search GraphRankRules.cpp decides
// the same on states.
//
//===----------------------------------------------------------------------===//

#include "FullRanks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::search;

namespace {

using Coords = llvm::SmallVector<unsigned, 6>;

/// Weights, as numbers, and the reductions that these have and nothing else. A
/// map, so that equal sets of weights share their reductions; in the order of
/// insertion.
using Ranks = llvm::MapVector<uint32_t, Coords>;

} // namespace

/// Outputs and reductions have no operands, whatever their fields say.
static bool isUsedByCoord(const OperatorGraph &graph, unsigned index) {
  return llvm::any_of(graph.coords, [&](const GraphCoord &coord) {
    bool isLeaf =
        coord.kind == CoordKind::Output || coord.kind == CoordKind::Reduce;
    bool isBinary =
        coord.kind == CoordKind::Split || coord.kind == CoordKind::Unfold;
    return !isLeaf &&
           (coord.first == index || (isBinary && coord.second == index));
  });
}

/// Such a reduction is a rank: it is summed over inside of the product of the
/// weights.
static Ranks findRanks(const OperatorGraph &graph) {
  Ranks ranks;
  for (auto [index, coord] : llvm::enumerate(graph.coords)) {
    if (coord.kind != CoordKind::Reduce ||
        llvm::is_contained(graph.data, index) ||
        llvm::is_contained(graph.expanded, index) ||
        isUsedByCoord(graph, index))
      continue;
    uint32_t users = 0;
    for (auto [number, weight] : llvm::enumerate(graph.weights))
      if (llvm::is_contained(weight, index))
        users |= uint32_t(1) << number;
    ranks[users].push_back(index);
  }
  return ranks;
}

/// A product of sizes: exact below 2^53, which is more than weights have.
static double getPoints(const OperatorGraph &graph,
                        llvm::ArrayRef<unsigned> coords,
                        const Binding &binding) {
  double points = 1;
  for (unsigned index : coords)
    points *= static_cast<double>(
        graph.coords[index].size.evaluate(binding).value_or(1));
  return points;
}

/// W14 at one binding. Example: W1[o, r] * W2[r, c] with r of R points is a
/// matrix of rank R; it takes all values if R >= min(o, c). `beside` are the
/// coordinates that the other weights have and weight `free` has not.
static bool isFull(const OperatorGraph &graph, uint32_t users,
                   llvm::ArrayRef<unsigned> reductions,
                   const Binding &binding) {
  double points = getPoints(graph, reductions, binding);
  auto isFullBeside = [&](unsigned free) {
    Coords beside;
    for (auto [number, weight] : llvm::enumerate(graph.weights))
      if (number != free && (users >> number & 1))
        for (unsigned index : weight)
          if (!llvm::is_contained(reductions, index) &&
              !llvm::is_contained(graph.weights[free], index) &&
              !llvm::is_contained(beside, index))
            beside.push_back(index);
    return points >= getPoints(graph, beside, binding);
  };
  // Any of the weights may be the free one.
  return llvm::any_of(llvm::seq<unsigned>(0, graph.weights.size()),
                      [&](unsigned number) {
                        return (users >> number & 1) && isFullBeside(number);
                      });
}

/// By number of the binding. A rank may be full at some bindings only.
llvm::SmallVector<int64_t>
kas::search::getFullRankBindings(const SearchProblem &problem,
                                 const OperatorGraph &graph) {
  llvm::SmallVector<int64_t> numbers;
  Ranks ranks = findRanks(graph);
  for (auto [number, binding] : llvm::enumerate(problem.bindings))
    if (llvm::any_of(ranks, [&, &binding = binding](const auto &rank) {
          return isFull(graph, rank.first, rank.second, binding);
        }))
      numbers.push_back(number);
  return numbers;
}
