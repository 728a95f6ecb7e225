//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules for weights: which coordinates may index one, and which weights are
// the same (rules W of docs/internals/canonical-form.md).
//
// All rules here are about the weight that a contraction would make, given the
// weights that are there. W14 to W18 are in GraphRankRules.cpp and
// GraphWindowRanks.cpp.
//
//===----------------------------------------------------------------------===//

#include "GraphWeightRules.h"
#include "GraphRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// The graph below a coordinate
//===----------------------------------------------------------------------===//

/// A weight indexed by one of these is a reshaped, rotated or sparse one (W1).
static bool isView(CoordKind kind) {
  return kind == CoordKind::Split || kind == CoordKind::Shift ||
         kind == CoordKind::Stride;
}

/// `id` = remainder of a merge of a shift of split(a, b) by b's size: as a
/// coordinate the shift of b. Returns b.
std::optional<ExprId> kas::search::getShiftedRemainder(const GraphSpace &space,
                                                       ExprId id) {
  const Expr &expr = space.getExpr(id);
  if (expr.kind != CoordKind::MergeRemainder)
    return std::nullopt;
  const Expr &shift = space.getExpr(expr.first);
  if (shift.kind != CoordKind::Shift)
    return std::nullopt;
  const Expr &split = space.getExpr(shift.first);
  if (split.kind != CoordKind::Split ||
      space.getExpr(split.second).size != expr.second)
    return std::nullopt;
  return split.second;
}

/// `id` = quotient of the same merge: a plus the carry of b. Returns the split.
const Expr *kas::search::getCarriedSplit(const GraphSpace &space, ExprId id) {
  const Expr &quotient = space.getExpr(id);
  if (quotient.kind != CoordKind::MergeQuotient ||
      space.getExpr(quotient.first).kind != CoordKind::Shift)
    return nullptr;
  const Expr &split = space.getExpr(space.getExpr(quotient.first).first);
  return split.kind == CoordKind::Split &&
                 space.getExpr(split.second).size == quotient.second
             ? &split
             : nullptr;
}

/// Views are replaced by what they are made of.
static void addAtoms(const GraphSpace &space, ExprId id,
                     llvm::SmallVectorImpl<ExprId> &atoms) {
  const Expr &expr = space.getExpr(id);
  if (std::optional<ExprId> inner = getShiftedRemainder(space, id))
    return addAtoms(space, *inner, atoms);
  if (!isView(expr.kind)) {
    if (!llvm::is_contained(atoms, id))
      atoms.push_back(id);
    return;
  }
  addAtoms(space, expr.first, atoms);
  if (expr.kind == CoordKind::Split)
    addAtoms(space, expr.second, atoms);
}

/// The shift that `id` is a part of. Through any number of merges.
static bool isPartOfShift(const GraphSpace &space, ExprId id) {
  const Expr *expr = &space.getExpr(id);
  while (expr->kind == CoordKind::MergeQuotient ||
         expr->kind == CoordKind::MergeRemainder)
    expr = &space.getExpr(expr->first);
  return expr->kind == CoordKind::Shift;
}

/// Replaces the halves of a merge that has a shift below by what was merged.
/// One pair at a time; returns true if there was one.
static bool joinHalves(const GraphSpace &space,
                       llvm::SmallVectorImpl<ExprId> &coords) {
  for (ExprId &high : coords)
    for (ExprId &low : coords) {
      const Expr &x = space.getExpr(high), &y = space.getExpr(low);
      if (x.kind != CoordKind::MergeQuotient ||
          y.kind != CoordKind::MergeRemainder || x.first != y.first ||
          x.second != y.second || !isPartOfShift(space, x.first))
        continue;
      ExprId whole = x.first;
      high = whole;
      coords.erase(&low);
      return true;
    }
  return false;
}

