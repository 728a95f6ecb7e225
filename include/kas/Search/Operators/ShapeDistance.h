//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many steps, at least, lead from live coordinates to the input shape.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_SHAPEDISTANCE_H
#define KAS_SEARCH_OPERATORS_SHAPEDISTANCE_H

#include "kas/Search/Operators/SizeTable.h"
#include "kas/Support/FlatMap.h"
#include "kas/Support/Random.h"
#include <atomic>

namespace kas::search {

/// A coordinate as the distance sees it.
struct ShapeItem {
  /// Flags: what may still become of the coordinate.
  enum : uint16_t {
    /// A weight may take it away from the data.
    Droppable = 1,
    /// The same, after another weight has shared it.
    DroppableLater = 2,
    /// A reduction that no weight indexes.
    Unweighted = 4,
    Mergeable = 8,
    /// The same, after a shift.
    ShiftMergeable = 16,
    /// A stride is below that no unfold has taken in: it must be a window.
    Strided = 32,
    Expandable = 64,
    /// An output is below: it may be shifted when it is part of a split.
    HasOutput = 128,
    /// No step may be made on it any more.
    Frozen = 256,
    /// A stride of the signature may be made on it.
    Stridable = 512,
    /// Mergeable by blocks that a shift allows.
    MergeableBySmall = 1024,
    /// An unfold of it may be made.
    Unfoldable = 2048,
    IsReduce = 4096,
    // The rest where windows are required only (`requireWindows`).
    /// An output is below and no window.
    Unseeing = 8192,
    /// A reduction is below: what is merged of it has a window.
    SeeingMerged = 16384,
    /// A half of a coordinate that the distance has merged, of which there may
    /// be an unfold below the merge.
    SeeingHalf = 32768,
  };
  SizeId size = SizeTable::one;
  uint16_t flags = 0;
  /// Of a reduction: the weights that index it, one bit each.
  uint8_t weights = 0;
  /// Of a half of a coordinate that the distance has merged: the largest window
  /// of an unfold below the merge.
  uint8_t windowBelow = 0;

  bool operator==(const ShapeItem &other) const = default;
};

/// The steps that are left, by kind.
struct ShapeBudget {
  uint8_t split = 0, merge = 0, shift = 0, expand = 0, unfold = 0, stride = 0,
          weights = 0;
  /// At least one more weight is required.
  bool needsWeight = false;
  /// No unfold of two coordinates that are there can be made any more (O1): its
  /// window is a split of two at least.
  bool needsMadeWindow = false;
};

/// A lower bound on the number of steps from live coordinates to the input
/// shape. The relaxed game: choose merges and strides; then each coordinate is
/// dropped by a weight or an expand, or becomes a factor of one input
/// dimension, or a window; every join costs a step whatever its order, every
/// weight one. No rule of the search allows what this game does not, so a state
/// that it excludes is dead. The idea is the shape distance of the Syno paper
/// (section 7.1), which is not a bound; this one is checked by tests against
/// searches without it.
class ShapeDistance {
public:
  static constexpr unsigned maxItems = 18;
  static constexpr size_t minCapacity = 1 << 12;

  /// `targets` are the sizes of the input dimensions to reach. What is known is
  /// forgotten when it would need more than `maxBytes`.
  ShapeDistance(const SearchProblem &problem, SizeTable &sizes,
                llvm::ArrayRef<SizeId> targets,
                size_t maxBytes = size_t(1) << 28);

  /// Whether the bound is at most `limit`.
  bool isWithin(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                int limit);

  /// Whether the bound may be at most `limit` after up to so many more
  /// reductions, each of them a step.
  bool isWithinReductions(llvm::ArrayRef<ShapeItem> items,
                          const ShapeBudget &budget, int limit,
                          unsigned numReductions);
  /// What they may be.
  void allowReductions(llvm::ArrayRef<SizeId> reductions);

  /// Makes a question that is being worked out end soon, and all later ones:
  /// the answer is yes, which excludes nothing. From any thread.
  void stop() { stopped = true; }

  /// The least limit up to `limit` within which the bound is, if any.
  std::optional<int> measure(llvm::ArrayRef<ShapeItem> items,
                             const ShapeBudget &budget, int limit);

