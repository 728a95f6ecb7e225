//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments of sums give a lane two neighbours of each of many rows: stored as
// they are, a warp writes pieces of 16 bytes, each thread two at a time. In
// workgroup memory they become lines, of which each thread stores 16 bytes.
//
// Source: PTX ISA, "Matrix fragments for mma.m16n8k16" (what a lane holds),
// "Warp-level matrix store instruction: stmatrix".
//
//===----------------------------------------------------------------------===//

#include "ResultTile.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

std::optional<ResultTile> GPUKernelEmitter::planTile(ArrayRef<unsigned> batches,
                                                     ArrayRef<unsigned> rows,
                                                     ArrayRef<unsigned> columns,
                                                     int64_t group,
                                                     bool areLinesWhole) const {
  ResultTile tile;
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  std::array<ArrayRef<unsigned>, 2> axes{rows, columns};
  for (unsigned i = 0; i < 2; ++i) {
    tile.block[i] = schedule.getBlock()[i];
    tile.part[i] = schedule.getTile()[i];
    tile.sides[i] = getResultSide(axes[i]);
    tile.counts[i] = 1;
    for (unsigned axis : axes[i])
      tile.counts[i] *= problem.coordinates.axes[axis].extent;
  }
  if (bytes != 2 || !tile.sides[1].isContiguous())
    return std::nullopt;
  tile.elementType = getExchangeType();
  tile.areLinesWhole = areLinesWhole;
  // 16 bytes: lines of eight rows begin in different banks. With 32 bits those
  // of four rows do, which half a warp writes at once.
  tile.pitch = tile.block[1] + 8;
  tile.width = getResultWidth(batches, rows, columns);
  if (areLinesWhole) {
    tile.pitch = tile.counts[1];
    SmallVector<unsigned> both(rows);
    llvm::append_range(both, columns);
    tile.width = getResultWidth(batches, {}, both);
  }
  for (tile.slabRows = tile.part[0]; tile.slabRows >= group;
       tile.slabRows -= group)
    if (tile.part[0] % tile.slabRows == 0 &&
        tile.getBytes() <= schedule.getSharedBytes())
      return tile;
  return std::nullopt;
}

void ResultTileEmitter::emitPair(Value pair, AffineExpr line,
                                 AffineExpr column) {
  if (!tile.areLinesWhole) {
    vector::StoreOp::create(
        b, pair, memory, ValueRange(index.emit(line * tile.pitch + column)),
        /*nontemporal=*/false, llvm::MaybeAlign(2 * getBytes()));
    return;
  }
  // Lines of odd lengths: a pair begins anywhere, and may be beyond the end.
  for (int64_t i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(b);
    if (Value exists = index.emitGuard({column + i, tile.counts[1]})) {
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    memref::StoreOp::create(
        b, vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{i}), memory,
        index.emit(line * tile.pitch + column + i));
  }
}

void ResultTileEmitter::emitFragments(AffineExpr lane, AffineExpr line,
                                      AffineExpr column,
                                      ArrayRef<Value> fragments) {
  Type type = tile.elementType;
  auto pair = VectorType::get({2}, type);
  auto getPair = [&](Value fragment, int64_t half) -> Value {
    Value sums =
        vector::ExtractOp::create(b, fragment, ArrayRef<int64_t>{half});
    return sums.getType() == pair
               ? sums
               : Value(arith::TruncFOp::create(b, pair, sums));
  };
  // Matrix stores are of 16 bits, to multiples of 16 bytes.
  if (hasMatrixStores(device) && fragments.size() == 2 && getBytes() == 2 &&
      !tile.areLinesWhole) {
    // Four matrices of 8x8: the upper and the lower rows of the first columns,
    // then those of the others.
    auto all = VectorType::get({4, 2}, type);
    Value registers = arith::ConstantOp::create(b, b.getZeroAttr(all));
    for (int64_t i = 0; i < 4; ++i)
      registers = vector::InsertOp::create(b, getPair(fragments[i / 2], i % 2),
                                           registers, ArrayRef<int64_t>{i});
    AffineExpr address =
        (line + lane % 16) * tile.pitch + column + lane.floorDiv(16) * 8;
    StoreMatrixOp::create(b, registers, memory, index.emit(address));
    return;
  }
  for (auto [number, fragment] : llvm::enumerate(fragments))
    for (int64_t half = 0; half < 2; ++half)
      emitPair(getPair(fragment, half), line + lane.floorDiv(4) + 8 * half,
               column + lane % 4 * 2 + 8 * static_cast<int64_t>(number));
}

