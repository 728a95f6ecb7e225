//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packs the columns of a contraction into panels: copies of what one tile
// reads, in the order in which the micro-kernel reads it, with zeros for
// padding. A panel is a matrix in row-major order, one row per iteration of the
// reductions, `paddedColumns` elements long.
//
// There are four ways to copy a row of columns, the fastest first: vectors
// (masked at padding), a loop over all columns, a loop over an interval of
// columns between zeros, and a test for each column.
//
//===----------------------------------------------------------------------===//

#include "PanelEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Copies the products of the vector inputs at all reductions of the block and
/// all columns of the tile to the panel: a row of columns for each reduction.
void PanelEmitter::emitPacking(Value panelBase) {
  ArrayRef<unsigned> reductions = contraction.reductions;
  ArrayRef<unsigned> columns =
      ArrayRef(contraction.columns).drop_front(plan.blockedColumn);
  // Both of these loops are cut into blocks: what is copied begins at the
  // current index.
  Value reductionStart = indices[reductions.front()];
  Value columnStart = indices[columns.front()];
  // `offset` is the position in the panel in iterations of the loops so far.
  // First the reductions (`inRow` false), then the columns of a panel row.
  std::function<void(ArrayRef<unsigned>, Value, bool)> nest =
      [&](ArrayRef<unsigned> dims, Value offset, bool inRow) {
        if (dims.empty()) {
          if (inRow)
            return emitPackedRow(offset);
          return nest(
              columns,
              apply(dim(0) * plan.paddedColumns + dim(1), {offset, panelBase}),
              true);
        }
        unsigned loopDim = dims.front();
        bool isReductionStart = !inRow && loopDim == reductions.front();
        bool isColumnStart = inRow && loopDim == columns.front();
        // The innermost columns are copied as vectors.
        if (inRow && dims.size() == 1)
          return emitPackedRow(offset);
        int64_t extent = isReductionStart ? plan.reductionBlock
                         : isColumnStart  ? plan.columnBlock
                                          : contraction.loops[loopDim].extent;
        // Reductions count through the panel's rows by Horner's rule; columns
        // add their index times the columns inside of them.
        int64_t scale = 1;
        if (inRow)
          for (unsigned inner : dims.drop_front())
            scale *= contraction.loops[inner].extent;
        loop(extent, 1, [&](Value index) {
          Value start = isReductionStart ? reductionStart
                        : isColumnStart  ? columnStart
                                         : Value();
          indices[loopDim] =
              start ? apply(dim(0) + dim(1), {start, index}) : index;
          Value next = inRow ? apply(dim(0) + dim(1) * scale, {offset, index})
                             : apply(dim(0) * extent + dim(1), {offset, index});
          nest(dims.drop_front(), next, inRow);
          indices[loopDim] = start;
        });
      };
  nest(reductions, constant(0), false);
  // Whatever is inside of the tile starts at 0 again.
  for (unsigned reduction : reductions.drop_front())
    indices[reduction] = Value();
}

