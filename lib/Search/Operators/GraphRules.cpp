//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules for stride, merge, shift, expand, unfold and reduce, and what each
// makes (docs/internals/canonical-form.md).
//
// The rules are tested on the coordinates that a move uses, never on what is
// left to do, so a state is allowed or not whatever way led to it. `can...`
// decide, `make...` give the coordinate that the move makes, but for its
// expression.
//
//===----------------------------------------------------------------------===//

#include "GraphRules.h"
#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Outputs and their halves always; a reduction only if another weight has it,
/// and its size makes a useful rank.
bool kas::search::isTakeable(const GraphSpace &space, const LiveCoord &coord) {
  if (coord.kind != CoordKind::Reduce)
    return isOutputPart(coord);
  const SpaceLimits &limits = space.problem->limits;
  const SizeInfo &info = space.sizes[coord.size];
  return coord.weights && !limits.linearPath && // Q5
         info.max >= limits.rankMin && info.max <= limits.rankMax;
}

/// Interchanging twins gives the same operator: see O2.
bool kas::search::areTwins(const GraphSpace &space, const LiveCoord &a,
                           const LiveCoord &b) {
  if (a.size != b.size || a.kind != b.kind || a.weights != b.weights)
    return false;
  if (a.kind == CoordKind::Reduce)
    return true;
  return a.kind == CoordKind::Output && !a.weights &&
         space.isSwappable(space.getExpr(a.expr)) &&
         space.isSwappable(space.getExpr(b.expr));
}

/// The value of a coordinate is odd or even whatever the binding, and so on:
/// whether `isTrue` holds of two values under every binding. `values` of both
/// sizes are by binding, in the same order.
template <typename Predicate>
static bool holdsAlways(const SizeInfo &a, const SizeInfo &b,
                        Predicate isTrue) {
  for (auto [x, y] : llvm::zip_equal(a.values, b.values))
    if (!isTrue(x, y))
      return false;
  return true;
}

/// What is below an operand is below the result.
static constexpr uint8_t inheritedFlags =
    LiveCoord::HasPosition | LiveCoord::HasReduction | LiveCoord::HasWindow;

//===----------------------------------------------------------------------===//
// Stride
//===----------------------------------------------------------------------===//

/// By a factor of `ShapeDistance::getStrideFactors`.
bool kas::search::canStride(const GraphSpace &space,
                            const GraphStateData &state, const LiveCoord &base,
                            SizeId factor) {
  // T1: not twice, not above what it commutes with or what it would undo.
  if ((base.flags & LiveCoord::Strided) || base.kind == CoordKind::Unfold ||
      base.kind == CoordKind::Split || base.kind == CoordKind::Stride)
    return false;
  // A stride of the signature: the operator is a strided one, and the
  // coordinate ends in a dimension of the input.
  if (space.distance.isSignatureStride(factor) && isOutputPart(base) &&
      !(base.flags & LiveCoord::Unordered))
    return true;
  // T2: small, and as often as the coefficient may occur.
  Powers usage = state.usage + space.sizes[factor].usage;
  // The result has twice the positions at least.
  return space.sizes[base.size].max * 2 <= space.problem->limits.strideSize &&
         space.sizes.isWithinOccurrences(usage);
}

/// A stride that is not of the signature must go into the window of an unfold
/// (T3): `Strided` marks it until then.
LiveCoord kas::search::makeStride(GraphSpace &space, const LiveCoord &base,
                                  SizeId factor) {
  LiveCoord result;
  result.size = space.sizes.multiply(base.size, factor);
  result.kind = CoordKind::Stride;
  result.height = base.height + 1;
  result.flags = base.flags & (LiveCoord::Unweighted | LiveCoord::HasOutput |
                               inheritedFlags);
  bool isOfSignature = space.distance.isSignatureStride(factor) &&
                       isOutputPart(base) &&
                       !(base.flags & LiveCoord::Unordered);
  if (!isOfSignature)
    result.flags |= LiveCoord::Strided;
  return result;
}

//===----------------------------------------------------------------------===//
// Merge
//===----------------------------------------------------------------------===//

