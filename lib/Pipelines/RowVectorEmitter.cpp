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

#include "ContractionEmitter.h"
#include "ContractionTail.h"
#include "RowVectorPlan.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace kas;
using namespace mlir;

namespace {

/// A reduction, or several that are one: how far its step moves in the data and
/// in the packed weights.
struct StepLoop {
  int64_t extent, dataStride, weightStride;
  /// The reduction, if it is only one: some of its steps may not exist, or the
  /// data is shifted along it.
  std::optional<unsigned> alone;
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
  SmallVector<TileColumn> columns;
};

class RowVectorEmitter : ContractionEmitter {
public:
  RowVectorEmitter(OpBuilder &builder, Location loc,
                   const Contraction &contraction, const RowVectorPlan &plan,
                   const ContractionTarget &target,
                   const ContractionOptions &options)
      : ContractionEmitter(builder, loc, contraction, target, options),
        plan(plan), row(contraction.rows.front()),
        rows(contraction.loops[row].extent),
        depth(contraction.getExtent(contraction.reductions)),
        blockRows(target.lanes * plan.registerVectors),
        vectorType(getVectorType(target.lanes)),
        stepRanges(contraction.loops.size()) {
    for (const Guard &guard : contraction.guards)
      guards.push_back(*LinearExpr::get(guard.expr, contraction.loops.size()));
  }

  void emit();

private:
  using SumsBody =
      function_ref<SmallVector<Value>(ArrayRef<TileColumn>, ValueRange)>;
  void flattenTail();
  void emitPacking();
  void emitBorders();
  void makeStepLoops();
  void emitItem(Value item);
  void emitColumns(ArrayRef<unsigned> columns, Value start, int64_t extent);
  void emitTile(int64_t outerColumns);
  void findStepRanges();
  using StepBody = function_ref<SmallVector<Value>(Value, Value, ValueRange)>;
  SmallVector<Value> emitSteps(ArrayRef<StepLoop> loops, Value dataAddress,
                               Value weightAddress, ValueRange sums,
                               StepBody body);
  SmallVector<Value> emitUnrolled(Value dataAddress, Value weightAddress,
                                  ValueRange start,
                                  ArrayRef<TileColumn> columns);
  SmallVector<Value> emitProducts(Value dataAddress, Value weightAddress,
                                  ValueRange sums,
                                  ArrayRef<TileColumn> columns);
  Value addWraps(Value address, std::optional<unsigned> reduction);
  SmallVector<Value> emitPresent(ArrayRef<PresentColumns> present,
                                 ValueRange sums, SumsBody body);
  int64_t getValue(const LinearExpr &expr, const TileColumn &column,
                   int64_t tileStart, ArrayRef<int64_t> steps) const;
  SmallVector<PresentColumns> getPresent(ArrayRef<TileColumn> columns,
                                         ArrayRef<int64_t> steps) const;
  void forEachUnrolledStep(function_ref<void(ArrayRef<int64_t>, int64_t)> body);
  void storeTile(ArrayRef<Value> sums, int64_t columns);
  SmallVector<Value> transpose(SmallVector<Value> vectors);
  SmallVector<Value> getFirstSums(int64_t columns);
  Value loadRow(Value buffer, Value place, int64_t columns);
  void storeRow(Value values, int64_t rowInBlock, Value place, int64_t columns);
  Value loadChannel(Value buffer, ArrayRef<int64_t> strides,
                    int64_t rowInBlock);

  const RowVectorPlan &plan;
  unsigned row;
  int64_t rows, depth, blockRows;
  VectorType vectorType;
  Value packed, data;
  /// The bias, and the tensors of the elementwise operation behind: its inputs
  /// without the sums, and its result.
  Value bias;
  SmallVector<Value> tailInputs;
  Value result;
  /// Where the weights of the current block begin, and its first row.
  Value weightBase, rowBase;
  /// The loops around and inside of the unrolled steps, and how far such a step
  /// moves in the packed weights.
  SmallVector<StepLoop> stepLoops, insideLoops;
  int64_t unrolledStride = 0;
  SmallVector<Value> deallocated;
  /// The guards as sums of loops.
  SmallVector<LinearExpr> guards;
  /// The loop that the tiles which are being emitted follow one another along,
  /// and where they begin.
  unsigned tileLoop = 0;
  SmallVector<int64_t> tileStarts;
  /// By loop: the steps that exist for the current tile.
  SmallVector<std::optional<std::pair<Value, Value>>> stepRanges;
};

} // namespace

//===----------------------------------------------------------------------===//
// Weights and data
//===----------------------------------------------------------------------===//

