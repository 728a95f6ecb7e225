//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One tile of vectors along the rows: its steps, and how its sums are stored.
//
// A tile has `registerVectors` vectors of rows for each of its columns. A step
// loads the weights of these rows, and for each column broadcasts one element
// of the data that multiplies them. Sums are in the order of columns, then
// vectors; they are transposed when they are stored, since the output has the
// columns of a row next to each other.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "RowVectorEmitter.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// `outerColumns` rows of the image, each with the plan's columns; `indices`
/// say where the tile begins.
void RowVectorEmitter::emitTile(int64_t outerColumns) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t innerStride = plan.dataStrides[columns.back()];
  int64_t outerStride =
      columns.size() > 1 ? plan.dataStrides[columns[columns.size() - 2]] : 0;
  SmallVector<TileColumn> tile;
  for (int64_t outer = 0; outer < outerColumns; ++outer)
    for (int64_t inner = 0; inner < tileColumns; ++inner)
      tile.push_back({static_cast<int64_t>(tile.size()), outer, inner,
                      outer * outerStride + inner * innerStride});

  StridedAccess access;
  access.base = plan.dataBase;
  access.strides = plan.dataStrides;
  // Addresses are those of the first step.
  for (unsigned reduction : contraction.reductions)
    indices[reduction] = Value();
  findStepRanges();
  nextTile = Value();
  if (plan.prefetchesData)
    std::tie(nextTile, isNextAdjacent) = getNextTile(outerColumns);
  tileSpan = tile.back().dataOffset;
  nextWeights = plan.prefetchesNextBlock ? getNextWeights() : Value();
  Value place = getWaitingPlace();
  SmallVector<Value> sums = emitSteps(
      stepLoops, addWraps(address(access), /*reduction=*/std::nullopt),
      weightBase, getWaitingSums(tile.size(), place),
      [&](Value data, Value weight, ValueRange sums) {
        return emitUnrolled(data, weight, sums, tile);
      });
  finishPart(sums, tile.size(), place);
}

//===----------------------------------------------------------------------===//
// Parts of the steps
//===----------------------------------------------------------------------===//

/// The iterations of the outermost loop of steps that `number` has. The last
/// part may have fewer, or none.
void RowVectorEmitter::choosePartSteps(Value number) {
  part = number;
  int64_t extent = (stepLoops.empty() ? insideLoops : stepLoops).front().extent;
  int64_t steps = llvm::divideCeil(extent, plan.stepParts);
  auto clamp = [&](AffineExpr end) -> Value {
    return arith::MinSIOp::create(builder, loc, apply(end, {number}),
                                  constant(extent));
  };
  partSteps = {clamp(dim(0) * steps), clamp((dim(0) + 1) * steps)};
}

/// Where the sums of the current tile wait: by column of the item, then by row
/// of the block.
Value RowVectorEmitter::getWaitingPlace() {
  if (plan.stepParts == 1)
    return Value();
  AffineExpr column = builder.getAffineConstantExpr(0);
  SmallVector<Value> operands;
  for (unsigned loop : contraction.columns) {
    column = column * contraction.loops[loop].extent + dim(operands.size());
    operands.push_back(indices[loop]);
  }
  if (columnStart) {
    int64_t inside = contraction.getExtent(contraction.columns) /
                     contraction.loops[contraction.columns.front()].extent;
    column = column - dim(operands.size()) * inside;
    operands.push_back(columnStart);
  }
  column = column * blockRows + dim(operands.size());
  operands.push_back(waitingBase);
  return apply(column, operands);
}

/// What the sums of a tile begin with, in the order of columns, then vectors:
/// in the first part of the steps as without parts, then what waits at `place`.
SmallVector<Value> RowVectorEmitter::getWaitingSums(int64_t columns,
                                                    Value place) {
  if (plan.stepParts == 1)
    return getFirstSums(columns);
  SmallVector<Type> types(columns * plan.registerVectors, vectorType);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        part, constant(0));
  auto choice = scf::IfOp::create(builder, loc, types, isFirst,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(builder, loc, getFirstSums(columns));
  builder.setInsertionPointToStart(choice.elseBlock());
  SmallVector<Value> sums;
  for (size_t i = 0; i < types.size(); ++i)
    sums.push_back(
        vector::LoadOp::create(builder, loc, vectorType, waiting,
                               apply(dim(0) + i * plan.lanes, {place})));
  scf::YieldOp::create(builder, loc, sums);
  return SmallVector<Value>(choice.getResults());
}

