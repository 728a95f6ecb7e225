//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits contractions as register tiles of vectors along the rows: weights are
// packed so that a step loads its vectors from consecutive memory, data is read
// element by element. After Georganas et al.: "Anatomy of High-Performance Deep
// Learning Convolutions on SIMD Architectures", SC 2018, sections II and III,
// with data and output in their natural layout.
//
//===----------------------------------------------------------------------===//

#include "RowVectorEmitter.h"
#include "EmitContraction.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Weights and data
//===----------------------------------------------------------------------===//

/// Copies the weights: by batch, block of rows and reductions, the rows of the
/// block one after another, with zeros after the last one. The layout is
/// `[batch][block of rows][reductions, in the order of the plan][row in
/// block]`. The loop over all rows is the outermost and the only operation that
/// touches both buffers, so that `-kas-prepack-weights` can move it.
void RowVectorEmitter::emitPacking() {
  const StridedAccess &weight = contraction.scalarInputs.front();
  int64_t batches = contraction.getExtent(contraction.batches);
  int64_t paddedRows = numBlocks * blockRows;
  // What is prefetched last lies past the weights.
  auto type = MemRefType::get(
      {batches * paddedRows * depth + plan.prefetchDistance}, elementType);
  auto buffer = memref::AllocOp::create(builder, loc, type,
                                        builder.getI64IntegerAttr(64));
  packed = buffer;
  Value flat = flattenInput(weight.buffer, weight.size);
  auto outermost = scf::ForOp::create(builder, loc, constant(0),
                                      constant(paddedRows), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(outermost.getBody());
  Value index = outermost.getInductionVar();
  indices[row] = index;
  Value exists;
  // Rows after the last one read the last one, which exists, and store zero.
  if (paddedRows != rows) {
    exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                   index, constant(rows));
    indices[row] =
        arith::MinSIOp::create(builder, loc, index, constant(rows - 1));
  }
  // Within the block: its rows are the fastest dimension.
  AffineExpr block = dim(0).floorDiv(blockRows), rest = dim(0) % blockRows;
  Value rowPosition = apply(block * (depth * blockRows) + rest, {index});
  SmallVector<unsigned> nest(contraction.batches);
  llvm::append_range(nest, plan.reductions);
  std::function<void(ArrayRef<unsigned>, Value)> enter =
      [&](ArrayRef<unsigned> dims, Value place) {
        if (dims.empty()) {
          Value value =
              memref::LoadOp::create(builder, loc, flat, address(weight));
          // Packed weights carry the constant factor, so that no tile
          // multiplies by it.
          if (contraction.factor != 1) {
            Value factor = arith::ConstantOp::create(
                builder, loc, builder.getF32FloatAttr(contraction.factor));
            value = arith::MulFOp::create(builder, loc, value, factor);
          }
          if (exists)
            value =
                arith::SelectOp::create(builder, loc, exists, value, zero());
          memref::StoreOp::create(builder, loc, value, packed, place);
          return;
        }
        // Elements between two iterations of this loop: batches are outside of
        // the blocks, reductions inside.
        int64_t scale = llvm::is_contained(contraction.batches, dims.front())
                            ? paddedRows * depth
                            : blockRows;
        for (unsigned inner : dims.drop_front())
          if (llvm::is_contained(contraction.batches, inner) ==
              llvm::is_contained(contraction.batches, dims.front()))
            scale *= contraction.loops[inner].extent;
        loop(contraction.loops[dims.front()].extent, 1, [&](Value step) {
          indices[dims.front()] = step;
          enter(dims.drop_front(),
                apply(dim(0) + dim(1) * scale, {place, step}));
          indices[dims.front()] = Value();
        });
      };
  enter(nest, rowPosition);
  indices[row] = Value();
}

