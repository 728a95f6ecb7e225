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
//===----------------------------------------------------------------------===//

#include "GraphRules.h"

using namespace kas;
using namespace kas::search;

/// Every move is later than what the coordinates remember.
static void age(GraphStateData &state, uint64_t key) {
  for (LiveCoord &coord : state.getLive()) {
    coord.sinceMade = std::max(coord.sinceMade, key);
    coord.sinceShared = std::max(coord.sinceShared, key);
  }
}

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
  coord.flags =
      LiveCoord::Unordered | LiveCoord::Unweighted | LiveCoord::HasReduction;
  coord.left = coord.right = LiveCoord::ReduceEnd;
  state.usage = state.usage + space.sizes[size].usage;
  state.lastReduce = index;
}

static void contract(GraphSpace &space, GraphStateData &state, uint32_t code,
                     uint64_t key) {
  llvm::SmallVector<ExprId, 16> coords;
  unsigned kept = 0;
  uint8_t bit = 1 << state.numWeights;
  const Powers &mask = space.sizes.getPrimaryMask();
  llvm::SmallVector<double, 8> elements(space.problem->bindings.size(), 1);
  for (unsigned index = 0; index < state.numLive; ++index) {
    LiveCoord coord = state.live[index];
    WeightUse use = getUse(code, index);
    if (use != Unused) {
      const SizeInfo &info = space.sizes[coord.size];
      coords.push_back(coord.expr);
      state.usage = state.usage + (info.usage & mask);
      for (auto [product, value] : llvm::zip_equal(elements, info.values))
        product *= static_cast<double>(value);
      coord.weights |= bit;
      coord.flags &= ~LiveCoord::Unweighted;
      ++coord.height;
      for (uint32_t *end : {&coord.left, &coord.right})
        if (*end != LiveCoord::Opaque)
          *end |= bit << 2;
    }
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

static void addPooled(GraphSpace &space, GraphStateData &state,
                      const LiveCoord &coord) {
  if (coord.kind == CoordKind::Reduce && !coord.weights)
    state.pooled *= static_cast<double>(space.sizes[coord.size].max);
}

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

void kas::search::applyMove(GraphSpace &space, GraphStateData &state,
                            unsigned kind, uint32_t code, uint64_t key) {
  unsigned high = code >> 8, low = code & 0xff;
  ++state.counts[kind];
  if (kind == FinishMove)
    return finish(space, state, code);
  ++state.steps;
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
