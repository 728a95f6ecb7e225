//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of the panel strategy around packing and the micro-kernel: which
// thread computes which tile, and when each panel is packed. After Goto and van
// de Geijn, ACM TOMS 34, 2008; PanelEmitter.h says how the files divide the
// work.
//
// An item is a tile of columns times a group of rows. Either each thread has
// one panel, which it packs again for each of its items, or all panels are
// packed before the first product, which is done once per network where they
// hold weights.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "PanelEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void PanelEmitter::emit() {
  flattenBuffers();
  // Each block of reductions adds to what the blocks before it have stored.
  if (!contraction.accumulates && !isWhole()) {
    linalg::FillOp::create(builder, loc, zero(), contraction.output.buffer);
  }
  numItems = contraction.getExtent(contraction.batches) *
             contraction.getExtent(contraction.columns) / plan.tileColumns *
             plan.rowGroups;

  if (plan.isPrepacked)
    emitPrepacked();
  else
    emitInterleaved();
  if (options.deallocate)
    memref::DeallocOp::create(builder, loc, panel);
}

/// One panel for each thread that may run at once. Item `i` belongs to thread
/// `i % numPanels`.
void PanelEmitter::emitInterleaved() {
  // With an unknown number of threads 32 panels suffice for as many of them.
  int64_t maxPanels = options.threads ? options.threads : 32;
  int64_t numPanels = std::min(numItems, maxPanels);
  int64_t panelSize = getPanelSize();
  allocatePanels(numPanels);
  if (numPanels == 1)
    return emitItems(constant(0), constant(1), constant(0));
  auto parallel = scf::ParallelOp::create(builder, loc, ValueRange{constant(0)},
                                          ValueRange{constant(numPanels)},
                                          ValueRange{constant(1)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(parallel.getBody());
  Value index = parallel.getInductionVars().front();
  emitItems(index, constant(numPanels), apply(dim(0) * panelSize, {index}));
}

/// All panels, in a loop nest of their own that weights suffice for. The panel
/// of a tile and of a block of the outermost reduction is number `tile *
/// numBlocks + block`. The packing nest does not mention the items, so that
/// `-kas-prepack-weights` can move it to a function of its own.
void PanelEmitter::emitPrepacked() {
  unsigned outer = contraction.reductions.front();
  int64_t numBlocks = contraction.loops[outer].extent / plan.reductionBlock;
  int64_t numTiles = numItems / plan.rowGroups;
  int64_t panelSize = getPanelSize();
  allocatePanels(numTiles * numBlocks);
  auto getBase = [&](Value tile, Value start) {
    return apply((dim(0) * numBlocks + dim(1).floorDiv(plan.reductionBlock)) *
                     panelSize,
                 {tile, start});
  };
  // Sequential: it runs once for all calls.
  loop(numTiles, 1, [&](Value tile) {
    AffineExpr rest = dim(0);
    setColumns(tile, rest);
    loop(contraction.loops[outer].extent, plan.reductionBlock,
         [&](Value start) {
           indices[outer] = start;
           emitPacking(getBase(tile, start));
         });
  });
  parallelLoop(numItems, [&](Value item) {
    Value tile = apply(dim(0).floorDiv(plan.rowGroups), {item});
    emitItem(item, [&](Value rowBase, Value start) {
      emitRows(getBase(tile, start), rowBase);
    });
  });
}

/// With room for the last vector of a row of the last panel, which may reach
/// beyond it.
void PanelEmitter::allocatePanels(int64_t numPanels) {
  // Aligned to a cache line, which a vector of 512 bits fills.
  auto type = MemRefType::get({numPanels * getPanelSize()}, elementType);
  panel = memref::AllocOp::create(builder, loc, type,
                                  builder.getI64IntegerAttr(64));
}

/// The items `first`, `first + step`, ... one after the other.
void PanelEmitter::emitItems(Value first, Value step, Value panelBase) {
  auto items =
      scf::ForOp::create(builder, loc, first, constant(numItems), step);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(items.getBody());
  unsigned outer = contraction.reductions.front();
  emitItem(items.getInductionVar(), [&](Value rowBase, Value start) {
    emitPacking(panelBase);
    indices[outer] = start;
    emitRows(panelBase, rowBase);
  });
}

/// The columns and batches of a tile, whose number is `rest` of `tile`. Digits
/// from the fastest: the blocked column, those outside of it, the batches.
/// Columns inside of the blocked one are in the tile as a whole and have no
/// index.
void PanelEmitter::setColumns(Value tile, AffineExpr rest) {
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  unsigned blocked = contraction.columns[plan.blockedColumn];
  indices[blocked] =
      apply(take(contraction.loops[blocked].extent / plan.columnBlock) *
                plan.columnBlock,
            {tile});
  for (unsigned column : llvm::reverse(
           ArrayRef(contraction.columns).take_front(plan.blockedColumn)))
    indices[column] = apply(take(contraction.loops[column].extent), {tile});
  for (unsigned batch : llvm::reverse(contraction.batches))
    indices[batch] = apply(take(contraction.loops[batch].extent), {tile});
}

/// One tile of columns times one group of rows, for one batch; `body` is given
/// where the rows and a block of the outermost reduction begin. The group of
/// rows is the fastest digit, so that neighbouring items share a tile of
/// columns.
void PanelEmitter::emitItem(Value item, function_ref<void(Value, Value)> body) {
  AffineExpr rest = dim(0);
  unsigned rowLoop = contraction.rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  Value rowBase = apply(takeIndex(rest, plan.rowGroups) * groupRows, {item});
  setColumns(item, rest);
  unsigned outer = contraction.reductions.front();
  loop(contraction.loops[outer].extent, plan.reductionBlock, [&](Value start) {
    indices[outer] = start;
    body(rowBase, start);
  });
}

void kas::codegen::emitPanels(OpBuilder &builder, Location loc,
                              const StridedContraction &contraction,
                              const PanelPlan &plan,
                              const ContractionTarget &target,
                              const ContractionOptions &options) {
  PanelEmitter(builder, loc, contraction, plan, target, options).emit();
}