//===----------------------------------------------------------------------===//
// From workgroup memory
//===----------------------------------------------------------------------===//

void ResultTileEmitter::emitIf(Value condition) {
  if (!condition)
    return;
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

Value ResultTileEmitter::emitAll(ArrayRef<Value> conditions) {
  Value all;
  for (Value condition : conditions)
    if (condition)
      all = all ? Value(arith::AndIOp::create(b, all, condition)) : condition;
  return all ? all : arith::ConstantOp::create(b, b.getBoolAttr(true));
}

AffineExpr ResultTileEmitter::getRow(const Slab &slab, AffineExpr line) const {
  return slab.begin[0] + line.floorDiv(tile.slabRows) * tile.part[0] +
         line % tile.slabRows + slab.number * tile.slabRows;
}

AffineExpr ResultTileEmitter::getTarget(const Slab &slab, AffineExpr line,
                                        AffineExpr column) const {
  return slab.origin + tile.sides[0].getOffset(getRow(slab, line)) +
         tile.sides[1].getOffset(slab.begin[1] + column);
}

void ResultTileEmitter::emitStore(const Slab &slab, AffineExpr address,
                                  AffineExpr line, AffineExpr column,
                                  int64_t width) {
  // Pairs begin anywhere in memory.
  int64_t bytes = width == tile.width
                      ? std::min<int64_t>(width * getBytes(), 16)
                      : getBytes();
  Value values =
      vector::LoadOp::create(b, VectorType::get({width}, tile.elementType),
                             memory, ValueRange(index.emit(address)),
                             /*nontemporal=*/false, llvm::MaybeAlign(bytes));
  values = slab.finish(values, getRow(slab, line), slab.begin[1] + column);
  // 16 bits each.
  vector::StoreOp::create(b, values, output,
                          ValueRange(index.emit(getTarget(slab, line, column))),
                          /*nontemporal=*/false, llvm::MaybeAlign(width * 2));
}

// Whole lines of a warp follow each other, so they are one line of vectors.
ResultTileEmitter::Place ResultTileEmitter::getPlace(AffineExpr number) {
  int64_t across = tile.getLength() / tile.width;
  int64_t down = tile.getNumVectors() / across;
  // Values of their own: what is divided is divided once.
  AffineExpr line = addValue(number.floorDiv(across), down);
  AffineExpr column = addValue(number % across, across) * tile.width;
  if (!tile.areLinesWhole)
    return {line * tile.pitch + column, line, column};
  // The row in which the vector begins, and where in it.
  return {line * tile.getLength() + column,
          line * tile.slabRows +
              addValue(column.floorDiv(tile.pitch), tile.slabRows),
          addValue(column % tile.pitch, tile.pitch)};
}

void ResultTileEmitter::forEach(int64_t total, const Threads &threads,
                                function_ref<void(AffineExpr)> emitBody) {
  for (int64_t first = 0; first < total; first += threads.count) {
    OpBuilder::InsertionGuard guard(b);
    AffineExpr number = threads.number + first;
    if (first + threads.count > total)
      emitIf(index.emitGuard({number, total}));
    emitBody(number);
  }
}

void ResultTileEmitter::emitStores(const Slab &slab, const Threads &threads) {
  if (tile.width == 1) {
    emitPairs(slab, threads);
    emitSingles(slab, threads);
    return;
  }
  forEach(tile.getNumVectors(), threads, [&](AffineExpr number) {
    Place place = getPlace(number);
    emitIf(index.emitGuard({getRow(slab, place.line), tile.counts[0]}));
    // A vector exists as a whole: its width divides the extent of its
    // dimension, or that of all whole lines.
    emitIf(index.emitGuard({slab.begin[1] + place.column, tile.counts[1]}));
    emitStore(slab, place.address, place.line, place.column, tile.width);
  });
}

//===----------------------------------------------------------------------===//
// Rows at any address
//===----------------------------------------------------------------------===//

// A row of 7x7 points begins at an odd address as often as at an even one, and
// goes on elsewhere after 49 points. Of two neighbours in one piece of it that
// one block has, the first at an even address begins a pair.

Value ResultTileEmitter::emitHasNext(const Slab &slab, AffineExpr column) {
  AffineExpr position = slab.begin[1] + column;
  int64_t length = tile.sides[1].getLength();
  return emitAll({index.emitGuard({column + 1, tile.block[1]}),
                  index.emitGuard({position + 1, tile.counts[1]}),
                  index.emitGuard({position % length + 1, length})});
}

Value ResultTileEmitter::emitIsEven(const Slab &slab, AffineExpr line,
                                    AffineExpr column) {
  Value target = index.emit(getTarget(slab, line, column));
  return arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(b, target, index.createConstant(2)),
      index.createConstant(0));
}