/// By any block; `canMergeBy` decides about the blocks.
bool kas::search::canMerge(const GraphSpace &space, const GraphStateData &state,
                           const LiveCoord &whole) {
  // M1: a weight takes the whole as well as its halves; quotients are merged
  // first, sums of reductions not at all.
  return !whole.weights && state.numLive < GraphSpace::maxLive &&
         (whole.kind == CoordKind::Output ||
          whole.kind == CoordKind::MergeRemainder ||
          whole.kind == CoordKind::Shift || whole.kind == CoordKind::Unfold);
}

/// The block's coefficients are between those of 1 and of the whole, or beyond
/// by what may still occur. Without this bound, blocks of any power of a
/// coefficient would be possible.
static bool isBlockAllowed(const GraphSpace &space, const Powers &usage,
                           SizeId whole, SizeId block) {
  const SizeTable &sizes = space.sizes;
  // Primary symbols are bounded by the whole itself.
  for (unsigned i = 0; i < sizes.getNumPowers(); ++i) {
    if (sizes.getPrimaryMask().get(i))
      continue;
    int left = sizes.getOccurrences().get(i) - usage.get(i);
    int of = sizes[whole].powers.get(i), exponent = sizes[block].powers.get(i);
    if (exponent < std::min(of, 0) - left || exponent > std::max(of, 0) + left)
      return false;
  }
  return true;
}

/// Follows merges down to the output; nothing if that is ordered, or something
/// else is below.
std::optional<ExprId> kas::search::getChannel(const GraphSpace &space,
                                              ExprId id) {
  while (space.getExpr(id).kind == CoordKind::MergeQuotient ||
         space.getExpr(id).kind == CoordKind::MergeRemainder)
    id = space.getExpr(id).first;
  const Expr &expr = space.getExpr(id);
  if (expr.kind != CoordKind::Output ||
      !space.problem->outputs[expr.first].isUnordered)
    return std::nullopt;
  return id;
}

/// The product of the factors is the whole, or may be a factor itself, the rest
/// being legal.
bool kas::search::areJoinable(GraphSpace &space, const GraphStateData &state,
                              ExprId a, ExprId b) {
  std::optional<ExprId> channel = getChannel(space, a);
  if (!channel || a == b || channel != getChannel(space, b))
    return false;
  SizeId whole = space.getExpr(*channel).size;
  SizeId product =
      space.sizes.multiply(space.getExpr(a).size, space.getExpr(b).size);
  return product == whole ||
         (space.sizes[product].isLegal &&
          space.sizes[space.sizes.divide(whole, product)].isLegal &&
          isBlockAllowed(space, state.usage, whole, product));
}

/// M4, M5: a block at least as large as the window nearly commutes with the
/// unfold; one that divides it by coefficients only does, too. Taps are the
/// positions of the window.
static bool isUnfoldBlockUseful(GraphSpace &space, const LiveCoord &whole,
                                SizeId block) {
  ExprId window = space.getExpr(whole.expr).second;
  SizeId windowSize = space.getExpr(window).size;
  bool isLarge =
      holdsAlways(space.sizes[block], space.sizes[windowSize],
                  [](int64_t block, int64_t taps) { return block >= taps; });
  // Zero in all primary symbols: the block differs from the window by
  // coefficients only.
  Powers quotient = space.sizes[windowSize].powers - space.sizes[block].powers;
  return !isLarge && !(quotient & space.sizes.getPrimaryMask()).isZero();
}