/// The buffers of what is computed with the sums.
void RowVectorEmitter::flattenTail() {
  result = output;
  if (!options.tail)
    return;
  auto getSize = [](Value buffer) {
    return cast<MemRefType>(buffer.getType()).getNumElements();
  };
  const ContractionTail &tail = *options.tail;
  if (tail.bias)
    bias = flatten(tail.bias, getSize(tail.bias));
  if (!tail.elementwise)
    return;
  for (const ContractionTail::Input &input : tail.inputs)
    tailInputs.push_back(
        input.buffer ? flatten(input.buffer, getSize(input.buffer)) : Value());
  result = flatten(tail.result, contraction.output.size);
}

/// Copies the weights: by batch, block of rows and reductions, the rows of the
/// block behind one another.
void RowVectorEmitter::emitPacking() {
  const StridedAccess &weight = contraction.scalarInputs.front();
  int64_t batches = contraction.getExtent(contraction.batches);
  // What is prefetched last lies behind the weights.
  auto type = MemRefType::get({batches * rows * depth + plan.prefetchDistance},
                              builder.getF32Type());
  auto buffer = memref::AllocOp::create(builder, loc, type,
                                        builder.getI64IntegerAttr(64));
  packed = buffer;
  Value flat = flatten(weight.buffer, weight.size);
  auto outermost = scf::ForOp::create(builder, loc, constant(0), constant(rows),
                                      constant(1));
  for (Operation *op : {buffer.getOperation(), outermost.getOperation()})
    op->setAttr(packingAttrName, builder.getUnitAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(outermost.getBody());
  Value index = outermost.getInductionVar();
  indices[row] = index;
  // Within the block: its rows are the fastest dimension.
  AffineExpr block = dim(0).floorDiv(blockRows), rest = dim(0) % blockRows;
  Value rowPlace = apply(block * (depth * blockRows) + rest, {index});
  SmallVector<unsigned> nest(contraction.batches);
  llvm::append_range(nest, plan.reductions);
  std::function<void(ArrayRef<unsigned>, Value)> enter =
      [&](ArrayRef<unsigned> dims, Value place) {
        if (dims.empty()) {
          Value value =
              memref::LoadOp::create(builder, loc, flat, address(weight));
          if (contraction.factor != 1) {
            Value factor = arith::ConstantOp::create(
                builder, loc, builder.getF32FloatAttr(contraction.factor));
            value = arith::MulFOp::create(builder, loc, value, factor);
          }
          memref::StoreOp::create(builder, loc, value, packed, place);
          return;
        }
        int64_t scale = llvm::is_contained(contraction.batches, dims.front())
                            ? rows * depth
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
  enter(nest, rowPlace);
  indices[row] = Value();
}

/// The data, or a copy with zeros around it.
void RowVectorEmitter::emitBorders() {
  const PackedAccess &access = contraction.vectorInputs.front();
  if (plan.borderedShape.empty()) {
    data = flatten(access.buffer, access.size);
    return;
  }
  auto type = MemRefType::get(plan.borderedShape, builder.getF32Type());
  auto buffer = memref::AllocOp::create(builder, loc, type,
                                        builder.getI64IntegerAttr(64));
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  linalg::FillOp::create(builder, loc, zero, buffer.getResult());
  auto fold = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(builder.getContext(), values);
  };
  SmallVector<int64_t> ones(plan.borderedShape.size(), 1);
  Value inner =
      memref::SubViewOp::create(builder, loc, buffer, fold(plan.bordersBefore),
                                fold(plan.dataShape), fold(ones));
  auto wholeType = MemRefType::get(plan.dataShape, builder.getF32Type());
  Value whole = memref::ReinterpretCastOp::create(
      builder, loc, wholeType, access.buffer, /*offset=*/0, plan.dataShape,
      wholeType.getStridesAndOffset().first);
  linalg::CopyOp::create(builder, loc, whole, inner);
  data = flatten(buffer, type.getNumElements());
  if (options.deallocate)
    deallocated.push_back(buffer);
}

/// The loops of a tile's products, joined where the data allows it.
void RowVectorEmitter::makeStepLoops() {
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
}

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

void RowVectorEmitter::emit() {
  output = flatten(contraction.output.buffer, contraction.output.size);
  flattenTail();
  emitPacking();
  emitBorders();
  makeStepLoops();
  int64_t numItems = contraction.getExtent(contraction.batches) *
                     (rows / blockRows) * plan.columnGroups;
  parallelLoop(numItems, [&](Value item) { emitItem(item); });
  if (options.deallocate) {
    memref::DeallocOp::create(builder, loc, packed);
    for (Value buffer : deallocated)
      memref::DeallocOp::create(builder, loc, buffer);
  }
}

/// One block of rows and one group of columns, for one batch.
void RowVectorEmitter::emitItem(Value item) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  unsigned outermost = contraction.columns.front();
  int64_t extent = contraction.loops[outermost].extent / plan.columnGroups;
  Value start = apply(take(plan.columnGroups) * extent, {item});
  // Blocks of weights of one batch lie behind one another.
  weightBase = apply(rest * (depth * blockRows), {item});
  rowBase = apply(take(rows / blockRows) * blockRows, {item});
  for (unsigned batch : llvm::reverse(contraction.batches))
    indices[batch] = apply(take(contraction.loops[batch].extent), {item});
  indices[row] = rowBase;
  emitColumns(contraction.columns, start, extent);
}

