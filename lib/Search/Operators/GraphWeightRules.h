//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which weights a state may get: the rules of docs/internals/canonical-form.md
// that compare the coordinates of weights with each other (W4 to W12).
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_GRAPHWEIGHTRULES_H
#define LIB_SEARCH_OPERATORS_GRAPHWEIGHTRULES_H

#include "GraphStateImpl.h"

namespace kas::search {

/// `id` is the remainder by the size of b of the shift of a split of a and b:
/// the shift of b. Returns b.
std::optional<ExprId> getShiftedRemainder(const GraphSpace &space, ExprId id);
/// `id` is the quotient by the size of b of the shift of a split of a and b: a
/// plus the carry of b. Returns the split, or null.
const Expr *getCarriedSplit(const GraphSpace &space, ExprId id);
/// W8: what a weight is indexed by, with everything that is one-to-one taken
/// apart: both halves of a merge of a shift are what is shifted, and a shifted
/// remainder is what it is made of. Weights of one set have the same elements.
llvm::SmallVector<ExprId, 8> getWeightAtoms(const GraphSpace &space,
                                            llvm::ArrayRef<ExprId> coords);
/// H5: what is carried from the inner to the outer half of a shifted split only
/// renames the points of the outer one, a reduction or what carries made of it:
/// each weight that has that has the inner half as well. So it is with two
/// factors of one unordered output. Of each weight its atoms.
bool isCarryVoid(const GraphSpace &space,
                 llvm::ArrayRef<llvm::SmallVector<ExprId, 8>> weights,
                 const Expr &split);
/// `below` is part of the expression.
bool hasBelow(const GraphSpace &space, ExprId id, ExprId below);
/// W4: by their atoms, one of the weights has all that the other has.
bool isAbsorbed(const GraphSpace &space, const GraphStateData &state,
                uint32_t code);
/// W11: all coordinates of the weight are functions of those of one that is
/// there.
bool isDetermined(const GraphSpace &space, const GraphStateData &state,
                  uint32_t code);
/// W12: the weight takes a reduction plus carries, which no other weight sees.
bool takesSummedShift(const GraphSpace &space, const GraphStateData &state,
                      uint32_t code);
/// W10: the weight takes such a quotient, and only renames the points of b.
bool takesRenamedShift(const GraphSpace &space, const GraphStateData &state,
                       uint32_t code);
/// W14: the last of the weights that have some reduction makes them, together,
/// a weight that takes all values; W15: or they have as many elements as that
/// weight would have.
bool makesFullRank(const GraphSpace &space, const GraphStateData &state,
                   uint32_t code);
/// W16: two weights are joined by nothing but a carry, and so take all values
/// together that the one with the quotient would take without.
bool makesFullCarry(const GraphSpace &space, const GraphStateData &state,
                    uint32_t code);
/// W18: all that some weights have together is among the coordinates of one
/// other weight, but for reductions that nothing else has.
bool absorbsRank(const GraphSpace &space, const GraphStateData &state,
                 uint32_t code);
/// W17: two weights meet in a stack of windows, where their sums take all
/// values. Of a state with all its weights.
bool hasFullWindows(const GraphSpace &space, const GraphStateData &state);
/// All but W17, and what needs no names (W4, W6, W7): the contraction `code`
/// adds a weight that no other form of the operator does without.
bool isWeightCanonical(GraphSpace &space, const GraphStateData &state,
                       uint32_t code);

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_GRAPHWEIGHTRULES_H
