//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The micro-kernel of the panel strategy: register tiles of output rows times
// packed columns, with prefetching of the next panel. The loops around it are
// in Panels.cpp.
//
// Each step loads `registerVectors` vectors of a panel row, broadcasts one
// scalar of each of `registerRows` rows, and adds their outer product to the
// sums: one fused multiply-add for each vector of sums.
//
//===----------------------------------------------------------------------===//

#include "PanelEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// All rows of the group, a register tile at a time. Rows that the tile does
/// not divide form one smaller tile after the others.
void PanelEmitter::emitRows(Value panelBase, Value rowBase) {
  ArrayRef<unsigned> rows = contraction.rows;
  unsigned rowLoop = rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  int64_t remainder = groupRows % plan.registerRows;
  loops(rows.drop_back(), [&] {
    loop(groupRows - remainder, plan.registerRows, [&](Value row) {
      indices[rowLoop] = apply(dim(0) + dim(1), {rowBase, row});
      nextPanel = getNextPanel(panelBase, row);
      emitVectors(panelBase, plan.registerRows);
    });
    // The smaller tile fetches nothing: the whole ones have.
    nextPanel = Value();
    if (remainder) {
      indices[rowLoop] = apply(dim(0) + (groupRows - remainder), {rowBase});
      emitVectors(panelBase, remainder);
    }
  });
}

/// How far what is fetched ahead is from what a step reads: panels that are
/// packed ahead come from beyond the cache for the first rows, no faster than
/// these need them. So other rows fetch the next one, a vector of each step.
Value PanelEmitter::getNextPanel(Value panelBase, Value row) {
  // Panels have the size of one tile's vectors, or there would be several
  // passes over each.
  int64_t numPanels =
      cast<MemRefType>(panel.getType()).getNumElements() / getPanelSize();
  if (!plan.isPrepacked || numPanels == 1 ||
      plan.loopedVectors != plan.registerVectors ||
      plan.paddedColumns != plan.registerVectors * target.lanes)
    return Value();
  // The last panel fetches itself, which costs nothing and needs no branch.
  Value hasNext =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, panelBase,
                            constant((numPanels - 1) * getPanelSize()));
  Value next = arith::SelectOp::create(builder, loc, hasNext,
                                       constant(getPanelSize()), constant(0));
  // Tiles of rows take turns with the vectors: after `registerVectors` of them
  // the whole panel has been fetched.
  return apply(dim(0) + dim(1).floorDiv(plan.registerRows) %
                            plan.registerVectors * target.lanes,
               {next, row});
}

/// All vectors of the tile for some rows.
void PanelEmitter::emitVectors(Value panelBase, int64_t rows) {
  SmallVector<Piece> pieces;
  for (int64_t v = 0; v < plan.registerVectors; ++v)
    pieces.push_back({v * target.lanes, target.lanes, target.lanes});
  if (plan.loopedVectors)
    loop(plan.loopedVectors, plan.registerVectors, [&](Value vector) {
      emitKernel(panelBase, apply(dim(0) * target.lanes, {vector}), rows,
                 pieces);
    });
  // The others are not in a loop: the last one may be narrow. The others are
  // the tail of the tile: 21 columns with 8 lanes are two whole vectors and one
  // with 5 active lanes.
  pieces.clear();
  int64_t start = plan.loopedVectors * target.lanes;
  for (int64_t column = start; column < plan.tileColumns;
       column += target.lanes) {
    int64_t active = std::min(target.lanes, plan.tileColumns - column);
    pieces.push_back({column - start, target.getLanes(active), active});
  }
  if (!pieces.empty())
    emitKernel(panelBase, constant(start), rows, pieces);
}

/// The loops that run inside of the registers: those of one reduction block,
/// joined where the scalar inputs allow it. Panel rows follow one another in
/// the order of the reductions. Two loops are one where the scalar inputs are
/// contiguous across them, as the channels and the window of a convolution's
/// weights are.
void PanelEmitter::makeKernelLoops() {
  int64_t panelRows = plan.panelDepth;
  for (unsigned reduction : contraction.reductions) {
    KernelLoop loop;
    loop.extent = reduction == contraction.reductions.front()
                      ? plan.reductionBlock
                      : contraction.loops[reduction].extent;
    panelRows /= loop.extent;
    loop.panelRows = panelRows;
    for (const StridedAccess &input : contraction.scalarInputs)
      loop.scalarStrides.push_back(input.strides[reduction]);
    bool joins = !kernelLoops.empty() &&
                 llvm::all_of(llvm::zip(kernelLoops.back().scalarStrides,
                                        loop.scalarStrides),
                              [&](auto strides) {
                                auto [outer, inner] = strides;
                                return outer == inner * loop.extent;
                              });
    if (joins) {
      loop.extent *= kernelLoops.back().extent;
      kernelLoops.pop_back();
    }
    kernelLoops.push_back(std::move(loop));
  }
}