void ResultTileEmitter::emitPairs(const Slab &slab, const Threads &threads) {
  int64_t across = tile.block[1] / 2, down = tile.getNumLines();
  forEach(down * across, threads, [&](AffineExpr number) {
    AffineExpr line = addValue(number.floorDiv(across), down);
    AffineExpr first = addValue(number % across, across) * 2;
    emitIf(index.emitGuard({getRow(slab, line), tile.counts[0]}));
    // One of two neighbours at most begins a pair.
    Value isFirst = arith::AndIOp::create(b, emitIsEven(slab, line, first),
                                          emitHasNext(slab, first));
    Value offset = arith::SelectOp::create(b, isFirst, index.createConstant(0),
                                           index.createConstant(1));
    AffineExpr column = first + index.add(offset, {0, 1});
    emitIf(arith::AndIOp::create(b, emitIsEven(slab, line, column),
                                 emitHasNext(slab, column)));
    emitStore(slab, line * tile.pitch + column, line, column, 2);
  });
}

// By itself is what begins or ends a piece at the wrong address: at the edges
// of the block, or where the row goes on elsewhere.
void ResultTileEmitter::emitSingles(const Slab &slab, const Threads &threads) {
  int64_t length = tile.sides[1].getLength(), columns = tile.block[1];
  int64_t breaks = llvm::divideCeil(columns, length);
  int64_t across = 2 * breaks + 2, down = tile.getNumLines();
  // The first point in the block at which a row goes on elsewhere.
  AffineExpr begin = slab.begin[1];
  AffineExpr first =
      addValue((begin + length - 1).floorDiv(length) * length - begin, length);
  forEach(down * across, threads, [&](AffineExpr number) {
    AffineExpr line = addValue(number.floorDiv(across), down);
    AffineExpr edge = addValue(number % across, across);
    emitIf(index.emitGuard({getRow(slab, line), tile.counts[0]}));
    Value atBreak = index.emit(first + edge.floorDiv(2) * length + edge % 2);
    Value atEdge = index.emit((edge % 2) * (columns - 1) + 1);
    Value isBreak =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index.emit(edge),
                              index.createConstant(2 * breaks));
    // One more than the column, which may be none.
    Value next = arith::SelectOp::create(b, isBreak, atBreak, atEdge);
    AffineExpr column =
        index.add(next, {0, std::max(length * (breaks + 1), columns)}) - 1;
    emitIf(index.emitGuard({column, columns}));
    column = addValue(column, columns);
    AffineExpr position = begin + column;
    emitIf(index.emitGuard({position, tile.counts[1]}));
    Value hasPrevious =
        emitAll({index.emitGuard({column - 1, columns}),
                 index.emitGuard({position % length - 1, length})});
    Value isPaired =
        arith::SelectOp::create(b, emitIsEven(slab, line, column),
                                emitHasNext(slab, column), hasPrevious);
    emitIf(arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq, isPaired,
        arith::ConstantOp::create(b, b.getBoolAttr(false))));
    emitStore(slab, line * tile.pitch + column, line, column, 1);
  });
}