/// The data, or a copy with zeros around it. The copy is made at each call:
/// plans take it only where leaving out the steps at the padding would make too
/// much code.
void RowVectorEmitter::emitPadding() {
  const PackedAccess &access = contraction.vectorInputs.front();
  if (plan.paddedShape.empty()) {
    data = flattenInput(access.buffer, access.size);
    return;
  }
  auto type = MemRefType::get(plan.paddedShape, elementType);
  auto buffer = memref::AllocOp::create(builder, loc, type,
                                        builder.getI64IntegerAttr(64));
  linalg::FillOp::create(builder, loc, zero(), buffer.getResult());
  auto fold = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(builder.getContext(), values);
  };
  // Zeros everywhere, then the data in the middle.
  SmallVector<int64_t> ones(plan.paddedShape.size(), 1);
  Value inner =
      memref::SubViewOp::create(builder, loc, buffer, fold(plan.paddingBefore),
                                fold(plan.dataShape), fold(ones));
  auto wholeType = MemRefType::get(plan.dataShape, elementType);
  Value whole = memref::ReinterpretCastOp::create(
      builder, loc, wholeType, access.buffer, /*offset=*/0, plan.dataShape,
      wholeType.getStridesAndOffset().first);
  linalg::CopyOp::create(builder, loc, whole, inner);
  data = flatten(buffer, type.getNumElements());
  if (options.deallocate)
    deallocated.push_back(buffer);
}

/// The loops of a tile's products, joined where the data allows it. Weights are
/// packed in the order of the reductions, so that two loops are one where the
/// data is contiguous across them, as a sum over all pixels is. Unrolled
/// reductions are between the loops outside and those inside.
void RowVectorEmitter::makeStepLoops() {
  // Loops whose bounds depend on the tile, or whose index a shift needs.
  auto isAlone = [&](unsigned reduction) {
    return llvm::any_of(plan.rangeGuards,
                        [&](unsigned guard) {
                          return guards[guard].strides[reduction] != 0;
                        }) ||
           llvm::any_of(plan.stepWraps, [&](const DataWrap &wrap) {
             return wrap.expr.strides[reduction] != 0;
           });
  };
  int64_t weightStride = depth * blockRows;
  unsigned firstUnrolled =
      plan.reductions.size() - plan.numInside - plan.numUnrolled;
  for (auto [place, reduction] : llvm::enumerate(plan.reductions)) {
    int64_t extent = contraction.loops[reduction].extent;
    weightStride /= extent;
    if (place >= firstUnrolled && place < firstUnrolled + plan.numUnrolled) {
      unrolledStride = weightStride;
      continue;
    }
    auto &loops = place < firstUnrolled ? stepLoops : insideLoops;
    StepLoop loop{extent, plan.dataStrides[reduction], weightStride,
                  std::nullopt};
    if (isAlone(reduction)) {
      loop.alone = reduction;
    } else if (!loops.empty() && !loops.back().alone &&
               loops.back().dataStride == loop.dataStride * loop.extent) {
      loop.extent *= loops.back().extent;
      loops.pop_back();
    }
    loops.push_back(loop);
  }
  chooseFetchingLoop();
}

/// The innermost loop whose steps go to other lines of the cache fetches data.
void RowVectorEmitter::chooseFetchingLoop() {
  // Elements of f32 in a cache line of 64 bytes.
  constexpr int64_t line = 16;
  auto choose = [](MutableArrayRef<StepLoop> loops) {
    for (StepLoop &loop : llvm::reverse(loops))
      if (loop.dataStride >= line)
        return loop.fetchesData = true;
    return false;
  };
  // Outermost unrolled steps are tried before the loops around them.
  if (!plan.prefetchesData || choose(insideLoops))
    return;
  unrolledStepsFetch = llvm::any_of(plan.getUnrolled(), [&](unsigned loop) {
    return plan.dataStrides[loop] >= line;
  });
  if (!unrolledStepsFetch)
    choose(stepLoops);
}

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

void RowVectorEmitter::emit() {
  output = flatten(contraction.output.buffer, contraction.output.size);
  flattenEpilogue();
  emitPacking();
  emitPadding();
  makeStepLoops();
  emitItems();
  if (options.deallocate) {
    memref::DeallocOp::create(builder, loc, packed);
    for (Value buffer : deallocated)
      memref::DeallocOp::create(builder, loc, buffer);
  }
}

