//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a move: the state after each kind of primitive.
//
// A move has been checked by the rules (GraphMoves.cpp) before it comes here.
// Code and key are those of the move; see `GraphStateImpl.h` for what a state
// is.
//
//===----------------------------------------------------------------------===//

#include "GraphRules.h"

using namespace kas;
using namespace kas::search;

/// Every move is later than what the coordinates remember. O1: coordinates
/// remember the largest key since they were made, so that moves in the wrong
/// order are recognized.
static void age(GraphStateData &state, uint64_t key) {
  for (LiveCoord &coord : state.getLive()) {
    coord.sinceMade = std::max(coord.sinceMade, key);
    coord.sinceShared = std::max(coord.sinceShared, key);
  }
}

/// `equal` numbers reductions of the same size, so that they are different
/// expressions.
static void addReduce(GraphSpace &space, GraphStateData &state,
                      uint32_t index) {
  SizeId size = space.reduceSizes[index];
  uint32_t equal = 0;
  for (const LiveCoord &coord : state.getLive())
    equal += coord.kind == CoordKind::Reduce && coord.size == size;
  LiveCoord &coord = state.live[state.numLive++];
  coord = LiveCoord();
  coord.expr = space.intern({CoordKind::Reduce, size, equal, 0});
  coord.size = size;
  coord.kind = CoordKind::Reduce;
  coord.height = 1;
  // No weight indexes it yet.
  coord.flags =
      LiveCoord::Unordered | LiveCoord::Unweighted | LiveCoord::HasReduction;
  coord.left = coord.right = LiveCoord::ReduceEnd;
  // Occurrences of symbols are limited over reductions and weights together
  // (R3, W5).
  state.usage = state.usage + space.sizes[size].usage;
  state.lastReduce = index;
}

/// `code` has two bits for each live coordinate: unused, taken or shared. Taken
/// coordinates leave the data, shared ones stay.
static void contract(GraphSpace &space, GraphStateData &state, uint32_t code,
                     uint64_t key) {
  llvm::SmallVector<ExprId, 16> coords;
  unsigned kept = 0;
  uint8_t bit = 1 << state.numWeights;
  const Powers &mask = space.sizes.getPrimaryMask();
  // Elements of the weight at each binding, for the parameters.
  llvm::SmallVector<double, 8> elements(space.problem->bindings.size(), 1);
  for (unsigned index = 0; index < state.numLive; ++index) {
    LiveCoord coord = state.live[index];
    WeightUse use = getUse(code, index);
    if (use != Unused) {
      const SizeInfo &info = space.sizes[coord.size];
      coords.push_back(coord.expr);
      // Coefficients in weights are free; only primary symbols count (W5).
      state.usage = state.usage + (info.usage & mask);
      for (auto [product, value] : llvm::zip_equal(elements, info.values))
        product *= static_cast<double>(value);
      coord.weights |= bit;
      coord.flags &= ~LiveCoord::Unweighted;
      ++coord.height;
      // The ends of the coordinate remember which weights have indexed it, so
      // that a split of two halves with different weights is no undone merge
      // (S4).
      for (uint32_t *end : {&coord.left, &coord.right})
        if (*end != LiveCoord::Opaque)
          *end |= bit << 2;
    }
    // A contraction ages all coordinates; a shared one may be indexed again by
    // a weight that commutes.
    coord.sinceMade = std::max(coord.sinceMade, key);
    coord.sinceShared = use == Shared ? 0 : std::max(coord.sinceShared, key);
    if (use != Taken)
      state.live[kept++] = coord;
  }
  state.numLive = kept;
  for (auto [product, count] :
       llvm::zip_equal(elements, space.problem->multiplicities))
    state.params += product * static_cast<double>(count);
  state.weights[state.numWeights++] = space.internWeight(coords);
}

/// P1 counts reductions without weights when they are joined with something
/// else.
static void addPooled(GraphSpace &space, GraphStateData &state,
                      const LiveCoord &coord) {
  if (coord.kind == CoordKind::Reduce && !coord.weights)
    state.pooled *= static_cast<double>(space.sizes[coord.size].max);
}

/// Replaces the whole by the quotient and appends the remainder: codes of other
/// moves depend on this order.
static void merge(GraphSpace &space, GraphStateData &state, unsigned index,
                  SizeId block) {
  LiveCoord whole = state.live[index];
  LiveCoord high = makeQuotient(space, whole, block);
  LiveCoord low = makeRemainder(space, whole, block);
  high.expr =
      space.intern({CoordKind::MergeQuotient, high.size, whole.expr, block});
  low.expr =
      space.intern({CoordKind::MergeRemainder, low.size, whole.expr, block});
  state.live[index] = high;
  state.live[state.numLive++] = low;
}

/// Replaces the outer operand by the split and removes the inner one.
static void split(GraphSpace &space, GraphStateData &state, unsigned outer,
                  unsigned inner) {
  const LiveCoord a = state.live[outer], b = state.live[inner];
  addPooled(space, state, a);
  addPooled(space, state, b);
  LiveCoord result = makeSplit(space, a, b);
  result.expr = space.intern({CoordKind::Split, result.size, a.expr, b.expr});
  state.live[outer] = result;
  state.erase(inner);
}

/// `code` is the number of the assignment of coordinates to input dimensions.
static void finish(GraphSpace &space, GraphStateData &state, uint32_t code) {
  llvm::SmallVector<LiveCoord, 6> data;
  forEachMatch(space, state, [&](llvm::ArrayRef<unsigned> match) {
    if (code-- > 0)
      return false;
    for (unsigned index : match)
      data.push_back(state.live[index]);
    return true;
  });
  assert(data.size() == state.numLive && "a move of another state");
  llvm::copy(data, state.live);
  state.isFinished = true;
  state.finalKey = computeFinalKey(space, state);
}

/// Codes: position << 8 | parameter, position << 8 | position for two operands,
/// and a number of their own for reductions, contractions and the end.
void kas::search::applyMove(GraphSpace &space, GraphStateData &state,
                            unsigned kind, uint32_t code, uint64_t key) {
  unsigned high = code >> 8, low = code & 0xff;
  ++state.counts[kind];
  if (kind == FinishMove)
    return finish(space, state, code);
  ++state.steps;
  // A reduction ages nothing: reductions come before all else, in ascending
  // order (R1).
  if (kind == ReduceMove)
    return addReduce(space, state, code);
  if (kind == ContractMove)
    return contract(space, state, code, key);
  age(state, key);
  LiveCoord &base = state.live[high];
  switch (kind) {
  case StrideMove: {
    SizeId factor = space.distance.getStrideFactors()[low];
    LiveCoord result = makeStride(space, base, factor);
    result.expr =
        space.intern({CoordKind::Stride, result.size, base.expr, factor});
    base = result;
    return;
  }
  case MergeMove:
    return merge(space, state, high, space.sizes.getBlocks(base.size)[low]);
  case UnfoldMove: {
    LiveCoord result = makeUnfold(base, state.live[low]);
    result.expr = space.intern(
        {CoordKind::Unfold, result.size, base.expr, state.live[low].expr});
    addPooled(space, state, state.live[low]);
    base = result;
    return state.erase(low);
  }
  case SplitMove:
    return split(space, state, high, low);
  case ShiftMove: {
    LiveCoord result = makeShift(base);
    result.expr = space.intern({CoordKind::Shift, result.size, base.expr, low});
    base = result;
    return;
  }
  default:
    state.expanded[state.numExpanded++] = base.expr;
    return state.erase(high);
  }
}
