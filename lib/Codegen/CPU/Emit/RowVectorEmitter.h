//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a contraction as tiles of vectors along the rows.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_ROWVECTOREMITTER_H
#define LIB_CODEGEN_CPU_EMIT_ROWVECTOREMITTER_H

#include "../Strategy/ContractionEpilogue.h"
#include "ContractionEmitter.h"

namespace kas::codegen {

using schedule::BalancedTiles;
using schedule::DataWrap;
using schedule::LinearExpr;

/// A reduction, or several that are one: how far its step moves in the data and
/// in the packed weights.
struct StepLoop {
  int64_t extent, dataStride, weightStride;
  /// The reduction, if it is only one: some of its steps may not exist, or the
  /// data is shifted along it.
  std::optional<unsigned> alone;
  /// Whether each step of it fetches data ahead: those of the loops inside of
  /// it stay in a line of the cache.
  bool fetchesData = false;
};

/// One column of a tile: its number, its iterations relative to those of the
/// first one, and how far it is from that in the data.
struct TileColumn {
  int64_t number, outer, inner, dataOffset;
};

/// The columns of a tile that a step exists for, in all tiles that begin up to
/// `lastStart`.
struct PresentColumns {
  int64_t lastStart;
  llvm::SmallVector<TileColumn> columns;
};

class RowVectorEmitter : ContractionEmitter {
public:
  RowVectorEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                   const StridedContraction &contraction,
                   const RowVectorPlan &plan, const ContractionTarget &target,
                   const ContractionOptions &options)
      : ContractionEmitter(builder, loc, contraction, target, options),
        plan(plan), row(contraction.rows.front()),
        rows(contraction.loops[row].extent),
        depth(contraction.getExtent(contraction.reductions)),
        blockRows(plan.getBlockRows()), numBlocks(plan.getNumBlocks(rows)),
        vectorType(getVectorType(plan.lanes)),
        stepRanges(contraction.loops.size()) {
    for (const Guard &guard : contraction.guards)
      guards.push_back(
          *LinearExpr::get(getIndexExpr(guard.expr), contraction.loops.size()));
  }

  void emit();

private:
  using SumsBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      llvm::ArrayRef<TileColumn>, mlir::ValueRange)>;
  void emitPacking();
  void emitPadding();
  void makeStepLoops();
  void chooseFetchingLoop();
  void emitItems();
  void emitItem(mlir::Value item);
  void emitColumns(llvm::ArrayRef<unsigned> columns, mlir::Value start,
                   int64_t extent);
  void emitTile(int64_t outerColumns);
  llvm::SmallVector<mlir::Value> getWaitingSums(int64_t columns,
                                                mlir::Value place);
  void finishPart(mlir::ValueRange sums, int64_t columns, mlir::Value place);
  mlir::Value getWaitingPlace();
  void choosePartSteps(mlir::Value part);
  void findStepRanges();
  using StepBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::Value, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value>
  emitSteps(llvm::ArrayRef<StepLoop> loops, mlir::Value dataAddress,
            mlir::Value weightAddress, mlir::ValueRange sums, StepBody body);
  llvm::SmallVector<mlir::Value>
  emitUnrolled(mlir::Value dataAddress, mlir::Value weightAddress,
               mlir::ValueRange start, llvm::ArrayRef<TileColumn> columns);
  llvm::SmallVector<mlir::Value>
  emitProducts(mlir::Value dataAddress, mlir::Value weightAddress,
               mlir::ValueRange sums, llvm::ArrayRef<TileColumn> columns);
  mlir::Value getNextWeights();
  std::pair<mlir::Value, bool> getNextTile(int64_t outerColumns);
  void emitDataPrefetches(mlir::Value dataAddress);
  void emitPrefetch(mlir::Value buffer, mlir::Value place);
  mlir::Value addWraps(mlir::Value address, std::optional<unsigned> reduction);
  llvm::SmallVector<mlir::Value>
  emitPresent(llvm::ArrayRef<PresentColumns> present, mlir::ValueRange sums,
              SumsBody body);
  int64_t getValue(const LinearExpr &expr, const TileColumn &column,
                   int64_t tileStart, llvm::ArrayRef<int64_t> steps) const;
  llvm::SmallVector<PresentColumns>
  getPresent(llvm::ArrayRef<TileColumn> columns,
             llvm::ArrayRef<int64_t> steps) const;
  void forEachUnrolledStep(
      llvm::function_ref<void(llvm::ArrayRef<int64_t>, int64_t)> body);
  void storeTile(llvm::ArrayRef<mlir::Value> sums, int64_t columns);
  llvm::SmallVector<mlir::Value> getFirstSums(int64_t columns);
  int64_t getNumLastRows() const { return rows - (numBlocks - 1) * blockRows; }
  mlir::Value loadRow(mlir::Value buffer, mlir::Value place, int64_t columns);
  void storeRow(mlir::Value values, int64_t rowInBlock, mlir::Value place,
                int64_t columns);
  mlir::Value loadChannel(mlir::Value buffer, llvm::ArrayRef<int64_t> strides,
                          int64_t rowInBlock);

  const RowVectorPlan &plan;
  unsigned row;
  /// Rows of the last block may be padding: those after `rows`.
  int64_t rows, depth, blockRows, numBlocks;
  mlir::VectorType vectorType;
  mlir::Value packed, data;
  /// Sums of an item that wait for the next part of the steps, those of the
  /// current thread from `waitingBase` on.
  mlir::Value waiting, waitingBase;
  /// The part of the steps, and the iterations of the outermost of their loops
  /// that it has.
  mlir::Value part;
  std::pair<mlir::Value, mlir::Value> partSteps;
  /// Where the columns of the item begin along the outermost of their loops; no
  /// value: at 0.
  mlir::Value columnStart;
  /// Columns of the current tile along the innermost loop.
  int64_t tileColumns = 1;
  /// Where the weights of the current block begin, and its first row.
  mlir::Value weightBase, rowBase;
  /// The loops around and inside of the unrolled steps, and how far such a step
  /// moves in the packed weights.
  llvm::SmallVector<StepLoop> stepLoops, insideLoops;
  int64_t unrolledStride = 0;
  /// Whether the unrolled steps fetch data ahead, each line once.
  bool unrolledStepsFetch = false;
  llvm::SmallVector<mlir::Value> deallocated;
  /// The guards as sums of loops.
  llvm::SmallVector<LinearExpr> guards;
  /// The loop that the tiles which are being emitted follow one another along,
  /// and where they begin.
  unsigned tileLoop = 0;
  llvm::SmallVector<int64_t> tileStarts;
  /// How far the next tile is in the data and whether it follows right after
  /// this one, and how far what is fetched of the next block is in the weights;
  /// no values where these are not fetched ahead.
  mlir::Value nextTile, nextWeights;
  bool isNextAdjacent = false;
  /// How far the last column of the current tile is from the first in the data.
  int64_t tileSpan = 0;
  /// By loop: the steps that exist for the current tile.
  llvm::SmallVector<std::optional<std::pair<mlir::Value, mlir::Value>>>
      stepRanges;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_ROWVECTOREMITTER_H