/// One item per batch, block of rows and group of columns: its packed weights
/// are read for all of its tiles. Where sums wait for parts of the steps, item
/// `i` belongs to thread `i % numThreads`, which has memory for them.
void RowVectorEmitter::emitItems() {
  int64_t numItems = contraction.getExtent(contraction.batches) * numBlocks *
                     plan.columnGroups;
  if (plan.stepParts == 1)
    return parallelLoop(numItems, [&](Value item) { emitItem(item); });
  // With an unknown number of threads this suffices for as many of them.
  constexpr int64_t maxThreads = 32;
  int64_t numThreads =
      std::min(numItems, options.threads ? options.threads : maxThreads);
  int64_t size = contraction.getExtent(contraction.columns) /
                 plan.columnGroups * blockRows;
  waiting = memref::AllocOp::create(
      builder, loc, MemRefType::get({numThreads * size}, elementType),
      builder.getI64IntegerAttr(64));
  deallocated.push_back(waiting);
  parallelLoop(numThreads, [&](Value thread) {
    waitingBase = apply(dim(0) * size, {thread});
    auto items = scf::ForOp::create(builder, loc, thread, constant(numItems),
                                    constant(numThreads));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(items.getBody());
    emitItem(items.getInductionVar());
  });
}

/// One block of rows and one group of columns, for one batch.
void RowVectorEmitter::emitItem(Value item) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  unsigned outermost = contraction.columns.front();
  int64_t extent = contraction.loops[outermost].extent / plan.columnGroups;
  Value start;
  auto takeGroup = [&] {
    start = apply(take(plan.columnGroups) * extent, {item});
  };
  // The fastest digit decides what consecutive items share: a block of weights,
  // or the data of a group of columns.
  if (!plan.groupsOutside)
    takeGroup();
  AffineExpr block = take(numBlocks);
  rowBase = apply(block * blockRows, {item});
  if (plan.groupsOutside)
    takeGroup();
  // Blocks of weights of one batch lie one after another.
  weightBase = apply((rest * numBlocks + block) * (depth * blockRows), {item});
  for (unsigned batch : llvm::reverse(contraction.batches))
    indices[batch] = apply(take(contraction.loops[batch].extent), {item});
  indices[row] = rowBase;
  columnStart = start;
  loop(plan.stepParts, 1, [&](Value number) {
    if (plan.stepParts > 1)
      choosePartSteps(number);
    emitColumns(contraction.columns, start, extent);
  });
}

/// Loops over `columns`, the first of them from `start`, down to tiles. Only
/// the first of `columns` may be part of its loop, from `start` on with
/// `extent` iterations; a null `start` is 0.
void RowVectorEmitter::emitColumns(ArrayRef<unsigned> columns, Value start,
                                   int64_t extent) {
  unsigned column = columns.front();
  auto run = [&](int64_t from, int64_t count, int64_t step, Body body) {
    loop(count, step, [&](Value index) {
      // The last tile begins earlier, and computes some outputs again.
      if (count % step != 0)
        index =
            arith::MinSIOp::create(builder, loc, index, constant(count - step));
      AffineExpr place = dim(0) + from;
      indices[column] =
          start ? apply(place + dim(1), {index, start}) : apply(place, {index});
      body(index);
    });
  };
  auto runTiles = [&](int64_t from, int64_t count, int64_t step, Body body) {
    tileLoop = column;
    tileStarts.clear();
    int64_t last = from + count - step;
    // What the columns of a tile see differs by guards and wraps alone.
    bool isOneKind = plan.columnGuards.empty() && plan.columnWraps.empty();
    for (int64_t at = from; at < from + count;
         at = isOneKind && at < last ? last : at + step)
      tileStarts.push_back(std::min(at, last));
    run(from, count, step, body);
  };
  tileColumns = plan.tileColumns;
  auto runLine = [&](int64_t from, int64_t count, int64_t step) {
    tileColumns = step;
    runTiles(from, count, step, [&](Value) { emitTile(/*outerColumns=*/1); });
  };
  if (columns.size() == 1 && plan.isBalanced) {
    BalancedTiles tiles(extent, plan.tileColumns);
    int64_t wide = tiles.numWide * (tiles.narrow + 1);
    if (wide > 0)
      runLine(0, wide, tiles.narrow + 1);
    if (wide < extent)
      runLine(wide, extent - wide, tiles.narrow);
    return;
  }
  if (columns.size() == 1)
    return runLine(0, extent, plan.tileColumns);
  if (columns.size() > 2 || plan.tileOuterColumns == 1)
    return run(0, extent, 1, [&](Value) {
      emitColumns(columns.drop_front(), Value(),
                  contraction.loops[columns[1]].extent);
    });
  // Some whole rows of the image at a time; those that are left make a smaller
  // tile.
  auto inside = [&](int64_t outerColumns) {
    indices[columns[1]] = constant(0);
    emitTile(outerColumns);
  };
  int64_t step = plan.tileOuterColumns, rest = extent % step;
  if (extent > rest)
    runTiles(0, extent - rest, step, [&](Value) { inside(step); });
  if (rest)
    runTiles(extent - rest, rest, rest, [&](Value) { inside(rest); });
}