/// Copies the innermost columns, at the current indices.
void PanelEmitter::emitPackedRow(Value panelAddress) {
  unsigned innermost = contraction.columns.back();
  int64_t extent = plan.blockedColumn + 1 == contraction.columns.size()
                       ? plan.columnBlock
                       : contraction.loops[innermost].extent;
  // Every vector, or every other element of two of them.
  schedule::TileNest tiles = contraction.getNest();
  if ((tiles.hasStrides({1, 2}) && target.hasMaskedLoads) ||
      (tiles.hasStrides({1}) && tiles.guards.empty() &&
       tiles.segments.size() == 1))
    return emitPackedVectors(panelAddress, extent);
  if (contraction.guards.empty())
    return emitPackedColumns(panelAddress, constant(0), constant(extent));
  // With one coefficient for each guard, and none of them negative, the columns
  // that exist are one interval; a shift around the end of a row makes two.
  bool intervals = llvm::all_of(contraction.guards, [&](const Guard &guard) {
    return getCoefficient(guard.expr, innermost).value_or(-1) >= 0;
  });
  if (!intervals)
    return emitGuardedColumns(panelAddress, extent);

  // The columns that exist are consecutive: zeros before and after them.
  Value zero = constant(0), end = constant(extent);
  Value lower = zero, upper = end, valid;
  for (const Guard &guard : contraction.guards) {
    Value base = evaluate(guard.expr);
    int64_t coefficient = *getCoefficient(guard.expr, innermost);
    if (coefficient == 0) {
      Value holds = isInRange(base, guard.extent);
      valid = valid ? arith::AndIOp::create(builder, loc, valid, holds) : holds;
      continue;
    }
    // 0 <= base + coefficient * column < extent.
    Value first = apply((-dim(0)).ceilDiv(coefficient), {base});
    Value last = apply((guard.extent - dim(0)).ceilDiv(coefficient), {base});
    lower = arith::MaxSIOp::create(builder, loc, lower, first);
    upper = arith::MinSIOp::create(builder, loc, upper, last);
  }
  // Where a guard that does not depend on the column fails, the interval is
  // empty.
  if (valid)
    lower = arith::SelectOp::create(builder, loc, valid, lower, end);
  lower = arith::MinSIOp::create(builder, loc, lower, end);
  upper = arith::MaxSIOp::create(builder, loc, upper, lower);
  auto clear = [&](Value from, Value to) {
    auto op = scf::ForOp::create(builder, loc, from, to, constant(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    storeColumn(panelAddress, op.getInductionVar(), LoopEmitter::zero());
  };
  clear(zero, lower);
  emitPackedColumns(panelAddress, lower, upper);
  clear(upper, end);
}

void PanelEmitter::storeColumn(Value panelAddress, Value column, Value value) {
  memref::StoreOp::create(builder, loc, value, panel,
                          apply(dim(0) + dim(1), {panelAddress, column}));
}

/// Whether 0 <= `value` < `extent`.
Value PanelEmitter::isInRange(Value value, int64_t extent) {
  // A negative number is a large one without its sign.
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value,
                               constant(extent));
}

/// The product of the vector inputs at the current indices. Including the
/// contraction's constant factor: packing is where it costs least.
Value PanelEmitter::loadProduct() {
  Value product;
  for (auto [access, flat] :
       llvm::zip(contraction.vectorInputs, vectorInputs)) {
    Value value =
        memref::LoadOp::create(builder, loc, flat, evaluate(access.address));
    product =
        product ? arith::MulFOp::create(builder, loc, product, value) : value;
  }
  if (contraction.factor == 1)
    return product;
  Value factor = arith::ConstantOp::create(
      builder, loc, builder.getF32FloatAttr(contraction.factor));
  return arith::MulFOp::create(builder, loc, product, factor);
}

/// What `guard` may be at the columns of a vector. The vector begins at column
/// `first` of a row of `extent` columns, and every `step`-th lane is a column.
/// The row itself may begin anywhere in the loop.
Interval PanelEmitter::getInterval(const Guard &guard, int64_t first,
                                   int64_t step, int64_t extent) const {
  unsigned innermost = contraction.columns.back();
  SmallVector<Interval> ranges;
  for (const Contraction::Loop &loop : contraction.loops)
    ranges.push_back({0, loop.extent - 1});
  int64_t last = std::min(first + (target.lanes - 1) / step, extent - 1);
  int64_t start = contraction.loops[innermost].extent - extent;
  ranges[innermost] = {first, start + last};
  return kas::getInterval(guard.expr, ranges);
}

/// The lanes whose column is one of the first `extent` and in the segment, or
/// null for all of them: every `step`-th lane is a column.
Value PanelEmitter::maskColumns(unsigned segment, int64_t first, int64_t step,
                                int64_t extent) {
  Value mask;
  auto add = [&](Value lanes) {
    mask = mask ? arith::AndIOp::create(builder, loc, mask, lanes).getResult()
                : lanes;
  };
  auto type = VectorType::get({target.lanes}, builder.getI1Type());
  // Known lanes first; with step 2 the odd lanes hold elements between the
  // columns.
  SmallVector<bool> exist;
  for (int64_t lane = 0; lane < target.lanes; ++lane)
    exist.push_back(lane % step == 0 && first + lane / step < extent);
  if (llvm::is_contained(exist, false))
    add(arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef(exist))));
  for (auto [guard, start] : llvm::zip_equal(
           contraction.segments[segment].guards, guardStarts[segment])) {
    if (!start)
      continue;
    int64_t coefficient =
        *getCoefficient(guard.expr, contraction.columns.back());
    Interval interval = getInterval(guard, first, step, extent);
    // It may also stand for one that is the same for all columns.
    if (!start.getDefiningOp<arith::SelectOp>() && interval.lower >= 0 &&
        interval.upper < guard.extent)
      continue;
    SmallVector<int64_t> steps;
    for (int64_t lane = 0; lane < target.lanes; ++lane)
      steps.push_back(coefficient * (first + lane / step));
    add(testLanes(start, steps, guard.extent));
  }
  return mask;
}

/// A vector of one input whose first lane is column `first`, with zeros at
/// lanes that do not exist. Segments are merged by chained masked loads; one
/// whose guards no column can meet is left out.
Value PanelEmitter::loadPart(unsigned input, int64_t first, int64_t step,
                             int64_t extent) {
  Value flat = vectorInputs[input];
  Value values =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  for (auto [number, segment] : llvm::enumerate(contraction.segments)) {
    bool exists =
        first < extent &&
        llvm::all_of(
            segment.guards,
            [&](const Guard &guard) {
              Interval interval = getInterval(guard, first, step, extent);
              return interval.upper >= 0 && interval.lower < guard.extent;
            });
    if (!exists)
      continue;
    Value index = evaluate(segment.addresses[input] + first * step);
    Value mask = maskColumns(number, first, step, extent);
    // All lanes are in this segment.
    if (!mask)
      return vector::LoadOp::create(builder, loc, vectorType, flat, index);
    values = vector::MaskedLoadOp::create(builder, loc, vectorType, flat, index,
                                          mask, values);
  }
  return values;
}