/// Stores the sums of a tile after the last part of the steps; before, lets
/// them wait at `place`.
void RowVectorEmitter::finishPart(ValueRange sums, int64_t columns,
                                  Value place) {
  if (plan.stepParts == 1)
    return storeTile(llvm::to_vector(sums), columns);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       part, constant(plan.stepParts - 1));
  auto choice = scf::IfOp::create(builder, loc, isLast,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(choice.thenBlock());
  storeTile(llvm::to_vector(sums), columns);
  builder.setInsertionPointToStart(choice.elseBlock());
  for (auto [i, sum] : llvm::enumerate(sums))
    vector::StoreOp::create(
        builder, loc, sum, waiting,
        apply(dim(0) + static_cast<int64_t>(i) * plan.lanes, {place}));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The steps of clipped reductions that exist for the current tile. The output
/// row 0 of a 3x3 filter with padding 1 has no step 0 along the height: its
/// range is [1, 3).
void RowVectorEmitter::findStepRanges() {
  llvm::fill(stepRanges, std::nullopt);
  for (unsigned number : plan.rangeGuards) {
    const LinearExpr &guard = guards[number];
    unsigned reduction =
        *llvm::find_if(contraction.reductions,
                       [&](unsigned r) { return guard.strides[r] != 0; });
    AffineExpr rest = builder.getAffineConstantExpr(guard.base);
    SmallVector<Value> operands;
    for (auto [stride, index] : llvm::zip_equal(guard.strides, indices))
      if (stride && index) {
        rest = rest + dim(operands.size()) * stride;
        operands.push_back(index);
      }
    // 0 <= rest + stride * step < extent.
    int64_t stride = guard.strides[reduction];
    Value lower = apply((-rest).ceilDiv(stride), operands);
    Value upper = apply(
        (-rest + contraction.guards[number].extent).ceilDiv(stride), operands);
    auto &range = stepRanges[reduction];
    if (!range)
      range = {constant(0), constant(contraction.loops[reduction].extent)};
    range->first = arith::MaxSIOp::create(builder, loc, range->first, lower);
    range->second = arith::MinSIOp::create(builder, loc, range->second, upper);
  }
}

/// The bias of each row, or zero. One vector for each of the tile's sums; all
/// columns begin with the same ones.
SmallVector<Value> RowVectorEmitter::getFirstSums(int64_t columns) {
  SmallVector<Value> vectors, sums;
  StridedAccess access;
  if (bias)
    access.strides = options.epilogue->biasStrides;
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  for (int64_t v = 0; v < plan.registerVectors; ++v) {
    if (!bias) {
      vectors.push_back(zero);
      continue;
    }
    Value place = address(access, v * plan.lanes);
    // Such rows exist in every block, also the last one.
    if ((v + 1) * plan.lanes <= getNumLastRows()) {
      vectors.push_back(
          vector::LoadOp::create(builder, loc, vectorType, bias, place));
      continue;
    }
    // Rows of the last block that do not exist have no bias to be read.
    SmallVector<int64_t> numbers =
        llvm::to_vector(llvm::seq(v * plan.lanes, (v + 1) * plan.lanes));
    vectors.push_back(
        vector::MaskedLoadOp::create(builder, loc, vectorType, bias, place,
                                     testLanes(rowBase, numbers, rows), zero));
  }
  for (int64_t column = 0; column < columns; ++column)
    llvm::append_range(sums, vectors);
  return sums;
}

/// Loops over the steps of `loops` that carry the sums; `body` is given the
/// addresses of the data and of the weights.
SmallVector<Value> RowVectorEmitter::emitSteps(ArrayRef<StepLoop> loops,
                                               Value dataAddress,
                                               Value weightAddress,
                                               ValueRange sums, StepBody body) {
  if (loops.empty())
    return body(dataAddress, weightAddress, sums);
  const StepLoop &loop = loops.front();
  Value lower, upper;
  // Steps that read padding only are not run at all.
  bool isOutermost =
      &loop == (stepLoops.empty() ? insideLoops : stepLoops).data();
  if (plan.stepParts > 1 && isOutermost)
    std::tie(lower, upper) = partSteps;
  else if (loop.alone && stepRanges[*loop.alone])
    std::tie(lower, upper) = *stepRanges[*loop.alone];
  else
    std::tie(lower, upper) = std::pair(constant(0), constant(loop.extent));
  auto op = scf::ForOp::create(builder, loc, lower, upper, constant(1), sums);
  op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value index = op.getInductionVar();
  dataAddress = apply(dim(0) + dim(1) * loop.dataStride, {dataAddress, index});
  if (loop.alone) {
    indices[*loop.alone] = index;
    dataAddress = addWraps(dataAddress, loop.alone);
  }
  if (loop.fetchesData && nextTile)
    emitDataPrefetches(dataAddress);
  scf::YieldOp::create(builder, loc,
                       emitSteps(loops.drop_front(), dataAddress,
                                 apply(dim(0) + dim(1) * loop.weightStride,
                                       {weightAddress, index}),
                                 op.getRegionIterArgs(), body));
  if (loop.alone)
    indices[*loop.alone] = Value();
  return SmallVector<Value>(op.getResults());
}

/// What cyclic shifts add to the address of the data whose last loop is
/// `reduction`, or that step with no reduction.
Value RowVectorEmitter::addWraps(Value address,
                                 std::optional<unsigned> reduction) {
  for (const DataWrap &wrap : plan.stepWraps) {
    std::optional<unsigned> last;
    // A shift is added where its innermost reduction gets its index, once for
    // all steps inside.
    for (unsigned loop : plan.reductions)
      if (wrap.expr.strides[loop])
        last = loop;
    if (last != reduction)
      continue;
    StridedAccess place;
    place.base = wrap.expr.base;
    place.strides = wrap.expr.strides;
    address =
        apply(dim(0) - dim(1).floorDiv(wrap.extent) * wrap.extent * wrap.stride,
              {address, this->address(place)});
  }
  return address;
}

/// The unrolled steps, each with the columns that it exists for.
SmallVector<Value>
RowVectorEmitter::emitUnrolled(Value dataAddress, Value weightAddress,
                               ValueRange start, ArrayRef<TileColumn> columns) {
  constexpr int64_t line = 16;
  int64_t fetched = 0;
  SmallVector<Value> sums(start);
  forEachUnrolledStep([&](ArrayRef<int64_t> steps, int64_t number) {
    int64_t offset = 0;
    for (auto [loop, step] : llvm::zip_equal(plan.getUnrolled(), steps))
      offset += plan.dataStrides[loop] * step;
    if (unrolledStepsFetch && nextTile) {
      if (number == 0 || offset >= fetched + line) {
        emitDataPrefetches(apply(dim(0) + offset, {dataAddress}));
        fetched = offset;
      }
    } else if (number == 1) {
      // The loops inside have fetched it.
      nextTile = Value();
    }
    auto body = [&](ArrayRef<TileColumn> present, ValueRange sums) {
      return emitSteps(insideLoops, apply(dim(0) + offset, {dataAddress}),
                       apply(dim(0) + number * unrolledStride, {weightAddress}),
                       sums, [&](Value data, Value weight, ValueRange sums) {
                         return emitProducts(data, weight, sums, present);
                       });
    };
    sums = emitPresent(getPresent(columns, steps), sums, body);
  });
  return sums;
}

/// Calls `body` for the columns that are there, and for the sums of these;
/// between tiles that differ in them the code chooses when it runs.
SmallVector<Value>
RowVectorEmitter::emitPresent(ArrayRef<PresentColumns> present,
                              ValueRange start, SumsBody body) {
  SmallVector<Value> sums(start);
  // Tiles are sorted by where they begin, so that a chain of comparisons finds
  // the entry.
  if (present.size() > 1) {
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sle, indices[tileLoop],
        constant(present.front().lastStart));
    auto choice = scf::IfOp::create(builder, loc, start.getTypes(), isFirst,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    for (bool first : {true, false}) {
      builder.setInsertionPointToStart(first ? choice.thenBlock()
                                             : choice.elseBlock());
      scf::YieldOp::create(
          builder, loc,
          emitPresent(first ? present.take_front() : present.drop_front(),
                      start, body));
    }
    return SmallVector<Value>(choice.getResults());
  }
  // Only the sums of these columns pass through the body.
  ArrayRef<TileColumn> columns = present.front().columns;
  if (columns.empty())
    return sums;
  SmallVector<Value> added;
  for (const TileColumn &column : columns)
    for (int64_t v = 0; v < plan.registerVectors; ++v)
      added.push_back(sums[column.number * plan.registerVectors + v]);
  added = body(columns, added);
  for (auto [i, column] : llvm::enumerate(columns))
    for (int64_t v = 0; v < plan.registerVectors; ++v)
      sums[column.number * plan.registerVectors + v] =
          added[i * plan.registerVectors + v];
  return sums;
}

/// How far the weights that a step fetches are from its own: those of the next
/// block, if there is one, of which each tile fetches one vector of each step.
Value RowVectorEmitter::getNextWeights() {
  ArrayRef<unsigned> columns = contraction.columns;
  // The number of the tile, roughly: it only has to differ between neighbours.
  AffineExpr tile = dim(0).floorDiv(tileColumns);
  SmallVector<Value> places{indices[columns.back()]};
  if (columns.size() > 1) {
    tile = tile + dim(1).floorDiv(plan.tileOuterColumns);
    places.push_back(indices[columns[columns.size() - 2]]);
  }
  Value vector = apply(tile % plan.registerVectors * plan.lanes, places);
  int64_t block = depth * blockRows;
  int64_t numAll = contraction.getExtent(contraction.batches) * numBlocks;
  // After the last block, the current one: it needs no branch, and is in the
  // cache.
  Value hasNext =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, weightBase,
                            constant((numAll - 1) * block));
  Value next = arith::SelectOp::create(builder, loc, hasNext, constant(block),
                                       constant(0));
  return apply(dim(0) + dim(1), {vector, next});
}