/// See GraphWeightRules.h. The result is a set of coordinates with the same
/// elements of the weight.
llvm::SmallVector<ExprId, 8>
kas::search::getWeightAtoms(const GraphSpace &space,
                            llvm::ArrayRef<ExprId> coords) {
  llvm::SmallVector<ExprId, 8> parts(coords), atoms;
  // The loop ends: each round removes a coordinate.
  while (joinHalves(space, parts)) {
  }
  for (ExprId id : parts)
    addAtoms(space, id, atoms);
  // What is taken apart may have made a pair.
  return atoms.size() < coords.size() && atoms.size() != parts.size()
             ? getWeightAtoms(space, atoms)
             : atoms;
}

/// Plain recursion: expressions are a few levels deep.
bool kas::search::hasBelow(const GraphSpace &space, ExprId id, ExprId below) {
  if (id == below)
    return true;
  const Expr &expr = space.getExpr(id);
  if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce)
    return false;
  bool isBinary =
      expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold;
  return hasBelow(space, expr.first, below) ||
         (isBinary && hasBelow(space, expr.second, below));
}

/// The coordinate is a function of `atoms`; adds the unfolds that are part of
/// it.
static bool followsFrom(const GraphSpace &space, ExprId id,
                        llvm::ArrayRef<ExprId> atoms,
                        llvm::SmallVectorImpl<ExprId> &unfolds) {
  if (llvm::is_contained(atoms, id))
    return true;
  const Expr &expr = space.getExpr(id);
  if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce)
    return false;
  if (expr.kind == CoordKind::Unfold)
    unfolds.push_back(id);
  bool isBinary =
      expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold;
  return followsFrom(space, expr.first, atoms, unfolds) &&
         (!isBinary || followsFrom(space, expr.second, atoms, unfolds));
}

/// Nothing but factors of the channel is below. Unfolds and reductions bring in
/// something else.
static bool isOfChannel(const GraphSpace &space, ExprId id, ExprId channel) {
  if (getChannel(space, id) == channel)
    return true;
  const Expr &expr = space.getExpr(id);
  if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce ||
      expr.kind == CoordKind::Unfold)
    return false;
  return isOfChannel(space, expr.first, channel) &&
         (expr.kind != CoordKind::Split ||
          isOfChannel(space, expr.second, channel));
}

/// The carry of `split.second` into `split.first` is not seen by any weight
/// that has the outer operand without the inner one; then it only renames the
/// points of the outer one.
bool kas::search::isCarryVoid(
    const GraphSpace &space,
    llvm::ArrayRef<llvm::SmallVector<ExprId, 8>> weights, const Expr &split) {
  if (split.kind != CoordKind::Split)
    return false;
  // A weight that has both sees the sum in another order of its own elements.
  auto isSeen = [&](ExprId outer) {
    return llvm::any_of(weights, [&](llvm::ArrayRef<ExprId> atoms) {
      llvm::SmallVector<ExprId, 4> unfolds;
      return llvm::is_contained(atoms, outer) &&
             !followsFrom(space, split.second, atoms, unfolds);
    });
  };
  ExprId outer = split.first;
  if (isSeen(outer))
    return false;
  // The carry goes on into what the outer operand itself was carried from.
  while (const Expr *carried = getCarriedSplit(space, outer)) {
    outer = carried->first;
    if (isSeen(outer))
      return false;
  }
  if (space.getExpr(outer).kind == CoordKind::Reduce)
    return true;
  std::optional<ExprId> channel = getChannel(space, outer);
  return channel && isOfChannel(space, split.second, *channel);
}

