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
        vectorType(getVectorType(target.lanes)) {}

  void emit();

private:
  void flattenTail();
  void emitPacking();
  void emitBorders();
  void makeStepLoops();
  void emitItem(Value item);
  void emitColumns(ArrayRef<unsigned> columns, Value start, int64_t extent);
  void emitTile(int64_t outerColumns);
  SmallVector<Value> emitSteps(ArrayRef<StepLoop> loops, Value dataAddress,
                               Value weightAddress, ValueRange sums,
                               ArrayRef<int64_t> offsets);
  void storeTile(ArrayRef<Value> sums, int64_t columns);
  SmallVector<Value> transpose(SmallVector<Value> vectors);
  SmallVector<Value> getFirstSums(int64_t columns);
  Value loadRow(Value buffer, Value place, int64_t columns);
  void storeRow(Value values, Value place, int64_t columns);

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
  SmallVector<StepLoop> stepLoops;
  SmallVector<Value> deallocated;
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
  linalg::BroadcastOp before = options.tail->bias;
  if (before) {
    Value buffer = before.getInput();
    bias = flatten(buffer, cast<MemRefType>(buffer.getType()).getNumElements());
  }
  linalg::GenericOp behind = options.tail->elementwise;
  if (!behind)
    return;
  for (Value input : behind.getDpsInputs())
    tailInputs.push_back(input == contraction.output.buffer
                             ? Value()
                             : flatten(input, contraction.output.size));
  result = flatten(options.tail->getResult(), contraction.output.size);
}

/// Copies the weights: by batch, block of rows and reductions, the rows of the
/// block behind one another.
void RowVectorEmitter::emitPacking() {
  const StridedAccess &weight = contraction.scalarInputs.front();
  int64_t batches = contraction.getExtent(contraction.batches);
  auto type = MemRefType::get({batches * rows * depth}, builder.getF32Type());
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
  llvm::append_range(nest, contraction.reductions);
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
  int64_t weightStride = depth * blockRows;
  for (unsigned reduction : contraction.reductions) {
    int64_t extent = contraction.loops[reduction].extent;
    weightStride /= extent;
    StepLoop loop{extent, plan.dataStrides[reduction], weightStride};
    if (!stepLoops.empty() &&
        stepLoops.back().dataStride == loop.dataStride * loop.extent) {
      loop.extent *= stepLoops.back().extent;
      stepLoops.pop_back();
    }
    stepLoops.push_back(loop);
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
  if (columns.size() == 1)
    return run(0, extent, plan.tileColumns,
               [&](Value) { emitTile(/*outerColumns=*/1); });
  auto inside = [&](int64_t outerColumns) {
    if (plan.tileOuterColumns == 1)
      return emitColumns(columns.drop_front(), Value(),
                         contraction.loops[columns[1]].extent);
    indices[columns[1]] = constant(0);
    emitTile(outerColumns);
  };
  if (columns.size() > 2)
    return run(0, extent, 1, [&](Value) {
      emitColumns(columns.drop_front(), Value(),
                  contraction.loops[columns[1]].extent);
    });
  int64_t step = plan.tileOuterColumns, rest = extent % step;
  run(0, extent - rest, step, [&](Value) { inside(step); });
  if (rest)
    run(extent - rest, rest, rest, [&](Value) { inside(rest); });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void RowVectorEmitter::emitTile(int64_t outerColumns) {
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t innerStride = plan.dataStrides[columns.back()];
  int64_t outerStride =
      columns.size() > 1 ? plan.dataStrides[columns[columns.size() - 2]] : 0;
  SmallVector<int64_t> offsets;
  for (int64_t outer = 0; outer < outerColumns; ++outer)
    for (int64_t inner = 0; inner < plan.tileColumns; ++inner)
      offsets.push_back(outer * outerStride + inner * innerStride);

  StridedAccess access;
  access.base = plan.dataBase;
  access.strides = plan.dataStrides;
  for (unsigned reduction : contraction.reductions)
    indices[reduction] = Value();
  SmallVector<Value> sums = emitSteps(stepLoops, address(access), weightBase,
                                      getFirstSums(offsets.size()), offsets);
  storeTile(sums, offsets.size());
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

/// The products of all steps of `loops`.
SmallVector<Value> RowVectorEmitter::emitSteps(ArrayRef<StepLoop> loops,
                                               Value dataAddress,
                                               Value weightAddress,
                                               ValueRange sums,
                                               ArrayRef<int64_t> offsets) {
  if (!loops.empty()) {
    const StepLoop &loop = loops.front();
    auto op = scf::ForOp::create(builder, loc, constant(0),
                                 constant(loop.extent), constant(1), sums);
    op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    Value index = op.getInductionVar();
    scf::YieldOp::create(
        builder, loc,
        emitSteps(
            loops.drop_front(),
            apply(dim(0) + dim(1) * loop.dataStride, {dataAddress, index}),
            apply(dim(0) + dim(1) * loop.weightStride, {weightAddress, index}),
            op.getRegionIterArgs(), offsets));
    return SmallVector<Value>(op.getResults());
  }
  SmallVector<Value> weights, results;
  for (int64_t v = 0; v < plan.registerVectors; ++v)
    weights.push_back(vector::LoadOp::create(
        builder, loc, vectorType, packed,
        apply(dim(0) + v * target.lanes, {weightAddress})));
  for (auto [column, offset] : llvm::enumerate(offsets)) {
    Value element = memref::LoadOp::create(
        builder, loc, data, apply(dim(0) + offset, {dataAddress}));
    Value all = vector::BroadcastOp::create(builder, loc, vectorType, element);
    for (auto [v, weight] : llvm::enumerate(weights))
      results.push_back(
          multiplyAdd(weight, all, sums[column * plan.registerVectors + v]));
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
        storeRow(values, apply(dim(0) + offset, {base}), count);
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

void RowVectorEmitter::storeRow(Value values, Value place, int64_t columns) {
  if (contraction.accumulates && !bias)
    values = arith::AddFOp::create(builder, loc, values,
                                   loadRow(output, place, columns));
  if (options.tail && options.tail->elementwise) {
    SmallVector<Value> inputs;
    for (Value buffer : tailInputs)
      inputs.push_back(buffer ? loadRow(buffer, place, columns) : values);
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
