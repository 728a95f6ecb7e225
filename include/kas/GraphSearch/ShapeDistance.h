//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shape distance: how many steps are needed, at least, until the coordinates
// have the sizes of the input.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GRAPHSEARCH_SHAPEDISTANCE_H
#define KAS_GRAPHSEARCH_SHAPEDISTANCE_H

#include "kas/GraphSearch/SizeTable.h"
#include "llvm/ADT/STLExtras.h"

namespace kas {

/// The largest window of an unfold.
constexpr int64_t maxWindow = 30;
/// The largest product of the reductions that no weight indexes: means over
/// more points lose too much.
constexpr int64_t maxPooling = 8;
/// The largest reduction between two weights that the data does not see: the
/// rank of a matrix in factors.
constexpr int64_t maxRank = 32;

/// A coordinate as the distance sees it.
struct ShapeItem {
  /// Flags: what may still become of the coordinate.
  enum : uint8_t {
    /// A weight may take it away from the data.
    Droppable = 1,
    /// The same, after another weight has shared it.
    DroppableLater = 2,
    /// A reduction that no weight indexes.
    Unweighted = 4,
    Mergeable = 8,
    Expandable = 16,
    /// It may be the window of an unfold, if its size fits.
    Window = 32,
  };
  SizeId size = SizeTable::one;
  uint8_t flags = 0;

  auto operator<=>(const ShapeItem &) const = default;
};

/// The steps that are left, by kind.
struct ShapeBudget {
  uint8_t split = 0, merge = 0, expand = 0, unfold = 0, stride = 0, weights = 0;
  /// At least one more weight is required.
  bool needsWeight = false;
};

/// A lower bound on the number of steps from live coordinates to the input
/// shape. The relaxed game: choose merges; then each coordinate is dropped by a
/// weight or an expand, or becomes a factor of one input dimension, or a
/// window; every join costs a step whatever its order, every weight one, and an
/// input dimension may lack a stride of the signature for a step. No rule of
/// the search allows what this game does not, so a state that it excludes is
/// dead. The idea is the shape distance of the Syno paper (section 7.1), which
/// is not a bound; this one is checked by a test against searches without it.
class ShapeDistance {
public:
  /// `targets` are the sizes of the input dimensions to reach.
  ShapeDistance(const SearchProblem &problem, SizeTable &sizes,
                llvm::ArrayRef<SizeId> targets);

  /// Whether the bound is at most `limit`.
  bool isWithin(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                int limit);

  /// The blocks by which a coordinate of `size` may be merged: both halves are
  /// at least 2 under every binding. In a fixed order.
  llvm::ArrayRef<SizeId> getBlocks(SizeId size);
  /// The factors of strides, in a fixed order.
  llvm::ArrayRef<SizeId> getStrideFactors() const { return strideFactors; }
  /// `factor` is the quotient of an input and an output size.
  bool isSignatureStride(SizeId factor) const {
    return llvm::is_contained(
        llvm::ArrayRef(strideFactors).take_front(numSignatureStrides), factor);
  }

private:
  struct Partition;
  using Powers = std::array<int, SymbolSet::maxSymbols>;
  bool canMerge(llvm::ArrayRef<ShapeItem> items, const ShapeBudget &budget,
                int limit);

  const SearchProblem &problem;
  SizeTable &sizes;
  llvm::SmallVector<SizeId, 4> targets;
  llvm::SmallVector<SizeId, 4> strideFactors;
  unsigned numSignatureStrides = 0;
  llvm::SmallVector<unsigned, 8> primaries;
  std::deque<llvm::SmallVector<SizeId, 8>> blockLists;
  llvm::DenseMap<SizeId, unsigned> blocks;
  /// What is known about a multiset: the least limit that is enough, and the
  /// largest one that is not.
  struct Known {
    int8_t reachable = INT8_MAX, unreachable = -1;
  };
  llvm::DenseMap<uint64_t, Known> memo;
};

} // namespace kas

#endif // KAS_GRAPHSEARCH_SHAPEDISTANCE_H
