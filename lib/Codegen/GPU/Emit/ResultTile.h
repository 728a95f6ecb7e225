//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The results of a block on their way through workgroup memory, from fragments
// of matrix instructions to vectors.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_RESULTTILE_H
#define LIB_CODEGEN_GPU_EMIT_RESULTTILE_H

#include "KernelEmitter.h"

namespace kas::codegen {

/// Lines of workgroup memory hold rows of the result. Where there is no room
/// for all of a block, each warp or warpgroup along the rows has some of its
/// rows there at once, a slab. Where a block has rows as a whole, whose length
/// is no multiple of a vector, they follow each other there as in the result,
/// and vectors go from one to the next (`MatrixView::keepLinesWhole`).
struct ResultTile {
  /// Rows and columns of the block, and of one warp or warpgroup.
  std::array<int64_t, 2> block, part;
  /// Rows of one warp or warpgroup in a slab.
  int64_t slabRows;
  /// Elements from one line to the next: neighbours in fragments lie in
  /// different banks.
  int64_t pitch;
  /// Elements of the result that one store writes.
  int64_t width;
  /// Of what lies there: that of the result, or of sums before an epilogue.
  mlir::Type elementType;
  bool areLinesWhole;
  /// Where rows and columns are in the result, and how many there are.
  std::array<ResultSide, 2> sides;
  std::array<int64_t, 2> counts;

  /// Elements of one line of vectors, and the vectors of a slab.
  int64_t getLength() const {
    return areLinesWhole ? slabRows * pitch : block[1];
  }
  int64_t getNumLines() const { return block[0] / part[0] * slabRows; }
  int64_t getNumVectors() const {
    return (areLinesWhole ? block[0] / part[0] : getNumLines()) * getLength() /
           width;
  }
  int64_t getNumSlabs() const { return part[0] / slabRows; }
  int64_t getBytes() const {
    return block[0] / part[0] * slabRows * pitch *
           elementType.getIntOrFloatBitWidth() / 8;
  }
  mlir::MemRefType getType(mlir::Attribute space) const {
    return mlir::MemRefType::get({block[0] / part[0] * slabRows * pitch},
                                 elementType, mlir::MemRefLayoutAttrInterface(),
                                 space);
  }
};

/// Emits it for the kernel of `GPUKernelEmitter`.
class ResultTileEmitter {
public:
  /// `memory` has the elements of the tile.
  ResultTileEmitter(const ResultTile &tile, mlir::ImplicitLocOpBuilder &b,
                    IndexEmitter &index, mlir::Value memory, mlir::Value output,
                    GPUDeviceAttr device)
      : tile(tile), b(b), index(index), memory(memory), output(output),
        device(device) {}

  /// Of one lane: 16 rows from `line` of the slab on and 8 columns, or twice as
  /// many columns, from `column` on; both are those of the warp.
  void emitFragments(mlir::AffineExpr lane, mlir::AffineExpr line,
                     mlir::AffineExpr column,
                     llvm::ArrayRef<mlir::Value> fragments);
  /// What is stored of a vector in a row, from a column on.
  using Finish = llvm::function_ref<mlir::Value(
      mlir::Value values, mlir::AffineExpr row, mlir::AffineExpr column)>;
  /// A slab of the tile: where the block's batch begins in the result, the
  /// block's first row and column, and what becomes of sums.
  struct Slab {
    int64_t number;
    mlir::AffineExpr origin;
    std::array<mlir::AffineExpr, 2> begin;
    Finish finish;
  };
  /// Those of a block, and which one this is.
  struct Threads {
    mlir::AffineExpr number;
    int64_t count;
  };
  /// All threads store what becomes of what is in the slab.
  void emitStores(const Slab &slab, const Threads &threads);

private:
  /// Where vector `number` of a slab begins: in memory, its line and its
  /// column.
  struct Place {
    mlir::AffineExpr address, line, column;
  };
  Place getPlace(mlir::AffineExpr number);
  mlir::AffineExpr getRow(const Slab &slab, mlir::AffineExpr line) const;
  mlir::AffineExpr getTarget(const Slab &slab, mlir::AffineExpr line,
                             mlir::AffineExpr column) const;
  /// Stores `width` elements from `address` of the memory on.
  void emitStore(const Slab &slab, mlir::AffineExpr address,
                 mlir::AffineExpr line, mlir::AffineExpr column, int64_t width);
  /// Distributes numbers below `total` to the threads.
  void forEach(int64_t total, const Threads &threads,
               llvm::function_ref<void(mlir::AffineExpr number)> emitBody);
  /// The elements of a width of 1: two at once, and those that are left.
  void emitPairs(const Slab &slab, const Threads &threads);
  void emitSingles(const Slab &slab, const Threads &threads);
  /// Whether the next column is the next element of the result.
  mlir::Value emitHasNext(const Slab &slab, mlir::AffineExpr column);
  /// Whether an element lies at a multiple of two elements in the result.
  mlir::Value emitIsEven(const Slab &slab, mlir::AffineExpr line,
                         mlir::AffineExpr column);
  /// What follows is left out where `condition` does not hold; null: nothing.
  void emitIf(mlir::Value condition);
  /// Whether all hold; null ones always do.
  mlir::Value emitAll(llvm::ArrayRef<mlir::Value> conditions);
  /// Puts two neighbours into memory; of whole lines those that exist.
  void emitPair(mlir::Value pair, mlir::AffineExpr line,
                mlir::AffineExpr column);
  mlir::AffineExpr addValue(mlir::AffineExpr expr, int64_t extent) {
    return index.add(index.emit(expr), {0, extent - 1});
  }
  int64_t getBytes() const {
    return tile.elementType.getIntOrFloatBitWidth() / 8;
  }

  const ResultTile &tile;
  mlir::ImplicitLocOpBuilder &b;
  IndexEmitter &index;
  mlir::Value memory, output;
  GPUDeviceAttr device;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_RESULTTILE_H