/// The block is one of `SizeTable::getBlocks`; all but M2 is about special
/// kinds of coordinates.
bool kas::search::canMergeBy(GraphSpace &space, const GraphStateData &state,
                             const LiveCoord &whole, SizeId block) {
  if (!isBlockAllowed(space, state.usage, whole.size, block))
    return false;
  const SizeInfo &blockInfo = space.sizes[block];
  // M2: the sizes differ from 1 as symbols; so they must as numbers.
  if (blockInfo.max == 1 ||
      space.sizes[space.sizes.divide(whole.size, block)].max == 1)
    return false;
  // M3.
  if (whole.kind == CoordKind::Shift &&
      blockInfo.max > space.problem->limits.shiftBlock)
    return false;
  if (whole.kind == CoordKind::Unfold &&
      !isUnfoldBlockUseful(space, whole, block))
    return false;
  // M7: the factors of a channel in ascending order. Of a channel merged to
  // three factors the same three come in any order; ascending ones are kept.
  if (whole.flags & LiveCoord::Unordered) {
    SizeId quotient = space.sizes.divide(whole.size, block);
    if (blockInfo.size < space.sizes[quotient].size)
      return false;
    // The factor that the merge before has split off must not be larger.
    if (whole.kind == CoordKind::MergeRemainder) {
      const Expr &expr = space.getExpr(whole.expr);
      SizeId other =
          space.sizes.divide(space.getExpr(expr.first).size, expr.second);
      return space.sizes[other].size <= space.sizes[quotient].size;
    }
  }
  return true;
}

/// What halves have in common. Both are windows if a reduction is below.
static LiveCoord makeHalf(const LiveCoord &whole, CoordKind kind, SizeId size) {
  LiveCoord result;
  result.size = size;
  result.kind = kind;
  result.height = whole.height + 1;
  result.flags = whole.flags &
                 (LiveCoord::Unordered | LiveCoord::HasOutput | inheritedFlags);
  if (whole.flags & LiveCoord::HasReduction)
    result.flags |= LiveCoord::HasWindow;
  return result;
}

/// The left end is that of the whole, the right end is where it was cut.
LiveCoord kas::search::makeQuotient(GraphSpace &space, const LiveCoord &whole,
                                    SizeId block) {
  LiveCoord result = makeHalf(whole, CoordKind::MergeQuotient,
                              space.sizes.divide(whole.size, block));
  result.left = whole.left;
  result.right = LiveCoord::makeCut(LiveCoord::HighCut, whole.expr);
  return result;
}

/// The left end is the cut, the right end is that of the whole.
LiveCoord kas::search::makeRemainder(GraphSpace &space, const LiveCoord &whole,
                                     SizeId block) {
  LiveCoord result = makeHalf(whole, CoordKind::MergeRemainder, block);
  result.left = LiveCoord::makeCut(LiveCoord::LowCut, whole.expr);
  result.right = whole.right;
  return result;
}

//===----------------------------------------------------------------------===//
// Unfold
//===----------------------------------------------------------------------===//

/// A reduction plus what is carried into it to no effect. Such a base is a
/// reduction, which may not be unfolded (U1), in disguise.
static bool isRenamedReduction(const GraphSpace &space,
                               const GraphStateData &state, ExprId id) {
  const Expr *split = getCarriedSplit(space, id);
  if (!split)
    return space.getExpr(id).kind == CoordKind::Reduce;
  llvm::SmallVector<llvm::SmallVector<ExprId, 8>, 4> weights;
  for (unsigned index = 0; index < state.numWeights; ++index)
    weights.push_back(
        getWeightAtoms(space, space.getWeight(state.weights[index])));
  return isCarryVoid(space, weights, *split) &&
         isRenamedReduction(space, state, split->first);
}

/// U7: with the windows below it, a cyclic window has as many points as the
/// base, under one binding at least.
static bool goesAround(const GraphSpace &space, const LiveCoord &base,
                       const SizeInfo &window) {
  llvm::SmallVector<int64_t, 4> points = window.values;
  for (const Expr *expr = &space.getExpr(base.expr);
       expr->kind == CoordKind::Unfold; expr = &space.getExpr(expr->first)) {
    SizeId inner = space.getExpr(expr->second).size;
    for (auto [sum, taps] : llvm::zip_equal(points, space.sizes[inner].values))
      sum += taps - 1;
  }
  return llvm::any_of(
      llvm::zip_equal(points, space.sizes[base.size].values),
      [](auto pair) { return std::get<0>(pair) >= std::get<1>(pair); });
}

