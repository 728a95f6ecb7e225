//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators as states of Search/Core: moves, solutions and statistics.
//
// A thin wrapper: all of the logic is over plain data (`GraphStateData`) in the
// other files of this folder.
//
//===----------------------------------------------------------------------===//

#include "GraphRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

std::unique_ptr<State>
kas::search::makeGraphState(std::shared_ptr<const SearchProblem> problem,
                            const GraphStateOptions &options) {
  return std::make_unique<GraphState>(
      std::make_shared<GraphSpace>(std::move(problem), options));
}

/// The root: the outputs are live, but for a batch.
GraphState::GraphState(std::shared_ptr<GraphSpace> space) : space(space) {
  const SearchProblem &problem = *space->problem;
  for (unsigned index = space->firstOutput; index < problem.outputs.size();
       ++index) {
    const Dimension &output = problem.outputs[index];
    LiveCoord &coord = data.live[data.numLive++];
    coord.size = space->sizes.intern(output.size);
    coord.expr = space->getOutput(index);
    coord.flags = LiveCoord::HasOutput;
    coord.flags |=
        output.isUnordered ? LiveCoord::Unordered : LiveCoord::HasPosition;
  }
}

/// In the order of `GraphMove`.
llvm::StringRef GraphState::getKindName(unsigned kind) const {
  static constexpr llvm::StringLiteral names[NumGraphMoves] = {
      "reduce", "contract", "stride", "merge", "unfold",
      "split",  "shift",    "expand", "finish"};
  return names[kind];
}

/// One move is searched for at a time, from the code after `previous` on.
std::optional<Move> GraphState::nextMove(unsigned kind,
                                         std::optional<Move> previous) const {
  std::optional<Move> result;
  // There is no code after this one.
  if (previous && previous->code == UINT32_MAX)
    return result;
  forEachMove(*space, data, kind, kind, previous ? previous->code + 1 : 0,
              [&](Move move) {
                result = move;
                return true;
              });
  return result;
}

/// All kinds in one pass share the preparation of the generator.
void GraphState::getMoves(llvm::SmallVectorImpl<Move> &moves) const {
  forEachMove(*space, data, 0, NumGraphMoves - 1, 0, [&](Move move) {
    moves.push_back(move);
    return false;
  });
}

/// The key is that of the state before the move.
void GraphState::apply(Move move) {
  applyMove(*space, data, move.kind, move.code,
            getMoveKey(*space, data, move.kind, move.code));
}

/// For tests and statistics.
std::optional<int> GraphState::getDistance() const {
  llvm::SmallVector<ShapeItem, GraphSpace::maxLive> items;
  for (const LiveCoord &coord : data.getLive())
    items.push_back(getShapeItem(*space, coord));
  return space->distance.measure(
      items, getShapeBudget(*space, data),
      static_cast<int>(space->problem->limits.depth) - data.steps);
}

/// The set of live coordinates, weights and expanded coordinates is what a
/// state is; the path to it leaves other marks (`sinceMade`), but with the
/// ordering rule there is one path.
uint64_t GraphState::key() const {
  if (data.isFinished)
    return data.finalKey;
  // Everything else follows from these. Sums do not depend on the order.
  uint64_t hash = 0;
  for (const LiveCoord &coord : data.getLive())
    hash += mixBits(space->getHash(coord.expr));
  hash = mixBits(hash);
  for (unsigned index = 0; index < data.numWeights; ++index)
    hash += mixBits(space->getWeightHash(data.weights[index]));
  hash = mixBits(hash);
  for (unsigned index = 0; index < data.numExpanded; ++index)
    hash += mixBits(space->getHash(data.expanded[index]));
  return mixBits(hash);
}

/// For `kas-bench` and tests.
DistanceStatistics kas::search::getDistanceStatistics(const State &state) {
  const GraphSpace &space = static_cast<const GraphState &>(state).getSpace();
  DistanceStatistics statistics;
  statistics.queries = space.queries.count;
  statistics.computed = space.distance.getStatistics().computed;
  statistics.nanosecondsPerQuery = space.queries.getAverage();
  statistics.numBytes = space.distance.getMemorySize();
  return statistics;
}
