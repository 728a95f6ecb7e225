//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a contraction is cut into register tiles whose vectors run along its
// rows, with weights that are packed for that.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_ROWVECTORPLAN_H
#define KAS_SCHEDULE_ROWVECTORPLAN_H

#include "kas/Schedule/LoopNest.h"
#include "kas/Schedule/TilePlan.h"
#include "llvm/Support/MathExtras.h"

namespace kas::schedule {

/// `base + sum of stride * loop`.
struct LinearExpr {
  int64_t base = 0;
  llvm::SmallVector<int64_t> strides;

  /// `expr` of `numLoops` loops, if it is such a sum.
  static std::optional<LinearExpr> get(const IndexExpr &expr,
                                       unsigned numLoops);
  void add(const LinearExpr &other, int64_t factor);
};

/// What a cyclic shift adds to an address: `- extent * stride` each time that
/// `expr` gets to a multiple of `extent`.
struct DataWrap {
  LinearExpr expr;
  int64_t extent, stride;

  int64_t getOffset(int64_t value) const {
    return -llvm::divideFloorSigned(value, extent) * extent * stride;
  }
};

/// A register tile is some vectors of rows (output channels) times some columns
/// (pixels): each step loads vectors of packed weights and multiplies them with
/// single elements of the data, which is read where it is, at any stride. No
/// lane is lost to images whose width fits no vector; the sums are transposed
/// when they are stored. Rows that fill no whole blocks of vectors get weights
/// of zero after them, whose sums are not stored.
struct RowVectorPlan {
  /// The loops that the columns of a tile come from, and how many iterations of
  /// each: the innermost one, and the one outside of it if that is short. The
  /// last tile of a line that they do not divide begins earlier.
  int64_t tileColumns = 1, tileOuterColumns = 1;
  /// Whether such tiles have `tileColumns` columns or fewer by at most one
  /// instead (`BalancedTiles`), so that nothing is computed twice.
  bool isBalanced = false;
  /// In how many parts the outermost loop of steps is cut: all tiles of an item
  /// take the steps of one part before those of the next, so that its weights
  /// and data stay in the first-level cache. Sums wait in memory in between.
  int64_t stepParts = 1;
  int64_t registerVectors = 1;
  /// Elements of a vector: those of the target, or fewer where rows are few.
  int64_t lanes = 0;
  /// In how many groups the tiles of one block of rows are cut, so that all
  /// threads find work.
  int64_t columnGroups = 1;
  /// Whether all blocks of rows are computed for one group of columns before
  /// the next one: its data stays in the second-level cache.
  bool groupsOutside = false;
  /// The strides of the data by loop, from `dataBase`, in the buffer as it is
  /// or with borders around it.
  llvm::SmallVector<int64_t> dataStrides;
  int64_t dataBase = 0;
  /// The reductions in the order of the steps, outermost first: loops, then
  /// `numUnrolled` that are unrolled, then `numInside` loops.
  llvm::SmallVector<unsigned> reductions;
  unsigned numUnrolled = 0, numInside = 0;
  /// Guards whose steps are left out of a tile where they do not hold, by
  /// number: those that need one range of a reduction for the whole tile, and
  /// those that columns of a tile differ in, which are known when it is
  /// emitted. Empty where there are none, or a copy has borders for them.
  llvm::SmallVector<unsigned> rangeGuards, columnGuards;
  /// Cyclic shifts of the data: those that are the same for a whole tile at a
  /// step, and those that columns of a tile differ in, as with guards.
  llvm::SmallVector<DataWrap> stepWraps, columnWraps;
  /// How many elements ahead of the step weights are fetched; 0: not so.
  int64_t prefetchDistance = 0;
  /// Whether the weights of the next block of rows are fetched while the tiles
  /// of one block are computed.
  bool prefetchesNextBlock = false;
  /// Whether each step fetches what the next tile reads at that step.
  bool prefetchesData = false;
  /// The shape of the data, the shape of a copy with zeros around it, and how
  /// many of them come before each dimension; empty where the data is read as
  /// it is.
  llvm::SmallVector<int64_t> dataShape, paddedShape, paddingBefore;
  /// Parts of the time: products and loads, and transposed stores.
  int64_t productTime = 0, storeTime = 0;
  /// Estimated time, in halves of a cycle; without packing where that is done
  /// ahead of the calls.
  int64_t time = 0;

  int64_t getNumRegisterColumns() const {
    return tileColumns * tileOuterColumns;
  }
  /// Rows of one tile, and how many such blocks `rows` rows are.
  int64_t getBlockRows() const { return lanes * registerVectors; }
  int64_t getNumBlocks(int64_t rows) const {
    return llvm::divideCeil(rows, getBlockRows());
  }
  /// The loop of steps that is outermost, and those between it and unrolled
  /// steps; where there are none, those inside of these.
  llvm::ArrayRef<unsigned> getLooped() const {
    llvm::ArrayRef<unsigned> all(reductions);
    size_t before = all.size() - numInside - numUnrolled;
    return before ? all.take_front(before) : all.take_back(numInside);
  }
  llvm::ArrayRef<unsigned> getUnrolled() const {
    return llvm::ArrayRef(reductions)
        .drop_back(numInside)
        .take_back(numUnrolled);
  }
};

/// Cuts `nest` for `threads` threads, with the numbers that `given` has
/// if there are any, or says why they or its shape do not suit. Tiles
/// `mayOverlap` if outputs can be computed twice.
std::optional<RowVectorPlan>
makeRowVectorPlan(const TileNest &nest, const TileTarget &target,
                  int64_t threads, const TileNumbers *given,
                  llvm::function_ref<void(const llvm::Twine &)> emitReason,
                  bool mayOverlap);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_ROWVECTORPLAN_H