/// `base` is the coordinate that the window moves along.
bool kas::search::canUnfold(const GraphSpace &space,
                            const GraphStateData &state, const LiveCoord &base,
                            const LiveCoord &window) {
  // U1: shifts and splits go above unfolds; a base has an output.
  if (!isUnfoldable(base) || isRenamedReduction(space, state, base.expr))
    return false;
  // U3: no sums over windows.
  if (window.flags & LiveCoord::Unweighted)
    return false;
  // U2: odd, small, smaller than the base.
  const SizeInfo &info = space.sizes[window.size];
  const SpaceLimits &limits = space.problem->limits;
  // A window of one point is nothing.
  if (!info.isOdd || info.max > limits.window || info.max < 2 ||
      !holdsAlways(
          space.sizes[base.size], info,
          [&](int64_t n, int64_t k) {
            return static_cast<double>(n) >=
                   limits.unfoldRatio * static_cast<double>(k);
          }) ||
      (limits.cyclic && goesAround(space, base, info)))
    return false;
  // Unfolds of unfolds commute but at the border.
  if (base.kind != CoordKind::Unfold)
    return true;
  // U4: the larger of two windows is above.
  ExprId inner = space.getExpr(base.expr).second;
  return holdsAlways(
      info, space.sizes[space.getExpr(inner).size],
      [](int64_t outer, int64_t inner) { return outer >= inner; });
}

/// The window is a reduction as a rule: then the result is a window for the
/// properties.
LiveCoord kas::search::makeUnfold(const LiveCoord &base,
                                  const LiveCoord &window) {
  LiveCoord result;
  result.size = base.size;
  result.kind = CoordKind::Unfold;
  result.height = std::max(base.height, window.height) + 1;
  result.flags =
      LiveCoord::HasOutput | ((base.flags | window.flags) & inheritedFlags);
  if (result.flags & LiveCoord::HasReduction)
    result.flags |= LiveCoord::HasWindow;
  return result;
}

//===----------------------------------------------------------------------===//
// Split
//===----------------------------------------------------------------------===//

/// S4: the split puts together what a merge has cut, or makes one reduction of
/// two. `outer.right` and `inner.left` are the ends that meet. Their low bits
/// are the kind of the end, the rest says which coordinate was cut and by which
/// weights it was indexed since.
static bool isUndone(const LiveCoord &outer, const LiveCoord &inner) {
  uint32_t left = outer.right & 3, right = inner.left & 3;
  bool isCut = left == LiveCoord::HighCut && right == LiveCoord::LowCut;
  bool isReduce = left == LiveCoord::ReduceEnd && right == LiveCoord::ReduceEnd;
  return (isCut || isReduce) && outer.right >> 2 == inner.left >> 2;
}

/// By content: a coordinate that is not live any more has no mask of its own.
static uint8_t getWeightsOf(const GraphSpace &space,
                            const GraphStateData &state, ExprId expr) {
  uint8_t mask = 0;
  for (unsigned index = 0; index < state.numWeights; ++index)
    if (llvm::is_contained(space.getWeight(state.weights[index]), expr))
      mask |= 1 << index;
  return mask;
}

/// Both halves of one merge, with the same weights, in any order. The weights
/// must agree, since otherwise the halves are needed apart.
static bool areHalves(const GraphSpace &space, const GraphStateData &state,
                      ExprId a, ExprId b) {
  const Expr &x = space.getExpr(a), &y = space.getExpr(b);
  bool isAny = (x.kind == CoordKind::MergeQuotient &&
                y.kind == CoordKind::MergeRemainder) ||
               (x.kind == CoordKind::MergeRemainder &&
                y.kind == CoordKind::MergeQuotient);
  return isAny && x.first == y.first &&
         getWeightsOf(space, state, a) == getWeightsOf(space, state, b);
}

/// The same for factors of one channel. By S4 as halves, or by M11 as any two
/// factors.
static bool areOneFactor(GraphSpace &space, const GraphStateData &state,
                         ExprId a, ExprId b) {
  return areHalves(space, state, a, b) ||
         (areJoinable(space, state, a, b) &&
          getWeightsOf(space, state, a) == getWeightsOf(space, state, b));
}