/// How far the tile that is computed next is from the current one in the data,
/// and whether it follows right after it there.
std::pair<Value, bool> RowVectorEmitter::getNextTile(int64_t outerColumns) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t next = plan.dataStrides[columns.back()] * tileColumns;
  if (columns.size() == 1)
    return {constant(next), true};
  int64_t line = plan.dataStrides[columns[columns.size() - 2]];
  if (plan.tileOuterColumns > 1)
    return {constant(line * outerColumns), line == next};
  // From the last tile of a row of the image to the first one of the next.
  int64_t last = contraction.loops[columns.back()].extent - tileColumns;
  int64_t nextLine = line - plan.dataStrides[columns.back()] * last;
  if (nextLine == next)
    return {constant(next), true};
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                       indices[columns.back()], constant(last));
  return {arith::SelectOp::create(builder, loc, isLast, constant(nextLine),
                                  constant(next)),
          false};
}

/// Fetches what the next tile reads at a step: of tiles that follow one another
/// in the data the lines that end in this one. What is past the end of the
/// data has no effect.
void RowVectorEmitter::emitDataPrefetches(Value dataAddress) {
  constexpr int64_t line = 16;
  auto fetch = [&](int64_t offset) {
    emitPrefetch(data,
                 apply(dim(0) + dim(1) + offset, {dataAddress, nextTile}));
  };
  // From the end, as the begin is part of what this tile has read.
  for (int64_t offset = tileSpan; offset > 0; offset -= line)
    fetch(offset);
  if (!isNextAdjacent || tileSpan == 0)
    fetch(0);
}

