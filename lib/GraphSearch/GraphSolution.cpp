//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphStateImpl.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace kas;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// A hash of values whose order does not matter.
static uint64_t combineSet(uint64_t hash, llvm::SmallVector<uint64_t, 12> set) {
  llvm::sort(set);
  for (uint64_t value : set)
    hash = combineHash(hash, value);
  return combineHash(hash, set.size());
}

uint64_t GraphState::key() const {
  if (isFinished)
    return getFinalHash(*matchInputs());
  // All that the rules look at: the coordinates, what weights hold them, and
  // how many steps of each kind there were.
  uint64_t hash = lastReduce;
  for (uint8_t count : counts)
    hash = combineHash(hash, count);
  llvm::SmallVector<uint64_t, 12> set;
  for (const LiveCoord &coord : live)
    set.push_back(space->getHash(coord.expr));
  hash = combineSet(hash, set);
  set.clear();
  for (uint32_t weight : weights) {
    llvm::SmallVector<uint64_t, 12> coords;
    for (ExprId coord : space->getWeight(weight))
      coords.push_back(space->getHash(coord));
    set.push_back(combineSet(0, coords));
  }
  hash = combineSet(hash, set);
  set.clear();
  for (ExprId coord : expanded)
    set.push_back(space->getHash(coord));
  return combineSet(hash, set);
}

uint64_t
GraphState::getFinalHash(llvm::ArrayRef<ExprId> data,
                         const llvm::DenseMap<ExprId, unsigned> &labels) const {
  uint64_t hash = 0;
  llvm::SmallVector<uint64_t, 12> set;
  for (auto [coord, input] :
       llvm::zip_equal(data, llvm::ArrayRef(space->problem->inputs)
                                 .drop_front(space->firstOutput))) {
    llvm::SmallVector<ExprId, 6> factors;
    if (input.isUnordered)
      space->getFactors(coord, factors);
    else
      factors.push_back(coord);
    set.clear();
    for (ExprId factor : factors)
      set.push_back(space->getHash(factor, labels));
    hash = combineSet(hash, set);
  }
  llvm::SmallVector<uint64_t, 12> weightHashes;
  for (uint32_t weight : weights) {
    set.clear();
    for (ExprId coord : space->getWeight(weight))
      set.push_back(space->getHash(coord, labels));
    weightHashes.push_back(combineSet(0, set));
  }
  hash = combineSet(hash, weightHashes);
  set.clear();
  for (ExprId coord : expanded)
    set.push_back(space->getHash(coord, labels));
  return combineSet(hash, set);
}

/// The least hash over all ways to number the reductions of equal size.
uint64_t GraphState::getFinalHash(llvm::ArrayRef<ExprId> data) const {
  llvm::DenseMap<ExprId, unsigned> labels;
  // Reductions of one size are neighbours (R1): permute each run.
  llvm::SmallVector<unsigned, 6> order(reductions.size());
  for (auto [index, reduction] : llvm::enumerate(reductions))
    order[index] = space->getExpr(reduction).first;
  uint64_t least = ~0ull;
  auto visit = [&](auto &self, size_t begin) -> void {
    if (begin == reductions.size()) {
      for (auto [reduction, label] : llvm::zip_equal(reductions, order))
        labels[reduction] = label;
      least = std::min(least, getFinalHash(data, labels));
      return;
    }
    size_t end = begin + 1;
    while (end < reductions.size() &&
           space->getExpr(reductions[end]).size ==
               space->getExpr(reductions[begin]).size)
      ++end;
    std::sort(order.begin() + begin, order.begin() + end);
    do
      self(self, end);
    while (std::next_permutation(order.begin() + begin, order.begin() + end));
  };
  visit(visit, 0);
  return least;
}

//===----------------------------------------------------------------------===//
// Solutions
//===----------------------------------------------------------------------===//

namespace {
/// Copies expressions into an `OperatorGraph`, operands first.
class GraphWriter {
public:
  GraphWriter(const GraphSpace &space, OperatorGraph &graph)
      : space(space), graph(graph) {}

  unsigned write(ExprId id);

  /// Weights list outputs and their halves first, then reductions.
  llvm::SmallVector<unsigned, 6> writeWeight(llvm::ArrayRef<ExprId> coords);

private:
  const GraphSpace &space;
  OperatorGraph &graph;
  llvm::DenseMap<ExprId, unsigned> indices;
};
} // namespace

unsigned GraphWriter::write(ExprId id) {
  if (auto known = indices.find(id); known != indices.end())
    return known->second;
  const Expr &expr = space.getExpr(id);
  GraphCoord coord;
  coord.kind = expr.kind;
  coord.size = space.sizes[expr.size].size;
  switch (expr.kind) {
  case CoordKind::Output:
    coord.amount = expr.first;
    break;
  case CoordKind::Reduce:
    break;
  case CoordKind::Split:
  case CoordKind::Unfold:
    coord.first = write(expr.first);
    coord.second = write(expr.second);
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
  case CoordKind::Stride:
    coord.first = write(expr.first);
    coord.parameter = space.sizes[expr.second].size;
    break;
  case CoordKind::Shift:
    coord.first = write(expr.first);
    coord.amount = expr.second ? -1 : 1;
    break;
  }
  graph.coords.push_back(coord);
  return indices[id] = graph.coords.size() - 1;
}

llvm::SmallVector<unsigned, 6>
GraphWriter::writeWeight(llvm::ArrayRef<ExprId> coords) {
  llvm::SmallVector<unsigned, 6> weight;
  for (ExprId coord : coords)
    weight.push_back(write(coord));
  auto rank = [&](unsigned index) {
    unsigned leaf = index;
    while (graph.coords[leaf].kind != CoordKind::Output &&
           graph.coords[leaf].kind != CoordKind::Reduce)
      leaf = graph.coords[leaf].first;
    // Leaves stand first, the outputs before the reductions.
    return std::tuple(leaf, graph.coords[index].kind, index);
  };
  llvm::sort(weight, [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
  return weight;
}

std::shared_ptr<const Solution> GraphState::getSolution() const {
  assert(isFinished && "only a terminal state has a solution");
  auto graph = std::make_shared<OperatorGraph>();
  GraphWriter writer(*space, *graph);
  const SearchProblem &problem = *space->problem;
  for (unsigned index = 0; index < problem.outputs.size(); ++index) {
    SizeId size = space->sizes.intern(problem.outputs[index].size);
    writer.write(space->intern({CoordKind::Output, size, index, 0}));
  }
  for (ExprId reduction : reductions)
    writer.write(reduction);
  llvm::SmallVector<ExprId, 6> data = *matchInputs();
  if (space->firstOutput)
    graph->data.push_back(0);
  for (ExprId coord : data)
    graph->data.push_back(writer.write(coord));
  for (uint32_t weight : weights)
    graph->weights.push_back(writer.writeWeight(space->getWeight(weight)));
  llvm::sort(graph->weights);
  for (ExprId coord : expanded)
    graph->expanded.push_back(writer.write(coord));
  llvm::sort(graph->expanded);
  graph->hash = getFinalHash(data);
  return graph;
}