/// Calls `body` with the iteration of each unrolled reduction, and with the
/// number of the step. Outermost reduction first, as nested loops would run.
void RowVectorEmitter::forEachUnrolledStep(
    function_ref<void(ArrayRef<int64_t>, int64_t)> body) {
  ArrayRef<unsigned> unrolled = plan.getUnrolled();
  SmallVector<int64_t> steps(unrolled.size());
  for (int64_t number = 0; number < contraction.getExtent(unrolled); ++number) {
    int64_t rest = number;
    for (size_t i = unrolled.size(); i-- > 0;) {
      int64_t extent = contraction.loops[unrolled[i]].extent;
      steps[i] = rest % extent;
      rest /= extent;
    }
    body(steps, number);
  }
}

/// The value of `expr` at the unrolled `steps` for a column of the tile that
/// begins at `tileStart`.
int64_t RowVectorEmitter::getValue(const LinearExpr &expr,
                                   const TileColumn &column, int64_t tileStart,
                                   ArrayRef<int64_t> steps) const {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t value = expr.base + expr.strides[tileLoop] * tileStart +
                  expr.strides[columns.back()] * column.inner;
  if (columns.size() > 1)
    value += expr.strides[columns[columns.size() - 2]] * column.outer;
  for (auto [loop, step] : llvm::zip_equal(plan.getUnrolled(), steps))
    value += expr.strides[loop] * step;
  return value;
}

/// The columns that the unrolled `steps` exist for, by the current tiles. Tiles
/// with the same columns at the same offsets share one entry: of a row of
/// tiles, mostly the first, the last, and all others. Complexity: tiles of a
/// row times columns of a tile, for each step.
SmallVector<PresentColumns>
RowVectorEmitter::getPresent(ArrayRef<TileColumn> columns,
                             ArrayRef<int64_t> steps) const {
  SmallVector<PresentColumns> present;
  for (int64_t start : tileStarts) {
    PresentColumns here{start, {}};
    for (TileColumn column : columns) {
      // All of these depend on the tile's own loops and on the unrolled steps
      // only, so that their values are numbers here.
      if (llvm::any_of(plan.columnGuards, [&](unsigned guard) {
            int64_t value = getValue(guards[guard], column, start, steps);
            return value < 0 || value >= contraction.guards[guard].extent;
          }))
        continue;
      for (const DataWrap &wrap : plan.columnWraps)
        column.dataOffset +=
            wrap.getOffset(getValue(wrap.expr, column, start, steps));
      here.columns.push_back(column);
    }
    auto isSame = [](const TileColumn &a, const TileColumn &b) {
      return a.number == b.number && a.dataOffset == b.dataOffset;
    };
    if (!present.empty() &&
        llvm::equal(present.back().columns, here.columns, isSame))
      present.back().lastStart = start;
    else
      present.push_back(std::move(here));
  }
  return present;
}

void kas::codegen::emitRowVectors(OpBuilder &builder, Location loc,
                                  const StridedContraction &contraction,
                                  const RowVectorPlan &plan,
                                  const ContractionTarget &target,
                                  const ContractionOptions &options) {
  OpBuilder::InsertionGuard guard(builder);
  RowVectorEmitter(builder, loc, contraction, plan, target, options).emit();
}