/// S6: factors of a channel side by side, in any order: another channel.
/// `inner` may be a split: then its outer operand is the neighbour.
static bool areHalvesOfChannel(GraphSpace &space, const GraphStateData &state,
                               const LiveCoord &outer, const LiveCoord &inner) {
  ExprId next = inner.kind == CoordKind::Split ? space.getExpr(inner.expr).first
                                               : inner.expr;
  return (outer.flags & LiveCoord::Unordered) &&
         areOneFactor(space, state, outer.expr, next);
}

/// The factors are in a fixed order: the highest first, since it is deepest
/// in a chain of splits, then by what they are, whichever of equal reductions
/// that is.
bool kas::search::isAscending(const GraphSpace &space, const LiveCoord &outer,
                              const LiveCoord &inner) {
  bool isSplit = inner.kind == CoordKind::Split;
  if (isSplit && !(inner.flags & LiveCoord::Ascending))
    return false;
  uint8_t height = isSplit ? inner.heightOfOuter : inner.height;
  ExprId next = isSplit ? space.getExpr(inner.expr).first : inner.expr;
  if (outer.height != height)
    return outer.height > height;
  return space.getShapeHash(outer.expr) <= space.getShapeHash(next);
}

/// D1 to D4: the factors of an unordered dimension are a set. Called only for a
/// split that has the size of a channel, so it can only end in an unordered
/// dimension.
static bool isChannelCanonical(GraphSpace &space, const GraphStateData &state,
                               const LiveCoord &outer, const LiveCoord &inner) {
  // All factors, from left to right.
  llvm::SmallVector<ExprId, 8> factors = {outer.expr};
  space.getFactors(inner.expr, factors);
  if (!isAscending(space, outer, inner)) // D1
    return false;
  llvm::SmallVector<uint8_t, 8> weightsOfReductions;
  for (ExprId factor : factors) {
    // Each pair once.
    for (ExprId other : factors) // D4
      if (other < factor && areOneFactor(space, state, factor, other))
        return false;
    CoordKind kind = space.getExpr(factor).kind;
    if (kind == CoordKind::Shift) // D2
      return false;
    // Only reductions are left to be compared.
    if (kind != CoordKind::Reduce)
      continue;
    uint8_t weights = getWeightsOf(space, state, factor);
    if (llvm::is_contained(weightsOfReductions, weights)) // D3
      return false;
    weightsOfReductions.push_back(weights);
  }
  return true;
}

/// Any coordinates may be split but for these cases; the order of the operands
/// counts.
bool kas::search::canSplit(GraphSpace &space, const GraphStateData &state,
                           const LiveCoord &outer, const LiveCoord &inner) {
  // S1: splits of splits nest to the right.
  if (outer.kind == CoordKind::Split ||
      ((outer.flags | inner.flags) & LiveCoord::Strided) ||
      isUndone(outer, inner) || areHalvesOfChannel(space, state, outer, inner))
    return false;
  SizeId product = space.sizes.multiply(outer.size, inner.size);
  return space.sizes[product].isLegal && // S7
         (!space.isChannel(product) ||
          isChannelCanonical(space, state, outer, inner));
}

/// `heightOfOuter` is kept for `isAscending` of a split above this one.
LiveCoord kas::search::makeSplit(GraphSpace &space, const LiveCoord &outer,
                                 const LiveCoord &inner) {
  LiveCoord result;
  result.size = space.sizes.multiply(outer.size, inner.size);
  result.kind = CoordKind::Split;
  result.height = std::max(outer.height, inner.height) + 1;
  result.left = outer.left;
  result.right = inner.right;
  result.flags = (outer.flags | inner.flags) &
                 (LiveCoord::Unweighted | LiveCoord::HasOutput);
  result.flags |= (outer.flags | inner.flags) & inheritedFlags;
  result.heightOfOuter = outer.height;
  if (isAscending(space, outer, inner))
    result.flags |= LiveCoord::Ascending;
  return result;
}

