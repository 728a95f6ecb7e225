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

void ResultTileEmitter::emitStores(int64_t slab, AffineExpr thread,
                                   int64_t numThreads, AffineExpr origin,
                                   std::array<AffineExpr, 2> begin,
                                   Finish finish) {
  auto type = VectorType::get({tile.width}, tile.elementType);
  int64_t bytes = std::min<int64_t>(tile.width * getBytes(), 16);
  int64_t total = tile.getNumVectors();
  for (int64_t first = 0; first < total; first += numThreads) {
    OpBuilder::InsertionGuard guard(b);
    AffineExpr number = thread + first;
    auto emitIf = [&](Guard condition) {
      Value exists = index.emitGuard(condition);
      if (!exists)
        return;
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    };
    if (first + numThreads > total)
      emitIf({number, total});
    Place place = getPlace(number);
    AffineExpr row = place.line.floorDiv(tile.slabRows) * tile.part[0] +
                     place.line % tile.slabRows + slab * tile.slabRows;
    row = row + begin[0];
    emitIf({row, tile.counts[0]});
    // A vector exists as a whole: its width divides the extent of its
    // dimension, or that of all whole lines.
    AffineExpr position = begin[1] + place.column;
    emitIf({position, tile.counts[1]});
    Value values = vector::LoadOp::create(
        b, type, memory, ValueRange(index.emit(place.address)),
        /*nontemporal=*/false, llvm::MaybeAlign(bytes));
    values = finish(values, row, position);
    AffineExpr target = origin + tile.sides[0].getOffset(row) +
                        tile.sides[1].getOffset(position);
    // 16 bits each.
    vector::StoreOp::create(b, values, output, ValueRange(index.emit(target)),
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(tile.width * 2));
  }
}