/// W11: some weight that is there determines all coordinates of the new one.
bool kas::search::isDetermined(const GraphSpace &space,
                               const GraphStateData &state, uint32_t code) {
  if (state.numWeights == 0)
    return false;
  llvm::SmallVector<ExprId, 8> coords, kept;
  for (unsigned index = 0; index < state.numLive; ++index) {
    WeightUse use = getUse(code, index);
    if (use != Unused)
      coords.push_back(state.live[index].expr);
    if (use != Taken)
      kept.push_back(state.live[index].expr);
  }
  for (unsigned index = 0; index < state.numWeights; ++index)
    llvm::append_range(kept, space.getWeight(state.weights[index]));
  coords = getWeightAtoms(space, coords);
  // What is outside of a window is zero: something else must say so, too.
  auto isKept = [&](ExprId unfold) {
    return llvm::any_of(kept,
                        [&](ExprId id) { return hasBelow(space, id, unfold); });
  };
  for (unsigned index = 0; index < state.numWeights; ++index) {
    llvm::SmallVector<ExprId, 8> atoms =
        getWeightAtoms(space, space.getWeight(state.weights[index]));
    llvm::SmallVector<ExprId, 4> unfolds;
    if (llvm::all_of(coords,
                     [&](ExprId id) {
                       return followsFrom(space, id, atoms, unfolds);
                     }) &&
        llvm::all_of(unfolds, isKept))
      return true;
  }
  return false;
}

/// W12.
bool kas::search::takesSummedShift(const GraphSpace &space,
                                   const GraphStateData &state, uint32_t code) {
  auto hasWeight = [&](ExprId id) {
    return llvm::any_of(
        llvm::ArrayRef(state.weights, state.numWeights), [&](uint32_t number) {
          return llvm::is_contained(space.getWeight(number), id);
        });
  };
  for (unsigned index = 0; index < state.numLive; ++index) {
    ExprId id = state.live[index].expr;
    if (getUse(code, index) != Taken || !getCarriedSplit(space, id))
      continue;
    // Another weight has the quotient, or the reduction that it is a carry of.
    bool isSeen = hasWeight(id);
    while (const Expr *split = getCarriedSplit(space, id)) {
      id = split->first;
      isSeen |= hasWeight(id);
    }
    if (!isSeen && space.getExpr(id).kind == CoordKind::Reduce)
      return true;
  }
  return false;
}

/// W4, by atoms. `code` is that of the new weight.
bool kas::search::isAbsorbed(const GraphSpace &space,
                             const GraphStateData &state, uint32_t code) {
  llvm::SmallVector<ExprId, 8> coords;
  for (unsigned index = 0; index < state.numLive; ++index)
    if (getUse(code, index) != Unused)
      coords.push_back(state.live[index].expr);
  // Otherwise the atoms are the coordinates, which are compared elsewhere.
  if (llvm::none_of(coords,
                    [&](ExprId id) { return isPartOfShift(space, id); }))
    return false;
  auto includes = [](llvm::ArrayRef<ExprId> all, llvm::ArrayRef<ExprId> some) {
    return llvm::all_of(some,
                        [&](ExprId id) { return llvm::is_contained(all, id); });
  };
  // Either may absorb the other.
  llvm::SmallVector<ExprId, 8> atoms = getWeightAtoms(space, coords);
  for (unsigned index = 0; index < state.numWeights; ++index) {
    llvm::SmallVector<ExprId, 8> other =
        getWeightAtoms(space, space.getWeight(state.weights[index]));
    if (includes(atoms, other) || includes(other, atoms))
      return true;
  }
  return false;
}

/// A reduction, an unordered output or a part of one. Their points may be
/// renamed at will.
static bool isRenamable(const GraphSpace &space, ExprId id) {
  const Expr *expr = &space.getExpr(id);
  while (expr->kind == CoordKind::MergeQuotient ||
         expr->kind == CoordKind::MergeRemainder)
    expr = &space.getExpr(expr->first);
  return expr->kind == CoordKind::Reduce ||
         (expr->kind == CoordKind::Output &&
          space.problem->outputs[expr->first].isUnordered);
}