/// Joining a reduction without weights makes it part of the pooled ones for
/// good.
bool kas::search::canPool(GraphSpace &space, const GraphStateData &state,
                          const LiveCoord &a, const LiveCoord &b) {
  double pooled = state.pooled;
  for (const LiveCoord *coord : {&a, &b})
    if (coord->kind == CoordKind::Reduce && !coord->weights)
      pooled *= static_cast<double>(space.sizes[coord->size].max);
  return pooled == state.pooled ||
         pooled <= static_cast<double>(space.problem->limits.pooling);
}

//===----------------------------------------------------------------------===//
// Shift, expand
//===----------------------------------------------------------------------===//

/// By 1 or, `isBackward`, by -1.
bool kas::search::canShift(const GraphSpace &space, const LiveCoord &base,
                           bool isBackward) {
  // H1: shifts add up; those of channels and sums relabel.
  if ((base.flags & (LiveCoord::Unordered | LiveCoord::Strided)) ||
      !(base.flags & LiveCoord::HasOutput) || base.kind == CoordKind::Reduce ||
      base.kind == CoordKind::Shift || space.isChannel(base.size))
    return false;
  const SizeInfo &info = space.sizes[base.size];
  // With two points both shifts are the same.
  if (info.min < 2 || // H4
      (isBackward && (info.max == 2 || !space.problem->limits.shiftBackward)))
    return false;
  if (base.kind != CoordKind::Split)
    return true;
  // H2. A shift of a split moves the outer operand at one in `inner` points
  // only; the rest is a shift of the inner one.
  const Expr &inner = space.getExpr(space.getExpr(base.expr).second);
  return space.sizes[inner.size].max <= space.problem->limits.shiftBlock;
}

/// The result keeps what is known about the base but for its ends: nothing can
/// undo a shift.
LiveCoord kas::search::makeShift(const LiveCoord &base) {
  LiveCoord result;
  result.size = base.size;
  result.kind = CoordKind::Shift;
  result.height = base.height + 1;
  result.flags = base.flags & (LiveCoord::Unweighted | LiveCoord::HasOutput |
                               inheritedFlags);
  return result;
}

/// E2: both halves of a merge, a half and the neighbour that the other half was
/// merged into, or two factors of a channel are one coordinate to drop.
/// Dropping both drops the coordinate that they are parts of, which could be
/// dropped at once.
static bool isNeighborExpanded(GraphSpace &space, const GraphStateData &state,
                               ExprId id) {
  const Expr &expr = space.getExpr(id);
  return llvm::any_of(
      llvm::ArrayRef(state.expanded, state.numExpanded), [&](ExprId other) {
        const Expr &dropped = space.getExpr(other);
        auto isHalfOf = [&](const Expr &half, CoordKind kind, ExprId whole) {
          return half.kind == kind && half.first == whole;
        };
        // Both halves; or quotients of a coordinate and of its remainder.
        auto areNeighbors = [&](const Expr &high, const Expr &low) {
          if (high.kind != CoordKind::MergeQuotient)
            return false;
          if (isHalfOf(low, CoordKind::MergeRemainder, high.first))
            return true;
          return low.kind == CoordKind::MergeQuotient &&
                 isHalfOf(space.getExpr(low.first), CoordKind::MergeRemainder,
                          high.first);
        };
        return areNeighbors(expr, dropped) || areNeighbors(dropped, expr) ||
               areJoinable(space, state, id, other);
      });
}

/// M6: without the quotient, the remainder of a cyclic window is the remainder
/// of its base in a window that goes around it several times.
static bool isQuotientOfCircle(const GraphSpace &space, ExprId id) {
  const Expr &expr = space.getExpr(id);
  return space.problem->limits.cyclic &&
         expr.kind == CoordKind::MergeQuotient &&
         space.getExpr(expr.first).kind == CoordKind::Unfold;
}

/// An expand drops a coordinate without a weight: the output does not depend on
/// it.
bool kas::search::canExpand(GraphSpace &space, const GraphStateData &state,
                            const LiveCoord &coord) {
  return isOutputPart(coord) && !coord.weights && // E1
         !isQuotientOfCircle(space, coord.expr) &&
         !isNeighborExpanded(space, state, coord.expr);
}
