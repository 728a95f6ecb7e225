//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelEmitter.h"

using namespace kas;
using namespace mlir;

/// All rows of the group, a register tile at a time.
void PanelEmitter::emitRows(Value panelBase, Value rowBase) {
  ArrayRef<unsigned> rows = contraction.rows;
  unsigned rowLoop = rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  int64_t remainder = groupRows % plan.registerRows;
  loops(rows.drop_back(), [&] {
    loop(groupRows - remainder, plan.registerRows, [&](Value row) {
      indices[rowLoop] = apply(dim(0) + dim(1), {rowBase, row});
      emitVectors(panelBase, plan.registerRows);
    });
    if (remainder) {
      indices[rowLoop] = apply(dim(0) + (groupRows - remainder), {rowBase});
      emitVectors(panelBase, remainder);
    }
  });
}

/// All vectors of the tile for some rows.
void PanelEmitter::emitVectors(Value panelBase, int64_t rows) {
  int64_t whole = plan.tileColumns / target.lanes;
  int64_t vectors = plan.paddedColumns / target.lanes;
  int64_t step = plan.registerVectors;
  // The last vector, if it is not full, is stored with a mask: not in a loop.
  int64_t looped = whole / step * step;
  if (looped)
    loop(looped, step, [&](Value vector) {
      emitKernel(panelBase, apply(dim(0) * target.lanes, {vector}), rows, step,
                 /*last=*/false);
    });
  if (vectors > looped)
    emitKernel(panelBase, constant(looped * target.lanes), rows,
               vectors - looped, /*last=*/true);
}

/// The loops that run inside of the registers: those of one reduction block,
/// joined where the scalar inputs allow it.
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

/// The sums of `rows` times `vectors` at `column` of the tile, from the output
/// to the output.
void PanelEmitter::emitKernel(Value panelBase, Value column, int64_t rows,
                              int64_t vectors, bool last) {
  int64_t tail = plan.tileColumns % target.lanes;
  int64_t rowStride = contraction.output.strides[contraction.rows.back()];
  Value outputBase =
      apply(dim(0) + dim(1), {address(contraction.output), column});
  SmallVector<Value> sums, places;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v) {
      Value place =
          apply(dim(0) + (r * rowStride + v * target.lanes), {outputBase});
      places.push_back(place);
      bool masked = last && tail && v + 1 == vectors;
      if (!contraction.accumulates && isWhole()) {
        sums.push_back(arith::ConstantOp::create(
            builder, loc, builder.getZeroAttr(vectorType)));
        continue;
      }
      if (!masked) {
        sums.push_back(
            vector::LoadOp::create(builder, loc, vectorType, output, place));
        continue;
      }
      Value zeros = arith::ConstantOp::create(builder, loc,
                                              builder.getZeroAttr(vectorType));
      sums.push_back(
          vector::MaskedLoadOp::create(builder, loc, vectorType, output, place,
                                       tailMask(tail, target.lanes), zeros));
    }

  Value panelStart = apply(dim(0) + dim(1), {panelBase, column});
  SmallVector<Value> scalarStarts;
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarStarts.push_back(address(input));
  sums =
      emitReduction(kernelLoops, panelStart, scalarStarts, sums, rows, vectors);

  for (auto [index, place] : llvm::enumerate(places)) {
    bool masked = last && tail && (index + 1) % vectors == 0;
    if (masked)
      vector::MaskedStoreOp::create(builder, loc, output, place,
                                    tailMask(tail, target.lanes), sums[index]);
    else
      vector::StoreOp::create(builder, loc, sums[index], output, place);
  }
}

/// Nested loops that carry the sums; inside, one step of all of them.
SmallVector<Value> PanelEmitter::emitReduction(ArrayRef<KernelLoop> nest,
                                               Value panelAddress,
                                               ArrayRef<Value> scalarAddresses,
                                               ValueRange sums, int64_t rows,
                                               int64_t vectors) {
  if (nest.empty())
    return emitProducts(panelAddress, scalarAddresses, sums, rows, vectors);
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
                                     op.getRegionIterArgs(), rows, vectors));
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> PanelEmitter::emitProducts(Value panelAddress,
                                              ArrayRef<Value> scalarAddresses,
                                              ValueRange sums, int64_t rows,
                                              int64_t vectors) {
  unsigned rowLoop = contraction.rows.back();
  SmallVector<Value> columns, results;
  for (int64_t v = 0; v < vectors; ++v)
    columns.push_back(vector::LoadOp::create(
        builder, loc, vectorType, panel,
        apply(dim(0) + v * target.lanes, {panelAddress})));
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
    Value row = vector::BroadcastOp::create(builder, loc, vectorType, product);
    for (int64_t v = 0; v < vectors; ++v)
      results.push_back(multiplyAdd(row, columns[v], sums[r * vectors + v]));
  }
  return results;
}