  /// The question in parts: a sum over the items, so that a move changes it by
  /// few terms; then the key; then what is known of it. The weights of an item
  /// count in the sum only when the budget has no more (`forgetWeights`).
  static uint64_t hashItem(const ShapeItem &item) {
    uint64_t bits = uint64_t(item.size) << 16 | item.flags;
    return mixBits((bits << 16 | item.weights << 8 | item.windowBelow) +
                   0x9e3779b97f4a7c15ull);
  }
  static ShapeItem forgetWeights(ShapeItem item) {
    item.weights = 0;
    return item;
  }
  static uint64_t getKey(uint64_t sum, const ShapeBudget &budget);
  /// Yes, no, or nothing when it has to be worked out.
  std::optional<bool> recall(uint64_t key, int limit) const {
    const Known *known = memo.find(key);
    if (!known)
      return std::nullopt;
    if (known->reachable <= limit)
      return true;
    if (known->unreachable >= limit)
      return false;
    return std::nullopt;
  }

  /// Each of these dimensions of the input must see a window: a factor of it
  /// that has an output below has an unfold or a merge of what has a reduction
  /// below as well.
  void requireWindows(llvm::ArrayRef<unsigned> targets);
  bool requiresWindows() const { return isAnyWindowed; }

  /// The factors of strides, in a fixed order.
  llvm::ArrayRef<SizeId> getStrideFactors() const { return strideFactors; }
  /// Those that are quotients of an input and an output size.
  llvm::ArrayRef<SizeId> getSignatureStrides() const {
    return llvm::ArrayRef(strideFactors).take_front(numSignatureStrides);
  }
  bool isSignatureStride(SizeId factor) const {
    return llvm::is_contained(getSignatureStrides(), factor);
  }

  struct Statistics {
    uint64_t computed = 0;
  };
  const Statistics &getStatistics() const { return statistics; }
  size_t getMemorySize() const { return memo.getMemorySize(); }

private:
  friend struct ShapePartition;
  void findChannels();
  void sort(llvm::MutableArrayRef<ShapeItem> items) const;
  bool isTooFar(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                int limit) const;
  bool canBeWithViews(llvm::ArrayRef<ShapeItem> items,
                      const ShapeBudget &budget, int limit);
  bool canMerge(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                int limit);
  /// Both halves of a merged coordinate.
  struct Cut {
    ShapeItem high, low;
  };
  using CutLists = std::vector<std::unique_ptr<llvm::SmallVector<Cut, 4>>>;
  bool canCut(llvm::MutableArrayRef<ShapeItem> items, const ShapeItem &whole,
              bool isSmall, const ShapeBudget &rest, int limit);
  uint8_t getWindowBelow(const ShapeItem &item) const;
  static uint16_t getSightOfHalf(const ShapeItem &whole, uint8_t windowBelow);
  llvm::ArrayRef<Cut> getCuts(SizeId size, bool isSmall);
  /// Whether so many merges of a coordinate of this size may leave a piece that
  /// is odd and at most as large as a window.
  bool hasWindowPiece(SizeId size, unsigned merges);
  bool canShiftSplitMerge(llvm::ArrayRef<ShapeItem> items,
                          const ShapeBudget &budget, int limit);
  bool canStride(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                 int limit);

  const SearchProblem &problem;
  SizeTable &sizes;
  llvm::SmallVector<SizeId, 4> targets;
  /// By input dimension: it is a set of factors (D3).
  llvm::SmallVector<bool, 4> areChannels;
  /// By input dimension: it must see a window.
  llvm::SmallVector<bool, 4> areWindowed;
  bool isAnyWindowed = false;
  /// Some reduction may be a window; many of the primary symbols that they
  /// have.
  bool hasWindowReduction = false;
  Powers reductionPowers;
  /// Of primary symbols, in all of them.
  Powers targetPowers;
  llvm::SmallVector<SizeId, 4> strideFactors;
  unsigned numSignatureStrides = 0;
  /// By size: by all blocks, and by those that a shift allows.
  CutLists cuts[2];
  /// By number of merges and size: what `hasWindowPiece` has found.
  std::vector<int8_t> windowPieces[2];
  /// What is known about a multiset: the least limit that is enough, and the
  /// largest one that is not.
  struct Known {
    int8_t reachable = INT8_MAX, unreachable = -1;
  };
  FlatMap<Known> memo;
  size_t maxBytes;
  std::atomic<bool> stopped = false;
  Statistics statistics;
};

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_SHAPEDISTANCE_H