/// A vector of one input from column `first` on. With step 2 two vectors have
/// half of the columns each, at even lanes, which a shuffle joins.
Value PanelEmitter::loadColumns(unsigned input, int64_t first, int64_t extent) {
  int64_t step = *getCoefficient(contraction.segments.front().addresses[input],
                                 contraction.columns.back());
  if (step == 1)
    return loadPart(input, first, step, extent);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < step; ++part)
    parts.push_back(
        loadPart(input, first + part * target.lanes / step, step, extent));
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < target.lanes; ++lane)
    lanes.push_back(lane * step);
  return vector::ShuffleOp::create(builder, loc, parts[0], parts[1], lanes);
}

/// Evaluates the guards at the first column of a row.
void PanelEmitter::testGuards() {
  guardStarts.clear();
  for (const ColumnSegment &segment : contraction.segments)
    guardStarts.push_back(testGuards(segment));
}

/// One that is the same for all columns is tested at once: where it fails,
/// another one is made to. Returns, by guard, the value that lanes are tested
/// with; null where no test is needed.
SmallVector<Value> PanelEmitter::testGuards(const ColumnSegment &segment) {
  unsigned innermost = contraction.columns.back();
  SmallVector<Value> starts(segment.guards.size());
  Value holds;
  // The guard that takes over the tests of the uniform ones: one that lanes are
  // tested with anyway, if there is one.
  unsigned last = 0;
  for (auto [number, guard] : llvm::enumerate(segment.guards)) {
    Value start = evaluate(guard.expr);
    if (*getCoefficient(guard.expr, innermost)) {
      starts[number] = start;
      last = number;
      continue;
    }
    Value test = isInRange(start, guard.extent);
    holds = holds ? arith::AndIOp::create(builder, loc, holds, test).getResult()
                  : test;
    if (!starts[last])
      last = number;
  }
  if (!holds)
    return starts;
  // Far outside of what any lane can reach.
  Value &start = starts[last];
  start = arith::SelectOp::create(
      builder, loc, holds, start ? start : constant(0),
      // Half of the range, so that adding the lanes' steps does not wrap
      // around.
      constant(std::numeric_limits<int32_t>::min() / 2));
  return starts;
}

/// Consecutive columns as vectors. Unrolled: a row has few vectors, and their
/// masks are constants.
void PanelEmitter::emitPackedVectors(Value panelAddress, int64_t extent) {
  testGuards();
  for (int64_t done = 0; done < extent; done += target.lanes) {
    Value product;
    for (unsigned input = 0; input < vectorInputs.size(); ++input) {
      Value value = loadColumns(input, done, extent);
      product =
          product ? arith::MulFOp::create(builder, loc, product, value) : value;
    }
    if (contraction.factor != 1) {
      auto factors = DenseElementsAttr::get(
          vectorType, static_cast<float>(contraction.factor));
      product = arith::MulFOp::create(
          builder, loc, product,
          arith::ConstantOp::create(builder, loc, factors));
    }
    // The lanes after the tail are overwritten by the next row.
    vector::StoreOp::create(builder, loc, product, panel,
                            apply(dim(0) + done, {panelAddress}));
  }
}

/// The columns from `lower` to `upper`, all of which exist.
void PanelEmitter::emitPackedColumns(Value panelAddress, Value lower,
                                     Value upper) {
  unsigned innermost = contraction.columns.back();
  Value start = indices[innermost];
  auto op = scf::ForOp::create(builder, loc, lower, upper, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value column = op.getInductionVar();
  indices[innermost] = start ? apply(dim(0) + dim(1), {start, column}) : column;
  storeColumn(panelAddress, column, loadProduct());
  indices[innermost] = start;
}

/// Columns that exist or not, one by one. Only for guards whose set of columns
/// is no interval.
void PanelEmitter::emitGuardedColumns(Value panelAddress, int64_t extent) {
  unsigned innermost = contraction.columns.back();
  Value start = indices[innermost];
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(extent),
                               constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value column = op.getInductionVar();
  indices[innermost] = start ? apply(dim(0) + dim(1), {start, column}) : column;
  Value exists;
  for (const Guard &guard : contraction.guards) {
    Value holds = isInRange(evaluate(guard.expr), guard.extent);
    exists =
        exists ? arith::AndIOp::create(builder, loc, exists, holds) : holds;
  }
  auto value = scf::IfOp::create(builder, loc, elementType, exists,
                                 /*withElseRegion=*/true);
  builder.setInsertionPointToStart(value.thenBlock());
  scf::YieldOp::create(builder, loc, loadProduct());
  builder.setInsertionPointToStart(value.elseBlock());
  scf::YieldOp::create(builder, loc, LoopEmitter::zero());
  builder.setInsertionPointAfter(value);
  storeColumn(panelAddress, column, value.getResult(0));
  indices[innermost] = start;
}