/// Into the second-level cache: locality 2 of 3.
void RowVectorEmitter::emitPrefetch(Value buffer, Value place) {
  memref::PrefetchOp::create(builder, loc, buffer, place, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

/// The products of one step. `columns` are those that exist for this step,
/// `sums` theirs; returns the new ones.
SmallVector<Value>
RowVectorEmitter::emitProducts(Value dataAddress, Value weightAddress,
                               ValueRange sums, ArrayRef<TileColumn> columns) {
  SmallVector<Value> weights, results;
  for (int64_t v = 0; v < plan.registerVectors; ++v)
    weights.push_back(vector::LoadOp::create(
        builder, loc, vectorType, packed,
        apply(dim(0) + v * plan.lanes, {weightAddress})));
  if (nextWeights)
    emitPrefetch(packed, apply(dim(0) + dim(1), {weightAddress, nextWeights}));
  if (plan.prefetchDistance)
    for (int64_t v = 0; v < plan.registerVectors; ++v)
      emitPrefetch(packed,
                   apply(dim(0) + (v * plan.lanes + plan.prefetchDistance),
                         {weightAddress}));
  for (auto [i, column] : llvm::enumerate(columns)) {
    Value element = memref::LoadOp::create(
        builder, loc, data, apply(dim(0) + column.dataOffset, {dataAddress}));
    Value all = vector::BroadcastOp::create(builder, loc, vectorType, element);
    for (auto [v, weight] : llvm::enumerate(weights))
      results.push_back(
          multiplyAdd(weight, all, sums[i * plan.registerVectors + v]));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The sums of all rows at `columns` columns that lie together in the output.
/// In blocks of `lanes` columns by `lanes` rows; columns that the last block
/// lacks are zeros, which are not stored.
void RowVectorEmitter::storeTile(ArrayRef<Value> sums, int64_t columns) {
  Value base = address(contraction.output);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  int64_t rowStride = contraction.output.strides[row];
  for (int64_t first = 0; first < columns; first += plan.lanes)
    for (int64_t v = 0; v < plan.registerVectors; ++v) {
      int64_t count = std::min(columns - first, plan.lanes);
      SmallVector<Value> vectors(plan.lanes, zero);
      for (int64_t column = 0; column < count; ++column)
        vectors[column] = sums[(first + column) * plan.registerVectors + v];
      vectors = transpose(vectors);
      auto store = [&](int64_t from, int64_t to) {
        for (int64_t lane = from; lane < to; ++lane) {
          int64_t number = v * plan.lanes + lane;
          storeRow(vectors[lane], number,
                   apply(dim(0) + (number * rowStride + first), {base}), count);
        }
      };
      // The rows that the last block has, too.
      int64_t always =
          std::clamp<int64_t>(getNumLastRows() - v * plan.lanes, 0, plan.lanes);
      store(0, always);
      // Rows beyond those exist in all blocks but the last one.
      if (always == plan.lanes || numBlocks == 1)
        continue;
      Value isWhole =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                rowBase, constant((numBlocks - 1) * blockRows));
      auto choice = scf::IfOp::create(builder, loc, isWhole,
                                      /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(choice.thenBlock());
      store(always, plan.lanes);
    }
}

/// `columns` elements of a buffer that lies like the output.
Value RowVectorEmitter::loadRow(Value buffer, Value place, int64_t columns) {
  return loadPiece(buffer, place, {/*offset=*/0, plan.lanes, columns});
}

/// The value of one row of the block in all lanes.
Value RowVectorEmitter::loadChannel(Value buffer, ArrayRef<int64_t> strides,
                                    int64_t rowInBlock) {
  StridedAccess access;
  access.strides.assign(strides.begin(), strides.end());
  Value value = memref::LoadOp::create(
      builder, loc, buffer, address(access, rowInBlock * strides[row]));
  return vector::BroadcastOp::create(builder, loc,
                                     getVectorType(buffer, plan.lanes), value);
}

/// Stores one row of the block at `columns` columns from `place` on, after
/// adding what the output holds and after the epilogue. A bias is part of the
/// sums already: it stands for what the output would hold.
void RowVectorEmitter::storeRow(Value values, int64_t rowInBlock, Value place,
                                int64_t columns) {
  if (contraction.accumulates && !bias)
    values = add(values, loadRow(output, place, columns));
  if (options.epilogue && options.epilogue->elementwise) {
    SmallVector<Value> inputs;
    for (auto [buffer, input] :
         llvm::zip_equal(epilogueInputs, options.epilogue->inputs))
      inputs.push_back(!buffer ? values
                       : input.strides.empty()
                           ? loadRow(buffer, place, columns)
                           : loadChannel(buffer, input.strides, rowInBlock));
    values =
        emitElementwise(builder, loc, options.epilogue->elementwise, inputs);
  }
  storeSum(values, place, {/*offset=*/0, plan.lanes, columns});
}
