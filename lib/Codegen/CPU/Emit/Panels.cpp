//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void PanelEmitter::emit() {
  flattenBuffers();
  if (!contraction.accumulates && !isWhole()) {
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    linalg::FillOp::create(builder, loc, zero, contraction.output.buffer);
  }
  numItems = contraction.getExtent(contraction.batches) *
             contraction.getExtent(contraction.columns) / plan.tileColumns *
             plan.rowGroups;

  // One panel for each thread that may run at once. The last vector of a row
  // may reach beyond the panel.
  int64_t panelSize = plan.panelDepth * plan.paddedColumns + 4 * target.lanes;
  int64_t maxPanels = options.threads ? options.threads : 32;
  int64_t numPanels = std::min(numItems, maxPanels);
  auto type = MemRefType::get({numPanels * panelSize}, builder.getF32Type());
  panel = memref::AllocOp::create(builder, loc, type,
                                  builder.getI64IntegerAttr(64));
  if (numPanels == 1) {
    emitItems(constant(0), constant(1), constant(0));
  } else {
    auto parallel = scf::ParallelOp::create(
        builder, loc, ValueRange{constant(0)}, ValueRange{constant(numPanels)},
        ValueRange{constant(1)});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(parallel.getBody());
    Value index = parallel.getInductionVars().front();
    emitItems(index, constant(numPanels), apply(dim(0) * panelSize, {index}));
  }
  if (options.deallocate)
    memref::DeallocOp::create(builder, loc, panel);
}

/// The items `first`, `first + step`, ... one after the other.
void PanelEmitter::emitItems(Value first, Value step, Value panelBase) {
  auto items =
      scf::ForOp::create(builder, loc, first, constant(numItems), step);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(items.getBody());
  emitItem(items.getInductionVar(), panelBase);
}

/// One tile of columns times one group of rows, for one batch.
void PanelEmitter::emitItem(Value item, Value panelBase) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  unsigned rowLoop = contraction.rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  Value rowBase = apply(take(plan.rowGroups) * groupRows, {item});
  unsigned blocked = contraction.columns[plan.blockedColumn];
  indices[blocked] =
      apply(take(contraction.loops[blocked].extent / plan.columnBlock) *
                plan.columnBlock,
            {item});
  for (unsigned column : llvm::reverse(
           ArrayRef(contraction.columns).take_front(plan.blockedColumn)))
    indices[column] = apply(take(contraction.loops[column].extent), {item});
  for (unsigned batch : llvm::reverse(contraction.batches))
    indices[batch] = apply(take(contraction.loops[batch].extent), {item});

  unsigned outer = contraction.reductions.front();
  loop(contraction.loops[outer].extent, plan.reductionBlock, [&](Value start) {
    indices[outer] = start;
    emitPacking(panelBase);
    indices[outer] = start;
    emitRows(panelBase, rowBase);
  });
}

void kas::codegen::emitPanels(OpBuilder &builder, Location loc,
                              const StridedContraction &contraction,
                              const PanelPlan &plan,
                              const ContractionTarget &target,
                              const ContractionOptions &options) {
  PanelEmitter(builder, loc, contraction, plan, target, options).emit();
}