/// The sums of some rows times `pieces` at `column` of the tile, from the
/// output to the output. `column` is the first column of the pieces within the
/// panel; the sums are by rows, then by pieces.
void PanelEmitter::emitKernel(Value panelBase, Value column, int64_t rows,
                              ArrayRef<Piece> pieces) {
  int64_t rowStride = contraction.output.strides[contraction.rows.back()];
  Value outputBase =
      apply(dim(0) + dim(1), {address(contraction.output), column});
  // Sums of the earlier blocks of reductions are in the output.
  bool accumulates = contraction.accumulates || !isWhole();
  SmallVector<Value> sums, places;
  for (int64_t r = 0; r < rows; ++r)
    for (Piece piece : pieces) {
      places.push_back(
          apply(dim(0) + (r * rowStride + piece.offset), {outputBase}));
      sums.push_back(loadSum(places.back(), piece, accumulates));
    }

  Value panelStart = apply(dim(0) + dim(1), {panelBase, column});
  SmallVector<Value> scalarStarts;
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarStarts.push_back(address(input));
  sums =
      emitReduction(kernelLoops, panelStart, scalarStarts, sums, rows, pieces);

  for (auto [index, place] : llvm::enumerate(places))
    storeSum(sums[index], place, pieces[index % pieces.size()]);
}

/// Nested loops that carry the sums; inside, one step of all of them.
SmallVector<Value> PanelEmitter::emitReduction(ArrayRef<KernelLoop> nest,
                                               Value panelAddress,
                                               ArrayRef<Value> scalarAddresses,
                                               ValueRange sums, int64_t rows,
                                               ArrayRef<Piece> pieces) {
  if (nest.empty())
    return emitProducts(panelAddress, scalarAddresses, sums, rows, pieces);
  const KernelLoop &loop = nest.front();
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(loop.extent),
                               constant(1), sums);
  // It is made of vectors and unrolled already: LLVM need not think about it.
  op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value index = op.getInductionVar();
  Value panelNext =
      apply(dim(0) + dim(1) * (loop.panelRows * plan.paddedColumns),
            {panelAddress, index});
  SmallVector<Value> scalarNext;
  for (auto [start, stride] : llvm::zip(scalarAddresses, loop.scalarStrides))
    scalarNext.push_back(apply(dim(0) + dim(1) * stride, {start, index}));
  scf::YieldOp::create(builder, loc,
                       emitReduction(nest.drop_front(), panelNext, scalarNext,
                                     op.getRegionIterArgs(), rows, pieces));
  return SmallVector<Value>(op.getResults());
}

/// One step: a row of the panel times a column of scalars. `panelAddress` is
/// where that row begins, `scalarAddresses` are those of the first row's
/// scalars. Returns the new sums.
SmallVector<Value> PanelEmitter::emitProducts(Value panelAddress,
                                              ArrayRef<Value> scalarAddresses,
                                              ValueRange sums, int64_t rows,
                                              ArrayRef<Piece> pieces) {
  unsigned rowLoop = contraction.rows.back();
  SmallVector<Value> columns, results;
  for (Piece piece : pieces)
    columns.push_back(
        vector::LoadOp::create(builder, loc, getVectorType(piece.lanes), panel,
                               apply(dim(0) + piece.offset, {panelAddress})));
  if (nextPanel)
    memref::PrefetchOp::create(
        builder, loc, panel, apply(dim(0) + dim(1), {panelAddress, nextPanel}),
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  for (int64_t r = 0; r < rows; ++r) {
    Value product;
    for (auto [access, flat, start] :
         llvm::zip(contraction.scalarInputs, scalarInputs, scalarAddresses)) {
      Value factor = memref::LoadOp::create(
          builder, loc, flat,
          apply(dim(0) + r * access.strides[rowLoop], {start}));
      product = product ? arith::MulFOp::create(builder, loc, product, factor)
                        : factor;
    }
    // Broadcast once to a whole vector; a narrower piece takes the front of it.
    Value row = vector::BroadcastOp::create(builder, loc, vectorType, product);
    for (auto [column, piece] : llvm::zip_equal(columns, pieces)) {
      Value part = row;
      if (piece.lanes < target.lanes)
        part = vector::ExtractStridedSliceOp::create(
            builder, loc, row, /*offsets=*/0, piece.lanes, /*strides=*/1);
      results.push_back(multiplyAdd(part, column, sums[results.size()]));
    }
  }
  return results;
}
