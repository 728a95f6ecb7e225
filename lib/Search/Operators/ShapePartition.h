//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The coordinates at the end of the game of the shape distance.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_SHAPEPARTITION_H
#define LIB_SEARCH_OPERATORS_SHAPEPARTITION_H

#include "kas/Search/Operators/ShapeDistance.h"

namespace kas::search {

/// The depth-first search over what each item becomes, until one way is found
/// that takes at most `limit` steps.
///
/// With `hasViews` items may be strided and merged before, and the pieces of
/// what is merged have any sizes: a relaxation of the game that no choice of
/// blocks makes larger. What it excludes, no strides and merges can reach.
struct ShapePartition {
  static constexpr unsigned maxTargets = 8;

  ShapePartition(ShapeDistance &distance, llvm::ArrayRef<ShapeItem> items,
                 const ShapeBudget &budget, int limit, bool hasViews,
                 unsigned numReductions = 0);

  /// Whether `hasViews` covers all that strides and merges can do: one shift of
  /// a split is merged, as two take six steps.
  static bool coversViews(const ShapeBudget &budget, int limit) {
    return budget.merge <= 2 &&
           (std::min(budget.merge, budget.shift) <= 1 || limit < 6);
  }

  bool isFeasible();
  static uint16_t getDroppable(const ShapeBudget &budget);

private:
  struct Counts {
    int8_t kept = 0, joins = 0, windows = 0, expanded = 0, weights = 0,
           dropped = 0;
    /// Windows with a reduction, coordinates that need one of their own, and
    /// whether halves of a merge need one below.
    int8_t seeing = 0, unseeing = 0;
    bool isHalfUnseeing = false;
    /// The largest window, and the largest that some kept base allows (U2).
    uint8_t window = 0, allowed = 0;
    /// The product of the factors that no weight indexes, and that of the
    /// windows.
    double pooled = 1, windowPoints = 1;
    /// What the last item became, so that equal ones do so in order.
    int8_t last = 0;
    /// An item that is the input dimension as it is.
    uint8_t closed = 0;
    /// Views before: all their steps, and how many there are of each kind.
    int8_t steps = 0, strides = 0, merges = 0, shifts = 0, splits = 0;
    /// Some piece of a merge is no factor.
    bool isLossy = false;
  };
  enum Choice { Drop, Expand, Window, FirstFactor };

  int getCost(const Counts &counts) const {
    int joins = counts.kept - static_cast<int>(numTargets);
    return counts.steps + counts.weights + counts.expanded + std::max(joins, 0);
  }
  bool isOver(unsigned index, const Counts &counts) const;
  static bool isLate(const ShapeItem &item, uint16_t droppable);
  void findUnseen();
  bool finish(const Counts &counts);
  bool canMakeWindows(const Counts &counts) const;
  bool visit(unsigned index, const Counts &counts);
  bool visitChoice(unsigned index, const ShapeItem &item, int choice,
                   Counts next);
  bool see(uint16_t flags, bool canUnfold, unsigned target,
           Counts &counts) const;
  void allowWindows(const ShapeItem &item, Counts &counts) const;
  bool isLaterTwin(unsigned target) const;
  bool visitFactor(unsigned index, const ShapeItem &item, unsigned target,
                   Counts next);

  /// What is merged: several pieces of any sizes.
  struct Whole {
    uint16_t sight = 0;
    bool canBeWindow = false, canUnfold = false, isGroup = false;
    /// There are two, and the first one is a block that a shift allows.
    bool isFirstSmall = false;
    uint8_t allowed = 0;
    Powers primary;
  };
  /// A shift of a split, merged: what is in it.
  struct Group {
    uint8_t count = 0, windowBelow = 0;
    uint16_t flags = 0, sight = ShapeItem::Unseeing;
    bool hasPiece = false;
    Powers powers, primary;
  };
  bool visitViews(unsigned index, const Counts &counts);
  bool finishReductions(unsigned count, const Counts &counts);
  bool visitStrides(unsigned index, const Counts &counts);
  bool visitMerges(unsigned index, Counts next);
  bool visitGrouped(unsigned index, const ShapeItem &item, Counts next);
  bool visitPieces(unsigned index, const Whole &whole, unsigned count,
                   int least, const Counts &counts);
  bool visitPiece(unsigned index, const Whole &whole, unsigned count,
                  int choice, Counts next);
  bool finishGroup(const Counts &counts);
  bool visitGroup(const Group &parts, SizeId size, Counts next);
  bool canGroup(const Counts &counts) const;
  bool canBeWindow(const ShapeItem &item, unsigned merges) const;
  bool isSmallPlain(SizeId size) const;
  bool isCovered(const Counts &counts) const;

  ShapeDistance &distance;
  const SpaceLimits &limits;
  llvm::ArrayRef<ShapeItem> items;
  const ShapeBudget &budget;
  int limit;
  bool hasViews;
  unsigned numReductions;
  unsigned numTargets;
  Powers mask;
  /// By input dimension: what its factors lack so far, and how many it has.
  Powers lacking[maxTargets];
  uint8_t factors[maxTargets] = {};
  /// What all input dimensions lack, and what the items from one on can give:
  /// primary symbols come from factors only.
  Powers lackingInAll;
  Powers available[ShapeDistance::maxItems + 1];
  /// How many items from one on nothing drops, and how many only a second
  /// weight.
  uint8_t fixed[ShapeDistance::maxItems + 1] = {};
  uint8_t late[ShapeDistance::maxItems + 1] = {};
  /// Of dimensions of the input, one bit each: a factor of it must see a window
  /// that is not there.
  uint8_t unseen = 0;
  /// By input dimension: the sets of weights that index reductions in it.
  uint16_t weightSets[maxTargets] = {};
  /// Which input dimensions have pieces, one bit each; the primary symbols that
  /// these may have; those of all that is merged, and all of its symbols.
  uint8_t pieced = 0;
  Powers pieces[maxTargets];
  Powers merged, mergedPowers;
  Group group;
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_SHAPEPARTITION_H
