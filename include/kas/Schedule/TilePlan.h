//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How contractions are cut into register tiles, as numbers: what code for
// CPUs is made by, and what its time is predicted by. All times are in halves
// of a cycle of a core that begins two arithmetic operations and two loads per
// cycle.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_TILEPLAN_H
#define KAS_SCHEDULE_TILEPLAN_H

#include "kas/Support/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

namespace kas::schedule {

struct TileNest;

/// What a target offers to tiles, in elements.
struct TileTarget {
  explicit TileTarget(const Target &target);

  /// The smallest vector that holds `elements`, or the largest there is.
  int64_t getLanes(int64_t elements) const;
  /// Halves of a cycle until a core that begins two arithmetic operations per
  /// cycle can begin another one than that on `lanes` lanes.
  int64_t getOperationTime(int64_t lanes) const {
    return lanes > arithmeticLanes ? 2 : 1;
  }

  /// The same for tiles of `nest`, whose products may take more registers.
  TileTarget forProductsOf(const TileNest &nest) const;

  /// Whether two operations on vectors of 512 bits begin per cycle.
  bool hasWideArithmetic() const {
    return lanes > 8 && getOperationTime(lanes) == 1;
  }

  /// Elements of a vector.
  int64_t lanes;
  /// Elements of the widest vector that arithmetic does not take in halves.
  int64_t arithmeticLanes;
  /// Vector registers, and how many of them hold sums in panels; the others
  /// hold columns and a row.
  int64_t registers, accumulators;
  int64_t l1Elements, l2Elements;
  /// Elements of a panel that leave room for rows and the output in the
  /// second-level cache.
  int64_t panelElements;
  /// Whether one instruction adds the products of a group of bytes to a sum.
  /// Else both operands are widened, each to two registers.
  bool hasByteDots;
  /// Registers of a product beside its sum: pairs of i16 are multiplied by one
  /// instruction and added by another one.
  int64_t productRegisters = 0;
  /// Loads some lanes of a vector at the cost of all, as every target does
  /// whose vectors are wider than 128 bits.
  bool hasMaskedLoads;
  /// Masks are registers of their own, and what is masked takes no longer. In
  /// AVX2 a mask takes a vector register, and AMD's cores take 2 cycles for a
  /// masked load and 12 for a masked store.
  bool hasMaskRegisters;
};

/// The numbers of tiles that a schedule gives; 0: they are to be chosen.
struct TileNumbers {
  int64_t rows = 0, columns = 0, vectors = 0, tile = 0, depth = 0;
};

/// Whether data that is read in `steps` steps of `stride` elements, again and
/// again, falls out of the second-level cache in between, since its lines share
/// few sets of it, as with strides of many powers of two.
bool hasConflicts(int64_t steps, int64_t stride, const TileTarget &target);

/// The largest divisor of `value` that is at most `limit`.
int64_t getLargestDivisor(int64_t value, int64_t limit);

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

/// The columns of a tile: the innermost loops as a whole, and a block of the
/// next one.
struct PanelColumns {
  /// The loop that is cut, and how many of its iterations are in a tile.
  unsigned blocked = 0;
  int64_t block = 1;
  /// All columns of a tile.
  int64_t tile = 1;
};

/// Cuts columns of `extents`, outermost first, which step with `strides` in the
/// output, into tiles of at most `maxColumns` that lie together there.
PanelColumns cutPanelColumns(llvm::ArrayRef<int64_t> extents,
                             llvm::ArrayRef<int64_t> strides,
                             int64_t maxColumns);

/// The same with as many columns as suit the target's vectors.
PanelColumns choosePanelColumns(llvm::ArrayRef<int64_t> extents,
                                llvm::ArrayRef<int64_t> strides,
                                const TileTarget &target);

struct PanelRegisters {
  /// Sums in registers: rows times vectors.
  int64_t rows = 1, vectors = 1;
  /// How many whole vectors of a tile are taken `vectors` at a time; the
  /// others, the last of which may be narrower, are in registers together.
  int64_t loopedVectors = 0;
  /// One step of all rows of a tile.
  int64_t time = 0;
};

/// The registers for tiles of `columns` by `rows` that take the least time, of
/// at most `limit` sums; nothing if there are none that `isAllowed`.
std::optional<PanelRegisters> choosePanelRegisters(
    int64_t columns, int64_t rows, const TileTarget &target, int64_t limit,
    int64_t maxRows, int64_t maxVectors,
    llvm::function_ref<bool(int64_t rows, int64_t vectors)> isAllowed);

/// How the elements of a panel are copied: in vectors, in vectors of every
/// other element, one by one, or ahead of the calls.
enum class PanelCopy : uint8_t { Vectors, StridedVectors, Elements, None };

/// The time of `tiles` tiles of `columns` columns, for `rows` rows and `depth`
/// steps: products and copies. `stepTime`: one step of all rows of a tile, as
/// the registers were chosen (`PanelRegisters`).
int64_t getPanelTime(int64_t tiles, int64_t columns, int64_t rows,
                     int64_t depth, int64_t stepTime, PanelCopy copy,
                     const TileTarget &target);

//===----------------------------------------------------------------------===//
// Vectors along the rows
//===----------------------------------------------------------------------===//

/// A register tile of vectors along the rows.
struct RowTile {
  /// Columns from the innermost loop, and from the one outside of it.
  int64_t columns = 1, outerColumns = 1;
  int64_t vectors = 1, lanes = 0;
  /// Whether the tiles of a line that `columns` do not divide have that many
  /// columns or one less.
  bool isBalanced = false;
  /// Parts of the steps that all tiles take one after the other.
  int64_t parts = 1;
  /// Of all tiles: products and loads, and transposed stores; 0 where nothing
  /// suits.
  int64_t products = 0, stores = 0;

  int64_t getTime() const { return products + stores; }
};

/// What such tiles cover: `outer` times `height` times `width` columns of
/// `rows` rows, each the sum of `depth` products. Lines of `width` lie together
/// if `height` is not 1.
struct RowTileShape {
  int64_t outer, height, width, rows, depth;
  /// Whether the last tile of a line may begin before the one ahead of it ends.
  bool mayOverlap = false;
  /// Elements of the data, all of which each tile of rows reads again.
  int64_t dataElements = 0;
  /// Between columns of the data, where each step reads other cache lines; 0
  /// where a window reads the same ones again.
  int64_t columnStride = 0;
  /// Iterations of the outermost reduction, in whose parts the steps may be
  /// cut; 1 where they may not.
  int64_t outerSteps = 1;
};

/// How `width` columns are cut into tiles of at most `columns`, whose sizes
/// differ by one at most: first those of the larger size.
struct BalancedTiles {
  BalancedTiles(int64_t width, int64_t columns)
      : numAll(llvm::divideCeil(width, columns)), narrow(width / numAll),
        numWide(width - narrow * numAll) {}

  int64_t getWidest() const { return narrow + (numWide > 0); }

  int64_t numAll, narrow, numWide;
};

/// The sizes of vectors that `rows` rows may be cut into: those of the target,
/// or of half or a quarter of a register, of which more than half is used.
llvm::SmallVector<int64_t, 3> getRowLaneCounts(int64_t rows,
                                               const TileTarget &target);

/// The tile of the least time that the registers hold, of those that
/// `isAllowed`.
RowTile chooseRowTile(
    const RowTileShape &shape, const TileTarget &target,
    llvm::function_ref<bool(int64_t columns, int64_t vectors)> isAllowed);

/// What it takes to pack `elements` elements at each call.
int64_t getRowPackingTime(int64_t elements);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_TILEPLAN_H