/// W10.
bool kas::search::takesRenamedShift(const GraphSpace &space,
                                    const GraphStateData &state,
                                    uint32_t code) {
  llvm::SmallVector<ExprId, 8> coords;
  for (unsigned index = 0; index < state.numLive; ++index)
    if (getUse(code, index) != Unused)
      coords.push_back(state.live[index].expr);
  for (unsigned index = 0; index < state.numLive; ++index) {
    ExprId id = state.live[index].expr;
    const Expr *split =
        getUse(code, index) == Taken ? getCarriedSplit(space, id) : nullptr;
    if (!split || !isRenamable(space, split->second))
      continue;
    const Expr &quotient = space.getExpr(id);
    // The weight has the remainder, or b itself.
    auto hasRest = [&](llvm::ArrayRef<ExprId> weight) {
      return llvm::any_of(weight, [&](ExprId other) {
        const Expr &expr = space.getExpr(other);
        return other == split->second ||
               (expr.kind == CoordKind::MergeRemainder &&
                expr.first == quotient.first && expr.second == quotient.second);
      });
    };
    // No other weight has the quotient alone.
    if (hasRest(coords) &&
        llvm::all_of(llvm::ArrayRef(state.weights, state.numWeights),
                     [&](uint32_t number) {
                       llvm::ArrayRef<ExprId> weight = space.getWeight(number);
                       return !llvm::is_contained(weight, id) ||
                              hasRest(weight);
                     }))
      return true;
  }
  return false;
}

/// W6: the two halves of a coordinate are taken as one, and so are two factors
/// of a channel. With different weights the halves are needed apart.
static bool takesBothHalves(GraphSpace &space, const GraphStateData &state,
                            uint32_t code) {
  llvm::ArrayRef<LiveCoord> live = state.getLive();
  for (unsigned a = 0; a < live.size(); ++a)
    for (unsigned b = 0; b < live.size(); ++b)
      if (getUse(code, a) == Taken && getUse(code, b) == Taken &&
          live[a].weights == live[b].weights &&
          ((live[a].kind == CoordKind::MergeQuotient &&
            live[b].kind == CoordKind::MergeRemainder &&
            space.getExpr(live[a].expr).first ==
                space.getExpr(live[b].expr).first) ||
           areJoinable(space, state, live[a].expr, live[b].expr)))
        return true;
  return false;
}

/// W4: a weight that took nothing has no coordinates but these. All of its
/// coordinates are used by the new weight as well.
static bool absorbsWeight(const GraphSpace &space, const GraphStateData &state,
                          uint32_t code) {
  for (unsigned number = 0; number < state.numWeights; ++number) {
    size_t common = 0;
    for (unsigned index = 0; index < state.numLive; ++index)
      common += getUse(code, index) != Unused &&
                (state.live[index].weights >> number & 1);
    if (common == space.getWeight(state.weights[number]).size())
      return true;
  }
  return false;
}

/// W7: two reductions that only the same weights have are one.
static bool takesEqualReductions(const GraphStateData &state, uint32_t code) {
  llvm::ArrayRef<LiveCoord> live = state.getLive();
  for (unsigned a = 0; a < live.size(); ++a)
    for (unsigned b = 0; b < a; ++b)
      if (live[a].kind == CoordKind::Reduce &&
          live[b].kind == CoordKind::Reduce && getUse(code, a) == Taken &&
          getUse(code, b) == Taken && live[a].weights == live[b].weights)
        return true;
  return false;
}

/// From cheap to expensive.
bool kas::search::isWeightCanonical(GraphSpace &space,
                                    const GraphStateData &state,
                                    uint32_t code) {
  return !takesBothHalves(space, state, code) &&
         !takesEqualReductions(state, code) &&
         !absorbsWeight(space, state, code) &&
         !isAbsorbed(space, state, code) &&
         !takesRenamedShift(space, state, code) &&
         !isDetermined(space, state, code) &&
         !takesSummedShift(space, state, code) &&
         !makesFullRank(space, state, code) &&
         !absorbsRank(space, state, code) &&
         !makesFullCarry(space, state, code);
}
