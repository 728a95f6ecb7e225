//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The side conditions of moves, and the coordinates they make. Each rule has a
// number, which docs/internals/canonical-form.md explains.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_GRAPHRULES_H
#define LIB_SEARCH_OPERATORS_GRAPHRULES_H

#include "GraphStateImpl.h"

namespace kas::search {

/// An output, or a half of a merge.
inline bool isOutputPart(const LiveCoord &coord) {
  return coord.kind == CoordKind::Output ||
         coord.kind == CoordKind::MergeQuotient ||
         coord.kind == CoordKind::MergeRemainder;
}

/// A weight may be indexed by it (W1), whatever else it is indexed by.
/// W13: not by what depends on a position, where the space says so.
inline bool isWithinPositions(const GraphSpace &space, const LiveCoord &coord) {
  return space.problem->limits.weightsByPosition ||
         !(coord.flags & LiveCoord::HasPosition);
}
inline bool isShareable(const GraphSpace &space, const LiveCoord &coord) {
  return coord.kind != CoordKind::Split && coord.kind != CoordKind::Shift &&
         coord.kind != CoordKind::Stride &&
         space.sizes[coord.size].isShareable && isWithinPositions(space, coord);
}
/// A weight may take it from the data (W3).
bool isTakeable(const GraphSpace &space, const LiveCoord &coord);
/// An unfold of it may make a coordinate that a weight can be indexed by.
inline bool isShareableBase(const GraphSpace &space, const LiveCoord &coord) {
  return (coord.flags & LiveCoord::HasOutput) && isShareable(space, coord);
}

/// The coordinate may be the base of some unfold (U1).
inline bool isUnfoldable(const LiveCoord &coord) {
  return !(coord.flags & LiveCoord::Strided) &&
         (coord.flags & LiveCoord::HasOutput) &&
         coord.kind != CoordKind::Split && coord.kind != CoordKind::Shift &&
         coord.kind != CoordKind::Reduce;
}

/// The coordinates are interchangeable: reductions of one size, or outputs,
/// with the same weights.
bool areTwins(const GraphSpace &space, const LiveCoord &a, const LiveCoord &b);

bool canStride(const GraphSpace &space, const GraphStateData &state,
               const LiveCoord &base, SizeId factor);
bool canMerge(const GraphSpace &space, const GraphStateData &state,
              const LiveCoord &whole);
bool canMergeBy(GraphSpace &space, const GraphStateData &state,
                const LiveCoord &whole, SizeId block);
bool canUnfold(const GraphSpace &space, const GraphStateData &state,
               const LiveCoord &base, const LiveCoord &window);
bool canSplit(GraphSpace &space, const GraphStateData &state,
              const LiveCoord &outer, const LiveCoord &inner);
bool canShift(const GraphSpace &space, const LiveCoord &base, bool isBackward);
bool canExpand(GraphSpace &space, const GraphStateData &state,
               const LiveCoord &coord);
/// The unordered output that the coordinate is, or is a factor of by merges.
std::optional<ExprId> getChannel(const GraphSpace &space, ExprId id);
/// Two factors of one unordered output whose product a merge may make as well.
bool areJoinable(GraphSpace &space, const GraphStateData &state, ExprId a,
                 ExprId b);
/// The factors of the split of both are in ascending order.
bool isAscending(const GraphSpace &space, const LiveCoord &outer,
                 const LiveCoord &inner);
/// The reductions without weights stay few when these are joined (P1).
bool canPool(GraphSpace &space, const GraphStateData &state, const LiveCoord &a,
             const LiveCoord &b);

/// Results of moves but for their expressions. The caller interns the
/// expression where it is needed.
LiveCoord makeStride(GraphSpace &space, const LiveCoord &base, SizeId factor);
LiveCoord makeQuotient(GraphSpace &space, const LiveCoord &whole, SizeId block);
LiveCoord makeRemainder(GraphSpace &space, const LiveCoord &whole,
                        SizeId block);
LiveCoord makeUnfold(const LiveCoord &base, const LiveCoord &window);
LiveCoord makeSplit(GraphSpace &space, const LiveCoord &outer,
                    const LiveCoord &inner);
LiveCoord makeShift(const LiveCoord &base);

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_GRAPHRULES_H