/// Loops over `columns`, the first of them from `start`, down to tiles.
void RowVectorEmitter::emitColumns(ArrayRef<unsigned> columns, Value start,
                                   int64_t extent) {
  unsigned column = columns.front();
  auto run = [&](int64_t from, int64_t count, int64_t step, Body body) {
    loop(count, step, [&](Value index) {
      AffineExpr place = dim(0) + from;
      indices[column] =
          start ? apply(place + dim(1), {index, start}) : apply(place, {index});
      body(index);
    });
  };
  auto runTiles = [&](int64_t from, int64_t count, int64_t step, Body body) {
    tileLoop = column;
    tileStarts.clear();
    for (int64_t at = from; at < from + count; at += step)
      tileStarts.push_back(at);
    run(from, count, step, body);
  };
  if (columns.size() == 1)
    return runTiles(0, extent, plan.tileColumns,
                    [&](Value) { emitTile(/*outerColumns=*/1); });
  if (columns.size() > 2 || plan.tileOuterColumns == 1)
    return run(0, extent, 1, [&](Value) {
      emitColumns(columns.drop_front(), Value(),
                  contraction.loops[columns[1]].extent);
    });
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
/// number of the step.
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

/// The columns that the unrolled `steps` exist for, by the current tiles.
SmallVector<PresentColumns>
RowVectorEmitter::getPresent(ArrayRef<TileColumn> columns,
                             ArrayRef<int64_t> steps) const {
  SmallVector<PresentColumns> present;
  for (int64_t start : tileStarts) {
    PresentColumns here{start, {}};
    for (TileColumn column : columns) {
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

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void RowVectorEmitter::emitTile(int64_t outerColumns) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t innerStride = plan.dataStrides[columns.back()];
  int64_t outerStride =
      columns.size() > 1 ? plan.dataStrides[columns[columns.size() - 2]] : 0;
  SmallVector<TileColumn> tile;
  for (int64_t outer = 0; outer < outerColumns; ++outer)
    for (int64_t inner = 0; inner < plan.tileColumns; ++inner)
      tile.push_back({static_cast<int64_t>(tile.size()), outer, inner,
                      outer * outerStride + inner * innerStride});

  StridedAccess access;
  access.base = plan.dataBase;
  access.strides = plan.dataStrides;
  for (unsigned reduction : contraction.reductions)
    indices[reduction] = Value();
  findStepRanges();
  SmallVector<Value> sums = emitSteps(
      stepLoops, address(access), weightBase, getFirstSums(tile.size()),
      [&](Value data, Value weight, ValueRange sums) {
        return emitUnrolled(data, weight, sums, tile);
      });
  storeTile(sums, tile.size());
}

/// The steps of clipped reductions that exist for the current tile.
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

/// The bias of each row, or zero.
SmallVector<Value> RowVectorEmitter::getFirstSums(int64_t columns) {
  SmallVector<Value> vectors, sums;
  StridedAccess access;
  if (bias)
    access.strides = options.tail->biasStrides;
  for (int64_t v = 0; v < plan.registerVectors; ++v)
    vectors.push_back(
        bias ? vector::LoadOp::create(builder, loc, vectorType, bias,
                                      address(access, v * target.lanes))
                   .getResult()
             : arith::ConstantOp::create(builder, loc,
                                         builder.getZeroAttr(vectorType))
                   .getResult());
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
  if (loop.alone && stepRanges[*loop.alone])
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
  SmallVector<Value> sums(start);
  forEachUnrolledStep([&](ArrayRef<int64_t> steps, int64_t number) {
    int64_t offset = 0;
    for (auto [loop, step] : llvm::zip_equal(plan.getUnrolled(), steps))
      offset += plan.dataStrides[loop] * step;
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

/// The products of one step.
SmallVector<Value>
RowVectorEmitter::emitProducts(Value dataAddress, Value weightAddress,
                               ValueRange sums, ArrayRef<TileColumn> columns) {
  SmallVector<Value> weights, results;
  for (int64_t v = 0; v < plan.registerVectors; ++v)
    weights.push_back(vector::LoadOp::create(
        builder, loc, vectorType, packed,
        apply(dim(0) + v * target.lanes, {weightAddress})));
  if (plan.prefetchDistance)
    for (int64_t v = 0; v < plan.registerVectors; ++v)
      memref::PrefetchOp::create(
          builder, loc, packed,
          apply(dim(0) + (v * target.lanes + plan.prefetchDistance),
                {weightAddress}),
          /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
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

/// The rows of the square matrix whose columns are `vectors`: blocks off the
/// diagonal change places, ever larger ones.
SmallVector<Value> RowVectorEmitter::transpose(SmallVector<Value> vectors) {
  int64_t lanes = target.lanes;
  for (int64_t size = 1; size < lanes; size *= 2) {
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool second = lane & size;
      lower.push_back(second ? lanes + lane - size : lane);
      upper.push_back(second ? lanes + lane : lane + size);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & size)
        continue;
      Value first = vectors[i], second = vectors[i + size];
      vectors[i] =
          vector::ShuffleOp::create(builder, loc, first, second, lower);
      vectors[i + size] =
          vector::ShuffleOp::create(builder, loc, first, second, upper);
    }
  }
  return vectors;
}

/// The sums of all rows at `columns` columns that lie together in the output.
void RowVectorEmitter::storeTile(ArrayRef<Value> sums, int64_t columns) {
  Value base = address(contraction.output);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  int64_t rowStride = contraction.output.strides[row];
  for (int64_t first = 0; first < columns; first += target.lanes)
    for (int64_t v = 0; v < plan.registerVectors; ++v) {
      int64_t count = std::min(columns - first, target.lanes);
      SmallVector<Value> vectors(target.lanes, zero);
      for (int64_t column = 0; column < count; ++column)
        vectors[column] = sums[(first + column) * plan.registerVectors + v];
      for (auto [lane, values] : llvm::enumerate(transpose(vectors))) {
        int64_t offset = (v * target.lanes + lane) * rowStride + first;
        storeRow(values, v * target.lanes + lane,
                 apply(dim(0) + offset, {base}), count);
      }
    }
}

/// `columns` elements of a buffer that lies like the output.
Value RowVectorEmitter::loadRow(Value buffer, Value place, int64_t columns) {
  if (columns == target.lanes)
    return vector::LoadOp::create(builder, loc, vectorType, buffer, place);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  return vector::MaskedLoadOp::create(builder, loc, vectorType, buffer, place,
                                      tailMask(columns, target.lanes), zero);
}

/// The value of one row of the block in all lanes.
Value RowVectorEmitter::loadChannel(Value buffer, ArrayRef<int64_t> strides,
                                    int64_t rowInBlock) {
  StridedAccess access;
  access.strides.assign(strides.begin(), strides.end());
  Value value = memref::LoadOp::create(
      builder, loc, buffer, address(access, rowInBlock * strides[row]));
  return vector::BroadcastOp::create(builder, loc, vectorType, value);
}

void RowVectorEmitter::storeRow(Value values, int64_t rowInBlock, Value place,
                                int64_t columns) {
  if (contraction.accumulates && !bias)
    values = arith::AddFOp::create(builder, loc, values,
                                   loadRow(output, place, columns));
  if (options.tail && options.tail->elementwise) {
    SmallVector<Value> inputs;
    for (auto [buffer, input] :
         llvm::zip_equal(tailInputs, options.tail->inputs))
      inputs.push_back(!buffer ? values
                       : input.strides.empty()
                           ? loadRow(buffer, place, columns)
                           : loadChannel(buffer, input.strides, rowInBlock));
    values = options.tail->emit(builder, loc, inputs);
  }
  if (columns == target.lanes)
    vector::StoreOp::create(builder, loc, values, result, place);
  else
    vector::MaskedStoreOp::create(builder, loc, result, place,
                                  tailMask(columns, target.lanes), values);
}

void kas::emitRowVectors(OpBuilder &builder, Location loc,
                         const Contraction &contraction,
                         const RowVectorPlan &plan,
                         const ContractionTarget &target,
                         const ContractionOptions &options) {
  OpBuilder::InsertionGuard guard(builder);
  RowVectorEmitter(builder, loc, contraction, plan, target, options).emit();
}
